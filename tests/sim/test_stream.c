/* SPDX-License-Identifier: MIT */
/* The simulated control stream: what TCP promises, and how it fails. */
#include "tests/sim/stream.h"

#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "tests/ut.h"

#define SEEDS 20u
#define LONG_NS (1000 * MST_SECOND)
#define SOON_NS (10 * MST_MS)

/* A server and a client, each with a fiber that lives one half of a case. */
struct stream_stage {
	void (*serves)(struct stream_stage *s), (*calls)(struct stream_stage *s);
	struct sim_process *server, *client;
	struct mst_listener *listener;
	struct mst_stream *at_server, *at_client;
	char address[64], peer[64];
};

static void serve_main(void *arg)
{
	struct stream_stage *s = arg;

	MST_ASSERT(sim_stream.listen("127.0.0.1:0", NULL, &s->listener, s->address,
				     sizeof(s->address)) == 0);
	while (sim_stream.accept(s->listener, &s->at_server, s->peer, sizeof(s->peer)) == -EAGAIN)
		(void)sim_wait(&sim_self()->control, MST_SECOND);
	while (s->at_client == NULL)
		sim_sleep(MST_MS);
	s->serves(s);
	sim_stream.close(s->at_server);
	sim_stream.unlisten(s->listener);
}

static void call_main(void *arg)
{
	struct stream_stage *s = arg;

	while (s->address[0] == '\0')
		sim_sleep(MST_MS);
	MST_ASSERT(sim_stream.connect(s->address, MST_SECOND, NULL, &s->at_client) == 0);
	while (s->at_server == NULL)
		sim_sleep(MST_MS);
	s->calls(s);
	sim_stream.close(s->at_client);
}

static void play(void (*serves)(struct stream_stage *s), void (*calls)(struct stream_stage *s))
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct stream_stage s = { serves, calls, NULL, NULL, NULL, NULL, NULL, "", "" };
		sim_begin(seed);
		s.server = sim_process_new("server");
		s.client = sim_process_new("client");
		sim_spawn(s.server, serve_main, &s);
		sim_spawn(s.client, call_main, &s);
		sim_run(sim_now() + LONG_NS);
		MST_ASSERT(s.server->fibers == 0 && s.client->fibers == 0);
		sim_end();
	}
}

static void stays(struct stream_stage *s)
{
	(void)s;
	sim_sleep(20 * MST_SECOND);
}

/* What receive() says once it does not say -EAGAIN any more; -ETIME: it still does. */
static ssize_t receive(struct mst_stream *s, void *data, size_t len, uint64_t timeout_ns)
{
	uint64_t end_ns = sim_now() + timeout_ns;
	ssize_t got;

	while ((got = sim_stream.receive(s, data, len)) == -EAGAIN) {
		if (sim_now() >= end_ns)
			return -ETIME;
		(void)sim_wait(&sim_self()->control, end_ns - sim_now());
	}
	return got;
}

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 131 >> 3);
}

/* ---- bytes ---- */

#define MANY UINT64_C(200000)

static void sends_many(struct stream_stage *s)
{
	uint8_t piece[5000];
	uint64_t sent = 0;
	bool full = false;

	while (sent < MANY) {
		size_t len = sim_between(1, sizeof(piece));
		for (size_t i = 0; i < len; i++)
			piece[i] = byte_at(sent + i);
		ssize_t taken = sim_stream.send(s->at_client, piece,
						len < MANY - sent ? len : MANY - sent);
		if (taken == -EAGAIN) { /* whoever makes room rings */
			full = true;
			CU_ASSERT_TRUE(sim_wait(&sim_self()->control, MST_SECOND));
			continue;
		}
		CU_ASSERT(taken > 0);
		sent += (uint64_t)taken;
	}
	CU_ASSERT_TRUE(full);
}

static void receives_many(struct stream_stage *s)
{
	uint8_t piece[3000];
	uint64_t received = 0, wrong = 0;
	ssize_t got;

	sim_sleep(SOON_NS);
	while ((got = receive(s->at_server, piece, sizeof(piece), MST_SECOND)) > 0) {
		for (ssize_t i = 0; i < got; i++)
			wrong += piece[i] != byte_at(received + (uint64_t)i);
		received += (uint64_t)got;
	}
	CU_ASSERT_EQUAL(got, 0); /* closed, after the last */
	CU_ASSERT_EQUAL(received, MANY);
	CU_ASSERT_EQUAL(wrong, 0);
}

static void bytes_arrive_in_order_and_then_the_end(void)
{
	play(receives_many, sends_many);
}

/* ---- ends ---- */

static void sends_a_word(struct stream_stage *s)
{
	CU_ASSERT_EQUAL(strncmp(s->peer, "127.0.0.1:", 10), 0);
	CU_ASSERT(sim_stream.send(s->at_server, "word", 4) > 0);
	sim_sleep(MST_SECOND);
	sim_kill(s->server, SIM_KILLED);
}

static void reads_and_finds_it_closed(struct stream_stage *s)
{
	char word[4];

	sim_sleep(2 * MST_SECOND);
	CU_ASSERT(receive(s->at_client, word, sizeof(word), SOON_NS) > 0);
	while (receive(s->at_client, word, sizeof(word), SOON_NS) > 0)
		;
	CU_ASSERT_EQUAL(receive(s->at_client, word, sizeof(word), SOON_NS), 0);
	CU_ASSERT_EQUAL(sim_stream.send(s->at_client, "?", 1), 1);
	sim_sleep(SOON_NS);
	CU_ASSERT_EQUAL(sim_stream.send(s->at_client, "?", 1), -EPIPE);
	CU_ASSERT_EQUAL(sim_stream.connect(s->address, MST_SECOND, NULL, &s->at_server),
			-ECONNREFUSED);
}

static void kernel_of_a_killed_process_closes_its_streams(void)
{
	play(sends_a_word, reads_and_finds_it_closed);
}

static void sends_into_silence(struct stream_stage *s)
{
	uint8_t piece[1000] = { 0 };
	ssize_t taken;

	sim_sleep(SOON_NS);
	while ((taken = sim_stream.send(s->at_client, piece, sizeof(piece))) > 0)
		sim_sleep(MST_MS);
	CU_ASSERT_EQUAL(taken, -EAGAIN);
	CU_ASSERT_EQUAL(receive(s->at_client, piece, 1, 10 * MST_SECOND), -ETIME);
}

static void sends_into_silence_and_calls_again(struct stream_stage *s)
{
	struct mst_stream *again;

	sends_into_silence(s);
	CU_ASSERT_EQUAL(sim_stream.connect(s->address, MST_SECOND, NULL, &again), -ETIMEDOUT);
}

static void loses_power(struct stream_stage *s)
{
	CU_ASSERT_EQUAL(sim_stream.send(s->at_server, "x", 1), 1);
	sim_kill(s->server, SIM_POWER_OFF);
}

static void loses_its_connections(struct stream_stage *s)
{
	CU_ASSERT_EQUAL(sim_stream.send(s->at_server, "x", 1), 1);
	sim_streams_cut(s->server);
	sim_sleep(100 * MST_SECOND);
	CU_ASSERT_EQUAL(sim_stream.receive(s->at_server, &(char){ 0 }, 1), -EAGAIN);
}

static void nobody_hears_of_power_off(void)
{
	play(loses_power, sends_into_silence_and_calls_again);
}

static void nobody_hears_of_a_cut(void)
{
	play(loses_its_connections, sends_into_silence);
}

static void resets(struct stream_stage *s)
{
	sim_streams_reset(s->server);
	CU_ASSERT_EQUAL(receive(s->at_server, &(char){ 0 }, 1, SOON_NS), -ECONNRESET);
	CU_ASSERT_EQUAL(sim_stream.send(s->at_server, "x", 1), -EPIPE);
}

static void finds_it_reset(struct stream_stage *s)
{
	CU_ASSERT_EQUAL(receive(s->at_client, &(char){ 0 }, 1, SOON_NS), -ECONNRESET);
	CU_ASSERT_EQUAL(receive(s->at_client, &(char){ 0 }, 1, SOON_NS), 0);
	CU_ASSERT_EQUAL(sim_stream.send(s->at_client, "x", 1), -EPIPE);
}

static void both_ends_hear_of_a_reset(void)
{
	play(resets, finds_it_reset);
}

static void stalls(struct stream_stage *s)
{
	sim_streams_stall(s->server, MST_SECOND);
	CU_ASSERT_EQUAL(sim_stream.send(s->at_server, "x", 1), 1);
	sim_sleep(5 * MST_SECOND);
}

static void hears_it_later(struct stream_stage *s)
{
	char byte;

	CU_ASSERT_EQUAL(receive(s->at_client, &byte, 1, MST_SECOND / 2), -ETIME);
	CU_ASSERT_EQUAL(receive(s->at_client, &byte, 1, MST_SECOND), 1);
}

static void stall_only_delays(void)
{
	play(stalls, hears_it_later);
}

static void is_a_ghost(struct stream_stage *s)
{
	struct mst_stream *other;

	sim_sleep(SOON_NS);
	sim_kill(s->client, SIM_KILLED);
	CU_ASSERT_EQUAL(sim_stream.send(s->at_client, "boo", 3), 3);
	CU_ASSERT_EQUAL(sim_stream.receive(s->at_client, &(char){ 0 }, 1), 0);
	CU_ASSERT_EQUAL(sim_stream.connect(s->address, MST_SECOND, NULL, &other), -ECONNREFUSED);
}

static void hears_no_ghost(struct stream_stage *s)
{
	CU_ASSERT_EQUAL(receive(s->at_server, &(char){ 0 }, 1, MST_SECOND), 0);
}

static void ghost_is_not_heard(void)
{
	play(hears_no_ghost, is_a_ghost);
}

/* ---- addresses ---- */

static void tries_addresses(struct stream_stage *s)
{
	static const char *const bad[] = { "",           "host",  "host:",  ":1",  "host:x",
					   "host:65536", "a:b:1", "[::1:1", "[]:1" };
	struct mst_listener *l;
	struct mst_stream *other;
	char bound[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(sim_stream.connect(bad[i], MST_SECOND, NULL, &other), -EINVAL);
		CU_ASSERT_EQUAL(sim_stream.listen(bad[i], NULL, &l, bound, sizeof(bound)), -EINVAL);
	}
	CU_ASSERT_EQUAL(sim_stream.listen(s->address, NULL, &l, bound, sizeof(bound)), -EADDRINUSE);
	CU_ASSERT_EQUAL(sim_stream.connect("localhost:9", MST_SECOND, NULL, &other), -ECONNREFUSED);
	CU_ASSERT_EQUAL(sim_stream.listen("[::1]:9", NULL, &l, bound, sizeof(bound)), 0);
	CU_ASSERT_STRING_EQUAL(bound, "[::1]:9");
	CU_ASSERT_EQUAL(sim_stream.connect("localhost:9", MST_SECOND, NULL, &other), 0);
	sim_stream.unlisten(l); /* whoever was not accepted is turned away */
	CU_ASSERT_EQUAL(receive(other, &(char){ 0 }, 1, SOON_NS), -ECONNRESET);
	sim_stream.close(other);
}

static void addresses_are_what_plain_streams_take(void)
{
	play(stays, tries_addresses);
}

static CU_TestInfo cases[] = {
	{ "bytes arrive in order, and then the end", bytes_arrive_in_order_and_then_the_end },
	{ "the kernel of a killed process closes its streams",
	  kernel_of_a_killed_process_closes_its_streams },
	{ "nobody hears of power off", nobody_hears_of_power_off },
	{ "nobody hears of a cut", nobody_hears_of_a_cut },
	{ "both ends hear of a reset", both_ends_hear_of_a_reset },
	{ "a stall only delays", stall_only_delays },
	{ "a ghost is not heard", ghost_is_not_heard },
	{ "addresses are what plain streams take", addresses_are_what_plain_streams_take },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim.stream", cases);
}
