/* SPDX-License-Identifier: MIT */
/*
 * One thread takes the callers of a port and shakes hands with them (handshakes.h). More may call
 * than it can shake hands with. Taking a caller costs little, so all that wait are taken first.
 */
#include "common/transport/tls/listener.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/transport/stream.h"
#include "common/transport/tls/handoff.h"
#include "common/transport/tls/handshakes.h"
#include "common/transport/tls/stream.h"

/* ---- the thread ---- */

/* How long no caller is accepted after accept() failed because no descriptor was free. */
#define REST_NS (50 * MST_MS)
#define EVENTS (MST_HANDSHAKES_MAX + 2) /* enough for an event of each descriptor in one look */
/* How much the thread's nice value is above that of the process. If it shares a processor with a
 * thread that computes all the time, it gets a quarter of it. */
#define NICER 5
/* The thread looks so often by itself whether it is to end: a call that was to wake it may have
 * failed. */
#define LOOK_MS 2000
#define TAKEN_AT_ONCE 256 /* callers accepted between two looks at the callers that are there */

/* The data of an epoll event is the place of a caller, or one of these values. */
#define OF_PORT UINT32_MAX
#define OF_WAKER (UINT32_MAX - 1)

struct mst_listener {
	struct mst_listener *port[MST_CHANNEL_SOCKETS_MAX]; /* of mst_plain */
	uint32_t ports;
	pthread_t thread;
	atomic_bool stops;
	int waker; /* an eventfd that ends the thread's wait */
	struct mst_handoff handoff;
	/* the thread's: */
	int epoll;
	struct epoll_event event[EVENTS];
	struct mst_handshakes *handshakes;
	bool deaf;
	uint64_t deaf_until_ns;
};

static int watch(const struct mst_listener *l, int op, int fd, uint32_t events, uint32_t of)
{
	struct epoll_event ev = { .events = events, .data.u32 = of };

	return epoll_ctl(l->epoll, op, fd, &ev) == 0 ? 0 : -errno;
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
			mst_handshakes_enter(l->handshakes, below, peer);
	}
	if (rc == 0 || rc == -EAGAIN)
		return;
	mst_handshakes_complain(l->handshakes, "cannot take another caller: %s", strerror(-rc));
	hear_port(l, false);
	l->deaf_until_ns = mst_now_ns() + REST_NS;
}

static int nap_ms(const struct mst_listener *l)
{
	if (l->deaf)
		return (int)(REST_NS / MST_MS);
	return mst_handshakes_are_timed(l->handshakes) ? 250 : LOOK_MS;
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
		mst_handshakes_serve(l->handshakes, l->event, count);
		mst_handshakes_tick(l->handshakes, now_ns);
	}
	return NULL;
}

/* ---- beginning and end ---- */

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

/* All but the thread and the handoff. */
static void release(struct mst_listener *l)
{
	mst_handshakes_free(l->handshakes);
	if (l->epoll >= 0)
		close(l->epoll);
	if (l->waker >= 0)
		close(l->waker);
	for (uint32_t i = 0; i < l->ports; i++)
		mst_plain.unlisten(l->port[i]);
	free(l);
}

/* @cfg: of the handshakes, but for what is the listener's own. */
static int prepare(struct mst_listener *l, struct mst_handshakes_cfg *cfg)
{
	int rc = mst_handoff_init(&l->handoff,
				  cfg->channels ? MST_CHANNEL_CALLERS_MAX : MST_HANDOFF_MAX);

	if (rc != 0)
		return rc;
	rc = open_descriptors(l);
	cfg->epoll = l->epoll;
	cfg->handoff = &l->handoff;
	if (rc == 0)
		rc = mst_handshakes_new(cfg, &l->handshakes);
	if (rc == 0)
		rc = start_thread(l);
	if (rc != 0)
		mst_handoff_fini(&l->handoff);
	return rc;
}

static struct mst_listener *listener_new(void)
{
	struct mst_listener *l = calloc(1, sizeof(*l));

	if (l != NULL)
		l->epoll = l->waker = -1;
	return l;
}

int mst_tls_listen_for_channels(const struct mst_channel_port *port, struct mst_listener **out)
{
	struct mst_handshakes_cfg cfg = { .own = port->own,
					  .channels = true,
					  .refusal = port->refusal,
					  .refusal_bytes = port->refusal_bytes };
	struct mst_listener *l = listener_new();
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
	if (rc == 0)
		rc = prepare(l, &cfg);
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
	struct mst_handshakes_cfg cfg = { .own = own };
	struct mst_listener *l = listener_new();

	if (l == NULL)
		return -ENOMEM;
	int rc = mst_plain.listen(address, NULL, &l->port[0], bound, bound_len);
	if (rc == 0) {
		l->ports = 1;
		rc = prepare(l, &cfg);
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
