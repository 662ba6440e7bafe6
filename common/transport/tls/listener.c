/* SPDX-License-Identifier: MIT */
/*
 * One thread takes the callers of a port and shakes hands. A caller has no TLS before its first
 * byte has come, so one that says nothing costs a descriptor and a few words. Callers have seconds,
 * a number of bytes and places (callers.h). A caller that is not believed is told so, and stays a
 * moment: were the connection closed at once, what it has sent meanwhile could wipe out that word.
 *
 * More may call than the thread can shake hands with. Taking a caller costs little, so all that
 * wait are taken first; handshakes that have begun go on; and new ones are begun in the order of
 * mst_callers_precedes(). In the order in which they came, each would wait for the whole crowd.
 */
#include "common/transport/tls/listener.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/rand.h"
#include "common/transport/stream.h"
#include "common/transport/tls/callers.h"
#include "common/transport/tls/handoff.h"
#include "common/transport/tls/stream.h"
#include "common/wire/message.h"

/* ---- callers that do not speak TLS ---- */

#define FRAME_BYTES 1024u

/* Sends an error of this release's protocol, as far as the stream takes it at once. Any release
 * understands it or says that the protocols differ. */
static void send_error(struct mst_stream *below)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));
	unsigned char frame[FRAME_BYTES];

	if (msg == NULL)
		return;
	msg->kind = MST_MSG_ERROR;
	msg->error.code = -EACCES;
	(void)snprintf(msg->error.reason, sizeof(msg->error.reason),
		       "this server lets in who proves itself by TLS: give --tls-ca, --tls-cert "
		       "and --tls-key, or set MUSTER_TLS_CA, MUSTER_TLS_CERT and MUSTER_TLS_KEY");
	int64_t length = mst_message_encode(msg, frame, sizeof(frame));
	if (length > 0)
		(void)mst_plain.send(below, frame, (size_t)length);
	free(msg);
}

/* ---- the thread ---- */

#define CALLERS_MAX 1024u
#define MOMENT_NS (100 * MST_MS) /* each caller has at least so long, however many there are */
#define LINGER_NS MST_SECOND
/* How long no caller is accepted after accept() failed because no descriptor was free. */
#define REST_NS (50 * MST_MS)
#define EVENTS (CALLERS_MAX + 2) /* enough for an event of each descriptor in one look */
/* How much the thread's nice value is above that of the process. If it shares a processor with a
 * thread that computes all the time, it gets a quarter of it. */
#define NICER 5
/* The thread looks so often by itself whether it is to end: a call that was to wake it may have
 * failed. */
#define LOOK_MS 2000
#define TAKEN_AT_ONCE 256 /* callers accepted between two looks at the callers that are there */
#define BEGUN_AT_ONCE 16  /* handshakes begun between two such looks */
#define RECORD_HANDSHAKE 22
#define WARNINGS 5u
#define WARNINGS_NS (10 * MST_SECOND)

uint64_t mst_tls_handshake_ns = 5 * MST_SECOND;

/* The data of an epoll event is the place of a caller, or one of these values. */
#define OF_PORT UINT32_MAX
#define OF_WAKER (UINT32_MAX - 1)

struct caller {
	struct mst_stream *below; /* before its first byte, and when it is leaving; else NULL */
	struct mst_stream *tls;   /* while hands are shaken; else NULL */
	uint64_t until_ns;
	bool leaving;
	char peer[MST_HANDOFF_PEER_LEN];
};

struct mst_listener {
	struct mst_listener *port[MST_CHANNEL_SOCKETS_MAX]; /* of mst_plain */
	uint32_t ports;
	bool channels;
	const void *refusal; /* of channels, to callers that do not speak TLS */
	size_t refusal_bytes;
	struct mst_credentials *own;
	pthread_t thread;
	atomic_bool stops;
	int waker; /* an eventfd that ends the thread's wait */
	struct mst_handoff handoff;
	/* the thread's: */
	int epoll;
	struct epoll_event event[EVENTS];
	uint32_t fresh[CALLERS_MAX]; /* places of callers whose first byte has come */
	bool deaf;
	uint64_t deaf_until_ns;
	struct mst_ratelimit warnings;
	struct mst_callers callers;
	struct mst_caller_place place[CALLERS_MAX];
	struct caller caller[CALLERS_MAX];
};

/* ---- descriptors ---- */

static int watch(const struct mst_listener *l, int op, int fd, uint32_t events, uint32_t of)
{
	struct epoll_event ev = { .events = events, .data.u32 = of };

	return epoll_ctl(l->epoll, op, fd, &ev) == 0 ? 0 : -errno;
}

static int fd_of(const struct caller *c)
{
	return c->tls != NULL ? mst_tls_stream_fd(c->tls) : mst_plain.stream_fd(c->below);
}

/* ---- callers ---- */

static __attribute__((format(printf, 2, 3))) void complain(struct mst_listener *l, const char *fmt,
							   ...)
{
	char text[MST_LOG_LINE_MAX];
	va_list args;

	if (!mst_ratelimit_pass(&l->warnings, mst_now_ns()))
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	mst_warn("%s", text);
}

static void say_how_many_more(struct mst_listener *l, uint64_t now_ns)
{
	uint64_t more = mst_ratelimit_take(&l->warnings, now_ns);

	if (more > 0)
		mst_warn("%" PRIu64 " more callers proved nothing in the last %.0f s", more,
			 (double)WARNINGS_NS / (double)MST_SECOND);
}

static void leave(struct mst_listener *l, uint32_t i)
{
	struct caller *c = &l->caller[i];

	if (c->tls != NULL)
		mst_tls_stream_close(c->tls);
	else if (c->below != NULL)
		mst_plain.close(c->below);
	memset(c, 0, sizeof(*c));
	mst_callers_leave(&l->callers, i);
}

/* The peer is to read the last word before the connection is closed. */
static void linger(struct mst_listener *l, uint32_t i, uint64_t now_ns)
{
	struct caller *c = &l->caller[i];

	(void)shutdown(fd_of(c), SHUT_WR);
	(void)watch(l, EPOLL_CTL_MOD, fd_of(c), EPOLLIN, i);
	c->leaving = true;
	c->until_ns = now_ns + LINGER_NS;
}

static void enter(struct mst_listener *l, struct mst_stream *below, const char *peer)
{
	uint64_t now_ns = mst_now_ns();
	uint32_t group = mst_callers_group(&l->callers, peer), goes;

	if (!mst_callers_room(&l->callers, group, now_ns, &goes)) {
		complain(l, "%s was turned away: %" PRIu32 " callers are proving who they are",
			 peer, l->callers.count);
		mst_plain.close(below);
		return;
	}
	if (goes != MST_CALLERS_NONE) {
		complain(l, "%s gave way to another caller before it had proven who it is",
			 l->caller[goes].peer);
		leave(l, goes);
	}
	uint32_t i = mst_callers_enter(&l->callers, group, now_ns);
	struct caller *c = &l->caller[i];
	*c = (struct caller){ .below = below, .until_ns = now_ns + mst_tls_handshake_ns };
	memcpy(c->peer, peer, sizeof(c->peer));
	if (watch(l, EPOLL_CTL_ADD, fd_of(c), EPOLLIN, i) != 0)
		leave(l, i);
}

static void hear_port(struct mst_listener *l, bool hears)
{
	int rc = 0;

	if (l->deaf == !hears)
		return;
	for (uint32_t i = 0; i < l->ports && rc == 0; i++)
		rc = watch(l, EPOLL_CTL_MOD, mst_plain.listener_fd(l->port[i]), hears ? EPOLLIN : 0,
			   OF_PORT);
	if (rc == 0)
		l->deaf = !hears;
}

static void take_callers(struct mst_listener *l, struct mst_listener *port)
{
	char peer[MST_HANDOFF_PEER_LEN] = "";
	struct mst_stream *below;
	int rc = 0;

	for (int i = 0; i < TAKEN_AT_ONCE && rc == 0; i++) {
		rc = mst_plain.accept(port, &below, peer, sizeof(peer));
		if (rc == 0)
			enter(l, below, peer);
	}
	if (rc == 0 || rc == -EAGAIN)
		return;
	complain(l, "cannot take another caller: %s", strerror(-rc));
	hear_port(l, false);
	l->deaf_until_ns = mst_now_ns() + REST_NS;
}

/* ---- handshakes ---- */

static void hand_over(struct mst_listener *l, uint32_t i)
{
	struct caller *c = &l->caller[i];

	(void)watch(l, EPOLL_CTL_DEL, fd_of(c), 0, i);
	int rc = mst_handoff_give(&l->handoff, c->tls, c->peer);
	if (rc == 0)
		c->tls = NULL;
	else if (rc == -ENOBUFS)
		complain(l, "%s has proven who it is, but %u others wait to be heard", c->peer,
			 l->handoff.max);
	else
		complain(l, "%s has proven who it is, but cannot be handed over: write: %s",
			 c->peer, strerror(-rc));
	leave(l, i);
}

static void shake(struct mst_listener *l, uint32_t i)
{
	struct caller *c = &l->caller[i];
	int rc = mst_tls_stream_shake(c->tls);

	if (rc == 0) {
		hand_over(l, i);
	} else if (rc == -EAGAIN) {
		bool room = mst_tls_stream_wants_room(c->tls);
		(void)watch(l, EPOLL_CTL_MOD, fd_of(c), room ? EPOLLOUT : EPOLLIN, i);
	} else {
		complain(l, "%s", mst_tls_stream_why(c->tls));
		if (rc == -ECONNRESET)
			leave(l, i);
		else
			linger(l, i, mst_now_ns());
	}
}

static void answer_plain(const struct mst_listener *l, struct mst_stream *below)
{
	if (l->channels)
		(void)mst_plain.send(below, l->refusal, l->refusal_bytes);
	else
		send_error(below);
}

/* The first byte of a caller tells whether it speaks TLS. One that does not is answered in plain
 * words, which need nothing of what it has sent. */
static void begin(struct mst_listener *l, uint32_t i)
{
	struct caller *c = &l->caller[i];
	struct mst_tls_begin how = {
		.below = c->below,
		.own = l->own,
		.peer = c->peer,
		.serves = true,
		.channel = l->channels,
	};
	unsigned char first = 0;
	ssize_t got = recv(fd_of(c), &first, 1, MSG_PEEK | MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		complain(l, "%s closed the connection without a word", c->peer);
		leave(l, i);
	} else if (first != RECORD_HANDSHAKE) {
		complain(l, "%s does not speak TLS%s, which this server wants; it was told so",
			 c->peer, l->channels ? " at the data port" : "");
		answer_plain(l, c->below);
		linger(l, i, mst_now_ns());
	} else {
		c->below = NULL;
		if (mst_tls_stream_new(&how, &c->tls) == 0)
			shake(l, i);
		else
			leave(l, i);
	}
}

/* Reads what a leaving caller still sends, until it closes. */
static void drain(struct mst_listener *l, uint32_t i)
{
	char rest[4096];
	ssize_t got = recv(fd_of(&l->caller[i]), rest, sizeof(rest), MSG_DONTWAIT);

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		leave(l, i);
}

/* Begins handshakes with some of @fresh; epoll tells again of the others. */
static void begin_some(struct mst_listener *l, uint32_t count)
{
	for (uint32_t begun = 0; begun < BEGUN_AT_ONCE && count > 0; begun++) {
		uint32_t next = 0;

		for (uint32_t i = 1; i < count; i++) {
			if (mst_callers_precedes(&l->callers, l->fresh[i], l->fresh[next]))
				next = i;
		}
		begin(l, l->fresh[next]);
		l->fresh[next] = l->fresh[--count];
	}
}

/* A caller of which epoll tells may have given way since. */
static void serve(struct mst_listener *l, int events)
{
	uint32_t fresh = 0;

	for (int i = 0; i < events; i++) {
		uint32_t of = l->event[i].data.u32;
		if (of == OF_PORT || of == OF_WAKER)
			continue;
		if (l->caller[of].leaving)
			drain(l, of);
		else if (l->caller[of].tls != NULL)
			shake(l, of);
		else if (l->caller[of].below != NULL)
			l->fresh[fresh++] = of;
	}
	begin_some(l, fresh);
}

static void end_those_that_are_late(struct mst_listener *l, uint64_t now_ns)
{
	for (uint32_t i = 0; i < l->callers.max; i++) {
		if (!l->place[i].taken || now_ns < l->caller[i].until_ns)
			continue;
		if (!l->caller[i].leaving)
			complain(l, "%s has not proven who it is within %.0f s; closed",
				 l->caller[i].peer,
				 (double)mst_tls_handshake_ns / (double)MST_SECOND);
		leave(l, i);
	}
}

/* ---- the thread ---- */

static int nap_ms(const struct mst_listener *l)
{
	if (l->deaf)
		return (int)(REST_NS / MST_MS);
	return l->callers.count > 0 || l->warnings.held_back > 0 ? 250 : LOOK_MS;
}

/* Crowds of callers must not take processors from a job that needs all of them. A nice value gives
 * this thread a smaller share, but only among the threads of its session or control group. Under
 * SCHED_BATCH the thread also interrupts no other thread of the host when a caller comes. (In Linux
 * both are of a thread.) */
static void give_way(void)
{
	const struct sched_param none = { 0 };

	(void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER);
	if (sched_getscheduler(0) != SCHED_IDLE) /* which is less still, and the user's choice */
		(void)sched_setscheduler(0, SCHED_BATCH, &none);
}

static void *run(void *ctx)
{
	struct mst_listener *l = ctx;
	give_way();
	/* Acquire: pairs with the release of mst_tls_unlisten(). */
	while (!atomic_load_explicit(&l->stops, memory_order_acquire)) {
		int count = epoll_wait(l->epoll, l->event, EVENTS, nap_ms(l));
		uint64_t now_ns = mst_now_ns();

		if (l->deaf && now_ns >= l->deaf_until_ns)
			hear_port(l, true);
		for (int i = 0; i < count; i++) {
			for (uint32_t k = 0; l->event[i].data.u32 == OF_PORT && k < l->ports; k++)
				take_callers(l, l->port[k]);
		}
		serve(l, count);
		end_those_that_are_late(l, now_ns);
		say_how_many_more(l, now_ns);
	}
	return NULL;
}

/* ---- beginning and end ---- */

/* Callers may take an eighth of the process's descriptors; those of a data port are counted with
 * what the job needs. */
static uint32_t most_callers(bool channels)
{
	struct rlimit limit;

	if (channels)
		return MST_CHANNEL_CALLERS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 8 >= CALLERS_MAX)
		return CALLERS_MAX;
	return limit.rlim_cur >= 128 ? (uint32_t)limit.rlim_cur / 8 : 16;
}

static int open_descriptors(struct mst_listener *l)
{
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->epoll < 0 || l->waker < 0)
		return -errno;
	int rc = watch(l, EPOLL_CTL_ADD, l->waker, EPOLLIN, OF_WAKER);
	for (uint32_t i = 0; i < l->ports && rc == 0; i++)
		rc = watch(l, EPOLL_CTL_ADD, mst_plain.listener_fd(l->port[i]), EPOLLIN, OF_PORT);
	return rc;
}

static int start_thread(struct mst_listener *l)
{
	sigset_t all, before;

	sigfillset(&all); /* the control thread handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&l->thread, NULL, run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

/* All but the thread. */
static void release(struct mst_listener *l)
{
	if (l->epoll >= 0)
		close(l->epoll);
	if (l->waker >= 0)
		close(l->waker);
	for (uint32_t i = 0; i < l->ports; i++)
		mst_plain.unlisten(l->port[i]);
	free(l);
}

static int prepare(struct mst_listener *l)
{
	uint32_t max = most_callers(l->channels);
	int rc = mst_handoff_init(&l->handoff,
				  l->channels ? MST_CHANNEL_CALLERS_MAX : MST_HANDOFF_MAX);

	if (rc != 0)
		return rc;
	l->callers = (struct mst_callers){ .max = max,
					   .max_of_group = l->channels ? max : max / 2,
					   .moment_ns = MOMENT_NS,
					   .place = l->place };
	l->warnings = (struct mst_ratelimit){ .window_ns = WARNINGS_NS, .burst = WARNINGS };
	rc = mst_rand_secret(&l->callers.seed, sizeof(l->callers.seed));
	if (rc == 0)
		rc = open_descriptors(l);
	if (rc == 0)
		rc = start_thread(l);
	if (rc != 0)
		mst_handoff_fini(&l->handoff);
	return rc;
}

static struct mst_listener *listener_new(struct mst_credentials *own)
{
	struct mst_listener *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->own = own;
	l->epoll = l->waker = -1;
	return l;
}

int mst_tls_listen_for_channels(const struct mst_channel_port *port, struct mst_listener **out)
{
	struct mst_listener *l = listener_new(port->own);
	int rc = l != NULL ? 0 : -ENOMEM;

	MST_ASSERT(port->sockets <= MST_CHANNEL_SOCKETS_MAX);
	for (uint32_t i = 0; i < port->sockets; i++) { /* all of them are taken over */
		if (rc == 0)
			rc = mst_plain_listener_of(port->socket[i], &l->port[l->ports]);
		else
			close(port->socket[i]);
		if (rc == 0)
			l->ports++;
	}
	if (rc == 0) {
		l->channels = true;
		l->refusal = port->refusal;
		l->refusal_bytes = port->refusal_bytes;
		rc = prepare(l);
	}
	if (rc != 0) {
		if (l != NULL)
			release(l);
		return rc;
	}
	*out = l;
	return 0;
}

int mst_tls_listen(const char *address, struct mst_credentials *own, struct mst_listener **out,
		   char *bound, size_t bound_len)
{
	struct mst_listener *l = listener_new(own);

	if (l == NULL)
		return -ENOMEM;
	int rc = mst_plain.listen(address, NULL, &l->port[0], bound, bound_len);
	if (rc == 0) {
		l->ports = 1;
		rc = prepare(l);
	}
	if (rc != 0) {
		release(l);
		return rc;
	}
	*out = l;
	return 0;
}

void mst_tls_unlisten(struct mst_listener *l)
{
	uint64_t one = 1;

	if (l == NULL)
		return;
	/* Release: pairs with the acquire of run(). */
	atomic_store_explicit(&l->stops, true, memory_order_release);
	(void)!write(l->waker, &one, sizeof(one));
	pthread_join(l->thread, NULL);
	for (uint32_t i = 0; i < l->callers.max; i++)
		if (l->place[i].taken)
			leave(l, i);
	mst_handoff_fini(&l->handoff);
	release(l);
}

int mst_tls_accept(struct mst_listener *l, struct mst_stream **out, char *peer, size_t peer_len)
{
	struct mst_handoff_item handed;
	int rc = mst_handoff_take(&l->handoff, &handed);

	if (rc != 0)
		return rc;
	*out = handed.stream;
	(void)snprintf(peer, peer_len, "%s", handed.peer);
	return 0;
}

int mst_tls_listener_fd(const struct mst_listener *l)
{
	return l->handoff.fd;
}
