/* SPDX-License-Identifier: MIT */
/*
 * The end of the test of a way that listens. All who reach its ports may call: a caller costs a
 * thread for as long as it is tested, CALLERS_MAX at a time, and a silent one for HELLO_NS.
 */
#include "tools/doctor/way/way.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/text.h"

#define CALLERS_MAX 8u
#define HELLO_NS (5 * MST_SECOND)
#define QUIET_NS (60 * MST_SECOND) /* between two requests: the caller measures meanwhile */
#define TIMEOUT_MAX_MS 60000
#define LOOK_MS 50

enum way_caller_state { CALLER_NONE, CALLER_HERE, CALLER_GONE };

struct way_caller {
	struct mst_way_peer *peer;
	_Atomic enum way_caller_state state; /* the accepting thread's, but while HERE */
	pthread_t thread;
	struct mst_way_stream s;
	char host[MST_WRITE_NAME_LEN];
};

/* What is at a port for data. */
struct way_mover {
	struct mst_write_peer *data; /* NULL: nothing */
	bool moves;                  /* there is the thread */
	pthread_t thread;
};

struct mst_way_peer {
	struct mst_way_end own;
	const struct mst_stream_ops *ops;
	struct mst_listener *listener;
	struct way_mover plain, secure;
	uint16_t port;
	_Atomic bool stop;
	bool serves; /* there is the thread */
	pthread_t server;
	struct way_caller caller[CALLERS_MAX];
};

static uint16_t port_in(const char *address)
{
	const char *colon = strrchr(address, ':');

	return colon != NULL ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

uint16_t mst_way_peer_port(const struct mst_way_peer *p)
{
	return p->port;
}

uint16_t mst_way_peer_data_port(const struct mst_way_peer *p)
{
	return port_in(mst_write_peer_address(p->plain.data));
}

uint16_t mst_way_peer_secure_port(const struct mst_way_peer *p)
{
	return p->secure.data != NULL ? port_in(mst_write_peer_address(p->secure.data)) : 0;
}

/* ---- one caller ---- */

static json_t *step_as_json(const struct mst_way_step *step)
{
	return json_pack("{s:i, s:s}", "error", step->tried ? -step->error : ECANCELED, "why",
			 step->why.text);
}

static void tell(const struct way_caller *c, const struct mst_way_report *back)
{
	char line[512];
	const char *what = back->control.error != 0 ? "its control port cannot be called from here"
			   : back->moved.error != 0 ? "its port for data cannot be called from here"
						    : "it can be called from here, too";

	(void)snprintf(line, sizeof(line), "%s %s called; %s", c->s.peer, c->host, what);
	if (c->peer->own.seen != NULL)
		c->peer->own.seen(c->peer->own.ctx, line);
}

/* At the ports it says, of the address that it calls from. */
static int call_back(struct way_caller *c, const json_t *ask, struct mst_reason *why)
{
	struct mst_way_end own = c->peer->own;
	struct mst_way_report back;
	char host[MST_WAY_HOST_LEN], address[MST_WAY_TEXT_LEN];
	uint16_t port = (uint16_t)mst_way_number(ask, "port", UINT16_MAX, 0);
	uint16_t data = (uint16_t)mst_way_number(ask, "data", UINT16_MAX, 0);

	own.own = NULL;
	own.timeout_ns = MST_MS * (uint64_t)mst_way_number(ask, "timeout_ms", TIMEOUT_MAX_MS, 5000);
	mst_way_host(c->s.peer, host);
	bool v6 = strchr(host, ':') != NULL;
	(void)snprintf(address, sizeof(address), "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "",
		       port);
	mst_way_call_back(&own, address, data, &back);
	tell(c, &back);
	return mst_way_say(&c->s,
			   json_pack("{s:o, s:o}", "control", step_as_json(&back.control), "data",
				     step_as_json(&back.moved)),
			   why);
}

static int greet(struct way_caller *c, struct mst_reason *why)
{
	json_t *card = mst_way_card(&c->peer->own), *hello;
	int rc = mst_way_hear(&c->s, &hello, why);

	if (rc == 0) {
		mst_way_text(hello, "host", c->host, sizeof(c->host));
		if (json_object_get(hello, MST_WAY_GREETING) == NULL)
			rc = -EPROTO;
		json_decref(hello);
	}
	if (rc != 0 || card == NULL) {
		json_decref(card);
		return rc != 0 ? rc : -ENOMEM;
	}
	(void)json_object_set_new(card, "data",
				  json_string(mst_write_peer_address(c->peer->plain.data)));
	if (c->peer->secure.data != NULL)
		(void)json_object_set_new(
			card, "secure", json_string(mst_write_peer_address(c->peer->secure.data)));
	return mst_way_say(&c->s, card, why);
}

static void *serve_caller(void *arg)
{
	struct way_caller *c = arg;
	struct mst_reason why;
	int rc;

	c->s.deadline_ns = mst_deadline_ns(HELLO_NS);
	rc = greet(c, &why);
	while (rc == 0) {
		json_t *ask;
		char what[16];
		c->s.deadline_ns = mst_deadline_ns(QUIET_NS);
		rc = mst_way_hear(&c->s, &ask, &why);
		if (rc != 0)
			break;
		mst_way_text(ask, "do", what, sizeof(what));
		rc = strcmp(what, "call") == 0 ? call_back(c, ask, &why) : -EPROTO;
		json_decref(ask);
	}
	c->s.ops->close(c->s.stream);
	atomic_store_explicit(&c->state, CALLER_GONE, memory_order_release);
	return NULL;
}

/* ---- all of them ---- */

/* A place that is free, or becomes so; NULL: there is none. */
static struct way_caller *place(struct mst_way_peer *p)
{
	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct way_caller *c = &p->caller[i];
		enum way_caller_state state = atomic_load_explicit(
			&c->state, memory_order_acquire); /* the thread's */
		if (state == CALLER_HERE)
			continue;
		if (state == CALLER_GONE)
			(void)pthread_join(c->thread, NULL);
		atomic_store_explicit(&c->state, CALLER_NONE, memory_order_relaxed);
		return c;
	}
	return NULL;
}

static void take_in(struct mst_way_peer *p, struct mst_stream *stream, char *from)
{
	struct way_caller *c = place(p);

	if (c == NULL) {
		p->ops->close(stream);
		return;
	}
	c->peer = p;
	c->host[0] = '\0';
	c->s = (struct mst_way_stream){ .ops = p->ops, .stream = stream, .stop = &p->stop };
	(void)snprintf(c->s.peer, sizeof(c->s.peer), "%s", from);
	atomic_store_explicit(&c->state, CALLER_HERE, memory_order_relaxed);
	if (pthread_create(&c->thread, NULL, serve_caller, c) == 0)
		return;
	atomic_store_explicit(&c->state, CALLER_NONE, memory_order_relaxed);
	p->ops->close(stream);
}

static void *serve_all(void *arg)
{
	struct mst_way_peer *p = arg;
	struct pollfd pfd = { .fd = p->ops->listener_fd(p->listener), .events = POLLIN };
	char from[MST_WAY_TEXT_LEN];
	struct mst_stream *stream;

	while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
		int rc = p->ops->accept(p->listener, &stream, from, sizeof(from));
		if (rc == 0)
			take_in(p, stream, from);
		else if (rc == -EAGAIN)
			(void)poll(&pfd, 1, LOOK_MS);
		else
			mst_sleep_ns(LOOK_MS * MST_MS); /* no descriptors, and such */
	}
	return NULL;
}

static void *move_data(void *arg)
{
	struct way_mover *m = arg;

	mst_write_peer_serve(m->data, MST_NEVER, NULL, NULL);
	return NULL;
}

/* ---- beginning and end ---- */

/* At the first of the data addresses if there are some, else at all of this host. */
static int listen_at(struct mst_way_peer *p, uint16_t port, struct mst_reason *why)
{
	const char *first = p->own.fabric.addresses;
	char address[MST_WAY_TEXT_LEN], bound[MST_WAY_TEXT_LEN], only[MST_WAY_HOST_LEN] = "";
	const char *at[2] = { "[::]", "0.0.0.0" };
	int rc = -EADDRINUSE;

	if (first != NULL) {
		bool v6 = memchr(first, ':', strcspn(first, ",")) != NULL;
		(void)snprintf(only, sizeof(only), "%s%.*s%s", v6 ? "[" : "",
			       (int)strcspn(first, ","), first, v6 ? "]" : "");
		at[0] = at[1] = only;
	}
	for (int i = 0; i < 2 && rc != 0; i++) {
		(void)snprintf(address, sizeof(address), "%s:%u", at[i], port);
		rc = p->ops->listen(address, p->own.own, &p->listener, bound, sizeof(bound));
	}
	if (rc == 0)
		p->port = port_in(bound);
	return rc == 0 ? 0
		       : mst_reason_fail(why, rc, "cannot listen at %s: %s", address,
					 strerror(-rc));
}

static int open_mover(struct way_mover *m, const struct mst_write_side *side,
		      struct mst_reason *why)
{
	int rc = mst_write_peer_open(side, &m->data, why);

	if (rc != 0) {
		m->data = NULL;
		return rc;
	}
	rc = -pthread_create(&m->thread, NULL, move_data, m);
	m->moves = rc == 0;
	return rc == 0 ? 0 : mst_reason_fail(why, rc, "no thread: %s", strerror(-rc));
}

static void close_mover(struct way_mover *m)
{
	if (m->moves) {
		mst_write_peer_stop(m->data);
		(void)pthread_join(m->thread, NULL);
	}
	mst_write_peer_close(m->data);
}

/* With certificates there is a second port, for links that are encrypted: the next one where the
 * first was asked for by number, so that a firewall can let it in. */
static int open_movers(struct mst_way_peer *p, struct mst_reason *why)
{
	struct mst_write_side side = { .transport = &mst_tcp, .fabric = p->own.fabric };

	side.fabric.io_threads = 1;
	int rc = open_mover(&p->plain, &side, why);
	if (rc != 0 || p->own.own == NULL)
		return rc;
	side.channels = mst_channels_of(p->own.own);
	side.fabric.encrypted = true;
	if (side.fabric.data_port != 0) /* after the last there is none: 0 */
		side.fabric.data_port = (uint16_t)(side.fabric.data_port + 1);
	rc = open_mover(&p->secure, &side, why);
	if (rc == -EADDRINUSE) {
		side.fabric.data_port = 0;
		rc = open_mover(&p->secure, &side, why);
	}
	return rc;
}

static int start(struct mst_way_peer *p, struct mst_reason *why)
{
	int rc = -pthread_create(&p->server, NULL, serve_all, p);

	p->serves = rc == 0;
	return rc == 0 ? 0 : mst_reason_fail(why, rc, "no thread: %s", strerror(-rc));
}

int mst_way_peer_open(const struct mst_way_end *own, uint16_t port, struct mst_way_peer **out,
		      struct mst_reason *why)
{
	struct mst_way_peer *p = calloc(1, sizeof(*p));

	mst_reason_clear(why);
	if (p == NULL)
		return -ENOMEM;
	p->own = *own;
	p->ops = mst_stream_of(own->own);
	int rc = open_movers(p, why);
	if (rc != 0) {
		mst_way_peer_close(p);
		return rc;
	}
	rc = listen_at(p, port, why);
	if (rc == -EADDRINUSE && port != 0)
		rc = listen_at(p, 0, why);
	if (rc == 0)
		rc = start(p, why);
	if (rc != 0) {
		mst_way_peer_close(p);
		return rc;
	}
	mst_reason_clear(why);
	*out = p;
	return 0;
}

void mst_way_peer_close(struct mst_way_peer *p)
{
	if (p == NULL)
		return;
	atomic_store_explicit(&p->stop, true, memory_order_relaxed);
	if (p->serves)
		(void)pthread_join(p->server, NULL);
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		if (atomic_load_explicit(&p->caller[i].state, memory_order_acquire) != CALLER_NONE)
			(void)pthread_join(p->caller[i].thread, NULL);
	p->ops->unlisten(p->listener);
	close_mover(&p->secure);
	close_mover(&p->plain);
	free(p);
}
