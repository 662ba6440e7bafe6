/* SPDX-License-Identifier: MIT */
/* Bytes that put() copies, for each way in which a source is handed over, and at both ends. */
#include <errno.h>

#include "common/base/clock.h"
#include "tests/transport/world.h"

#define BYTES ((size_t)60000)
#define EXPORTED_AT ((size_t)4096)

enum source { ELSEWHERE, OUTBOUND, PUBLISHED, REGISTERED, SOURCES };

/* A source that lies elsewhere is copied once: over a network to the outbound region, where peers
 * map each other's memory to its place at the peer. */
static bool is_copied(enum source source)
{
	return source == ELSEWHERE || (source != OUTBOUND && transport->maps);
}

static struct world world_that_publishes(const struct peer_command *dial)
{
	struct world w = world_open(
		&(struct world_cfg){ .peers = 1, .published_bytes = usual_lanes.down_bytes });
	struct peer_command call = world_call(&w, &usual_lanes);

	if (dial != NULL) {
		call.exported = dial->exported;
		call.offset = dial->offset;
		call.bytes = dial->bytes;
	}
	CU_ASSERT_TRUE_FATAL(world_let_in(&w, 0, &call));
	return w;
}

/* All that was put has arrived, and everything that was lent is back. */
static void settle(struct world *w, int rc)
{
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct mst_net_event ev;

	CU_ASSERT_EQUAL(peer_do(w->peer[0], &look).count, 1);
	if (rc == 0) {
		CU_ASSERT_EQUAL(world_poll(w, &ev, 1, PEER_WAIT_NS), 1);
		CU_ASSERT_EQUAL(ev.kind, MST_SENT);
	}
}

static void put_of(struct world *w, struct mst_put *put)
{
	put->notify = true;
	put->signal = true;
	int rc = transport->put(w->link[0], put);
	CU_ASSERT(rc >= 0);
	settle(w, rc);
}

static void each_source_is_copied_once_or_not_at_all(void)
{
	static uint8_t own[BYTES], registered[BYTES];
	struct world w = world_that_publishes(NULL);
	struct mst_link *link = w.link[0];
	struct mst_region *r = NULL;

	CU_ASSERT_EQUAL_FATAL(
		mst_region_register(&w.net->domain, registered, sizeof(registered), &r, UT_UNREAD),
		0);
	for (enum source source = ELSEWHERE; source < SOURCES; source++) {
		const uint8_t *at[SOURCES] = { own, (uint8_t *)link->outbound + 100,
					       w.net->published, registered };
		struct mst_put put = { .offset = 100,
				       .src = at[source],
				       .region = source == REGISTERED ? r : NULL,
				       .bytes = BYTES };
		uint64_t before = link->copied;
		put_of(&w, &put);
		CU_ASSERT_EQUAL(link->copied - before, is_copied(source) ? BYTES : 0);
	}
	CU_ASSERT_EQUAL(mst_region_unregister(r, UT_UNREAD), 0);
	world_close(&w);
}

static void nothing_is_counted_of_no_bytes_or_a_refused_put(void)
{
	static const uint8_t own[64];
	struct world w = world_of_one();
	struct mst_link *link = w.link[0];

	struct mst_put beyond = { .offset = usual_lanes.down_bytes - 63, .src = own, .bytes = 64 };
	CU_ASSERT_EQUAL(transport->put(link, &beyond), -EINVAL);
	CU_ASSERT_EQUAL(world_notify(&w, 0, 0, 0, 0), 1);
	CU_ASSERT_EQUAL(link->copied, 0);
	for (uint32_t i = 1; i < usual_lanes.down_credits; i++)
		CU_ASSERT_EQUAL(world_notify(&w, 0, 8, i, i), 1);
	CU_ASSERT_EQUAL(world_notify(&w, 0, 8, 9, 9), -EAGAIN);
	CU_ASSERT_EQUAL(link->copied, 8 * (usual_lanes.down_credits - 1));
	world_close(&w);
}

/* A worker's end: a gradient that is composed in the slot, and one that is not. */
static void the_connector_counts_what_it_copies(void)
{
	struct world w = world_of_one();
	struct peer_command c = { .order = PEER_PUT, .bytes = BYTES, .seed = 3 };

	if (transport->maps) {
		c.from_mapping = true;
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &c).copied, 0);
		c.from_mapping = false;
	}
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &c).copied, BYTES);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &c).copied, 2 * BYTES);
	CU_ASSERT_EQUAL(w.link[0]->copied, 0); /* that is the other end's */
	world_close(&w);
}

/* A server's end: where peers map what it publishes they read it there, and else it is put from
 * there to where the worker wants it. */
static void a_result_in_place_is_not_copied(void)
{
	struct peer_command export = { .exported = true, .offset = EXPORTED_AT, .bytes = BYTES };
	struct world w = world_that_publishes(transport->maps ? NULL : &export);
	struct peer_command check = { .order = PEER_CHECK,
				      .shared = transport->maps,
				      .exported = !transport->maps,
				      .offset = transport->maps ? 0 : EXPORTED_AT,
				      .bytes = BYTES };
	struct mst_put result = { .offset = EXPORTED_AT, .src = w.net->published };

	for (uint64_t i = 0; i < 3; i++) {
		check.seed = 90 + i;
		pattern(w.net->published, BYTES, check.seed);
		result.bytes = transport->maps ? 0 : BYTES;
		put_of(&w, &result);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	}
	CU_ASSERT_EQUAL(w.link[0]->copied, 0);
	world_close(&w);
}

CU_TestInfo copy_cases[] = {
	{ "each source is copied once or not at all", each_source_is_copied_once_or_not_at_all },
	{ "nothing is counted of no bytes, or of a refused put",
	  nothing_is_counted_of_no_bytes_or_a_refused_put },
	{ "the connector counts what it copies", the_connector_counts_what_it_copies },
	{ "a result in place is not copied", a_result_in_place_is_not_copied },
	CU_TEST_INFO_NULL,
};
