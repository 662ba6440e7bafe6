/* SPDX-License-Identifier: MIT */
/*
 * Dials a link: what the connector does until it is made. The addresses of the listener are tried
 * in their order. To be reached each has its share of the time that is left, and no more than
 * CONNECT_NS, by when the kernel has asked four times, or NEXT_NS where there are others: after
 * that silence is the answer. One that is reached has the rest of the time.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/host/descriptors.h"
#include "common/host/limits.h"
#include "common/transport/tcp/tcp.h"

#define CONNECT_NS (8 * MST_SECOND)
#define NEXT_NS (MST_SECOND / 2 * 7) /* where others are left: it has asked three times */
/* How often, and in which time, a listener is called again that has hung up in the handshake. */
#define RETRIES 20u
#define RETRY_NS (100 * MST_MS)
#define LOOK_MS 50               /* between two looks whether the link is wanted */
#define TELL_NS (5 * MST_SECOND) /* a peer that says nothing for longer is told of */

struct tcp_attempt {
	struct mst_tcp_net *net;
	const struct mst_dial *dial;
	struct mst_endpoints far, own; /* own: count 0 where any will do */
	struct mst_tcp_link *link;
	struct mst_reason *why; /* of the address at hand */
	uint64_t deadline_ns;   /* of the whole */
	uint64_t until_ns;      /* of the step at hand */
	bool last;              /* no other address is left */
	uint64_t looked_ns;
	uint64_t tell_ns; /* when the peer's silence is worth a line; MST_NEVER: no more */
};

/* ---- waiting ---- */

static int check_wanted(const struct tcp_attempt *a)
{
	if (a->dial->unwanted == NULL || !a->dial->unwanted(a->dial->ctx))
		return 0;
	return mst_reason_fail(a->why, -ECANCELED, "the link to %s is not wanted any more",
			       a->link->peer);
}

static int check_alive(struct tcp_attempt *a)
{
	uint64_t now_ns = mst_now_ns(), dead_ns = a->net->fabric.link_timeout_ns;

	if (now_ns - a->looked_ns < mst_tcp_look_ns(dead_ns))
		return 0;
	a->looked_ns = now_ns;
	if (mst_tcp_pulse_look(&a->link->pulse, a->link->conn.fd, now_ns, dead_ns) != MST_TCP_DEAD)
		return 0;
	return mst_reason_fail(a->why, -EHOSTUNREACH,
			       "the host of %s acknowledges nothing any more: it is down, or the "
			       "path to it is cut",
			       a->link->peer);
}

/* A minute without a word looks like a program that hangs; and by the end of it the leader may have
 * words of its own. */
static void tell_silence(struct tcp_attempt *a)
{
	if (mst_left_ns(a->tell_ns) > 0)
		return;
	a->tell_ns = MST_NEVER;
	mst_warn("%s was reached, and has not answered for %llu s: the server stands still, or "
		 "what has that port takes connections and passes nothing on, such as a proxy; "
		 "waiting",
		 a->link->peer, (unsigned long long)(TELL_NS / MST_SECOND));
}

/* Until the socket is ready. 0; -ETIMEDOUT without a sentence: the step is over; -ECANCELED and
 * -EHOSTUNREACH with one. */
static int await(struct tcp_attempt *a, short events)
{
	struct pollfd pfd = { .fd = a->link->conn.fd, .events = events };

	for (;;) {
		uint64_t left_ms = (mst_left_ns(a->until_ns) + MST_MS - 1) / MST_MS;
		int rc = check_wanted(a);
		if (rc == 0 && events == POLLIN) {
			tell_silence(a);
			rc = check_alive(a);
		}
		if (rc != 0)
			return rc;
		int ready = poll(&pfd, 1, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
		if (ready > 0)
			return 0;
		if (left_ms == 0)
			return -ETIMEDOUT;
	}
}

/* ---- one address ---- */

/* Where nobody listens at a port of the range that the kernel gives to connecting sockets, it may
 * give just that one, and the socket is connected to itself. */
static bool is_echo(int fd)
{
	union mst_endpoint own = { 0 }, far = { 0 };
	socklen_t own_len = sizeof(own), far_len = sizeof(far);

	return getsockname(fd, &own.any, &own_len) == 0 &&
	       getpeername(fd, &far.any, &far_len) == 0 && own_len == far_len &&
	       memcmp(&own, &far, own_len) == 0;
}

/* This end's address of the same family, if the host has some that are to be used. */
static int bind_own(const struct tcp_attempt *a, const union mst_endpoint *far)
{
	char text[MST_ENDPOINT_TEXT_LEN];

	for (uint32_t i = 0; i < a->own.count; i++) {
		const union mst_endpoint *own = &a->own.at[i];
		if (own->any.sa_family != far->any.sa_family)
			continue;
		if (bind(a->link->conn.fd, &own->any, mst_endpoint_bytes(own)) == 0)
			return 0;
		mst_endpoint_text(&own->any, text);
		return mst_reason_fail(
			a->why, -errno,
			"this host has no address %s (its port does not matter): %s; "
			"ip address shows those that it has",
			text, strerror(errno));
	}
	if (a->own.count == 0)
		return 0;
	return mst_reason_fail(a->why, -EHOSTUNREACH,
			       "%s cannot be reached from the data addresses of this host (%s): "
			       "none is of its family",
			       a->link->peer, a->net->fabric.addresses);
}

/* The interface of an address of one link (fe80::) is this end's own to know: that of its data
 * address, else the one that has the same name as the server's. */
static int scope_far(const struct tcp_attempt *a, union mst_endpoint *far)
{
	if (far->any.sa_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&far->v6.sin6_addr))
		return 0;
	for (uint32_t i = 0; i < a->own.count; i++) {
		const struct sockaddr_in6 *own = &a->own.at[i].v6;
		if (own->sin6_family == AF_INET6 && own->sin6_scope_id != 0) {
			far->v6.sin6_scope_id = own->sin6_scope_id;
			return 0;
		}
	}
	if (far->v6.sin6_scope_id != 0)
		return 0;
	return mst_reason_fail(
		a->why, -EHOSTUNREACH,
		"%s is an address of one link, and this host has no interface of the "
		"name that the server's has: say which it is with "
		"MUSTER_DATA_ADDRESS, as in fe80::2%%eth0",
		a->link->peer);
}

/* " from 10.0.0.9": this end of what was tried, as the kernel has chosen it; "": it has not. */
static const char *from_text(int fd, char out[MST_ENDPOINT_TEXT_LEN])
{
	union mst_endpoint own = { 0 };
	socklen_t len = sizeof(own);
	char text[MST_ENDPOINT_TEXT_LEN];

	out[0] = '\0';
	if (getsockname(fd, &own.any, &len) != 0 || mst_endpoint_is_any(&own))
		return out;
	mst_endpoint_text(&own.any, text);
	(void)snprintf(out, MST_ENDPOINT_TEXT_LEN, " from %.*s", (int)(strrchr(text, ':') - text),
		       text);
	return out;
}

static int unreached(const struct tcp_attempt *a, int error)
{
	const char *peer = a->link->peer;
	char from[MST_ENDPOINT_TEXT_LEN];

	(void)from_text(a->link->conn.fd, from);
	switch (error) {
	case ECONNRESET: /* by a listener that had no room for one more handshake, say */
		return mst_reason_fail(a->why,
				       a->net->fabric.encrypted ? -ECONNRESET : -ECONNREFUSED,
				       "%s hung up (called%s): %s%s", peer,
				       from[0] != '\0' ? from : " from here", strerror(error),
				       a->last ? ": the server is ending, or what has that port is "
						 "no muster, such as a proxy"
					       : "");
	case ECONNREFUSED:
		return mst_reason_fail(a->why, -ECONNREFUSED, "nobody listens at %s (called%s)%s",
				       peer, from[0] != '\0' ? from : " from here",
				       a->last ? ": the server has ended, or a firewall refuses "
						 "this port"
					       : "");
	case EPERM:
	case EACCES:
		return mst_reason_fail(a->why, -EHOSTUNREACH,
				       "connect to %s: %s: a rule of this host's firewall, or a "
				       "filter of system calls (seccomp), forbids it",
				       peer, strerror(error));
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ETIMEDOUT:
		return mst_reason_fail(a->why, -EHOSTUNREACH, "%s cannot be reached%s: %s%s", peer,
				       from, strerror(error),
				       a->last ? "; --data-address at the server takes an address "
						 "of it that this host reaches"
					       : "");
	default:
		return mst_reason_fail(a->why, -error, "cannot connect to %s%s: %s", peer, from,
				       strerror(error));
	}
}

static int silent(const struct tcp_attempt *a, const char *what, uint64_t since_ns)
{
	bool whole = a->until_ns >= a->deadline_ns;
	char from[MST_ENDPOINT_TEXT_LEN];

	return mst_reason_fail(
		a->why, whole ? -ETIMEDOUT : -EHOSTUNREACH,
		"%s %s within %llu ms, called%s: is its host up, and does a firewall "
		"drop this? (muster doctor --peer HOST tries the way)",
		a->link->peer, what, (unsigned long long)((mst_now_ns() - since_ns) / MST_MS),
		from_text(a->link->conn.fd, from));
}

static int connect_to(struct tcp_attempt *a, const union mst_endpoint *far)
{
	struct mst_tcp_link *l = a->link;
	uint64_t began_ns = mst_now_ns();
	int error = 0;
	socklen_t len = sizeof(error);

	l->conn.fd = mst_descriptor_lift(
		socket(far->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (l->conn.fd < 0) {
		error = -errno;
		(void)mst_limit_refused("socket", error, a->why);
		return error;
	}
	int rc = bind_own(a, far);
	if (rc != 0)
		return rc;
	uint64_t most_ns = a->last ? CONNECT_NS : NEXT_NS;
	if (a->until_ns - began_ns > most_ns)
		a->until_ns = began_ns + most_ns;
	if (connect(l->conn.fd, &far->any, mst_endpoint_bytes(far)) != 0) {
		if (errno != EINPROGRESS)
			return unreached(a, errno);
		rc = await(a, POLLOUT);
	}
	if (rc == -ETIMEDOUT)
		return silent(a, "does not answer", began_ns);
	a->until_ns = a->deadline_ns;
	if (rc == 0 && getsockopt(l->conn.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (rc != 0 || error != 0)
		return rc != 0 ? rc : unreached(a, error);
	return is_echo(l->conn.fd) ? unreached(a, ECONNREFUSED) : 0;
}

/* Where data are encrypted, the rest is said by a channel. */
static int shake_hands(struct tcp_attempt *a)
{
	const struct mst_channels *channels = &a->net->cfg.channels;
	struct mst_tcp_conn *c = &a->link->conn;
	uint64_t began_ns = mst_now_ns();
	struct mst_stream *stream;
	int fd = c->fd, rc;

	if (!a->net->fabric.encrypted)
		return 0;
	*c = MST_TCP_NO_CONN;
	rc = channels->ops->connect(channels->own, fd, a->link->peer, &stream);
	if (rc != 0)
		return rc;
	*c = (struct mst_tcp_conn){ fd, channels->ops, stream };
	while ((rc = c->channel->shake(stream)) == -EAGAIN) {
		rc = await(a, c->channel->wants_room(stream) ? POLLOUT : POLLIN);
		if (rc == -ETIMEDOUT)
			return silent(a, "was reached, but has not shaken hands by TLS", began_ns);
		if (rc != 0)
			return rc;
	}
	if (rc != 0 && mst_tcp_why(c) != NULL)
		return mst_reason_fail(a->why, rc, "%s", mst_tcp_why(c));
	return rc;
}

/* It fits what the kernel keeps for a new connection. */
static int say_hello(const struct tcp_attempt *a)
{
	const struct mst_dial *dial = a->dial;
	struct mst_tcp_hello hello = { .version = MST_TCP_VERSION, .lanes = dial->lanes };
	uint8_t text[MST_TCP_HELLO_BYTES];
	struct iovec from = { text, sizeof(text) };

	memcpy(hello.token, dial->token, sizeof(hello.token));
	if (dial->export.region != NULL) {
		hello.at = dial->export.at;
		hello.bytes = dial->export.bytes;
	}
	mst_tcp_hello_encode(&hello, text);
	ssize_t sent = mst_tcp_send(&a->link->conn, &from, 1);
	if (sent == (ssize_t)sizeof(text))
		return 0;
	return unreached(a, sent < 0 ? (int)-sent : EPIPE);
}

static int judge(const struct tcp_attempt *a, const uint8_t text[MST_TCP_ANSWER_BYTES])
{
	struct mst_tcp_answer answer;
	const char *peer = a->link->peer;
	int rc = mst_tcp_answer_decode(text, &answer);

	if (rc == -EPROTO)
		return mst_reason_fail(a->why, rc,
				       "%s answered, but is no muster: another program, or a "
				       "proxy, has that port (--data-port and --data-address at "
				       "the server say where it listens)",
				       peer);
	if (rc == -EPROTONOSUPPORT)
		return mst_reason_fail(a->why, rc,
				       "%s speaks version %u of muster's TCP transport, this end "
				       "%u; use the same version of muster on both sides",
				       peer, answer.version, MST_TCP_VERSION);
	if (answer.error == MST_TCP_UNKNOWN)
		return mst_reason_fail(a->why, -EACCES,
				       "%s knows no such caller: another server of muster is at "
				       "this address (name the right one's with --data-address), "
				       "or the time to ask for a link is over",
				       peer);
	if (answer.error == MST_TCP_WANTS_TLS)
		return mst_reason_fail(
			a->why, -EACCES,
			"%s wants TLS, and this end sends plain bytes: start both "
			"ends with certificates (--tls-ca, --tls-cert and --tls-key, "
			"or MUSTER_TLS_CA and so on), or the server with --data-tls "
			"off",
			peer);
	if (answer.error == -EACCES)
		return mst_reason_fail(a->why, -EACCES,
				       "%s sent this end away: it expects no such caller; its "
				       "log says why",
				       peer);
	if (answer.error != 0)
		return mst_reason_fail(a->why, answer.error < 0 ? answer.error : -EPROTO,
				       "%s could not let this end in: %s; its log says more", peer,
				       strerror(answer.error < 0 ? -answer.error : EPROTO));
	return 0;
}

static int hear_answer(struct tcp_attempt *a)
{
	uint8_t text[MST_TCP_ANSWER_BYTES];
	uint64_t began_ns = mst_now_ns();
	size_t has = 0;

	while (has < sizeof(text)) {
		int rc = await(a, POLLIN);
		if (rc == -ETIMEDOUT)
			return silent(a, "was reached, but has not answered", began_ns);
		if (rc != 0)
			return rc;
		struct iovec to = { text + has, sizeof(text) - has };
		ssize_t got = mst_tcp_receive(&a->link->conn, &to, 1);
		if (got == -EAGAIN)
			continue;
		if (got < 0 && mst_tcp_why(&a->link->conn) != NULL)
			return mst_reason_fail(a->why, (int)got, "%s", mst_tcp_why(&a->link->conn));
		if (got <= 0)
			return mst_reason_fail(
				a->why, a->net->fabric.encrypted ? -ECONNRESET : -ECONNREFUSED,
				"%s closed the connection before it had answered%s%s%s: the server "
				"is ending, or what has that port is no muster, such as a proxy",
				a->link->peer, got < 0 ? " (" : "",
				got < 0 ? strerror((int)-got) : "", got < 0 ? ")" : "");
		has += (size_t)got;
	}
	return judge(a, text);
}

/* A listener that has no room for one more handshake hangs up, and has room soon. */
static bool calls_again(const struct tcp_attempt *a, uint32_t tries)
{
	if (!a->net->fabric.encrypted || tries == RETRIES || mst_left_ns(a->deadline_ns) < RETRY_NS)
		return false;
	(void)poll(NULL, 0, (int)(RETRY_NS / MST_MS));
	return check_wanted(a) == 0;
}

static int try_one(struct tcp_attempt *a, union mst_endpoint far)
{
	struct mst_tcp_link *l = a->link;
	uint64_t until_ns = a->until_ns;
	struct mst_reason first;
	uint32_t tries = 0;
	int rc;

	mst_reason_clear(&first);
	mst_endpoint_text(&far.any, l->peer);
	rc = scope_far(a, &far);
	if (rc != 0)
		return rc;
	do { /* of TLS the caller is done before the listener, which may then have no room */
		mst_tcp_hang_up(&l->conn);
		l->pulse = (struct mst_tcp_pulse){ 0 };
		a->until_ns = until_ns;
		a->tell_ns = MST_NEVER;
		rc = connect_to(a, &far);
		a->tell_ns = mst_deadline_ns(TELL_NS);
		if (rc == 0) {
			mst_tcp_socket_prepare(l->conn.fd);
			rc = shake_hands(a);
		}
		if (rc == 0)
			rc = say_hello(a);
		if (rc == 0)
			rc = hear_answer(a);
		if (rc == -ECONNRESET && tries == 0)
			first = *a->why;
	} while (rc == -ECONNRESET && calls_again(a, tries++));
	if (rc != 0 && tries > 0)
		mst_reason_add(a->why, "; at the first of %u calls: %s", tries + 1, first.text);
	if (rc != 0)
		mst_tcp_hang_up(&l->conn);
	return rc;
}

/* ---- all of them ---- */

/* Is another address worth a try? Not where somebody of muster has spoken. */
static bool goes_on(const struct tcp_attempt *a, int rc)
{
	return rc != -EACCES && rc != -EPROTONOSUPPORT && rc != -ECANCELED &&
	       mst_left_ns(a->deadline_ns) > 0;
}

static int try_all(struct tcp_attempt *a, struct mst_reason *why)
{
	struct mst_reason one;
	int rc = -ETIMEDOUT;

	a->why = &one;
	for (uint32_t i = 0; i < a->far.count && (i == 0 || goes_on(a, rc)); i++) {
		uint64_t share_ns = mst_left_ns(a->deadline_ns) / (a->far.count - i);
		a->last = i + 1 == a->far.count;
		a->until_ns = a->last ? a->deadline_ns : mst_deadline_ns(share_ns);
		mst_reason_clear(&one);
		rc = try_one(a, a->far.at[i]);
		if (rc == 0) {
			mst_reason_clear(why);
			return 0;
		}
		mst_reason_add(why, "%s%s", i > 0 ? "; " : "", mst_reason_or_errno(&one, rc));
	}
	return rc;
}

static int check(const struct mst_dial *dial, struct mst_reason *why)
{
	const struct mst_lanes *lanes = &dial->lanes;
	const struct mst_export *e = &dial->export;

	if (mst_tcp_lanes_check(lanes) != 0)
		return mst_reason_fail(
			why, -EINVAL,
			"lanes of %zu and %zu bytes, with %u and %u credits, cannot be",
			lanes->up_bytes, lanes->down_bytes, lanes->up_credits, lanes->down_credits);
	if (e->region == NULL || mst_region_may_export(e, lanes->down_bytes))
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"%zu bytes from %zu on of a region of %zu cannot stand for those from %zu "
		"on of a lane of %zu",
		e->bytes, e->offset, e->region->bytes, e->at, lanes->down_bytes);
}

int mst_tcp_dial(struct mst_net *n, const struct mst_dial *dial, struct mst_link **out,
		 struct mst_reason *why)
{
	struct tcp_attempt a = { .net = (struct mst_tcp_net *)n, .dial = dial };
	struct mst_tcp_link_cfg cfg = { .connector = true,
					.lanes = dial->lanes,
					.export = dial->export };

	mst_reason_clear(why);
	a.deadline_ns = mst_deadline_ns(dial->timeout_ns);
	if (a.net->link_count == a.net->cfg.links_max) /* before anybody is asked */
		return -ENOSPC;
	int rc = mst_endpoints_parse(dial->address, &mst_tcp, &a.far, why);
	if (rc == 0 && a.net->fabric.addresses != NULL)
		rc = mst_endpoints_list(a.net->fabric.addresses, &a.own, why);
	mst_endpoints_drop_repeated(&a.far);
	if (rc == 0)
		rc = check(dial, why);
	if (rc == 0)
		rc = mst_tcp_link_new(a.net, &cfg, &a.link, why);
	if (rc != 0)
		return rc;
	rc = try_all(&a, why);
	if (rc == 0)
		rc = mst_tcp_attach(n, &a.link->link, why);
	if (rc != 0) {
		mst_tcp_link_free(&a.link->link);
		return rc;
	}
	*out = &a.link->link;
	return 0;
}
