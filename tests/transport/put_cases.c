/* SPDX-License-Identifier: MIT */
/* What arrives, and how: bytes, order, immediates, credits, bounds. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/transport/world.h"

static struct peer_command put_order(size_t offset, size_t bytes, uint64_t seed, uint32_t imm)
{
	return (struct peer_command){ .order = PEER_PUT,
				      .offset = offset,
				      .bytes = bytes,
				      .seed = seed,
				      .notify = true,
				      .imm = imm };
}

/* Where peers map nothing, credits are given back by an end that comes to rest, and take their
 * way. */
static void give_credits_back(struct world *w)
{
	if (!transport->maps)
		acceptor->wait(w->net, MST_MS);
}

static int peer_put_with_credit(struct world *w, const struct peer_command *c)
{
	uint64_t end = mst_now_ns() + PEER_WAIT_NS;
	int rc;

	do {
		rc = peer_do(w->peer[0], c).rc;
	} while (rc == -EAGAIN && !transport->maps && mst_now_ns() < end);
	return rc;
}

static int notify_with_credit(struct world *w, size_t bytes, uint64_t seed, uint32_t imm)
{
	uint64_t end = mst_now_ns() + PEER_WAIT_NS;
	struct mst_net_event none;
	int rc = world_notify(w, 0, bytes, seed, imm);

	while (rc == -EAGAIN && !transport->maps && mst_now_ns() < end) {
		(void)acceptor->poll(w->net, &none, 0);
		acceptor->wait(w->net, MST_MS);
		rc = world_notify(w, 0, bytes, seed, imm);
	}
	return rc;
}

static void put_arrives_whole_and_once(void)
{
	struct world w = world_of_one();
	struct peer_command up = put_order(12, 5003, 1, 0xfedcba98u);
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command check = { .order = PEER_CHECK, .offset = 7, .bytes = 60001, .seed = 2 };
	struct mst_net_event ev[2];

	CU_ASSERT_EQUAL(peer_do(w.peer[0], &up).rc, 1);
	CU_ASSERT_EQUAL(world_poll(&w, ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_EQUAL(world_poll(&w, ev + 1, 1, 200 * MST_MS), 0);
	CU_ASSERT_EQUAL(ev[0].kind, MST_ARRIVED);
	CU_ASSERT_PTR_EQUAL(ev[0].link, w.link[0]);
	CU_ASSERT_EQUAL(ev[0].imm, 0xfedcba98u);
	CU_ASSERT_TRUE(pattern_is((uint8_t *)w.link[0]->inbound + 12, 5003, 1));

	CU_ASSERT_EQUAL(world_notify(&w, 7, 60001, 2, 3), 1);
	struct peer_report r = peer_do(w.peer[0], &look);
	CU_ASSERT_EQUAL(r.count, 1);
	CU_ASSERT_EQUAL(r.event[0].imm, 3);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	world_close(&w);
}

/* A network that waits for many bytes of a large put waits for none that do not come. */
static void large_put_arrives_though_nothing_follows(void)
{
	static const size_t bytes[] = { 32767,  32768,  32769,  65537,   131072,  163840,
					262144, 262145, 399999, 1048575, 1048576, 1310721 };
	const struct mst_lanes lanes = { 2097152, 2097152, 4, 4 };
	struct world_cfg cfg = { .peers = 1 };
	struct world w = world_open(&cfg);
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct mst_net_event ev;

	CU_ASSERT_FATAL(world_join(&w, 0, &lanes));
	for (uint32_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		struct peer_command up = put_order(i, bytes[i], i, i);
		CU_ASSERT_EQUAL(peer_put_with_credit(&w, &up), 1);
		CU_ASSERT_EQUAL_FATAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
		CU_ASSERT_TRUE(pattern_is((uint8_t *)w.link[0]->inbound + i, bytes[i], i));
		CU_ASSERT_EQUAL(notify_with_credit(&w, bytes[i], i, i), 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
		give_credits_back(&w);
	}
	world_close(&w);
}

static void urgent_word_is_there_at_a_later_arrival(void)
{
	struct world w = world_of_one();
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command check = { .order = PEER_CHECK, .offset = 8, .bytes = 8 };
	_Alignas(8) uint8_t word[8];
	struct mst_put urgent = { .offset = 8, .src = word, .bytes = 8, .urgent = true };

	for (uint32_t i = 0; i < 200; i++) {
		for (int twice = 0; twice < 2; twice++) {
			pattern(word, 8, 2 * i + (uint32_t)twice);
			CU_ASSERT_EQUAL(w.link[0]->ops->put(w.link[0], &urgent), 1);
		}
		CU_ASSERT_EQUAL(notify_with_credit(&w, 0, 0, i), 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
		check.seed = 2 * i + 1;
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	}
	world_close(&w);
}

/* A link has one rail at least, and the first brings the word to where it is put. */
static void word_of_every_rail_is_there_at_a_later_arrival(void)
{
	struct world w = world_of_one();
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command check = { .order = PEER_CHECK, .offset = 64, .bytes = 8 };
	_Alignas(8) uint8_t word[8];
	struct mst_put put = { .offset = 64, .src = word, .bytes = 8, .every_rail = true };

	for (uint32_t i = 0; i < 200; i++) {
		pattern(word, 8, i);
		CU_ASSERT_EQUAL(w.link[0]->ops->put(w.link[0], &put), 1);
		CU_ASSERT_EQUAL(notify_with_credit(&w, 0, 0, i), 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
		check.seed = i;
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	}
	world_close(&w);
}

static void arrivals_keep_their_order(void)
{
	struct world w = world_of_one();
	struct mst_net_event ev[4];

	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t i = 0; i < 4; i++) {
			struct peer_command c = put_order(i * 100, i * 33, round + i,
							  round * 4 + i);
			CU_ASSERT_EQUAL(peer_put_with_credit(&w, &c), 1);
		}
		CU_ASSERT_EQUAL_FATAL(world_poll(&w, ev, 4, PEER_WAIT_NS), 4);
		for (uint32_t i = 0; i < 4; i++) {
			CU_ASSERT_EQUAL(ev[i].imm, round * 4 + i);
			CU_ASSERT_TRUE(pattern_is((uint8_t *)w.link[0]->inbound + i * 100, i * 33,
						  round + i));
		}
		give_credits_back(&w);
	}
	world_close(&w);
}

static void earlier_puts_are_there_at_a_later_arrival(void)
{
	struct world w = world_of_one();
	struct peer_command plain = put_order(0, 40000, 5, 0);
	struct peer_command last = put_order(65536, 0, 0, 9);
	struct mst_net_event ev;

	plain.notify = false;
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &plain).rc, 1);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, 20 * MST_MS), 0);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &last).rc, 1);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_TRUE(pattern_is(w.link[0]->inbound, 40000, 5));
	world_close(&w);
}

static void put_from_the_mapping_arrives(void)
{
	struct world w = world_of_one();
	struct peer_command c = put_order(4096, 8192, 6, 1);
	struct mst_net_event ev;

	c.from_mapping = true;
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &c).rc, 1);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_TRUE(pattern_is((uint8_t *)w.link[0]->inbound + 4096, 8192, 6));
	world_close(&w);
}

/* What put() returned, and what must follow from it. */
static void expect_sent(struct world *w, int rc, uint64_t cookie)
{
	struct mst_net_event ev;

	CU_ASSERT(rc == (transport->maps ? 1 : 0));
	if (rc != 0)
		return;
	CU_ASSERT_EQUAL(world_poll(w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_EQUAL(ev.kind, MST_SENT);
	CU_ASSERT_PTR_EQUAL(ev.link, w->link[0]);
	CU_ASSERT_EQUAL(ev.cookie, cookie);
	CU_ASSERT_EQUAL(world_poll(w, &ev, 1, 50 * MST_MS), 0); /* told once */
}

static void outbound_is_sent_as_it_lies(void)
{
	struct world w = world_of_one();
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command check = { .order = PEER_CHECK, .offset = 100, .bytes = 40000 };

	CU_ASSERT_EQUAL_FATAL(w.link[0]->outbound_bytes, 65536);
	uint8_t *at = (uint8_t *)w.link[0]->outbound + 100;
	for (uint64_t i = 0; i < 5; i++) {
		struct mst_put put = { .offset = 100,
				       .src = at,
				       .bytes = 40000,
				       .notify = true,
				       .signal = true,
				       .cookie = 1000 + i };
		check.seed = 70 + i;
		pattern(at, 40000, check.seed);
		expect_sent(&w, transport->put(w.link[0], &put), put.cookie);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	}
	world_close(&w);
}

/* Beyond what the outbound region covers lies only what is put from published memory. */
static void published_memory_is_sent_as_it_lies(void)
{
	size_t bytes = 3000000;
	struct mst_lanes lanes = { 64, bytes, 4, 4 };
	struct world w = world_open(
		&(struct world_cfg){ .peers = 1, .published_bytes = bytes, .outbound_max = 4096 });
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command check = { .order = PEER_CHECK, .offset = 4096, .bytes = bytes - 4096 };
	uint8_t byte = 0;

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &lanes));
	for (uint64_t i = 0; i < 3; i++) {
		struct mst_put put = { .offset = 4096,
				       .src = w.net->published,
				       .bytes = check.bytes,
				       .signal = true,
				       .cookie = i };
		check.seed = i;
		pattern(w.net->published, check.bytes, check.seed);
		int rc = transport->put(w.link[0], &put);
		CU_ASSERT_EQUAL(world_notify(&w, 0, 8, i, 1), 1);
		expect_sent(&w, rc, i);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	}
	struct mst_put beyond = { .offset = 4096, .src = &byte, .bytes = 1 };
	CU_ASSERT_EQUAL(transport->put(w.link[0], &beyond), transport->maps ? 1 : -EINVAL);
	world_close(&w);
}

/* Large ones before small ones, so that over several rails each goes its own way. */
static void puts_are_reported_sent_in_their_order(void)
{
	size_t bytes = 1000000;
	struct mst_lanes lanes = { 64, bytes, 4, 4 };
	struct world w = world_open(&(struct world_cfg){ .peers = 1, .published_bytes = bytes });
	struct mst_net_event ev;
	int sent = 0;

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &lanes));
	for (uint64_t i = 0; i < 8; i++) {
		struct mst_put put = { .src = w.net->published,
				       .bytes = i % 2 == 0 ? bytes : 1000,
				       .offset = i % 2 == 0 ? 0 : i * 100000,
				       .signal = true,
				       .more = i < 7,
				       .cookie = i };
		int rc = transport->put(w.link[0], &put);
		CU_ASSERT(rc == (transport->maps ? 1 : 0));
	}
	while (!transport->maps && world_poll(&w, &ev, 1, PEER_WAIT_NS) == 1) {
		CU_ASSERT(ev.kind == MST_SENT && ev.cookie == (uint64_t)sent);
		if (++sent == 8)
			break;
	}
	CU_ASSERT(transport->maps || sent == 8);
	world_close(&w);
}

/* Whatever way each of them goes, and however it is cut. */
static void what_is_put_over_another_put_stays(void)
{
	size_t bytes = 1000000, at = 200000;
	struct mst_lanes lanes = { 64, bytes, 4, 4 };
	struct world w = world_open(&(struct world_cfg){ .peers = 1, .published_bytes = bytes });
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command check = { .order = PEER_CHECK, .offset = at, .bytes = 1000 };

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &lanes));
	for (uint64_t i = 0; i < 20; i++) {
		struct mst_put under = { .src = w.net->published, .bytes = bytes };
		check.seed = 300 + i;
		pattern((uint8_t *)w.link[0]->outbound + at, check.bytes, check.seed);
		struct mst_put over = { .offset = at,
					.src = (uint8_t *)w.link[0]->outbound + at,
					.bytes = check.bytes,
					.notify = true };
		if (transport->maps)
			continue; /* the outbound region is the inbound region itself */
		CU_ASSERT_EQUAL(transport->put(w.link[0], &under), 0);
		CU_ASSERT_EQUAL(transport->put(w.link[0], &over), 0);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	}
	world_close(&w);
}

static void aligned_word_is_never_torn(void)
{
	struct world w = world_of_one();
	struct peer_command c = { .order = PEER_WORDS, .timeout_ns = 100 * MST_MS };
	_Atomic uint64_t *word = w.link[0]->inbound;
	struct mst_net_event ev;
	uint64_t torn = 0, changes = 0, last = 0, end = mst_now_ns() + PEER_WAIT_NS;

	do { /* until this end has seen it change: it may have stood still meanwhile */
		peer_tell(w.peer[0], &c);
		while (acceptor->poll(w.net, &ev, 1) == 0) {
			uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
			torn += seen != (seen & 0xff) * UINT64_C(0x0101010101010101);
			changes += seen != last;
			last = seen;
		}
		CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, 1);
	} while (changes == 0 && mst_now_ns() < end);
	CU_ASSERT_EQUAL(torn, 0);
	CU_ASSERT(changes > 0);
	world_close(&w);
}

static void put_outside_is_refused(void)
{
	static const struct {
		size_t offset, bytes;
	} outside[] = { { 65537, 0 },    { 65536, 1 },         { 0, 65537 },          { 65535, 2 },
			{ SIZE_MAX, 1 }, { SIZE_MAX - 7, 16 }, { 100, SIZE_MAX - 99 } };
	struct world w = world_of_one();
	uint8_t byte = 0xff;

	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		struct mst_put put = { .offset = outside[i].offset,
				       .src = &byte,
				       .bytes = outside[i].bytes,
				       .notify = true };
		CU_ASSERT_EQUAL(transport->put(w.link[0], &put), -EINVAL);
	}
	/* Nothing has arrived, and all of the inbound region is as it was. */
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = 50 * MST_MS };
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 0);
	CU_ASSERT_EQUAL(world_notify(&w, 0, 65536, 11, 1), 1);
	look.timeout_ns = PEER_WAIT_NS;
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
	struct peer_command check = { .order = PEER_CHECK, .bytes = 65536, .seed = 11 };
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	struct mst_put put = { .offset = 65536, .src = &byte, .bytes = 1 };
	CU_ASSERT_EQUAL(transport->put(w.link[0], &put), -EINVAL);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	world_close(&w);
}

static void refused_put_leaves_the_neighbours_alone(void)
{
	struct world w = world_of_one();
	struct mst_net_event ev;
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command full = put_order(0, 65536, 21, 1);
	struct peer_command beyond = put_order(65000, 600, 22, 2);

	/* The own down inbound region is the canary after the up inbound region that the peer
	 * writes beyond. */
	CU_ASSERT_EQUAL(world_notify(&w, 0, 65536, 23, 1), 1);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &full).rc, 1);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &beyond).rc, -EINVAL);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, 20 * MST_MS), 0);
	CU_ASSERT_TRUE(pattern_is(w.link[0]->inbound, 65536, 21));
	struct peer_command check = { .order = PEER_CHECK, .bytes = 65536, .seed = 23 };
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	world_close(&w);
}

static void credits_run_out_and_come_back(void)
{
	struct mst_lanes lanes = { 64, 64, 3,
				   5 }; /* not powers of two: the promise is the number */
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct peer_command up = put_order(0, 64, 1, 0);
	struct peer_command look = { .order = PEER_POLL, .count = 5, .timeout_ns = PEER_WAIT_NS };
	struct mst_net_event ev[3];

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &lanes));
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 3; i++)
			CU_ASSERT_EQUAL(peer_put_with_credit(&w, &up), 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &up).rc, -EAGAIN);
		for (uint32_t i = 0; i < 5; i++)
			CU_ASSERT_EQUAL(notify_with_credit(&w, 64, 2, i), 1);
		CU_ASSERT_EQUAL(world_notify(&w, 0, 64, 3, 5), -EAGAIN);
		CU_ASSERT_EQUAL(world_put(&w, 8, 8, 4), 1); /* without notify: no credit needed */
		CU_ASSERT_EQUAL(world_poll(&w, ev, 3, PEER_WAIT_NS), 3);
		give_credits_back(&w);
		struct peer_report r = peer_do(w.peer[0], &look);
		CU_ASSERT_EQUAL(r.count, 5);
		CU_ASSERT_EQUAL(r.event[4].imm, 4);
	}
	world_close(&w);
}

static void refused_for_credit_writes_nothing(void)
{
	struct mst_lanes lanes = { 64, 64, 1, 1 };
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command check = { .order = PEER_CHECK, .bytes = 64, .seed = 31 };

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &lanes));
	CU_ASSERT_EQUAL(world_notify(&w, 0, 64, 31, 1), 1);
	CU_ASSERT_EQUAL(world_notify(&w, 0, 64, 32, 2), -EAGAIN);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	world_close(&w);
}

static void lanes_of_nothing_work(void)
{
	struct mst_lanes lanes = { 0, 0, 1, 0 };
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct peer_command up = put_order(0, 0, 1, 77);
	struct mst_net_event ev;

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &lanes));
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &up).rc, 1);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_EQUAL(ev.imm, 77);
	CU_ASSERT_EQUAL(world_notify(&w, 0, 0, 0, 0), -EAGAIN);
	CU_ASSERT_EQUAL(world_notify(&w, 0, 1, 0, 0), -EINVAL);
	world_close(&w);
}

static void storm_of(uint64_t often, uint32_t credits, bool restless)
{
	uint64_t count = often / haste;
	size_t bytes = (size_t)credits * 3 * STORM_CELL;
	struct mst_lanes lanes = { bytes, bytes, credits, credits };
	struct world w = world_open(&(struct world_cfg){ .peers = 1, .restless = restless });
	struct peer_command c = { .order = PEER_STORM, .seed = 1234 + count, .count = count };

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &lanes));
	peer_tell(w.peer[0], &c);
	CU_ASSERT_EQUAL(storm(&(struct storm){ w.net, w.link[0], ~c.seed, c.seed, count }), 0);
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, 0);
	world_close(&w);
}

static void both_directions_at_once(void)
{
	storm_of(20000, 16, false);
	storm_of(5000, 3, false);
	storm_of(1000, 1, false);
}

static void both_directions_at_once_sleeping(void)
{
	storm_of(5000, 16, true);
	storm_of(500, 1, true);
}

/* Until the word at @offset of each inbound region has been put there: what was put before it has
 * arrived by then, though nobody has polled it. Not for long, as a network may read only when it
 * is polled. */
static void await_words(const struct world *w, size_t offset)
{
	uint64_t end = mst_now_ns() + 2 * MST_SECOND;

	for (int i = 0; i < WORLD_PEERS; i++) {
		const uint8_t *at = (const uint8_t *)w->link[i]->inbound + offset;
		const _Atomic uint64_t *word = (const void *)at;
		while (atomic_load_explicit(word, memory_order_relaxed) == 0 && mst_now_ns() < end)
			mst_sleep_ns(MST_MS);
	}
}

static void no_link_starves_another(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 3 });
	struct mst_net_event ev;
	int from[3] = { 0 };

	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE_FATAL(world_join(&w, i, &usual_lanes));
	for (int i = 0; i < 3; i++) {
		for (uint32_t k = 0; k < 4; k++) {
			struct peer_command up = put_order((size_t)k * 8, 8, 1, k);
			CU_ASSERT_EQUAL(peer_do(w.peer[i], &up).rc, 1);
		}
	}
	await_words(&w, 24);
	for (int k = 0; k < 6; k++) { /* one at a time: each link twice in any six */
		CU_ASSERT_EQUAL_FATAL(acceptor->poll(w.net, &ev, 1), 1);
		for (int i = 0; i < 3; i++)
			from[i] += ev.link == w.link[i];
	}
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(from[i], 2);
	world_close(&w);
}

#define VIEWED ((size_t)5 * 4096) /* its last page reaches beyond what lanes and nets here have */
#define VIEWED_LANE (VIEWED - 100)

static struct world world_of_views(void)
{
	struct world w = world_open(
		&(struct world_cfg){ .peers = 1, .published_bytes = VIEWED_LANE });
	struct peer_command call = world_call(
		&w, &(struct mst_lanes){ VIEWED_LANE, VIEWED_LANE, 4, 4 });

	call.views = true;
	CU_ASSERT_TRUE_FATAL(world_let_in(&w, 0, &call));
	return w;
}

static void view_is_what_it_is_a_view_of(void)
{
	struct world w = world_of_views();
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command view = { .order = PEER_VIEW, .offset = 4096, .bytes = 8192, .imm = 9 };
	struct mst_net_event ev;

	view.view = MST_VIEW_OUTBOUND;
	view.seed = 41;
	CU_ASSERT(peer_do(w.peer[0], &view).rc >= 0);
	CU_ASSERT_EQUAL_FATAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_EQUAL(ev.imm, 9);
	CU_ASSERT_TRUE(pattern_is((uint8_t *)w.link[0]->inbound + 4096, 8192, 41));

	CU_ASSERT_EQUAL(world_notify(&w, 4096, 8192, 42, 1), 1);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
	view.view = MST_VIEW_INBOUND;
	view.seed = 42;
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &view).rc, 0);

	pattern((uint8_t *)w.net->published + 4096, 8192, 43);
	view.view = MST_VIEW_SHARED;
	view.seed = 43;
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &view).rc, transport->maps ? 0 : -EINVAL);
	world_close(&w);
}

static void view_is_of_whole_pages_that_there_are(void)
{
	static const struct {
		size_t offset, bytes;
	} wrong[] = { { 1, 4096 },      { 0, 4095 }, { 4096, VIEWED },
		      { VIEWED, 4096 }, { 0, 0 },    { SIZE_MAX - 4095, 4096 } };
	struct world w = world_of_views();
	struct peer_command view = { .order = PEER_VIEW };

	for (view.view = MST_VIEW_OUTBOUND; view.view <= MST_VIEW_SHARED; view.view++) {
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			view.offset = wrong[i].offset;
			view.bytes = wrong[i].bytes;
			CU_ASSERT_EQUAL(peer_do(w.peer[0], &view).rc, -EINVAL);
		}
	}
	world_close(&w);
}

CU_TestInfo put_cases[] = {
	{ "a put arrives whole and once, with its immediate", put_arrives_whole_and_once },
	{ "a large put arrives though nothing follows it",
	  large_put_arrives_though_nothing_follows },
	{ "an urgent word is there at a later arrival", urgent_word_is_there_at_a_later_arrival },
	{ "a word of every rail is there at a later arrival",
	  word_of_every_rail_is_there_at_a_later_arrival },
	{ "arrivals come in the order of their puts", arrivals_keep_their_order },
	{ "earlier puts are there at a later arrival", earlier_puts_are_there_at_a_later_arrival },
	{ "a put from the remote mapping itself arrives", put_from_the_mapping_arrives },
	{ "what lies in the outbound region is sent as it lies", outbound_is_sent_as_it_lies },
	{ "what is published is sent as it lies", published_memory_is_sent_as_it_lies },
	{ "puts are reported sent in their order", puts_are_reported_sent_in_their_order },
	{ "what is put over another put stays", what_is_put_over_another_put_stays },
	{ "an aligned word is never torn", aligned_word_is_never_torn },
	{ "a put outside the inbound region is refused", put_outside_is_refused },
	{ "a refused put leaves the neighbours alone", refused_put_leaves_the_neighbours_alone },
	{ "credits run out and come back", credits_run_out_and_come_back },
	{ "a put refused for credit writes nothing", refused_for_credit_writes_nothing },
	{ "lanes of nothing work", lanes_of_nothing_work },
	{ "both directions at once deliver every byte", both_directions_at_once },
	{ "so they do between ends that sleep at every chance", both_directions_at_once_sleeping },
	{ "no link starves another", no_link_starves_another },
	{ "a view is what it is a view of", view_is_what_it_is_a_view_of },
	{ "a view is of whole pages that there are", view_is_of_whole_pages_that_there_are },
	CU_TEST_INFO_NULL,
};
