/* SPDX-License-Identifier: MIT */
/*
 * Handshakes that are cut after any byte, or stand still there, in each direction. All bytes go
 * through a relay, which lets so many pass and no more.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/stream.h"
#include "common/transport/tls/handshakes.h"
#include "common/transport/tls/stream.h"
#include "tests/transport/tls/place.h"
#include "tests/ut.h"

#define LONG_NS (60 * MST_SECOND)
#define LONG_MS 60000
#define ALL SIZE_MAX
/* By how much the lengths of two handshakes may differ: a signature has 70 to 72 bytes. */
#define SLACK 16u
/* Every byte, and every seventh with a sanitizer, which makes a handshake several times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 7u
#else
#define STRIDE 1u
#endif
#define LISTENER_STRIDE 29u

static struct tls_place home;
static struct mst_credentials *server_own, *caller_own;

/* ---- the relay ---- */

/* Bytes in one direction. */
struct lane {
	struct mst_stream *from, *to;
	size_t most, passed; /* bytes */
	bool holds;          /* what comes after these is kept back, and the stream stays open */
	bool cut;            /* there was more than may pass */
	bool ended;
};

/* Return: true: something has moved. */
static bool pass(struct lane *l)
{
	char data[4096];

	if (l->ended)
		return false;
	ssize_t got = mst_plain.receive(l->from, data, sizeof(data));
	if (got == -EAGAIN)
		return false;
	if (got <= 0) {
		l->ended = true;
		if (!l->cut)
			(void)shutdown(mst_plain.stream_fd(l->to), SHUT_WR);
		return true;
	}
	size_t left = l->most - l->passed, may = (size_t)got < left ? (size_t)got : left;
	(void)mst_plain.send(l->to, data, may); /* the other end may be gone */
	l->passed += may;
	if (may < (size_t)got && !l->cut) {
		l->cut = true;
		if (!l->holds)
			(void)shutdown(mst_plain.stream_fd(l->to), SHUT_WR);
	}
	return true;
}

/* ---- the two ends ---- */

struct handshaker {
	struct mst_stream *stream; /* NULL: it is closed, or in another thread */
	bool shaken, over;
	ssize_t rc; /* what it gave at last */
	char why[512];
};

static bool step(struct handshaker *e)
{
	char byte;

	if (e->stream == NULL)
		return false;
	e->rc = e->shaken ? mst_tls_stream_receive(e->stream, &byte, 1)
			  : mst_tls_stream_shake(e->stream);
	if (e->rc == -EAGAIN)
		return false;
	if (e->rc == 0 && !e->shaken) {
		e->shaken = true;
		return true;
	}
	const char *why = mst_tls_stream_why(e->stream);
	(void)snprintf(e->why, sizeof(e->why), "%s", why != NULL ? why : "");
	mst_tls_stream_close(e->stream);
	e->stream = NULL;
	e->over = true;
	return true;
}

struct shaking {
	struct mst_stream *near, *far; /* the relay's ends: to the caller, to the server */
	struct lane up, down;          /* from the caller, from the server */
	struct handshaker caller, server;
};

/* Return: what has connected there. */
static struct mst_stream *take(struct mst_listener *l)
{
	struct pollfd p = { .fd = mst_plain.listener_fd(l), .events = POLLIN };
	struct mst_stream *s;
	char peer[64];

	CU_ASSERT_EQUAL_FATAL(poll(&p, 1, LONG_MS), 1);
	CU_ASSERT_EQUAL_FATAL(mst_plain.accept(l, &s, peer, sizeof(peer)), 0);
	return s;
}

/* Two streams that are connected. */
static void connect_two(struct mst_stream **calls, struct mst_stream **answers)
{
	struct mst_listener *l;
	char bound[64];

	CU_ASSERT_EQUAL_FATAL(mst_plain.listen("127.0.0.1:0", NULL, &l, bound, sizeof(bound)), 0);
	CU_ASSERT_EQUAL_FATAL(mst_plain.connect(bound, LONG_NS, NULL, calls), 0);
	*answers = take(l);
	mst_plain.unlisten(l);
}

/* @server: the address of a listener; NULL: the server is an end of this handshake. */
static void shaking_begin(struct shaking *m, const char *server, size_t up, size_t down)
{
	struct mst_tls_begin calls = { .own = caller_own, .peer = "its address" };
	struct mst_tls_begin answers = { .own = server_own, .peer = "its address", .serves = true };

	memset(m, 0, sizeof(*m));
	connect_two(&calls.below, &m->near);
	CU_ASSERT_EQUAL_FATAL(mst_tls_stream_new(&calls, &m->caller.stream), 0);
	if (server != NULL) {
		CU_ASSERT_EQUAL_FATAL(mst_plain.connect(server, LONG_NS, NULL, &m->far), 0);
	} else {
		connect_two(&m->far, &answers.below);
		CU_ASSERT_EQUAL_FATAL(mst_tls_stream_new(&answers, &m->server.stream), 0);
	}
	m->up = (struct lane){ .from = m->near, .to = m->far, .most = up };
	m->down = (struct lane){ .from = m->far, .to = m->near, .most = down };
}

static void shaking_end(struct shaking *m)
{
	mst_tls_stream_close(m->caller.stream);
	mst_tls_stream_close(m->server.stream);
	mst_plain.close(m->near);
	mst_plain.close(m->far);
}

static int fd_of(const struct mst_stream *s)
{
	return s != NULL ? mst_tls_stream_fd(s) : -1;
}

static void await_any(const struct shaking *m)
{
	struct pollfd p[] = {
		{ .fd = fd_of(m->caller.stream), .events = POLLIN },
		{ .fd = fd_of(m->server.stream), .events = POLLIN },
		{ .fd = m->up.ended ? -1 : mst_plain.stream_fd(m->near), .events = POLLIN },
		{ .fd = m->down.ended ? -1 : mst_plain.stream_fd(m->far), .events = POLLIN },
	};

	CU_ASSERT_FATAL(poll(p, 4, LONG_MS) > 0);
}

static bool is_over(const struct shaking *m)
{
	if (m->caller.shaken && m->server.shaken)
		return true;
	return m->caller.over && (m->server.over || (m->server.stream == NULL && m->down.ended));
}

/* Until both ends have ended, or believe each other. */
static void run(struct shaking *m)
{
	while (!is_over(m)) {
		bool moved = step(&m->caller);
		moved |= step(&m->server);
		moved |= pass(&m->up);
		moved |= pass(&m->down);
		if (!moved)
			await_any(m);
	}
}

/* ---- cut after any byte ---- */

/* How long whole handshakes are. */
static void measure(size_t *up, size_t *down)
{
	struct shaking m;

	shaking_begin(&m, NULL, ALL, ALL);
	run(&m);
	CU_ASSERT_FATAL(m.caller.shaken && m.server.shaken);
	*up = m.up.passed;
	*down = m.down.passed;
	CU_ASSERT_FATAL(*up > 500 && *down > 500);
	shaking_end(&m);
}

/* It can try again, and has a sentence that says so: else the network's fault would be taken for a
 * refusal. */
static void expect_broken(const struct handshaker *e)
{
	CU_ASSERT(!e->shaken && e->over);
	CU_ASSERT_EQUAL(e->rc, -ECONNRESET);
	if (strstr(e->why, "its address closed the connection within the handshake") == NULL)
		printf("%zd: \"%s\"\n", e->rc, e->why);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(e->why, "its address closed the connection within the handshake"));
}

/* The caller has done its part with its last bytes; it hears of the end by its first read. */
static void expect_ended(const struct handshaker *e)
{
	if (!e->shaken) {
		expect_broken(e);
		return;
	}
	CU_ASSERT(e->over && e->rc <= 0);
}

static void a_caller_s_bytes_are_cut_anywhere(void)
{
	size_t up, down, cuts = 0, shaken = 0;
	struct shaking m;

	measure(&up, &down);
	for (size_t at = 0; at < up + SLACK; at += STRIDE) {
		shaking_begin(&m, NULL, at, ALL);
		run(&m);
		if (m.up.cut) {
			cuts++;
			shaken += m.caller.shaken;
			expect_broken(&m.server);
			expect_ended(&m.caller);
		} else {
			CU_ASSERT(at + SLACK >= up && m.server.shaken);
		}
		shaking_end(&m);
	}
	CU_ASSERT(cuts >= (up - SLACK) / STRIDE);
	CU_ASSERT(shaken > 0 && shaken < cuts); /* both flights were cut */
}

static void a_server_s_bytes_are_cut_anywhere(void)
{
	size_t up, down, cuts = 0;
	struct shaking m;

	measure(&up, &down);
	for (size_t at = 0; at < down + SLACK; at += STRIDE) {
		shaking_begin(&m, NULL, ALL, at);
		run(&m);
		if (m.down.cut) {
			cuts++;
			expect_broken(&m.caller);
			expect_broken(&m.server);
		} else {
			CU_ASSERT(at + SLACK >= down && m.server.shaken);
		}
		shaking_end(&m);
	}
	CU_ASSERT(cuts >= (down - SLACK) / STRIDE);
}

/* ---- a listener ---- */

struct callee {
	struct mst_listener *listener;
	char bound[64];
};

static char logged[8192]; /* by the listener's thread: to be read when that has ended */

static void note_line(enum mst_log_level level, const char *line, size_t len)
{
	size_t have = strlen(logged);

	(void)level;
	(void)snprintf(logged + have, sizeof(logged) - have, "%.*s", (int)len, line);
}

static void callee_open(struct callee *d)
{
	logged[0] = '\0';
	mst_log_divert(note_line);
	CU_ASSERT_EQUAL_FATAL(
		mst_tls.listen("127.0.0.1:0", server_own, &d->listener, d->bound, sizeof(d->bound)),
		0);
}

/* Nobody has come in so far; now an honest caller does. */
static void callee_close(struct callee *d)
{
	struct mst_proof proof = { .own = caller_own };
	struct mst_stream *call, *answer;
	char peer[64];

	CU_ASSERT_EQUAL(mst_tls.accept(d->listener, &answer, peer, sizeof(peer)), -EAGAIN);
	CU_ASSERT_EQUAL_FATAL(mst_tls.connect(d->bound, LONG_NS, &proof, &call), 0);
	struct pollfd p = { .fd = mst_tls.listener_fd(d->listener), .events = POLLIN };
	CU_ASSERT_EQUAL_FATAL(poll(&p, 1, LONG_MS), 1);
	CU_ASSERT_EQUAL_FATAL(mst_tls.accept(d->listener, &answer, peer, sizeof(peer)), 0);
	mst_tls.close(call);
	mst_tls.close(answer);
	mst_tls.unlisten(d->listener);
	mst_log_divert(NULL);
}

static void a_listener_outlives_cuts_and_says_so(void)
{
	size_t up, down;
	struct shaking m;
	struct callee d;

	measure(&up, &down);
	callee_open(&d);
	for (size_t at = 0; at < up - SLACK; at += LISTENER_STRIDE) {
		shaking_begin(&m, d.bound, at, ALL);
		run(&m);
		CU_ASSERT(m.up.cut);
		expect_ended(&m.caller);
		shaking_end(&m);
	}
	for (size_t at = 0; at < down - SLACK; at += LISTENER_STRIDE) {
		shaking_begin(&m, d.bound, ALL, at);
		run(&m);
		expect_broken(&m.caller);
		shaking_end(&m);
	}
	callee_close(&d);
	CU_ASSERT_PTR_NOT_NULL(strstr(logged, "closed the connection within the handshake"));
}

/* ---- those that stand still ---- */

/* A host that stands still may use up a short patience before the second flight: then the next
 * attempt has a longer one. */
#define PATIENCE_NS (200 * MST_MS)

/* @up: so much of the caller's bytes passes.
 * Return: the second flight was under way when the listener ended it. */
static bool is_given_up_by_listener(size_t up, uint64_t patience_ns)
{
	struct mst_stream *answer;
	struct shaking m;
	struct callee d;
	char peer[64];

	mst_tls_handshake_ns = patience_ns;
	callee_open(&d);
	shaking_begin(&m, d.bound, up, ALL);
	m.up.holds = true;
	run(&m);
	bool second = m.up.cut && m.caller.shaken;
	expect_ended(&m.caller);
	shaking_end(&m);
	CU_ASSERT_EQUAL(mst_tls.accept(d.listener, &answer, peer, sizeof(peer)), -EAGAIN);
	mst_tls.unlisten(d.listener);
	mst_log_divert(NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(logged, "has not proven who it is within"));
	return second;
}

static void a_listener_s_patience_ends_amid_the_caller_s_proof(void)
{
	uint64_t before_ns = mst_tls_handshake_ns, patience_ns = PATIENCE_NS;
	size_t up, down;

	measure(&up, &down);
	while (!is_given_up_by_listener(up / 2, patience_ns))
		patience_ns *= 2;
	while (!is_given_up_by_listener(up - SLACK, patience_ns))
		patience_ns *= 2;
	mst_tls_handshake_ns = before_ns;
}

struct holder {
	struct mst_listener *front;
	const char *server;
	size_t down; /* so much passes to the caller, and is then kept back */
	bool cut;    /* there was more */
};

/* A relay that stays until the caller goes. */
static void *hold(void *arg)
{
	struct holder *h = arg;
	struct shaking m = { .near = take(h->front) };

	CU_ASSERT_EQUAL_FATAL(mst_plain.connect(h->server, LONG_NS, NULL, &m.far), 0);
	m.up = (struct lane){ .from = m.near, .to = m.far, .most = ALL };
	m.down = (struct lane){ .from = m.far, .to = m.near, .most = h->down, .holds = true };
	while (!m.up.ended) {
		bool moved = pass(&m.up);
		moved |= pass(&m.down);
		if (!moved)
			await_any(&m);
	}
	h->cut = m.down.cut;
	shaking_end(&m);
	return NULL;
}

static bool is_given_up_by_caller(struct holder *h, uint64_t patience_ns)
{
	struct mst_proof proof = { .own = caller_own };
	struct mst_stream *s = NULL;
	pthread_t thread;
	char bound[64];

	CU_ASSERT_EQUAL_FATAL(
		mst_plain.listen("127.0.0.1:0", NULL, &h->front, bound, sizeof(bound)), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, hold, h), 0);
	CU_ASSERT_EQUAL(mst_tls.connect(bound, patience_ns, &proof, &s), -ETIMEDOUT);
	CU_ASSERT_PTR_NULL(s);
	CU_ASSERT_PTR_NOT_NULL(strstr(proof.why.text, "did not shake hands by TLS in time"));
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	mst_plain.unlisten(h->front);
	return h->cut;
}

static void a_caller_s_patience_ends_amid_the_server_s_proof(void)
{
	uint64_t before_ns = mst_tls_handshake_ns, patience_ns = PATIENCE_NS;
	size_t up, down;
	struct callee d;

	measure(&up, &down);
	mst_tls_handshake_ns = LONG_NS; /* so that it is the caller who does not wait */
	callee_open(&d);
	struct holder h = { .server = d.bound, .down = down / 2 };
	while (!is_given_up_by_caller(&h, patience_ns))
		patience_ns *= 2;
	h.down = down - SLACK;
	while (!is_given_up_by_caller(&h, patience_ns))
		patience_ns *= 2;
	callee_close(&d);
	mst_tls_handshake_ns = before_ns;
}

static CU_TestInfo cases[] = {
	{ "a caller's bytes are cut anywhere", a_caller_s_bytes_are_cut_anywhere },
	{ "a server's bytes are cut anywhere", a_server_s_bytes_are_cut_anywhere },
	{ "a listener outlives cuts, and says so", a_listener_outlives_cuts_and_says_so },
	{ "a listener's patience ends amid the caller's proof",
	  a_listener_s_patience_ends_amid_the_caller_s_proof },
	{ "a caller's patience ends amid the server's proof",
	  a_caller_s_patience_ends_amid_the_server_s_proof },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	tls_place_make(&home, 0);
	server_own = tls_place_load(&home, "server");
	caller_own = tls_place_load(&home, "worker");
	int failed = ut_main("tls_cut", cases);
	mst_credentials_free(server_own);
	mst_credentials_free(caller_own);
	tls_place_remove(&home);
	return failed;
}
