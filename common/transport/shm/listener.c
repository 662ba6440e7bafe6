/* SPDX-License-Identifier: MIT */
/*
 * Where connectors ask for links: a UNIX socket that this user's processes may call, and those of a
 * group if one is let in.
 *
 * A caller sends one hello with its memory. It is heard the moment it is accepted, so that callers
 * who say nothing cannot push one out who has spoken. At most CALLERS_MAX are kept; the silent are
 * sent away after SILENT_MAX_NS, and the oldest of them before that where there is no room.
 *
 * A caller that was heard belongs to the thread that answers it, until that has stored CALLER_NONE;
 * all others belong to the listener's own thread.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/transport/shm/shm.h"

#define CALLERS_MAX 64
/* A caller on a busy host may lose its processor between its call and its hello. */
#define SILENT_MAX_NS (10 * MST_SECOND)

enum shm_caller_state {
	CALLER_NONE,
	CALLER_SILENT, /* accepted, has not said its hello */
	CALLER_HEARD,  /* shown by next_request(), to be answered */
};

struct shm_caller {
	_Atomic enum shm_caller_state state;
	int socket;                      /* its */
	struct mst_shm_foreign *foreign; /* has charge of that, and of its memory */
	uint64_t since_ns;
	struct mst_lanes lanes;
};

struct shm_listener {
	struct mst_link_listener listener;
	struct mst_shm_memory *published; /* of the net, kept: closing the two needs no order */
	size_t published_bytes;
	bool huge_pages;
	int64_t group; /* let in, too; -1: none */
	int epoll;     /* the listener, and callers that are silent yet */
	struct mst_shm_closer *closer;
	int listen_fd;
	struct mst_shm_foreign *queue; /* has charge of the listener: callers' things lie there */
	struct mst_shm_foreign *next;  /* for the next caller; NULL: to be made */
	struct shm_caller caller[CALLERS_MAX];
};

static int watch(const struct shm_listener *listener, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(listener->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int open_listener(struct shm_listener *listener, struct mst_reason *why)
{
	char path[MST_SHM_PATH_LEN];

	listener->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	listener->queue->socket = listener->listen_fd;
	if (listener->listen_fd < 0)
		return -errno;
	int rc = mst_shm_listen(listener->listen_fd, listener->group, path, why);
	if (rc < 0)
		return rc;
	memcpy(listener->listener.address, path, sizeof(path));
	listener->epoll = epoll_create1(EPOLL_CLOEXEC);
	return listener->epoll < 0 ? -errno : watch(listener, listener->listen_fd);
}

static enum shm_caller_state state_of(struct shm_caller *c)
{
	/* Acquire: pairs with the release in dismiss(). */
	return atomic_load_explicit(&c->state, memory_order_acquire);
}

static void dismiss(const struct shm_listener *listener, struct shm_caller *c)
{
	if (state_of(c) == CALLER_SILENT) /* it is closed later, and must not ring until then */
		epoll_ctl(listener->epoll, EPOLL_CTL_DEL, c->socket, NULL);
	mst_shm_foreign_close(c->foreign);
	c->foreign = NULL;
	c->socket = -1;
	/* Release: the place is the listener's own thread's from now on, with all that lies in
	 * it. */
	atomic_store_explicit(&c->state, CALLER_NONE, memory_order_release);
}

static void listener_close(struct mst_link_listener *d)
{
	struct shm_listener *listener = (struct shm_listener *)d;

	if (listener == NULL)
		return;
	if (listener->listener.address[0] != '\0')
		(void)unlink(listener->listener.address);
	for (int i = 0; i < CALLERS_MAX; i++)
		dismiss(listener, &listener->caller[i]);
	mst_shm_foreign_close(listener->next);
	mst_shm_foreign_close(listener->queue);
	mst_shm_closer_drop(listener->closer);
	mst_shm_close(&listener->epoll);
	mst_shm_memory_drop(listener->published);
	free(listener);
}

static int listener_open(struct mst_net *n, struct mst_link_listener **out, struct mst_reason *why)
{
	const struct mst_shm_net *net = (const struct mst_shm_net *)n;
	struct shm_listener *listener = calloc(1, sizeof(*listener));

	mst_reason_clear(why);
	if (listener == NULL)
		return -ENOMEM;
	listener->listener.ops = &mst_shm;
	listener->published = mst_shm_memory_keep(net->memory);
	listener->published_bytes = net->net.published_bytes;
	listener->huge_pages = net->huge_pages;
	listener->group = net->group;
	listener->epoll = listener->listen_fd = -1;
	for (int i = 0; i < CALLERS_MAX; i++)
		listener->caller[i].socket = -1;
	int rc = mst_shm_closer_new(&listener->closer);
	if (rc == 0)
		listener->queue = mst_shm_foreign_new(listener->closer, -1);
	if (rc == 0)
		rc = listener->queue != NULL ? open_listener(listener, why) : -ENOMEM;
	if (rc < 0) {
		listener_close(&listener->listener);
		return rc;
	}
	*out = &listener->listener;
	return 0;
}

/* The listener, epoll; each caller's socket; and of the one that is let in its memory, both notify
 * descriptors and what it hears one of them by. Callers that were heard have places of links that
 * are to be. */
uint32_t mst_shm_listener_descriptors(void)
{
	return 2 + CALLERS_MAX + 4;
}

static int listener_fd(const struct mst_link_listener *d)
{
	return ((const struct shm_listener *)d)->epoll;
}

/* Tells why, if the caller listens, and hangs up. */
static void send_away(const struct shm_listener *listener, struct shm_caller *c, int error)
{
	struct mst_shm_welcome no = { MST_SHM_MAGIC, MST_SHM_VERSION, .error = error };
	struct mst_shm_fd_message p = { .body = &no, .bytes = sizeof(no) };

	mst_shm_send(c->socket, &p);
	dismiss(listener, c);
}

/* 0; else what is wrong with the hello. The memory that came with it is not looked at: that is for
 * when the owner has let the caller in. */
static int judge(const struct mst_shm_hello *h, const struct mst_shm_fd_message *p,
		 struct shm_caller *c)
{
	struct mst_shm_layout layout;

	if (h->magic != MST_SHM_MAGIC || h->version != MST_SHM_VERSION)
		return -EPROTONOSUPPORT;
	if (p->fd_count != 1)
		return -EPROTO;
	c->lanes = (struct mst_lanes){ h->up_bytes, h->down_bytes, h->up_credits, h->down_credits };
	return mst_shm_layout(&c->lanes, &layout);
}

/* 0: the caller has said a hello in order; -EAGAIN: nothing yet; else it is not fit to be seen. */
static int hear(struct shm_listener *listener, struct shm_caller *c, struct mst_link_request *out)
{
	struct mst_shm_hello hello;
	struct mst_shm_fd_message p = { .body = &hello, .bytes = sizeof(hello) };
	int rc = mst_shm_receive(c->socket, &p);

	c->foreign->passed = p; /* whatever it is: closed with its caller */
	c->foreign->passed.body = NULL;
	if (rc == 0)
		rc = judge(&hello, &p, c);
	if (rc < 0)
		return rc;
	epoll_ctl(listener->epoll, EPOLL_CTL_DEL, c->socket, NULL);
	atomic_store_explicit(&c->state, CALLER_HEARD,
			      memory_order_relaxed); /* told by the request */
	*out = (struct mst_link_request){ .lanes = c->lanes, .caller = c };
	memcpy(out->token, hello.token, sizeof(out->token));
	return 0;
}

/* Hears the silent ones again. 0 or -EAGAIN, as next_request(). */
static int hear_silent(struct shm_listener *listener, uint64_t now_ns, struct mst_link_request *out)
{
	for (int i = 0; i < CALLERS_MAX; i++) {
		struct shm_caller *c = &listener->caller[i];
		if (state_of(c) != CALLER_SILENT)
			continue;
		int rc = hear(listener, c, out);
		if (rc == 0)
			return 0;
		if (rc == -EAGAIN && now_ns - c->since_ns >= SILENT_MAX_NS)
			rc = -ETIMEDOUT;
		if (rc != -EAGAIN)
			send_away(listener, c, rc);
	}
	return -EAGAIN;
}

static bool somebody_waits(const struct shm_listener *listener)
{
	struct pollfd queue = { .fd = listener->listen_fd, .events = POLLIN };

	return poll(&queue, 1, 0) > 0;
}

/* Room for one more caller, made at the cost of the oldest silent one if there is somebody to make
 * it for; NULL: there is none. */
static struct shm_caller *make_room(struct shm_listener *listener)
{
	struct shm_caller *oldest = NULL;

	for (int i = 0; i < CALLERS_MAX; i++) {
		struct shm_caller *c = &listener->caller[i];
		enum shm_caller_state state = state_of(c);
		if (state == CALLER_NONE)
			return c;
		if (state == CALLER_SILENT && (oldest == NULL || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	if (oldest == NULL || !somebody_waits(listener))
		return NULL;
	send_away(listener, oldest, -ETIMEDOUT);
	return oldest;
}

/* Takes the next of the queue and hears it. 0: it asks for a link; 1: it does not, but there may be
 * more;
 * -EAGAIN: the queue is empty; else the socket's errno. */
static int let_near(struct shm_listener *listener, uint64_t now_ns, struct mst_link_request *out)
{
	struct shm_caller *c = mst_shm_closer_is_behind(listener->closer) ? NULL
									  : make_room(listener);

	if (c == NULL)
		return -EAGAIN;
	if (listener->next == NULL)
		listener->next = mst_shm_foreign_new(listener->closer, -1);
	if (listener->next == NULL)
		return -ENOMEM;
	c->socket = accept4(listener->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (c->socket < 0)
		return errno == EINTR || errno == ECONNABORTED ? 1 : -errno;
	c->foreign = listener->next;
	c->foreign->socket = c->socket;
	listener->next = NULL;
	atomic_store_explicit(&c->state, CALLER_SILENT, memory_order_relaxed);
	c->since_ns = now_ns;
	int rc = mst_shm_may_call(c->socket, listener->group) ? watch(listener, c->socket)
							      : -EACCES;
	if (rc == 0)
		rc = hear(listener, c, out);
	if (rc < 0 && rc != -EAGAIN)
		send_away(listener, c, rc);
	return rc == 0 ? 0 : 1;
}

static int listener_next_request(struct mst_link_listener *d, struct mst_link_request *out,
				 struct mst_reason *why)
{
	struct shm_listener *listener = (struct shm_listener *)d;
	uint64_t now_ns = mst_now_ns();
	int rc = hear_silent(listener, now_ns, out);

	mst_reason_clear(why);
	if (rc == 0)
		return 0;
	/* A bounded number, since callers may come faster than they are refused. */
	rc = 1;
	for (int i = 0; i < CALLERS_MAX && rc == 1; i++)
		rc = let_near(listener, now_ns, out);
	return rc == 1 ? -EAGAIN : rc;
}

/* Checks and maps what the caller brought, and makes both notify descriptors; by @wait_fd it will
 * hear the `down` one. */
static int furnish(struct mst_shm_link *l, struct shm_caller *c, int *wait_fd)
{
	struct mst_shm_layout layout;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	mst_shm_layout(&c->lanes, &layout);
	struct mst_shm_mapping how = { c->foreign->passed.fd[0], layout.bytes, MST_SHM_WRITABLE,
				       mst_shm_own_process(c->socket) };
	int rc = mst_shm_memory_check(how.fd, how.bytes, how.access);
	if (rc == 0)
		rc = mst_shm_memory_map(&how, &l->memory);
	if (rc < 0)
		return rc;
	mst_shm_link_arrange(l, MST_SHM_ACCEPTOR, &c->lanes);
	l->wait_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->wait_fd < 0 || l->notify_fd < 0 || *wait_fd < 0)
		return -errno;
	return epoll_ctl(*wait_fd, EPOLL_CTL_ADD, l->notify_fd, &ev) < 0 ? -errno : 0;
}

static int send_welcome(const struct shm_listener *listener, int socket, int up_notify_fd,
			int down_wait_fd)
{
	struct mst_shm_welcome yes = { MST_SHM_MAGIC, MST_SHM_VERSION,
				       .flags = listener->huge_pages ? MST_SHM_WELCOME_HUGE : 0,
				       .published_bytes = listener->published_bytes };
	struct mst_shm_fd_message p = { .body = &yes, .bytes = sizeof(yes) };

	p.fd[MST_SHM_FD_NET] = listener->published->fd;
	p.fd[MST_SHM_FD_UP_NOTIFY_FD] = up_notify_fd;
	p.fd[MST_SHM_FD_DOWN_WAIT_FD] = down_wait_fd;
	p.fd_count = MST_SHM_WELCOME_FDS;
	return mst_shm_send(socket, &p);
}

static int let_in(struct shm_listener *listener, struct shm_caller *c, struct mst_link **out)
{
	struct mst_shm_link *l = mst_shm_link_new();
	int down_wait_fd = -1;

	if (l == NULL)
		return -ENOMEM;
	int rc = furnish(l, c, &down_wait_fd);
	if (rc == 0)
		rc = send_welcome(listener, c->socket, l->wait_fd, down_wait_fd);
	mst_shm_close(&down_wait_fd);
	if (rc < 0) {
		mst_shm_link_free(&l->link);
		return rc;
	}
	mst_shm_fd_message_close(&c->foreign->passed); /* the link's memory, which is mapped */
	l->socket = c->socket;
	l->foreign = c->foreign;
	c->foreign = NULL;
	*out = &l->link;
	return 0;
}

static int listener_answer(struct mst_link_listener *d, const struct mst_link_request *request,
			   struct mst_link **out, struct mst_reason *why)
{
	struct shm_listener *listener = (struct shm_listener *)d;
	struct shm_caller *c = request->caller;

	MST_ASSERT(state_of(c) == CALLER_HEARD);
	mst_reason_clear(why);
	int rc = out != NULL ? let_in(listener, c, out) : -EACCES;
	if (rc < 0)
		send_away(listener, c, rc);
	else
		dismiss(listener, c);
	return out != NULL ? rc : 0;
}

const struct mst_link_listener_ops mst_shm_listener = {
	.open = listener_open,
	.close = listener_close,
	.fd = listener_fd,
	.next_request = listener_next_request,
	.answer = listener_answer,
};
