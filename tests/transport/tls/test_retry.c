/* SPDX-License-Identifier: MIT */
/* What a stream of TLS does while its socket is full: a write that had to wait is repeated from
 * memory that has moved, and a read goes on meanwhile, also if the peer wants new keys. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/transport/stream.h"
#include "common/transport/tls/context.h"
#include "tests/transport/tls/place.h"
#include "tests/ut.h"

#define LONG_NS (60 * MST_SECOND)
#define LONG_MS 60000
/* Smaller ones would wait for timers of TCP, whose segments are that large on loopback. */
#define SOCKET_BYTES (256 << 10)
#define TOTAL (8u << 20) /* more than both sockets hold */
#define PIECE 20000u     /* more than a record of TLS holds */

static struct tls_place home;

/* The stream under test has accepted; its peer is OpenSSL alone, which the test can tell what to do
 * on the wire. */
struct retry {
	struct mst_credentials *server, *caller;
	struct mst_listener *listener;
	struct mst_stream *stream, *below;
	struct mst_tls_peer who;
	SSL_CTX *ctx;
	SSL *peer;
	size_t sent, read; /* bytes of the pattern, by the stream and by the peer */
	unsigned waits;    /* how often the stream had no room */
	unsigned new_keys; /* how often it has told its peer of new keys */
};

static unsigned char pattern(size_t at)
{
	return (unsigned char)(at * 7 + at / 251);
}

static void await_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CU_ASSERT_EQUAL_FATAL(poll(&p, 1, LONG_MS), 1);
}

/* The peer has something to read, or the stream has room. */
static void await_either(const struct retry *r)
{
	struct pollfd p[2] = { { .fd = SSL_get_fd(r->peer), .events = POLLIN },
			       { .fd = mst_tls.stream_fd(r->stream), .events = POLLOUT } };

	CU_ASSERT_FATAL(poll(p, 2, LONG_MS) > 0);
}

static void see(int is_written, int version, int type, const void *data, size_t len, SSL *ssl,
		void *arg)
{
	struct retry *r = arg;

	(void)version, (void)ssl;
	if (!is_written && type == SSL3_RT_HANDSHAKE && len > 0 &&
	    *(const unsigned char *)data == SSL3_MT_KEY_UPDATE)
		r->new_keys++;
}

static void make_small(int fd)
{
	int bytes = SOCKET_BYTES;

	CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
}

static void begin(struct retry *r)
{
	char bound[64], peer[64];

	memset(r, 0, sizeof(*r));
	r->who.believed = MST_ROLE_SERVER;
	r->server = tls_place_load(&home, "server");
	r->caller = tls_place_load(&home, "worker");
	CU_ASSERT_EQUAL_FATAL(
		mst_tls.listen("127.0.0.1:0", r->server, &r->listener, bound, sizeof(bound)), 0);
	CU_ASSERT_EQUAL_FATAL(mst_plain.connect(bound, LONG_NS, NULL, &r->below), 0);
	int fd = mst_plain.stream_fd(r->below);
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_SETFL, 0), 0); /* it blocks */
	r->ctx = mst_credentials_context(r->caller);
	r->peer = SSL_new(r->ctx);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r->peer);
	SSL_set_app_data(r->peer, &r->who);
	SSL_set_msg_callback(r->peer, see);
	SSL_set_msg_callback_arg(r->peer, r);
	CU_ASSERT_EQUAL_FATAL(SSL_set_fd(r->peer, fd), 1);
	CU_ASSERT_EQUAL_FATAL(SSL_connect(r->peer), 1);
	await_readable(mst_tls.listener_fd(r->listener));
	CU_ASSERT_EQUAL_FATAL(mst_tls.accept(r->listener, &r->stream, peer, sizeof(peer)), 0);
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	make_small(fd);
	make_small(mst_tls.stream_fd(r->stream));
}

static void end(struct retry *r)
{
	SSL_free(r->peer);
	SSL_CTX_free(r->ctx);
	mst_plain.close(r->below);
	mst_tls.close(r->stream);
	mst_tls.unlisten(r->listener);
	mst_credentials_free(r->caller);
	mst_credentials_free(r->server);
}

/* Sends the next piece of the pattern from memory of its own, which is spoilt and gone when this
 * returns: so the next try is from elsewhere. A try after one that had to wait has a little more.
 * Return: what send() gave. */
static ssize_t send_some(struct retry *r)
{
	size_t len = PIECE + r->waits;
	unsigned char *spot = malloc(len);

	CU_ASSERT_PTR_NOT_NULL_FATAL(spot);
	for (size_t i = 0; i < len; i++)
		spot[i] = pattern(r->sent + i);
	ssize_t done = mst_tls.send(r->stream, spot, len);
	memset(spot, 0xee, len);
	free(spot);
	if (done > 0)
		r->sent += (size_t)done;
	r->waits += done == -EAGAIN;
	return done;
}

static void fill(struct retry *r)
{
	ssize_t done;

	while ((done = send_some(r)) > 0 && r->sent < TOTAL)
		continue;
	CU_ASSERT_EQUAL_FATAL(done, -EAGAIN);
}

/* The peer reads what is there, or waits for something, and compares it. Return: false: it got
 * something else, or nothing. */
static bool peer_reads(struct retry *r)
{
	unsigned char got[4096];
	int n = SSL_read(r->peer, got, sizeof(got));

	if (n <= 0 && SSL_get_error(r->peer, n) == SSL_ERROR_WANT_READ) {
		await_either(r);
		return true;
	}
	for (int i = 0; i < n; i++) {
		if (got[i] != pattern(r->read + (size_t)i))
			return false;
	}
	r->read += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* Both go on until the peer has all that the stream has sent, and that is @total or more. */
static void flow(struct retry *r, size_t total)
{
	ssize_t done = 0;

	while ((r->sent < total || r->read < r->sent) && (done >= 0 || done == -EAGAIN)) {
		if (r->sent < total)
			done = send_some(r);
		if (!peer_reads(r))
			break;
	}
	CU_ASSERT(done >= 0 || done == -EAGAIN);
	CU_ASSERT(r->sent >= total);
	CU_ASSERT_EQUAL(r->read, r->sent);
}

static ssize_t receive_at_last(struct retry *r, char *out, size_t len)
{
	ssize_t got;

	while ((got = mst_tls.receive(r->stream, out, len)) == -EAGAIN)
		await_readable(mst_tls.stream_fd(r->stream));
	return got;
}

/* ---- cases ---- */

static void a_write_that_had_to_wait_goes_on_from_memory_that_has_moved(void)
{
	struct retry r;

	begin(&r);
	fill(&r);
	flow(&r, TOTAL);
	end(&r);
}

static void bytes_are_read_while_a_write_waits(void)
{
	struct retry r;
	char got[8];

	begin(&r);
	fill(&r);
	CU_ASSERT_EQUAL(SSL_write(r.peer, "between", 7), 7);
	CU_ASSERT_EQUAL(receive_at_last(&r, got, sizeof(got)), 7);
	CU_ASSERT_EQUAL(memcmp(got, "between", 7), 0);
	flow(&r, r.sent + PIECE);
	end(&r);
}

/* The stream has to answer with new keys of its own, and has no room for that. The peer's bytes do
 * not wait for it, the write that waits is still under the old keys, and the answer goes between
 * that and the next. (Who asks a second time meanwhile loses its stream: stream.c.) */
static void a_peer_that_wants_new_keys_is_read_and_answered_when_there_is_room(void)
{
	struct retry r;
	char got[8];

	begin(&r);
	fill(&r);
	CU_ASSERT_EQUAL_FATAL(SSL_key_update(r.peer, SSL_KEY_UPDATE_REQUESTED), 1);
	CU_ASSERT_EQUAL_FATAL(SSL_do_handshake(r.peer), 1);
	CU_ASSERT_EQUAL(SSL_write(r.peer, "new key", 7), 7);
	CU_ASSERT_EQUAL(receive_at_last(&r, got, sizeof(got)), 7);
	CU_ASSERT_EQUAL(memcmp(got, "new key", 7), 0);
	flow(&r, r.sent + TOTAL);
	CU_ASSERT_EQUAL(r.new_keys, 1);
	CU_ASSERT_EQUAL(SSL_write(r.peer, "behind", 6), 6);
	CU_ASSERT_EQUAL(receive_at_last(&r, got, sizeof(got)), 6);
	end(&r);
}

int main(void)
{
	CU_TestInfo cases[] = {
		{ "a write that had to wait goes on from memory that has moved",
		  a_write_that_had_to_wait_goes_on_from_memory_that_has_moved },
		{ "bytes are read while a write waits", bytes_are_read_while_a_write_waits },
		{ "a peer that wants new keys is read, and answered when there is room",
		  a_peer_that_wants_new_keys_is_read_and_answered_when_there_is_room },
		CU_TEST_INFO_NULL,
	};

	tls_place_make(&home, 0);
	int failed = ut_main("tls retry", cases);
	tls_place_remove(&home);
	return failed;
}
