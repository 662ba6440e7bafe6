/* SPDX-License-Identifier: MIT */
/* The control stream over real sockets on the loopback, plain or with TLS: "tls" as argument. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/transport/stream.h"
#include "tests/transport/tls/place.h"
#include "tests/ut.h"

#define LONG_NS (60 * MST_SECOND)

static const struct mst_stream_ops *ops = &mst_plain;
static struct mst_credentials *own; /* NULL: plain */

static int connect_to(const char *address, uint64_t timeout_ns, struct mst_stream **out)
{
	struct mst_proof proof = { .own = own };

	return ops->connect(address, timeout_ns, &proof, out);
}

/* Both ends of a connection, and where it was made. */
struct stream_pair {
	struct mst_listener *listener;
	struct mst_stream *caller, *answerer;
	char bound[64], peer[64];
};

static void await(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	CU_ASSERT_EQUAL(poll(&p, 1, 60000), 1);
}

static void pair_at(struct stream_pair *p, const char *address)
{
	CU_ASSERT_EQUAL_FATAL(ops->listen(address, own, &p->listener, p->bound, sizeof(p->bound)),
			      0);
	CU_ASSERT_EQUAL_FATAL(connect_to(p->bound, LONG_NS, &p->caller), 0);
	await(ops->listener_fd(p->listener), POLLIN);
	CU_ASSERT_EQUAL_FATAL(ops->accept(p->listener, &p->answerer, p->peer, sizeof(p->peer)), 0);
}

static void pair_open(struct stream_pair *p)
{
	pair_at(p, "127.0.0.1:0");
}

static void pair_close(struct stream_pair *p)
{
	ops->close(p->caller);
	ops->close(p->answerer);
	ops->unlisten(p->listener);
}

static void bytes_come_in_order(void)
{
	struct stream_pair p;
	size_t have = 0;
	char got[16];

	pair_open(&p);
	CU_ASSERT_EQUAL(ops->send(p.caller, "abc", 3), 3);
	CU_ASSERT_EQUAL(ops->send(p.caller, "def", 3), 3);
	while (have < 6) {
		await(ops->stream_fd(p.answerer), POLLIN);
		ssize_t more = ops->receive(p.answerer, got + have, sizeof(got) - have);
		CU_ASSERT_FATAL(more > 0);
		have += (size_t)more;
	}
	CU_ASSERT_EQUAL(have, 6);
	CU_ASSERT_EQUAL(memcmp(got, "abcdef", 6), 0);
	pair_close(&p);
}

static void nothing_there_is_eagain(void)
{
	struct stream_pair p;
	struct mst_stream *more;
	char got;

	pair_open(&p);
	CU_ASSERT_EQUAL(ops->receive(p.answerer, &got, 1), -EAGAIN);
	CU_ASSERT_EQUAL(ops->accept(p.listener, &more, p.peer, sizeof(p.peer)), -EAGAIN);
	pair_close(&p);
}

static void the_end_is_told_after_the_last_byte(void)
{
	struct stream_pair p;
	char got[4];

	pair_open(&p);
	CU_ASSERT_EQUAL(ops->send(p.caller, "bye", 3), 3);
	ops->close(p.caller);
	p.caller = NULL;
	await(ops->stream_fd(p.answerer), POLLIN);
	CU_ASSERT_EQUAL(ops->receive(p.answerer, got, sizeof(got)), 3);
	await(ops->stream_fd(p.answerer), POLLIN);
	CU_ASSERT_EQUAL(ops->receive(p.answerer, got, sizeof(got)), 0);
	pair_close(&p);
}

/* Had this raised SIGPIPE, the whole program would be gone. */
static void sending_to_the_dead_is_epipe(void)
{
	struct stream_pair p;
	ssize_t rc = 0;

	pair_open(&p);
	ops->close(p.answerer);
	p.answerer = NULL;
	for (int i = 0; i < 10000 && rc >= 0; i++) {
		rc = ops->send(p.caller, "x", 1);
		mst_sleep_ns(MST_MS);
	}
	CU_ASSERT_EQUAL(rc, -EPIPE);
	pair_close(&p);
}

static void a_full_stream_is_eagain_and_loses_nothing(void)
{
	static char block[65536], got[65536];
	struct stream_pair p;
	size_t sent = 0, received = 0;
	ssize_t rc;

	pair_open(&p);
	while ((rc = ops->send(p.caller, block, sizeof(block))) > 0)
		sent += (size_t)rc;
	CU_ASSERT_EQUAL(rc, -EAGAIN);
	while (received < sent) {
		await(ops->stream_fd(p.answerer), POLLIN);
		rc = ops->receive(p.answerer, got, sizeof(got));
		CU_ASSERT_FATAL(rc > 0 ||
				rc == -EAGAIN); /* a record of TLS may have come in part */
		received += rc > 0 ? (size_t)rc : 0;
	}
	CU_ASSERT_EQUAL(received, sent);
	pair_close(&p);
}

static void addresses_are_told(void)
{
	struct stream_pair p;
	int port;

	pair_open(&p);
	CU_ASSERT_EQUAL(sscanf(p.bound, "127.0.0.1:%d", &port), 1);
	CU_ASSERT(port > 0);
	CU_ASSERT_EQUAL(sscanf(p.peer, "127.0.0.1:%d", &port), 1);
	pair_close(&p);
}

static void a_name_will_do(void)
{
	struct stream_pair p;
	char address[80];

	pair_open(&p);
	snprintf(address, sizeof(address), "localhost%s", strrchr(p.bound, ':'));
	struct mst_stream *s = NULL;
	CU_ASSERT_EQUAL(connect_to(address, LONG_NS, &s), 0);
	ops->close(s);
	pair_close(&p);
}

static void version_six_has_brackets(void)
{
	struct mst_listener *l;
	char bound[64];
	struct stream_pair p;

	int rc = ops->listen("[::1]:0", own, &l, bound, sizeof(bound));
	if (rc == -EADDRNOTAVAIL || rc == -EAFNOSUPPORT) {
		puts("(this host has no ::1)");
		return;
	}
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	ops->unlisten(l);
	pair_at(&p, "[::1]:0");
	CU_ASSERT_EQUAL(strncmp(p.bound, "[::1]:", 6), 0);
	CU_ASSERT_EQUAL(strncmp(p.peer, "[::1]:", 6), 0);
	pair_close(&p);
}

/* As that of a caller with IPv4 is to a socket that listens at [::]. */
static void a_mapped_address_is_one_of_ipv4(void)
{
	struct mst_listener *l;
	char bound[64];
	struct stream_pair p;

	int rc = ops->listen("[::ffff:127.0.0.1]:0", own, &l, bound, sizeof(bound));
	if (rc == -EAFNOSUPPORT) {
		puts("(this host has no IPv6)");
		return;
	}
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	ops->unlisten(l);
	pair_at(&p, "[::ffff:127.0.0.1]:0");
	CU_ASSERT_EQUAL(strncmp(p.bound, "127.0.0.1:", 10), 0);
	CU_ASSERT_EQUAL(strncmp(p.peer, "127.0.0.1:", 10), 0);
	pair_close(&p);
}

static void a_bad_address_is_einval(void)
{
	static const char *const bad[] = {
		"",         "17077",     ":17077", "127.0.0.1:",   "127.0.0.1:65536", "a:1x",
		"::1:1234", "[::1:1234", "[]:1",   "127.0.0.1:-1", "127.0.0.1: 1",    "::1",
	};
	struct mst_listener *l;
	struct mst_stream *s;
	char bound[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(connect_to(bad[i], MST_MS, &s), -EINVAL);
		CU_ASSERT_EQUAL(ops->listen(bad[i], own, &l, bound, sizeof(bound)), -EINVAL);
	}
}

/* The kernel says EINVAL of it, as of what is no address. */
static void an_address_of_one_link_needs_its_interface(void)
{
	struct mst_proof proof = { .own = own };
	struct mst_listener *l;
	struct mst_stream *s;
	char bound[64];

	CU_ASSERT_EQUAL(ops->listen("[fe80::1]:0", own, &l, bound, sizeof(bound)), -EDESTADDRREQ);
	CU_ASSERT_EQUAL(ops->connect("[fe80::1]:17077", MST_MS, &proof, &s), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(proof.why.text, "[fe80::1]:17077"));
	CU_ASSERT_PTR_NOT_NULL(strstr(proof.why.text, "lacks the interface: [fe80::1%eth0]:PORT"));
	CU_ASSERT_NOT_EQUAL(ops->listen("[fe80::1%lo]:0", own, &l, bound, sizeof(bound)),
			    -EDESTADDRREQ);
}

static void nobody_there_is_refused(void)
{
	struct mst_listener *l;
	struct mst_stream *s;
	char bound[64];

	/* An address that others do not use: nobody takes the port meanwhile. */
	CU_ASSERT_EQUAL_FATAL(ops->listen("127.99.0.1:0", own, &l, bound, sizeof(bound)), 0);
	ops->unlisten(l);
	CU_ASSERT_EQUAL(connect_to(bound, LONG_NS, &s), -ECONNREFUSED);
}

static void a_port_in_use_is_eaddrinuse(void)
{
	struct mst_listener *l, *second;
	char bound[64], again[64];

	CU_ASSERT_EQUAL_FATAL(ops->listen("127.0.0.1:0", own, &l, bound, sizeof(bound)), 0);
	CU_ASSERT_EQUAL(ops->listen(bound, own, &second, again, sizeof(again)), -EADDRINUSE);
	ops->unlisten(l);
}

/* A listener whose queue is full leaves a connect unanswered. */
/* As when all workers of a large job call at once. */
static void many_may_call_before_the_first_is_accepted(void)
{
	enum { MANY = 300 };
	static struct mst_stream *caller[MANY];
	struct mst_listener *l;
	char bound[64];
	unsigned most = 0;
	FILE *limit = fopen("/proc/sys/net/core/somaxconn", "re");

	if (limit != NULL) {
		CU_ASSERT_EQUAL(fscanf(limit, "%u", &most), 1);
		(void)fclose(limit);
	}
	CU_ASSERT_EQUAL_FATAL(mst_plain.listen("127.0.0.1:0", NULL, &l, bound, sizeof(bound)), 0);
	for (unsigned i = 0; i < MANY && i < most; i++)
		CU_ASSERT_EQUAL_FATAL(mst_plain.connect(bound, LONG_NS, NULL, &caller[i]), 0);
	for (unsigned i = 0; i < MANY && i < most; i++)
		mst_plain.close(caller[i]);
	mst_plain.unlisten(l);
}

static void connect_keeps_its_time(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), filler[8], count = 0;
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);
	struct mst_stream *s = NULL;
	char address[64];

	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 0), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	for (; count < 8; count++) {
		filler[count] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(filler[count], (struct sockaddr *)&sa, sizeof(sa));
	}
	await(fd, POLLIN); /* one is in the queue, which is full then */
	snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)ntohs(sa.sin_port));
	uint64_t began_ns = mst_now_ns();
	CU_ASSERT_EQUAL(connect_to(address, 200 * MST_MS, &s), -ETIMEDOUT);
	uint64_t took_ns = mst_now_ns() - began_ns;
	CU_ASSERT(took_ns >= 190 * MST_MS && took_ns < LONG_NS);
	while (count > 0)
		close(filler[--count]);
	close(fd);
}

static void no_descriptor_is_inherited_or_delays(void)
{
	struct stream_pair p;
	int on = 0;
	socklen_t len = sizeof(on);

	pair_open(&p);
	const int fd[] = { ops->stream_fd(p.caller), ops->stream_fd(p.answerer),
			   ops->listener_fd(p.listener) };
	for (int i = 0; i < 3; i++) {
		CU_ASSERT(fcntl(fd[i], F_GETFD) & FD_CLOEXEC);
		CU_ASSERT(fcntl(fd[i], F_GETFL) & O_NONBLOCK);
	}
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(getsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
		CU_ASSERT(on);
	}
	pair_close(&p);
}

static void closing_nothing_is_fine(void)
{
	ops->close(NULL);
	ops->unlisten(NULL);
	CU_PASS("still here");
}

static CU_TestInfo cases[] = {
	{ "bytes come in order", bytes_come_in_order },
	{ "nothing there is -EAGAIN", nothing_there_is_eagain },
	{ "the end is told after the last byte", the_end_is_told_after_the_last_byte },
	{ "sending to the dead is -EPIPE, and no signal", sending_to_the_dead_is_epipe },
	{ "a full stream is -EAGAIN and loses nothing", a_full_stream_is_eagain_and_loses_nothing },
	{ "both addresses are told", addresses_are_told },
	{ "a name will do for an address", a_name_will_do },
	{ "an IPv6 address has brackets", version_six_has_brackets },
	{ "a mapped address is one of IPv4", a_mapped_address_is_one_of_ipv4 },
	{ "a bad address is -EINVAL", a_bad_address_is_einval },
	{ "an address of one link needs its interface",
	  an_address_of_one_link_needs_its_interface },
	{ "nobody there is -ECONNREFUSED", nobody_there_is_refused },
	{ "a port in use is -EADDRINUSE", a_port_in_use_is_eaddrinuse },
	{ "many may call before the first is accepted",
	  many_may_call_before_the_first_is_accepted },
	{ "connect keeps its time", connect_keeps_its_time },
	{ "no descriptor is inherited, none delays", no_descriptor_is_inherited_or_delays },
	{ "closing nothing is fine", closing_nothing_is_fine },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	struct tls_place place = { .dir = "" };

	if (argc > 1 && strcmp(argv[1], "tls") == 0) {
		ops = &mst_tls;
		tls_place_make(&place, 0);
		own = tls_place_load(&place, "server");
	}
	int failed = ut_main("stream", cases);
	mst_credentials_free(own);
	tls_place_remove(&place);
	return failed;
}
