/* SPDX-License-Identifier: MIT */
/* The way to another host by TCP: addresses, lines, callers and peers within this process, and what
 * is said of it. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/config/option.h"
#include "tests/unit/tools/doctor/doctor_case.h"
#include "tools/doctor/lane.h"
#include "tools/doctor/try.h"
#include "tools/doctor/way/rate.h"
#include "tools/doctor/way/way.h"

#define LONG_NS (60 * MST_SECOND)

/* ---- what is typed ---- */

static void an_address_is_a_host_with_or_without_a_port(void)
{
	static const struct {
		const char *typed, *address, *host;
	} row[] = {
		{ "node1", "node1:17077", "node1" },
		{ "node1.example.org:4711", "node1.example.org:4711", "node1.example.org" },
		{ "10.0.0.1", "10.0.0.1:17077", "10.0.0.1" },
		{ "10.0.0.1:1", "10.0.0.1:1", "10.0.0.1" },
		{ "tcp:10.0.0.1:65535", "10.0.0.1:65535", "10.0.0.1" },
		{ "fd00::1", "[fd00::1]:17077", "fd00::1" },
		{ "[fd00::1]", "[fd00::1]:17077", "fd00::1" },
		{ "[fd00::1]:4711", "[fd00::1]:4711", "fd00::1" },
		{ "fe80::1%eth0", "[fe80::1%eth0]:17077", "fe80::1%eth0" },
		{ "[fe80::1%eth0]:1", "[fe80::1%eth0]:1", "fe80::1%eth0" },
		{ "::1", "[::1]:17077", "::1" },
	};
	char address[MST_WAY_TEXT_LEN], host[MST_WAY_HOST_LEN];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		CU_ASSERT_EQUAL(mst_way_address(row[i].typed, address, UT_UNREAD), 0);
		CU_ASSERT_STRING_EQUAL(address, row[i].address);
		mst_way_host(address, host);
		CU_ASSERT_STRING_EQUAL(host, row[i].host);
	}
}

static void what_is_no_address_is_refused_in_words(void)
{
	static const char *const wrong[] = {
		"",           ":17077",       "node1:",
		"node1:0",    "node1:65536",  "node1:x",
		"node1:-1",   "999.1.1.1",    "10.0.0",
		"17077",      "[fd00::1",     "[]:1",
		"[node1]:1",  "[10.0.0.1]:1", "fd00::1]:1",
		"fd00::1%:1", "a b",          "http://node1",
		"user@node1", "node1/x",      "-x",
		"fd00:::1",   "[fd00::1]x:1", "node1:1:2",
		"tcp:",       "[fe80::1%]:1", "node1:1 ",
	};
	char address[MST_WAY_TEXT_LEN], longest[2 * MST_WAY_HOST_LEN];
	struct mst_reason why;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int rc = mst_way_address(wrong[i], address, &why);
		if (rc == 0)
			(void)fprintf(stderr, "\"%s\" is taken as %s\n", wrong[i], address);
		CU_ASSERT_EQUAL_FATAL(rc, -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "muster doctor --listen"));
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT_EQUAL(mst_way_address(longest, address, &why), -EINVAL);
}

/* ---- two ends in this process ---- */

static struct mst_way_end end;
static struct mst_way_report report;

static void begin_end(void)
{
	end = (struct mst_way_end){ .fabric = MST_FABRIC_DEFAULT,
				    .timeout_ns = LONG_NS,
				    .cores = 2,
				    .send_max = 1000,
				    .receive_max = 2000 };
	end.fabric.addresses = "127.0.0.1";
}

static struct mst_way_peer *begin_peer(char address[MST_WAY_TEXT_LEN])
{
	struct mst_way_peer *peer = NULL;

	begin_end();
	CU_ASSERT_EQUAL_FATAL(mst_way_peer_open(&end, 0, &peer, UT_UNREAD), 0);
	(void)snprintf(address, MST_WAY_TEXT_LEN, "127.0.0.1:%u", mst_way_peer_port(peer));
	return peer;
}

static void a_way_that_is_open_has_all_figures(void)
{
	char address[MST_WAY_TEXT_LEN];
	struct mst_way_peer *peer = begin_peer(address);

	mst_way_call(&end, address, 0, &report);
	CU_ASSERT_STRING_EQUAL(report.control.why.text, "");
	CU_ASSERT_EQUAL(report.control.error, 0);
	CU_ASSERT_EQUAL(report.moved.error, 0);
	CU_ASSERT_EQUAL(report.rates.error, 0);
	for (uint32_t i = 0; i < MST_WAY_COUNTS; i++)
		CU_ASSERT_TRUE(report.up[i] > 0);
	CU_ASSERT_TRUE(report.down > 0);
	CU_ASSERT_TRUE(report.round_trip_ns > 0);
	CU_ASSERT_FALSE(report.tls.tried); /* without certificates */
	CU_ASSERT_TRUE(report.back_control.tried && report.back_control.error == 0);
	CU_ASSERT_TRUE(report.back_data.tried && report.back_data.error == 0);
	CU_ASSERT_TRUE(report.back_port > 0 && report.back_data_port > 0);
	CU_ASSERT_EQUAL(report.cores, 2);
	CU_ASSERT_EQUAL(report.send_max, 1000);
	CU_ASSERT_EQUAL(report.receive_max, 2000);
	mst_way_peer_close(peer);
	mst_way_peer_close(NULL);
}

static void a_port_that_is_taken_is_replaced(void)
{
	char address[MST_WAY_TEXT_LEN];
	struct mst_way_peer *peer = begin_peer(address), *other = NULL;

	CU_ASSERT_EQUAL_FATAL(mst_way_peer_open(&end, mst_way_peer_port(peer), &other, UT_UNREAD),
			      0);
	CU_ASSERT_NOT_EQUAL(mst_way_peer_port(other), mst_way_peer_port(peer));
	mst_way_peer_close(other);
	mst_way_peer_close(peer);
}

/* ---- an end that is no muster doctor ---- */

struct no_doctor {
	int listener, caller;
	const char *says;
	size_t len;
	bool hangs_up;
	pthread_t thread;
};

static void *be_other(void *arg)
{
	struct no_doctor *o = arg;

	o->caller = accept(o->listener, NULL, NULL);
	CU_ASSERT_TRUE(o->caller >= 0);
	if (o->len > 0)
		CU_ASSERT_EQUAL(send(o->caller, o->says, o->len, MSG_NOSIGNAL), (ssize_t)o->len);
	if (o->hangs_up)
		(void)shutdown(o->caller, SHUT_WR);
	return NULL;
}

static void call_other(struct no_doctor *o, uint64_t timeout_ns)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	char address[MST_WAY_TEXT_LEN];
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	o->listener = socket(AF_INET, SOCK_STREAM, 0);
	CU_ASSERT_EQUAL_FATAL(bind(o->listener, (struct sockaddr *)&at, len), 0);
	CU_ASSERT_EQUAL_FATAL(listen(o->listener, 1), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(o->listener, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&o->thread, NULL, be_other, o), 0);
	begin_end();
	end.timeout_ns = timeout_ns;
	mst_way_call(&end, address, 0, &report);
	CU_ASSERT_EQUAL(pthread_join(o->thread, NULL), 0);
	(void)close(o->caller);
	(void)close(o->listener);
}

#define OTHER(text, end_)                                                                          \
	{                                                                                          \
		.says = text, .len = sizeof(text) - 1, .hangs_up = end_                            \
	}

static void who_is_no_muster_doctor_is_told_by_what_it_says(void)
{
	static struct {
		struct no_doctor o;
		int error;
		const char *why;
	} row[] = {
		{ OTHER("SSH-2.0-OpenSSH_9.2\r\n", false), -EPROTO,
		  "says \"SSH-2.0-OpenSSH_9.2\"" },
		{ OTHER("HTTP/1.1 400 Bad Request\r\n", true), -EPROTO, "HTTP/1.1 400" },
		{ OTHER("\x1b[2J\n", true), -EPROTO, "\"?[2J\"" },
		{ OTHER("mstr\x11\0\3\0", true), -EPROTO, "a server of a job (musterd)" },
		{ OTHER("mstr\x11\0\3\0by TLS: give", true), -EPROTO, "this end has none" },
		{ OTHER("\x15\x03\x03\0\2\2\x46", true), -EPROTO, "speaks TLS" },
		{ OTHER("{\"x\": 1}\n", true), -EPROTO, "the same version" },
		{ OTHER("{\"muster doctor\": 99}\n", true), -EPROTO, "the same version" },
		{ OTHER("{\"muster doctor\": \"2\"}\n", true), -EPROTO, "the same version" },
		{ OTHER("{]\n", true), -EPROTO, "no muster doctor" },
		{ OTHER("[1]\n", true), -EPROTO, "no muster doctor" },
		{ OTHER("{\"muster doctor\": 2", true), -EPIPE, "has closed the connection" },
		{ OTHER("", true), -EPIPE, "has closed the connection" },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		call_other(&row[i].o, LONG_NS);
		CU_ASSERT_EQUAL(report.control.error, row[i].error);
		CU_ASSERT_PTR_NOT_NULL(strstr(report.control.why.text, row[i].why));
		CU_ASSERT_FALSE(report.moved.tried);
	}
}

static void who_says_nothing_is_waited_for_as_long_as_told(void)
{
	struct no_doctor silent = { .hangs_up = false };
	uint64_t begin = mst_now_ns();

	call_other(&silent, 200 * MST_MS);
	CU_ASSERT_EQUAL(report.control.error, -ETIMEDOUT);
	CU_ASSERT_TRUE(mst_now_ns() - begin < LONG_NS);
}

static void who_names_no_port_for_data_is_told(void)
{
	struct no_doctor o = OTHER(
		"{\"muster doctor\":2,\"host\":\"x\",\"data\":\"verbs:1.2.3.4:5\"}\n", true);

	call_other(&o, LONG_NS);
	CU_ASSERT_EQUAL(report.control.error, 0);
	CU_ASSERT_EQUAL(report.moved.error, -EPROTO);
	CU_ASSERT_FALSE(report.rates.tried);
}

static void a_long_line_ends_the_talk(void)
{
	static char line[2 * MST_WAY_LINE];
	struct no_doctor o = { .says = line, .len = sizeof(line) };

	memset(line, ' ', sizeof(line));
	line[0] = '{';
	call_other(&o, LONG_NS);
	CU_ASSERT_EQUAL(report.control.error, -EPROTO);
}

/* Calls an end whose port for data, @at, is that of a peer at 127.0.0.1. */
static void call_with_data_at(const char *at)
{
	char address[MST_WAY_TEXT_LEN], says[200], data[100];
	struct mst_way_peer *peer = begin_peer(address);
	struct no_doctor o = { .says = says, .hangs_up = true };

	(void)snprintf(data, sizeof(data), "%s:%u", at, mst_way_peer_data_port(peer));
	(void)snprintf(says, sizeof(says),
		       "{\"muster doctor\":2,\"host\":\"x\",\"data\":\"tcp:%s\"}\n", data);
	o.len = strlen(says);
	call_other(&o, LONG_NS);
	mst_way_peer_close(peer);
}

static void data_are_dialled_where_the_end_was_called(void)
{
	call_with_data_at("*");
	CU_ASSERT_EQUAL(report.moved.error, 0);
	CU_ASSERT_EQUAL(strncmp(report.data, "tcp:127.0.0.1:", 14), 0);
}

/* As a worker that reaches none of the addresses that a server names. */
static void data_at_addresses_that_lead_nowhere_are_not_reached(void)
{
	call_with_data_at("127.0.0.2");
	CU_ASSERT_EQUAL(report.moved.error, -ECONNREFUSED);
	CU_ASSERT_FALSE(report.linked);
	CU_ASSERT_PTR_NOT_NULL(strstr(report.moved.why.text, "nobody listens at 127.0.0.2"));
}

/* A server may have it, but not two. */
static void a_fixed_port_for_data_is_the_one_that_is_asked_for(void)
{
	char address[MST_WAY_TEXT_LEN];
	struct mst_way_peer *peer = begin_peer(address), *other = NULL;
	uint16_t port = mst_way_peer_data_port(peer);
	struct mst_reason why;

	mst_way_peer_close(peer);
	end.fabric.data_port = port;
	CU_ASSERT_EQUAL_FATAL(mst_way_peer_open(&end, 0, &peer, &why), 0);
	CU_ASSERT_EQUAL(mst_way_peer_data_port(peer), port);
	CU_ASSERT_EQUAL(mst_way_peer_open(&end, 0, &other, &why), -EADDRINUSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "is taken at 127.0.0.1:"));
	/* This end wants the same port, and has another one for the way back. */
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", mst_way_peer_port(peer));
	mst_way_call(&end, address, 0, &report);
	CU_ASSERT_EQUAL(report.back_control.error, 0);
	CU_ASSERT_TRUE(report.back_data.tried && report.back_data.error == 0);
	CU_ASSERT_NOT_EQUAL(report.back_data_port, port);
	mst_way_peer_close(peer);
}

/* ---- callers that are none ---- */

static int call_raw(const char *address, const char *says, size_t len)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t port;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CU_ASSERT_EQUAL_FATAL(mst_parse_u64(strrchr(address, ':') + 1, &port), 0);
	at.sin_port = htons((uint16_t)port);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	if (len > 0)
		CU_ASSERT_EQUAL(send(fd, says, len, MSG_NOSIGNAL), (ssize_t)len);
	return fd;
}

static void a_caller_that_is_none_is_sent_away_and_honest_ones_are_served(void)
{
	static const char *const says[] = { "GET / HTTP/1.1\r\n\r\n", "{}\n", "{\n", "mstr" };
	char address[MST_WAY_TEXT_LEN], buffer[256];
	struct mst_way_peer *peer = begin_peer(address);
	int silent = call_raw(address, "", 0);

	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
		int fd = call_raw(address, says[i], strlen(says[i]));
		CU_ASSERT_TRUE(recv(fd, buffer, sizeof(buffer), 0) <= 0);
		(void)close(fd);
	}
	mst_way_call_back(&end, address, mst_way_peer_data_port(peer), &report);
	CU_ASSERT_TRUE(report.moved.tried && report.moved.error == 0);
	mst_way_peer_close(peer); /* with one that is silent */
	(void)close(silent);
}

static void a_request_that_nobody_knows_ends_the_talk(void)
{
	char address[MST_WAY_TEXT_LEN], buffer[MST_WAY_LINE];
	struct mst_way_peer *peer = begin_peer(address);
	static const char says[] = "{\"muster doctor\":2}\n{\"do\":\"format\"}\n";
	int fd = call_raw(address, says, sizeof(says) - 1);
	ssize_t got, all = 0;

	while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0)
		all += got;
	CU_ASSERT_TRUE(all > 0); /* the card */
	(void)close(fd);
	mst_way_peer_close(peer);
}

/* ---- rates ---- */

static void pieces_take_twenty_milliseconds(void)
{
	CU_ASSERT_EQUAL(mst_rate_piece(0), 4 * MST_RATE_UNIT);
	CU_ASSERT_EQUAL(mst_rate_piece(12.5e6), 12500000 / 50 / MST_RATE_UNIT * MST_RATE_UNIT);
	CU_ASSERT_EQUAL(mst_rate_piece(1e12), MST_WRITE_BYTES);
}

/* ---- what is said of it ---- */

static const struct mst_finding *judged(const char *check)
{
	memset(&doctor_found, 0, sizeof(doctor_found));
	mst_doctor_judge_way(&report, &doctor_facts, &doctor_wish, &doctor_found);
	for (uint32_t i = 0; i < doctor_found.count; i++)
		if (strcmp(doctor_found.item[i].check, check) == 0)
			return &doctor_found.item[i];
	return NULL;
}

/* A way of 1 Gbit/s. */
static void begin_report(void)
{
	doctor_host();
	doctor_facts.send_max = 4 << 20;
	report = (struct mst_way_report){ .address = "10.0.0.2:17077",
					  .host = "there",
					  .data = "tcp:10.0.0.2:4711",
					  .control.tried = true,
					  .moved.tried = true,
					  .rates.tried = true,
					  .back_control.tried = true,
					  .back_data.tried = true,
					  .linked = true,
					  .connect_ns = 200000,
					  .round_trip_ns = 400000,
					  .up = { 104857600, 110e6, 117e6 },
					  .down = 52428800,
					  .mtu = 1500,
					  .receive_max = 6 << 20,
					  .back_port = 17077,
					  .back_data_port = 4712 };
}

static bool holds(const char *check, enum mst_finding_level level, const char *words)
{
	const struct mst_finding *f = judged(check);

	return f != NULL && f->level == level &&
	       (strstr(f->found, words) != NULL || strstr(f->cause, words) != NULL ||
		strstr(f->fix, words) != NULL);
}

static void a_way_in_order_tells_what_a_step_takes(void)
{
	begin_report();
	CU_ASSERT_TRUE(holds("control", MST_FINDING_OK,
			     "connected in 200 us, not encrypted; "
			     "packets of up to 1500 bytes"));
	CU_ASSERT_TRUE(holds("data", MST_FINDING_OK, "400 us there and back"));
	CU_ASSERT_TRUE(holds("rate", MST_FINDING_OK, "to there 100 MiB/s (839 Mbit/s) with 1"));
	CU_ASSERT_TRUE(holds("back", MST_FINDING_OK, "ports 17077 and 4712"));
	CU_ASSERT_TRUE(holds("step", MST_FINDING_OK,
			     "100 MiB takes 1.00 s there, and a result 2.00 "
			     "s back: 3.00 s a step"));
	CU_ASSERT_TRUE(holds("step", MST_FINDING_OK, "once in 8 steps: 375 ms a step"));
	CU_ASSERT_TRUE(holds("step", MST_FINDING_OK, "bf16 halves it"));
	CU_ASSERT_EQUAL(doctor_found.count, 5);
	doctor_wish.elems = 13107200; /* 25 MiB of bf16, 8 workers */
	doctor_wish.type_bytes = 2;
	doctor_wish.workers = 8;
	CU_ASSERT_TRUE(holds("step", MST_FINDING_OK, "25.0 MiB takes 250 ms there"));
	CU_ASSERT_FALSE(holds("step", MST_FINDING_OK, "bf16"));
	CU_ASSERT_EQUAL(doctor_found.count, 6);
	CU_ASSERT_PTR_NOT_NULL(strstr(doctor_found.item[5].found, "6.00 s a step under bsp"));
}

static void a_control_port_that_is_shut_says_what_to_do(void)
{
	static const struct {
		int error;
		const char *fix;
	} row[] = { { -ECONNREFUSED, "start muster doctor --listen on 10.0.0.2" },
		    { -ETIMEDOUT, "let TCP port 17077 in there" },
		    { -EHOSTUNREACH, "ip route get 10.0.0.2" },
		    { -ENOENT, "getent hosts 10.0.0.2" },
		    { -EACCES, "--tls-cert" } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin_report();
		report.control.error = row[i].error;
		mst_reason_set(&report.control.why, "the reason");
		CU_ASSERT_TRUE(holds("control", MST_FINDING_FAIL, row[i].fix));
		CU_ASSERT_TRUE(holds("control", MST_FINDING_FAIL, "the reason"));
		CU_ASSERT_EQUAL(doctor_found.count, 1);
	}
}

static void a_port_for_data_that_is_shut_is_told_from_large_packets_that_are_lost(void)
{
	begin_report();
	report.rates.tried = false;
	report.moved.error = -ETIMEDOUT;
	report.linked = false;
	CU_ASSERT_TRUE(holds("data", MST_FINDING_FAIL, "let TCP port 4711 in there, too"));
	report.linked = true;
	CU_ASSERT_TRUE(holds("data", MST_FINDING_FAIL, "ping -M do -s 1472 10.0.0.2"));
	report.moved.error = -EBADMSG;
	CU_ASSERT_TRUE(holds("data", MST_FINDING_FAIL, "no gradient may pass here"));
	CU_ASSERT_PTR_NULL(judged("step"));
	begin_report();
	report.moved.error = -ECONNREFUSED;
	report.linked = false;
	CU_ASSERT_TRUE(holds("data", MST_FINDING_FAIL, "--data-address at that end"));
}

static void a_host_that_cannot_be_called_back_has_no_servers(void)
{
	begin_report();
	report.back_control.error = -ETIMEDOUT;
	mst_reason_set(&report.back_control.why, "silence");
	CU_ASSERT_TRUE(holds("back", MST_FINDING_WARNING, "cannot call this host at port 17077"));
	CU_ASSERT_TRUE(holds("back", MST_FINDING_WARNING, "run the servers on there"));
	CU_ASSERT_TRUE(holds("back", MST_FINDING_WARNING, "silence"));
	begin_report();
	report.back_data.error = -ETIMEDOUT;
	CU_ASSERT_TRUE(holds("back", MST_FINDING_WARNING, "cannot call this host at port 4712"));
}

static void several_connections_are_told_where_they_are_faster(void)
{
	begin_report();
	report.round_trip_ns = 20 * MST_MS;
	report.up[0] = 100e6; /* 2 MB a round trip: half of what may be sent, less than 4 MiB */
	report.up[2] = 400e6;
	CU_ASSERT_TRUE(holds("window", MST_FINDING_WARNING, "4 connections are 4 times as fast"));
	CU_ASSERT_TRUE(holds("window", MST_FINDING_WARNING, "tcp_wmem=4096 16384 33554432"));
	report.round_trip_ns = MST_MS; /* 100 KB a round trip: the window is not what limits */
	CU_ASSERT_TRUE(holds("window", MST_FINDING_OK, "--servers"));
	report.up[2] = 120e6;
	CU_ASSERT_PTR_NULL(judged("window"));
}

static void an_encrypted_way_tells_what_it_costs(void)
{
	begin_report();
	report.encrypted = report.tls.tried = true;
	report.encrypted_up[0] = 52428800;
	report.encrypted_up[1] = 2 * 52428800;
	report.encrypted_down = 26214400;
	CU_ASSERT_TRUE(holds("tls", MST_FINDING_OK,
			     "to there 50.0 MiB/s (419 Mbit/s) with 1 connection, 0.5 of plain, "
			     "100 MiB/s with 2"));
	CU_ASSERT_TRUE(holds("tls", MST_FINDING_OK, "from there 25.0 MiB/s"));
	CU_ASSERT_TRUE(holds("control", MST_FINDING_OK, "both ends proven"));
	/* A job with certificates encrypts. */
	CU_ASSERT_TRUE(holds("step", MST_FINDING_OK,
			     "100 MiB takes 2.00 s there, and a result 4.00 s back, encrypted"));
	report.tls.error = -EPIPE;
	CU_ASSERT_TRUE(holds("tls", MST_FINDING_FAIL, strerror(EPIPE)));
	CU_ASSERT_TRUE(holds("step", MST_FINDING_OK, "a result 2.00 s back:"));
	(void)snprintf(report.secure, sizeof(report.secure), "tcp:10.0.0.2:4712");
	report.tls.error = -ETIMEDOUT;
	CU_ASSERT_TRUE(holds("tls", MST_FINDING_WARNING, "let TCP port 4712 in there"));
}

static void a_data_port_is_told_with_who_has_it(void)
{
	static const struct {
		int error;
		enum mst_finding_level level;
		const char *found, *cause, *fix;
	} row[] = {
		{ 0, MST_FINDING_OK, "4711 is free here", "", "" },
		{ -EADDRINUSE, MST_FINDING_FAIL, "4711", "another process",
		  "ss -ltnp 'sport = :4711'" },
		{ -EACCES, MST_FINDING_FAIL, "4711", "this user may not", "" },
	};
	struct mst_doctor_tries tries = { .data_port = 4711 };

	memset(&doctor_found, 0, sizeof(doctor_found));
	mst_doctor_judge_data_port(&tries, &doctor_found); /* nobody asked for it */
	CU_ASSERT_EQUAL(doctor_found.count, 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct mst_finding *f = &doctor_found.item[i];
		tries.held = (struct mst_way_step){ .tried = true, .error = row[i].error };
		if (row[i].error != 0)
			mst_reason_set(&tries.held.why, "this user may not listen there");
		mst_doctor_judge_data_port(&tries, &doctor_found);
		CU_ASSERT_EQUAL_FATAL(doctor_found.count, i + 1);
		CU_ASSERT_EQUAL(f->level, row[i].level);
		CU_ASSERT_PTR_NOT_NULL(strstr(f->found, row[i].found));
		CU_ASSERT_PTR_NOT_NULL(strstr(f->cause, row[i].cause));
		CU_ASSERT_PTR_NOT_NULL(strstr(f->fix, row[i].fix));
	}
}

static CU_TestInfo cases[] = {
	{ "an address is a host, with or without a port",
	  an_address_is_a_host_with_or_without_a_port },
	{ "what is no address is refused in words", what_is_no_address_is_refused_in_words },
	{ "a way that is open has all figures", a_way_that_is_open_has_all_figures },
	{ "a port that is taken is replaced", a_port_that_is_taken_is_replaced },
	{ "who is no muster doctor is told by what it says",
	  who_is_no_muster_doctor_is_told_by_what_it_says },
	{ "who says nothing is waited for as long as told",
	  who_says_nothing_is_waited_for_as_long_as_told },
	{ "who names no port for data is told", who_names_no_port_for_data_is_told },
	{ "a long line ends the talk", a_long_line_ends_the_talk },
	{ "data are dialled where the end was called", data_are_dialled_where_the_end_was_called },
	{ "data at addresses that lead nowhere are not reached",
	  data_at_addresses_that_lead_nowhere_are_not_reached },
	{ "a fixed port for data is the one that is asked for",
	  a_fixed_port_for_data_is_the_one_that_is_asked_for },
	{ "a caller that is none is sent away, and honest ones are served",
	  a_caller_that_is_none_is_sent_away_and_honest_ones_are_served },
	{ "a request that nobody knows ends the talk", a_request_that_nobody_knows_ends_the_talk },
	{ "pieces take twenty milliseconds", pieces_take_twenty_milliseconds },
	{ "a way in order tells what a step takes", a_way_in_order_tells_what_a_step_takes },
	{ "a control port that is shut says what to do",
	  a_control_port_that_is_shut_says_what_to_do },
	{ "a port for data that is shut is told from large packets that are lost",
	  a_port_for_data_that_is_shut_is_told_from_large_packets_that_are_lost },
	{ "a host that cannot be called back has no servers",
	  a_host_that_cannot_be_called_back_has_no_servers },
	{ "several connections are told where they are faster",
	  several_connections_are_told_where_they_are_faster },
	{ "an encrypted way tells what it costs", an_encrypted_way_tells_what_it_costs },
	{ "a data port is told with who has it", a_data_port_is_told_with_who_has_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("doctor_way", cases);
}
