/* SPDX-License-Identifier: MIT */
/* Peers in threads and in processes; orders and reports travel over a socket pair. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/transport/peer.h"

struct peer {
	const struct mst_transport *transport;
	int control; /* the tester's end */
	int orders;  /* the peer's end, in a thread */
	pid_t pid;   /* 0: a thread */
	pthread_t thread;
};

/* Until there is something to receive. Events stay where they are. */
static void poll_until_readable(int fd, struct mst_net *net)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct mst_net_event none;

	while (peer_polls && net != NULL && poll(&pfd, 1, 1) == 0) {
		(void)net->ops->poll(net, &none, 0);
		(void)net->ops->wait(net, MST_MS); /* at rest it gives credits back */
	}
}

static void live(const struct mst_transport *t, int orders)
{
	struct side side = { .t = t };
	struct peer_command c;

	while (recv(orders, &c, sizeof(c), 0) == (ssize_t)sizeof(c)) {
		struct peer_report r = { 0 };
		r.rc = side_obey(&side, &c, &r);
		send(orders, &r, sizeof(r), MSG_NOSIGNAL);
		poll_until_readable(orders, side.net);
	}
	side_close(&side);
	close(orders);
}

static void *live_in_thread(void *arg)
{
	struct peer *p = arg;

	live(p->transport, p->orders);
	return NULL;
}

static void live_in_process(struct peer *p, int orders)
{
	p->pid = fork();
	if (p->pid != 0)
		return;
	close(p->control);
	live(p->transport, orders);
	_exit(0);
}

static _Noreturn void give_up(const char *what)
{
	perror(what);
	abort();
}

struct peer *peer_start(const struct mst_transport *t, bool process)
{
	struct timeval patience = { .tv_sec = PEER_PATIENCE_S + 5 };
	struct peer *p = calloc(1, sizeof(*p));
	int pair[2];

	if (p == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		give_up("no peer to test with");
	p->transport = t;
	p->control = pair[0];
	p->orders = pair[1];
	setsockopt(p->control, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (process) {
		live_in_process(p, pair[1]);
		close(pair[1]);
	} else if (pthread_create(&p->thread, NULL, live_in_thread, p) != 0) {
		give_up("no thread to test with");
	}
	if (p->pid < 0)
		give_up("no process to test with");
	return p;
}

void peer_tell(struct peer *p, const struct peer_command *c)
{
	send(p->control, c, sizeof(*c), MSG_NOSIGNAL);
}

struct peer_report peer_hear(struct peer *p)
{
	struct peer_report r;

	poll_until_readable(p->control, peer_tester);
	if (recv(p->control, &r, sizeof(r), 0) != (ssize_t)sizeof(r))
		r = (struct peer_report){ .rc = -ETIME };
	return r;
}

struct peer_report peer_do(struct peer *p, const struct peer_command *c)
{
	peer_tell(p, c);
	return peer_hear(p);
}

void peer_kill(void *peer)
{
	kill(((struct peer *)peer)->pid, SIGKILL);
}

void peer_stop(struct peer *p)
{
	kill(p->pid, SIGSTOP);
}

void peer_continue(struct peer *p)
{
	kill(p->pid, SIGCONT);
}

int peer_end(struct peer *p)
{
	int status = 0;

	/* Not close() alone: a peer that was forked later has this descriptor too. */
	shutdown(p->control, SHUT_RDWR);
	close(p->control);
	if (p->pid > 0)
		waitpid(p->pid, &status, 0);
	else
		pthread_join(p->thread, NULL);
	free(p);
	return status;
}

/* ---- time ---- */

void await_caller(const struct mst_link_listener *listener)
{
	struct pollfd pfd = { .fd = listener->ops->listener->fd(listener), .events = POLLIN };

	poll(&pfd, 1, 100);
}

static struct {
	pthread_t thread;
	uint64_t after_ns;
	void (*act)(void *arg);
	void *arg;
} deed;

static void *do_later(void *unused)
{
	(void)unused;
	mst_sleep_ns(deed.after_ns);
	deed.act(deed.arg);
	return NULL;
}

void later(uint64_t after_ns, void (*act)(void *arg), void *arg)
{
	deed.after_ns = after_ns;
	deed.act = act;
	deed.arg = arg;
	if (pthread_create(&deed.thread, NULL, do_later, NULL) != 0)
		give_up("no thread to test with");
}

void later_end(void)
{
	pthread_join(deed.thread, NULL);
}
