/* SPDX-License-Identifier: MIT */
/* What dialling over TCP comes to, where several addresses are named and where something else is at
 * one of them. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/transport/called.h"
#include "tests/transport/tcp/attack.h"

/* The listener at 127.0.0.1 and a net that dials. */
struct tcp_scene {
	struct tcp_target target;
	struct mst_net *net;
	unsigned port;
};

static struct tcp_scene scene_open(void)
{
	struct mst_net_cfg cfg = { .links_max = 2 };
	struct tcp_scene s = { .target = target_open() };

	CU_ASSERT_EQUAL_FATAL(mst_tcp.net_open(&cfg, &s.net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(sscanf(s.target.listener->address, "tcp:127.0.0.1:%u", &s.port), 1);
	return s;
}

static void scene_close(struct tcp_scene *s)
{
	mst_tcp.net_close(s->net);
	target_close(&s->target);
}

/* Lets the next caller in, while the test's own thread dials. */
static void *let_next_in(void *arg)
{
	struct tcp_scene *s = arg;
	struct mst_link_request request;
	struct mst_link *link = NULL;

	if (next_request(&s->target, &request) == 0)
		(void)mst_tcp_listener.answer(s->target.listener, &request, &link, UT_UNREAD);
	return link;
}

static int dial(struct tcp_scene *s, const char *address, struct mst_link **out,
		struct mst_reason *why)
{
	struct mst_dial how = { .address = address,
				.lanes = { 4096, 4096, 4, 4 },
				.timeout_ns = PATIENCE_NS };

	return mst_tcp.dial(s->net, &how, out, why);
}

/* Nobody listens at the port of another address of loopback. */
static void the_next_address_is_tried_where_nobody_listens(void)
{
	struct tcp_scene s = scene_open();
	char address[MST_ADDRESS_LEN];
	struct mst_link *link = NULL;
	struct mst_reason why = { "of another" };
	pthread_t thread;
	void *far;

	(void)snprintf(address, sizeof(address), "tcp:127.0.0.9:%u,127.0.0.1:%u", s.port, s.port);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_next_in, &s), 0);
	CU_ASSERT_EQUAL_FATAL(dial(&s, address, &link, &why), 0);
	pthread_join(thread, &far);
	CU_ASSERT_STRING_EQUAL(why.text, "");
	CU_ASSERT_PTR_NOT_NULL(far);
	mst_tcp.link_free(far);
	mst_tcp.detach(link);
	mst_tcp.link_free(link);
	scene_close(&s);
}

static void where_nobody_is_at_all_each_address_is_named(void)
{
	struct tcp_scene s = scene_open();
	char address[MST_ADDRESS_LEN], one[64];
	struct mst_link *link = NULL;
	struct mst_reason why;

	(void)snprintf(address, sizeof(address), "tcp:127.0.0.9:%u,127.0.0.8:%u", s.port, s.port);
	CU_ASSERT_EQUAL(dial(&s, address, &link, &why), -ECONNREFUSED);
	for (int i = 8; i < 10; i++) {
		(void)snprintf(one, sizeof(one), "nobody listens at 127.0.0.%d:%u", i, s.port);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, one));
	}
	CU_ASSERT_PTR_NULL(link);
	scene_close(&s);
}

/* ---- addresses of a list ---- */

static atomic_uint refused;

static bool refuses_all(void *ctx, const uint8_t token[MST_TOKEN_LEN],
			const struct mst_origin *from)
{
	(void)ctx, (void)token, (void)from;
	atomic_fetch_add(&refused, 1);
	return false;
}

/* Sends away the next who comes. */
static void *send_away_once(void *arg)
{
	uint64_t end_ns = mst_now_ns() + PATIENCE_NS;
	struct mst_link_request request;
	struct tcp_target *h = arg;

	h->listener->filter.expects = refuses_all;
	for (refused = 0; atomic_load(&refused) == 0 && mst_now_ns() < end_ns;) {
		struct pollfd pfd = { .fd = mst_tcp_listener.fd(h->listener), .events = POLLIN };
		(void)poll(&pfd, 1, 10);
		(void)mst_tcp_listener.next_request(h->listener, &request, UT_UNREAD);
	}
	return NULL;
}

/* An address may be of several hosts, such as that of a bridge for containers. */
static void another_server_at_the_address_is_told_apart(void)
{
	struct tcp_scene s = scene_open();
	struct tcp_target other = target_open();
	char address[MST_ADDRESS_LEN];
	struct mst_link *link;
	struct mst_reason why;
	pthread_t thread;
	unsigned port;

	CU_ASSERT_EQUAL_FATAL(sscanf(other.listener->address, "tcp:127.0.0.1:%u", &port), 1);
	(void)snprintf(address, sizeof(address), "tcp:127.0.0.9:%u,127.0.0.1:%u", port, port);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, send_away_once, &other), 0);
	CU_ASSERT_EQUAL(dial(&s, address, &link, &why), -EACCES);
	pthread_join(thread, NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "nobody listens at 127.0.0.9"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "knows no such caller: another server"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "--data-address"));
	target_close(&other);
	scene_close(&s);
}

/* It is at all of them: where it was called is the best guess, and comes first. */
static void a_listener_without_addresses_is_where_it_is_called(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .links_max = 2, .fabric = &fabric };
	struct mst_link_listener *listener = NULL;
	struct mst_net *net;
	unsigned port;

	CU_ASSERT_EQUAL_FATAL(mst_tcp.net_open(&cfg, &net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_tcp_listener.open(net, &listener, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(sscanf(listener->address, "tcp:*:%u,", &port), 1);
	CU_ASSERT(port > 0);
	mst_called_fill(listener->address, sizeof(listener->address), "127.0.0.7");
	struct mst_endpoints at;
	CU_ASSERT_EQUAL(mst_endpoints_parse(listener->address, &mst_tcp, &at, UT_UNREAD), 0);
	CU_ASSERT(at.count >= 2 && at.at[0].v4.sin_addr.s_addr == htonl(0x7f000007));
	mst_tcp_listener.close(listener);
	mst_tcp.net_close(net);
}

static void an_address_of_a_link_needs_an_interface_here(void)
{
	struct tcp_scene s = scene_open();
	struct mst_link *link;
	struct mst_reason why;

	CU_ASSERT_EQUAL(dial(&s, "tcp:[fe80::1%nowhere]:4711", &link, &why), -EHOSTUNREACH);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "MUSTER_DATA_ADDRESS"));
	scene_close(&s);
}

/* ---- a firewall that drops ---- */

/* A port whose queue of callers is full: the kernel drops the next call without a word. */
struct full {
	int listener, caller[4];
	unsigned port;
};

static struct full full_open(void)
{
	struct full f = { .listener = socket(AF_INET, SOCK_STREAM, 0) };
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CU_ASSERT_EQUAL_FATAL(bind(f.listener, (struct sockaddr *)&at, len), 0);
	CU_ASSERT_EQUAL_FATAL(listen(f.listener, 0), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(f.listener, (struct sockaddr *)&at, &len), 0);
	f.port = ntohs(at.sin_port);
	for (int i = 0; i < 4; i++) {
		f.caller[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(f.caller[i], (struct sockaddr *)&at, len);
	}
	return f;
}

static void full_close(struct full *f)
{
	for (int i = 0; i < 4; i++)
		close(f->caller[i]);
	close(f->listener);
}

static void silence_is_told_with_both_addresses_and_the_time(void)
{
	struct tcp_scene s = scene_open();
	struct full f = full_open();
	char address[MST_ADDRESS_LEN];
	struct mst_dial how = { .address = address,
				.lanes = { 4096, 4096, 4, 4 },
				.timeout_ns = MST_SECOND / 5 };
	struct mst_link *link;
	struct mst_reason why;

	(void)snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", f.port);
	CU_ASSERT_EQUAL(mst_tcp.dial(s.net, &how, &link, &why), -ETIMEDOUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, address + strlen("tcp:")));
	const char *within = strstr(why.text, "does not answer within ");
	CU_ASSERT_PTR_NOT_NULL_FATAL(within);
	/* A busy host notices it later. */
	CU_ASSERT(strtoul(within + strlen("does not answer within "), NULL, 10) >= 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "called from 127.0.0.1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "firewall"));
	full_close(&f);
	scene_close(&s);
}

/* Return: what dial() writes to the log meanwhile. */
static const char *log_of_dial(struct mst_net *net, const struct mst_dial *how)
{
	static char text[4096];
	struct mst_link *link;
	FILE *log = tmpfile();
	int was = dup(STDERR_FILENO);

	CU_ASSERT_PTR_NOT_NULL_FATAL(log);
	CU_ASSERT_FATAL(dup2(fileno(log), STDERR_FILENO) >= 0);
	CU_ASSERT_EQUAL(mst_tcp.dial(net, how, &link, UT_UNREAD), -ETIMEDOUT);
	CU_ASSERT_FATAL(dup2(was, STDERR_FILENO) >= 0);
	(void)close(was);
	rewind(log);
	text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
	(void)fclose(log);
	return text;
}

static void one_that_is_reached_and_silent_is_told_of_in_time(void)
{
	struct tcp_scene s = scene_open(); /* whose listener nobody asks */
	char address[MST_ADDRESS_LEN];
	struct mst_dial how = { .address = address,
				.lanes = { 4096, 4096, 4, 4 },
				.timeout_ns = 6 * MST_SECOND };

	(void)snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", s.port);
	const char *said = log_of_dial(s.net, &how);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, address + strlen("tcp:")));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "was reached, and has not answered for 5 s"));
	how.timeout_ns = MST_SECOND / 5;
	CU_ASSERT_STRING_EQUAL(log_of_dial(s.net, &how), "");
	scene_close(&s);
}

/* It has its share of the time, and no more than is of use. */
static void the_next_address_is_tried_where_a_firewall_drops(void)
{
	struct tcp_scene s = scene_open();
	struct full f = full_open();
	char address[MST_ADDRESS_LEN];
	struct mst_link *link = NULL;
	struct mst_reason why;
	pthread_t thread;
	void *far;

	(void)snprintf(address, sizeof(address), "tcp:127.0.0.1:%u,127.0.0.1:%u", f.port, s.port);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, let_next_in, &s), 0);
	uint64_t began_ns = mst_now_ns();
	CU_ASSERT_EQUAL_FATAL(dial(&s, address, &link, &why), 0);
	CU_ASSERT(mst_now_ns() - began_ns < PATIENCE_NS / 2 - MST_SECOND);
	pthread_join(thread, &far);
	mst_tcp.link_free(far);
	mst_tcp.detach(link);
	mst_tcp.link_free(link);
	full_close(&f);
	scene_close(&s);
}

/* ---- something else at the address ---- */

struct other {
	int fd;
	const char *says;
	size_t bytes;
};

static void *answer_once(void *arg)
{
	const struct other *o = arg;
	char hello[MST_TCP_HELLO_BYTES];
	int fd = accept(o->fd, NULL, NULL);

	(void)!recv(fd, hello, sizeof(hello), MSG_WAITALL);
	(void)!send(fd, o->says, o->bytes, MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

static void dial_other(const char *says, size_t bytes, int error, const char *words)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct other o = { .fd = socket(AF_INET, SOCK_STREAM, 0), .says = says, .bytes = bytes };
	struct tcp_scene s = scene_open();
	char address[MST_ADDRESS_LEN];
	struct mst_link *link = NULL;
	struct mst_reason why;
	socklen_t len = sizeof(at);
	pthread_t thread;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CU_ASSERT_EQUAL_FATAL(bind(o.fd, (struct sockaddr *)&at, sizeof(at)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(o.fd, 1), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(o.fd, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", ntohs(at.sin_port));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, answer_once, &o), 0);
	CU_ASSERT_EQUAL(dial(&s, address, &link, &why), error);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, words));
	pthread_join(thread, NULL);
	close(o.fd);
	scene_close(&s);
}

static void what_is_no_muster_is_named(void)
{
	static const char next[MST_TCP_ANSWER_BYTES] = { 'm', 't', 'c', 'p', 9 };

	dial_other("HTTP/1.1 400 Bad Request\r\n", 26, -EPROTO, "is no muster");
	dial_other(next, sizeof(next), -EPROTONOSUPPORT, "speaks version 9");
	dial_other("", 0, -ECONNREFUSED, "closed the connection before");
}

static void addresses_of_another_host_are_refused_in_words(void)
{
	struct mst_net_cfg cfg = { .links_max = 2, .fabric = &target_fabric };
	struct mst_link_listener *listener = NULL;
	struct mst_reason why;
	struct mst_net *net;

	target_fabric.addresses = "192.0.2.77"; /* of documentation: nobody's */
	CU_ASSERT_EQUAL_FATAL(mst_tcp.net_open(&cfg, &net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_tcp_listener.open(net, &listener, &why), -EADDRNOTAVAIL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "this host has no address 192.0.2.77"));
	mst_tcp.net_close(net);
}

/* Opens a listener of its own at 127.0.0.1. */
static int listen_at(uint16_t port, struct mst_net **net, struct mst_link_listener **listener,
		     struct mst_reason *why)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .links_max = 2, .fabric = &fabric };

	fabric.io_threads = 0;
	fabric.addresses = "127.0.0.1";
	fabric.data_port = port;
	*listener = NULL;
	CU_ASSERT_EQUAL_FATAL(mst_tcp.net_open(&cfg, net, UT_UNREAD), 0);
	return mst_tcp_listener.open(*net, listener, why);
}

static void a_port_that_is_taken_is_told_in_words(void)
{
	struct tcp_scene s = scene_open();
	struct mst_link_listener *listener;
	struct mst_reason why;
	struct mst_net *net;

	CU_ASSERT_EQUAL(listen_at((uint16_t)s.port, &net, &listener, &why), -EADDRINUSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "is taken at 127.0.0.1:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "choose another one with --data-port"));
	mst_tcp.net_close(net);
	scene_close(&s);
}

/* As a server does, before it knows its job; and when one job could not be set up, for the next. */
static void a_port_that_is_held_is_for_its_own_listeners_alone(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_ports ports;
	struct mst_net_cfg cfg = { .links_max = 2, .fabric = &fabric, .ports = &ports };
	struct mst_link_listener *listener, *stranger;
	struct mst_net *net, *other;
	struct mst_reason why;
	struct tcp_scene s = scene_open();

	fabric.addresses = "127.0.0.1,127.0.0.2";
	fabric.data_port = (uint16_t)s.port;
	scene_close(&s);
	CU_ASSERT_EQUAL_FATAL(mst_tcp_listener.hold(&fabric, &ports, &why), 0);
	CU_ASSERT_EQUAL(ports.count, 2);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(listen_at(fabric.data_port, &other, &stranger, &why), -EADDRINUSE);
		mst_tcp.net_close(other);
		CU_ASSERT_EQUAL_FATAL(mst_tcp.net_open(&cfg, &net, UT_UNREAD), 0);
		CU_ASSERT_EQUAL_FATAL(mst_tcp_listener.open(net, &listener, &why), 0);
		struct tcp_target h = { net, listener };
		int fd = call(&h); /* which the listener hears of */
		struct pollfd pfd = { .fd = mst_tcp_listener.fd(listener), .events = POLLIN };
		CU_ASSERT_EQUAL(poll(&pfd, 1, -1), 1);
		close(fd);
		target_close(&h);
	}
	mst_ports_close(&ports);
	CU_ASSERT_EQUAL(listen_at(fabric.data_port, &other, &stranger, &why), 0);
	mst_tcp_listener.close(stranger);
	mst_tcp.net_close(other);
}

static void a_port_that_nobody_asks_for_is_not_held(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_ports ports;

	CU_ASSERT_EQUAL(mst_tcp_listener.hold(&fabric, &ports, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(ports.count, 0);
}

/* The server ends first, so the kernel keeps its ends of the connections for a minute. */
static void a_server_that_is_started_again_has_its_port(void)
{
	struct tcp_scene s = scene_open();
	struct mst_link_listener *listener;
	struct mst_reason why;
	struct mst_net *net;
	unsigned port = s.port; /* free after this scene */

	scene_close(&s);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(listen_at((uint16_t)port, &net, &listener, &why), 0);
		struct tcp_target h = { net, listener };
		int fd = call(&h);
		struct pollfd pfd = { .fd = mst_tcp_listener.fd(listener), .events = POLLIN };
		(void)poll(&pfd, 1, -1);
		say(fd, "GET / HTTP/1.1\r\n", 16);
		struct mst_link_request request;
		char byte;
		ssize_t got; /* to the end of what it says */
		while ((got = recv(fd, &byte, 1, MSG_DONTWAIT)) != 0) {
			CU_ASSERT_FATAL(got > 0 || errno == EWOULDBLOCK);
			(void)mst_tcp_listener.next_request(listener, &request, UT_UNREAD);
		}
		target_close(&h);
		close(fd);
	}
}

/* Where a user may not have ports below 1024; the caller's effective user becomes nobody. */
static void a_port_without_the_right_to_it_is_told_in_words(void)
{
	struct mst_link_listener *listener;
	struct mst_reason why;
	struct mst_net *net;
	FILE *first = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	int from = 1024;

	if (first != NULL) {
		CU_ASSERT_EQUAL(fscanf(first, "%d", &from), 1);
		fclose(first);
	}
	bool root = geteuid() == 0;
	if (root)
		CU_ASSERT_EQUAL_FATAL(seteuid(65534), 0);
	int rc = listen_at(1, &net, &listener, &why);
	if (root)
		CU_ASSERT_EQUAL_FATAL(seteuid(0), 0);
	if (from > 1) {
		CU_ASSERT_EQUAL(rc, -EACCES);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "may not listen at 127.0.0.1:1"));
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "--data-port"));
	}
	mst_tcp_listener.close(listener);
	mst_tcp.net_close(net);
}

/* Whatever addresses it has. */
static void a_listener_has_one_port(void)
{
	struct mst_net_cfg cfg = { .links_max = 2, .fabric = &target_fabric };
	struct mst_link_listener *listener = NULL;
	struct mst_endpoints at;
	struct mst_net *net;

	target_fabric.addresses = "127.0.0.1,127.0.0.2,127.0.0.3";
	CU_ASSERT_EQUAL_FATAL(mst_tcp.net_open(&cfg, &net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_tcp_listener.open(net, &listener, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_endpoints_parse(listener->address, &mst_tcp, &at, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(at.count, 3);
	for (uint32_t i = 1; i < at.count; i++)
		CU_ASSERT_EQUAL(at.at[i].v4.sin_port, at.at[0].v4.sin_port);
	mst_tcp_listener.close(listener);
	mst_tcp.net_close(net);
}

static void figures_beyond_reason_are_refused(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .links_max = 2, .fabric = &fabric };
	struct mst_reason why;
	struct mst_net *net;

	fabric.io_threads = MST_FABRIC_IO_THREADS_MAX + 1;
	CU_ASSERT_EQUAL(mst_tcp.net_open(&cfg, &net, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "65 I/O threads"));
	fabric.io_threads = 0;
	fabric.link_timeout_ns = 0;
	CU_ASSERT_EQUAL(mst_tcp.net_open(&cfg, &net, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "dead after 0 ms"));
}

int main(void)
{
	static CU_TestInfo cases[] = {
		{ "the next address is tried where nobody listens",
		  the_next_address_is_tried_where_nobody_listens },
		{ "where nobody is at all each address is named",
		  where_nobody_is_at_all_each_address_is_named },
		{ "another server at the address is told apart",
		  another_server_at_the_address_is_told_apart },
		{ "a listener without addresses is where it is called",
		  a_listener_without_addresses_is_where_it_is_called },
		{ "an address of a link needs an interface here",
		  an_address_of_a_link_needs_an_interface_here },
		{ "silence is told with both addresses and the time",
		  silence_is_told_with_both_addresses_and_the_time },
		{ "one that is reached and silent is told of in time",
		  one_that_is_reached_and_silent_is_told_of_in_time },
		{ "the next address is tried where a firewall drops",
		  the_next_address_is_tried_where_a_firewall_drops },
		{ "what is no muster is named", what_is_no_muster_is_named },
		{ "addresses of another host are refused in words",
		  addresses_of_another_host_are_refused_in_words },
		{ "a listener has one port", a_listener_has_one_port },
		{ "a port that is taken is told in words", a_port_that_is_taken_is_told_in_words },
		{ "a port that is held is for its own listeners alone",
		  a_port_that_is_held_is_for_its_own_listeners_alone },
		{ "a port that nobody asks for is not held",
		  a_port_that_nobody_asks_for_is_not_held },
		{ "a server that is started again has its port",
		  a_server_that_is_started_again_has_its_port },
		{ "a port without the right to it is told in words",
		  a_port_without_the_right_to_it_is_told_in_words },
		{ "figures beyond reason are refused", figures_beyond_reason_are_refused },
		CU_TEST_INFO_NULL,
	};

	return ut_main("tcp_dial", cases);
}
