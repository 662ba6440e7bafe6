/* SPDX-License-Identifier: MIT */
/*
 * Where connectors knock: an abstract UNIX socket, which anybody on the host may call.
 *
 * A caller sends one hello with its memory. It is heard the moment it is accepted, so that callers
 * who say nothing cannot push one out who has spoken. At most CALLERS_MAX are kept; the silent are
 * sent away after SILENT_MAX_NS, and the oldest of them before that where there is no room.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/rand.h"
#include "common/transport/shm/shm.h"

#define CALLERS_MAX 64
#define SILENT_MAX_NS MST_SECOND

enum caller_state {
	CALLER_NONE,
	CALLER_SILENT, /* accepted, has not said its hello */
	CALLER_HEARD,  /* shown by knock(), to be answered */
};

struct caller {
	enum caller_state state;
	int socket;
	int memfd;
	uint64_t since_ns;
	struct mst_lanes lanes;
};

struct shm_door {
	struct mst_door door;
	struct mst_shm_memory *published; /* of the net, kept: closing the two needs no order */
	size_t published_bytes;
	bool huge_pages;
	int epoll; /* the listener, and callers that are silent yet */
	int listener;
	struct caller caller[CALLERS_MAX];
};

static int watch(const struct shm_door *door, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(door->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int listen_at(struct shm_door *door)
{
	struct sockaddr_un at;
	socklen_t len;
	uint64_t nonce;
	int rc = mst_rand_secret(&nonce, sizeof(nonce));

	if (rc < 0)
		return rc;
	snprintf(door->door.address, sizeof(door->door.address), "@muster-%d-%016" PRIx64,
		 (int)getpid(), nonce);
	rc = mst_shm_address(door->door.address, &at, &len);
	MST_ASSERT(rc == 0);
	door->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (door->listener < 0 || bind(door->listener, (struct sockaddr *)&at, len) < 0 ||
	    listen(door->listener, SOMAXCONN) < 0)
		return -errno;
	door->epoll = epoll_create1(EPOLL_CLOEXEC);
	return door->epoll < 0 ? -errno : watch(door, door->listener);
}

static void dismiss(struct caller *c)
{
	mst_shm_close(&c->socket);
	mst_shm_close(&c->memfd);
	c->state = CALLER_NONE;
}

static void door_close(struct mst_door *d)
{
	struct shm_door *door = (struct shm_door *)d;

	if (door == NULL)
		return;
	for (int i = 0; i < CALLERS_MAX; i++)
		dismiss(&door->caller[i]);
	mst_shm_close(&door->listener);
	mst_shm_close(&door->epoll);
	mst_shm_memory_drop(door->published);
	free(door);
}

static int door_open(struct mst_net *n, struct mst_door **out)
{
	const struct mst_shm_net *net = (const struct mst_shm_net *)n;
	struct shm_door *door = calloc(1, sizeof(*door));

	if (door == NULL)
		return -ENOMEM;
	door->door.ops = &mst_shm;
	door->published = mst_shm_memory_keep(net->memory);
	door->published_bytes = net->net.published_bytes;
	door->huge_pages = net->huge_pages;
	door->epoll = door->listener = -1;
	for (int i = 0; i < CALLERS_MAX; i++)
		door->caller[i].socket = door->caller[i].memfd = -1;
	int rc = listen_at(door);
	if (rc < 0) {
		door_close(&door->door);
		return rc;
	}
	*out = &door->door;
	return 0;
}

static int door_fd(const struct mst_door *d)
{
	return ((const struct shm_door *)d)->epoll;
}

/* Tells why, if the caller listens, and hangs up. */
static void send_away(struct caller *c, int error)
{
	struct mst_shm_welcome no = { MST_SHM_MAGIC, MST_SHM_VERSION, .error = error };
	struct mst_shm_parcel p = { .body = &no, .bytes = sizeof(no) };

	mst_shm_send(c->socket, &p);
	dismiss(c);
}

/* 0; else what is wrong with the hello, or with the memory that came with it. */
static int judge(const struct mst_shm_hello *h, const struct mst_shm_parcel *p, struct caller *c)
{
	struct mst_shm_layout layout;

	if (h->magic != MST_SHM_MAGIC || h->version != MST_SHM_VERSION)
		return -EPROTONOSUPPORT;
	if (p->fd_count != 1)
		return -EPROTO;
	c->lanes = (struct mst_lanes){ h->up_bytes, h->down_bytes, h->up_credits, h->down_credits };
	int rc = mst_shm_layout(&c->lanes, &layout);
	return rc < 0 ? rc : mst_shm_memory_check(p->fd[0], layout.bytes, MST_SHM_WRITABLE);
}

/* 0: the caller has said a hello in order; -EAGAIN: nothing yet; else it is not fit to be seen. */
static int hear(struct shm_door *door, struct caller *c, struct mst_knock *out)
{
	struct mst_shm_hello hello;
	struct mst_shm_parcel p = { .body = &hello, .bytes = sizeof(hello) };
	int rc = mst_shm_receive(c->socket, &p);

	if (rc < 0)
		return rc;
	rc = judge(&hello, &p, c);
	if (rc < 0) {
		mst_shm_parcel_close(&p);
		return rc;
	}
	epoll_ctl(door->epoll, EPOLL_CTL_DEL, c->socket, NULL);
	c->state = CALLER_HEARD;
	c->memfd = p.fd[0];
	*out = (struct mst_knock){ .lanes = c->lanes, .caller = c };
	memcpy(out->token, hello.token, sizeof(out->token));
	return 0;
}

/* Hears the silent ones again. 0 or -EAGAIN, as knock(). */
static int hear_silent(struct shm_door *door, uint64_t now_ns, struct mst_knock *out)
{
	for (int i = 0; i < CALLERS_MAX; i++) {
		struct caller *c = &door->caller[i];
		if (c->state != CALLER_SILENT)
			continue;
		int rc = hear(door, c, out);
		if (rc == 0)
			return 0;
		if (rc == -EAGAIN && now_ns - c->since_ns >= SILENT_MAX_NS)
			rc = -ETIMEDOUT;
		if (rc != -EAGAIN)
			send_away(c, rc);
	}
	return -EAGAIN;
}

static bool somebody_waits(const struct shm_door *door)
{
	struct pollfd queue = { .fd = door->listener, .events = POLLIN };

	return poll(&queue, 1, 0) > 0;
}

/* Room for one more caller, made at the cost of the oldest silent one if there is somebody to make
 * it for; NULL: there is none. */
static struct caller *make_room(struct shm_door *door)
{
	struct caller *oldest = NULL;

	for (int i = 0; i < CALLERS_MAX; i++) {
		struct caller *c = &door->caller[i];
		if (c->state == CALLER_NONE)
			return c;
		if (c->state == CALLER_SILENT && (oldest == NULL || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	if (oldest == NULL || !somebody_waits(door))
		return NULL;
	send_away(oldest, -ETIMEDOUT);
	return oldest;
}

/* Takes the next of the queue and hears it. 0: it knocks; 1: it does not, but there may be more;
 * -EAGAIN: the queue is empty; else the socket's errno. */
static int let_near(struct shm_door *door, uint64_t now_ns, struct mst_knock *out)
{
	struct caller *c = make_room(door);

	if (c == NULL)
		return -EAGAIN;
	c->socket = accept4(door->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (c->socket < 0)
		return errno == EINTR || errno == ECONNABORTED ? 1 : -errno;
	c->state = CALLER_SILENT;
	c->since_ns = now_ns;
	int rc = watch(door, c->socket);
	if (rc == 0)
		rc = hear(door, c, out);
	if (rc < 0 && rc != -EAGAIN)
		send_away(c, rc);
	return rc == 0 ? 0 : 1;
}

static int door_knock(struct mst_door *d, struct mst_knock *out)
{
	struct shm_door *door = (struct shm_door *)d;
	uint64_t now_ns = mst_now_ns();
	int rc = hear_silent(door, now_ns, out);

	if (rc == 0)
		return 0;
	/* Bounded, for callers may come faster than they are refused. */
	rc = 1;
	for (int i = 0; i < CALLERS_MAX && rc == 1; i++)
		rc = let_near(door, now_ns, out);
	return rc == 1 ? -EAGAIN : rc;
}

/* Maps what the caller brought, and makes both bells; by @ear it will hear the `down` one. */
static int furnish(struct mst_shm_link *l, struct caller *c, int *ear)
{
	struct mst_shm_layout layout;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	mst_shm_layout(&c->lanes, &layout);
	struct mst_shm_mapping how = { c->memfd, layout.bytes, MST_SHM_WRITABLE,
				       mst_shm_own_process(c->socket) };
	int rc = mst_shm_memory_map(&how, &l->memory);
	if (rc < 0)
		return rc;
	mst_shm_link_arrange(l, MST_SHM_ACCEPTOR, &c->lanes);
	l->ear = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*ear = epoll_create1(EPOLL_CLOEXEC);
	if (l->ear < 0 || l->bell < 0 || *ear < 0)
		return -errno;
	return epoll_ctl(*ear, EPOLL_CTL_ADD, l->bell, &ev) < 0 ? -errno : 0;
}

static int send_welcome(const struct shm_door *door, int socket, int up_bell, int down_ear)
{
	struct mst_shm_welcome yes = { MST_SHM_MAGIC, MST_SHM_VERSION,
				       .flags = door->huge_pages ? MST_SHM_WELCOME_HUGE : 0,
				       .published_bytes = door->published_bytes };
	struct mst_shm_parcel p = { .body = &yes, .bytes = sizeof(yes) };

	p.fd[MST_SHM_FD_NET] = door->published->fd;
	p.fd[MST_SHM_FD_UP_BELL] = up_bell;
	p.fd[MST_SHM_FD_DOWN_EAR] = down_ear;
	p.fd_count = MST_SHM_WELCOME_FDS;
	return mst_shm_send(socket, &p);
}

static int let_in(struct shm_door *door, struct caller *c, struct mst_link **out)
{
	struct mst_shm_link *l = mst_shm_link_new();
	int down_ear = -1;

	if (l == NULL)
		return -ENOMEM;
	int rc = furnish(l, c, &down_ear);
	if (rc == 0)
		rc = send_welcome(door, c->socket, l->ear, down_ear);
	mst_shm_close(&down_ear);
	if (rc < 0) {
		mst_shm_link_free(&l->link);
		return rc;
	}
	l->socket = c->socket;
	c->socket = -1;
	*out = &l->link;
	return 0;
}

static int door_answer(struct mst_door *d, const struct mst_knock *knock, struct mst_link **out)
{
	struct shm_door *door = (struct shm_door *)d;
	struct caller *c = knock->caller;

	MST_ASSERT(c->state == CALLER_HEARD);
	int rc = out != NULL ? let_in(door, c, out) : -EACCES;
	if (rc < 0)
		send_away(c, rc);
	else
		dismiss(c);
	return out != NULL ? rc : 0;
}

const struct mst_door_ops mst_shm_door = {
	.open = door_open,
	.close = door_close,
	.fd = door_fd,
	.knock = door_knock,
	.answer = door_answer,
};
