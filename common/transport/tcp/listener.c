/* SPDX-License-Identifier: MIT */
/*
 * Accepts links: who has called at the port, what each has said, and what it is answered.
 *
 * A caller sends one hello of a fixed size. All who reach the port may call, so a caller costs a
 * descriptor and a place of this table until it has spoken, and no more: CALLERS_MAX have places,
 * the silent are sent away after SILENT_MAX_NS, and before that where there is no room: the oldest
 * of the address that has the most. So an address that calls without number loses its own. One that
 * the owner's filter does not expect is dropped before anything is kept of it.
 *
 * Where data are encrypted a caller comes here once it has proven itself (port.c), and says its
 * hello through the channel.
 *
 * A caller that was shown belongs to the thread that answers it, until that has stored CALLER_NONE;
 * all others belong to the listener's own thread.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/host/limits.h"
#include "common/transport/origins.h"
#include "common/transport/tcp/tcp.h"

#define CALLERS_MAX 64u
#define SILENT_MAX_NS (5 * MST_SECOND)
#define WARNINGS 5u
#define WARNINGS_NS (10 * MST_SECOND)
#define TLS_HANDSHAKE 22 /* the first byte of a caller that speaks TLS */

enum tcp_caller_state {
	CALLER_NONE,
	CALLER_SILENT, /* accepted, has not said all of its hello */
	CALLER_HEARD,  /* shown by next_request(), to be answered */
};

struct tcp_caller {
	_Atomic enum tcp_caller_state state;
	struct mst_tcp_conn conn;
	uint64_t since_ns;
	union mst_endpoint at;
	struct mst_origin from;
	uint8_t text[MST_TCP_HELLO_BYTES];
	size_t has; /* of it */
	struct mst_tcp_hello hello;
};

struct tcp_listener {
	struct mst_link_listener listener;
	struct mst_tcp_port port; /* its epoll also watches callers that are silent yet */
	struct mst_ratelimit warnings;
	struct tcp_caller caller[CALLERS_MAX];
};

uint32_t mst_tcp_listener_descriptors(const struct mst_fabric *fabric)
{
	uint32_t own = 1 + MST_PORTS_MAX + CALLERS_MAX;

	own += fabric->encrypted ? MST_CHANNEL_DESCRIPTORS : 0;
	return own + (fabric->data_port != 0 ? MST_PORTS_MAX : 0); /* those that are held */
}

/* ---- places ---- */

static enum tcp_caller_state state_of(struct tcp_caller *c)
{
	/* Acquire: pairs with the release in dismiss(). */
	return atomic_load_explicit(&c->state, memory_order_acquire);
}

/* Its place is free again; its connection is ended, or has become a link's. */
static void dismiss(struct tcp_caller *c)
{
	mst_tcp_hang_up(&c->conn);
	c->has = 0;
	/* Release: the place is the listener's own thread's from now on. */
	atomic_store_explicit(&c->state, CALLER_NONE, memory_order_release);
}

static void send_away(struct tcp_caller *c, int error)
{
	struct mst_tcp_answer no = { .version = MST_TCP_VERSION, .error = error };
	uint8_t text[MST_TCP_ANSWER_BYTES];

	mst_tcp_answer_encode(&no, text);
	(void)mst_tcp_send(&c->conn, &(struct iovec){ text, sizeof(text) }, 1);
	dismiss(c);
}

static uint32_t count_from(struct tcp_listener *listener, const struct mst_origin *from)
{
	uint32_t same = 0;

	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct tcp_caller *c = &listener->caller[i];
		same += state_of(c) == CALLER_SILENT && memcmp(&c->from, from, sizeof(*from)) == 0;
	}
	return same;
}

/* The place that is to be given up, where all are taken; NULL: nobody in them is silent. */
static struct tcp_caller *yielding(struct tcp_listener *listener)
{
	struct tcp_caller *best = NULL;
	uint32_t most = 0;

	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct tcp_caller *c = &listener->caller[i];
		if (state_of(c) != CALLER_SILENT)
			continue;
		uint32_t same = count_from(listener, &c->from);
		if (same > most || (same == most && c->since_ns < best->since_ns)) {
			most = same;
			best = c;
		}
	}
	return best;
}

static struct tcp_caller *free_place(struct tcp_listener *listener)
{
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		if (state_of(&listener->caller[i]) == CALLER_NONE)
			return &listener->caller[i];
	return NULL;
}

/* ---- hearing ---- */

/* An operator who misses the worker finds why. */
static void tell_version(const struct tcp_caller *c)
{
	char peer[MST_ENDPOINT_TEXT_LEN];

	mst_warn("%s speaks version %u of muster's TCP transport, this end %u; use the same "
		 "version of muster on both sides",
		 mst_endpoint_text(&c->at.any, peer), c->hello.version, MST_TCP_VERSION);
}

/* It is told the same, and may not be able to say it. */
static void tell_stranger(struct tcp_listener *listener, const struct tcp_caller *c)
{
	char peer[MST_ENDPOINT_TEXT_LEN];

	if (c->has == 0 || !mst_ratelimit_pass(&listener->warnings, mst_now_ns()))
		return;
	if (listener->port.secure != NULL || c->text[0] != TLS_HANDSHAKE)
		mst_warn("%s sent something else than a hello to the data port %s: it is no muster",
			 mst_endpoint_text(&c->at.any, peer), listener->listener.address);
	else
		mst_warn("%s speaks TLS at the data port %s, which is plain: start both ends with "
			 "certificates (--tls-ca, --tls-cert, --tls-key), and this server without "
			 "--data-tls off",
			 mst_endpoint_text(&c->at.any, peer), listener->listener.address);
}

/* 0: all of its hello is here; -EAGAIN; else it is none. */
static int read_hello(struct tcp_listener *listener, struct tcp_caller *c)
{
	struct iovec to = { c->text + c->has, sizeof(c->text) - c->has };
	ssize_t got = mst_tcp_receive(&c->conn, &to, 1);

	if (got < 0)
		return (int)got;
	c->has += (size_t)got;
	if (got == 0 || !mst_tcp_hello_begins(c->text, c->has)) {
		tell_stranger(listener, c);
		return -EPROTO;
	}
	if (c->has < sizeof(c->text))
		return -EAGAIN;
	int rc = mst_tcp_hello_decode(c->text, &c->hello);
	if (rc == -EPROTONOSUPPORT)
		tell_version(c);
	return rc;
}

/* 0: the caller has asked for a link, and may; -EAGAIN: not yet; else it is not fit to be seen. */
static int hear(struct tcp_listener *listener, struct tcp_caller *c, struct mst_link_request *out)
{
	int rc = read_hello(listener, c);

	if (rc == 0 && !mst_tcp_is_near(&listener->port.net->fabric) &&
	    !mst_link_expected(&listener->listener, c->hello.token, &c->from))
		rc = MST_TCP_UNKNOWN;
	if (rc != 0)
		return rc;
	(void)epoll_ctl(listener->port.epoll, EPOLL_CTL_DEL, c->conn.fd, NULL);
	/* Relaxed: the request tells it to whoever answers. */
	atomic_store_explicit(&c->state, CALLER_HEARD, memory_order_relaxed);
	*out = (struct mst_link_request){ .lanes = c->hello.lanes,
					  .from = { .count = !mst_tcp_is_near(
							    &listener->port.net->fabric),
						    .at = { c->from } },
					  .caller = c };
	memcpy(out->token, c->hello.token, sizeof(out->token));
	return 0;
}

/* Sends a caller away that has not asked for a link, or for one that cannot be. */
static void refuse(struct tcp_listener *listener, struct tcp_caller *c, int error)
{
	bool silent = error == -ETIMEDOUT;
	char peer[MST_ENDPOINT_TEXT_LEN];

	if ((silent || error == -EINVAL) && mst_ratelimit_pass(&listener->warnings, mst_now_ns()))
		mst_warn("%s called the data port %s and %s; sent away",
			 mst_endpoint_text(&c->at.any, peer), listener->listener.address,
			 silent ? "has not said a hello in time"
				: "asked for a link that cannot be");
	send_away(c, error);
}

/* 0 or -EAGAIN, as next_request(). */
static int hear_silent(struct tcp_listener *listener, uint64_t now_ns, struct mst_link_request *out)
{
	for (uint32_t i = 0; i < CALLERS_MAX; i++) {
		struct tcp_caller *c = &listener->caller[i];
		if (state_of(c) != CALLER_SILENT)
			continue;
		int rc = hear(listener, c, out);
		if (rc == 0)
			return 0;
		if (rc == -EAGAIN && now_ns - c->since_ns >= SILENT_MAX_NS)
			rc = -ETIMEDOUT;
		if (rc != -EAGAIN)
			refuse(listener, c, rc);
	}
	return -EAGAIN;
}

/* Takes the next caller of a queue, and hears it. 0: it asks for a link; 1: it does not, but there
 * may be more; -EAGAIN: there are none; else what accept() says. */
static int accept_one(struct tcp_listener *listener, uint32_t queue, struct mst_link_request *out)
{
	struct tcp_caller *c = free_place(listener),
			  *oldest = c == NULL ? yielding(listener) : NULL;
	union mst_endpoint at = { 0 };
	struct mst_tcp_conn conn;

	if (c == NULL && oldest == NULL)
		return -EAGAIN;
	int rc = mst_tcp_port_take(&listener->port, queue, &conn, &at);
	if (rc != 0)
		return rc;
	if (c == NULL) {
		refuse(listener, oldest, -ETIMEDOUT);
		c = oldest;
	}
	c->conn = conn;
	c->at = at;
	c->since_ns = mst_now_ns();
	(void)mst_origin_of(&at.any, &c->from);
	atomic_store_explicit(&c->state, CALLER_SILENT,
			      memory_order_relaxed); /* no other sees it */
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP };
	rc = epoll_ctl(listener->port.epoll, EPOLL_CTL_ADD, conn.fd, &ev) != 0
		     ? -errno
		     : hear(listener, c, out);
	if (rc != 0 && rc != -EAGAIN)
		refuse(listener, c, rc);
	return rc == 0 ? 0 : 1;
}

static int listener_next_request(struct mst_link_listener *d, struct mst_link_request *out,
				 struct mst_reason *why)
{
	struct tcp_listener *listener = (struct tcp_listener *)d;
	int rc = hear_silent(listener, mst_now_ns(), out);

	mst_reason_clear(why);
	/* A bounded number, since callers may come faster than they are sent away. */
	uint32_t queues = mst_tcp_port_queues(&listener->port);
	for (uint32_t i = 0; i < queues && rc == -EAGAIN; i++) {
		rc = 1;
		for (uint32_t k = 0; k < CALLERS_MAX && rc == 1; k++)
			rc = accept_one(listener, i, out);
		if (rc == 1)
			rc = -EAGAIN;
	}
	if (rc != 0 && rc != -EAGAIN)
		(void)mst_limit_refused("accept4", rc, why);
	return rc;
}

/* ---- answering ---- */

/* @got: what its connection has given last: 0: its end, or -errno. */
static int gone(const struct tcp_caller *c, ssize_t got, struct mst_reason *why)
{
	char peer[MST_ENDPOINT_TEXT_LEN];

	return mst_reason_fail(why, -EPIPE, "%s has gone before it was let in%s%s",
			       mst_endpoint_text(&c->at.any, peer), got < 0 ? ": " : "",
			       got < 0 ? strerror((int)-got) : "");
}

/* Nothing more comes of a caller before it is answered. */
static int check_here(struct tcp_caller *c, struct mst_reason *why)
{
	char peer[MST_ENDPOINT_TEXT_LEN];
	uint8_t byte;
	ssize_t got = mst_tcp_receive(&c->conn, &(struct iovec){ &byte, sizeof(byte) }, 1);

	if (got == -EAGAIN)
		return 0;
	mst_endpoint_text(&c->at.any, peer);
	if (got > 0)
		return mst_reason_fail(why, -EPROTO, "%s went on before it was answered", peer);
	return gone(c, got, why);
}

static int say_yes(struct tcp_caller *c, struct mst_reason *why)
{
	struct mst_tcp_answer yes = { .version = MST_TCP_VERSION };
	uint8_t text[MST_TCP_ANSWER_BYTES];

	mst_tcp_answer_encode(&yes, text);
	int rc = check_here(c, why);
	if (rc != 0)
		return rc;
	/* The kernel has room for the first bytes of a connection. */
	ssize_t sent = mst_tcp_send(&c->conn, &(struct iovec){ text, sizeof(text) }, 1);
	return sent == (ssize_t)sizeof(text) ? 0 : gone(c, sent, why);
}

static int let_in(struct tcp_listener *listener, struct tcp_caller *c, struct mst_link **out,
		  struct mst_reason *why)
{
	struct mst_tcp_link_cfg cfg = { .lanes = c->hello.lanes,
					.at = c->hello.at,
					.bytes = c->hello.bytes,
					.peer = &c->at.any };
	struct mst_tcp_link *l;
	int rc = mst_tcp_link_new(listener->port.net, &cfg, &l, why);

	if (rc != 0)
		return rc;
	mst_tcp_socket_prepare(c->conn.fd);
	rc = say_yes(c, why);
	if (rc != 0) {
		mst_tcp_link_free(&l->link);
		return rc;
	}
	l->conn = c->conn;
	c->conn = MST_TCP_NO_CONN;
	*out = &l->link;
	return 0;
}

static int listener_answer(struct mst_link_listener *d, const struct mst_link_request *request,
			   struct mst_link **out, struct mst_reason *why)
{
	struct tcp_caller *c = request->caller;

	MST_ASSERT(state_of(c) == CALLER_HEARD);
	mst_reason_clear(why);
	int rc = out != NULL ? let_in((struct tcp_listener *)d, c, out, why) : -EACCES;
	if (rc != 0)
		send_away(c, rc);
	else
		dismiss(c);
	return out != NULL ? rc : 0;
}

/* ---- beginning and end ---- */

static void listener_close(struct mst_link_listener *d)
{
	struct tcp_listener *listener = (struct tcp_listener *)d;

	if (listener == NULL)
		return;
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		if (state_of(&listener->caller[i]) != CALLER_NONE)
			send_away(&listener->caller[i], -ECONNREFUSED);
	mst_tcp_port_close(&listener->port);
	free(listener);
}

static int listener_open(struct mst_net *net, struct mst_link_listener **out,
			 struct mst_reason *why)
{
	struct tcp_listener *listener = calloc(1, sizeof(*listener));

	mst_reason_clear(why);
	if (listener == NULL)
		return -ENOMEM;
	listener->listener.ops = &mst_tcp;
	listener->warnings = (struct mst_ratelimit){ .window_ns = WARNINGS_NS, .burst = WARNINGS };
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		listener->caller[i].conn = MST_TCP_NO_CONN;
	int rc = mst_tcp_port_open(&listener->port, (struct mst_tcp_net *)net,
				   listener->listener.address, why);
	if (rc != 0) {
		listener_close(&listener->listener);
		return rc;
	}
	*out = &listener->listener;
	return 0;
}

static int listener_fd(const struct mst_link_listener *d)
{
	return ((const struct tcp_listener *)d)->port.epoll;
}

static int listener_hold(const struct mst_fabric *fabric, struct mst_ports *out,
			 struct mst_reason *why)
{
	struct mst_endpoints unused = { 0 };

	mst_reason_clear(why);
	*out = (struct mst_ports){ 0 };
	if (fabric->data_port == 0)
		return 0;
	int rc = mst_tcp_sockets_open(fabric, NULL, out, &unused, why);
	if (rc != 0)
		mst_ports_close(out);
	return rc;
}

const struct mst_link_listener_ops mst_tcp_listener = {
	.open = listener_open,
	.hold = listener_hold,
	.close = listener_close,
	.fd = listener_fd,
	.next_request = listener_next_request,
	.answer = listener_answer,
};
