/* SPDX-License-Identifier: MIT */
/* The ring of requests between the control thread and the data thread, while the latter takes none:
 * what can be asked again leaves a reserve for what cannot. */
#include <errno.h>

#include "common/base/clock.h"
#include "server/core/policy/rule.h"
#include "server/data/server.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"

#define WORKERS 5u
#define SESSIONS_PER_RANK 4u /* as the control side has: the present one, and ended ones */
#define MANY 100000

static struct mst_server *server;

static void notify(void *ctx)
{
	(void)ctx;
}

static void begin(void)
{
	struct mst_lane_figures figures = { 64, 4, 4, 2, WORKERS, false };
	struct mst_server_cfg cfg = { .transport = &mst_shm, .notify = notify };
	struct mst_rule rule = { .divide = true, .min_workers = 1 };
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_rule_parse("bsp", &rule, &why), 0);
	cfg.ledger = (struct mst_ledger_cfg){ .workers = WORKERS,
					      .shards = 1,
					      .slots = 2,
					      .buffers = 4,
					      .in_place = true,
					      .rule = rule,
					      .optimizer = optim_case_sgd(0.1, 0.9),
					      .lease_ns = MST_SECOND,
					      .join_until_ns = MST_NEVER };
	cfg.aggregator = (struct mst_aggregator_cfg){
		.shards = 1,
		.elems = 64,
		.chunk_elems = 1024,
		.group = 8,
		.workers = WORKERS,
		.slots = 2,
		.sessions_max = SESSIONS_PER_RANK * WORKERS,
		.buffers = mst_ledger_buffers(&cfg.ledger),
		.entries_max = mst_ledger_entries(&cfg.ledger),
		.optimizer = optim_case_sgd(0.1, 0),
	};
	mst_lane_layout(&figures, &cfg.aggregator.layout);
	CU_ASSERT_EQUAL_FATAL(mst_server_new(&cfg, &server, UT_UNREAD), 0);
}

static void end(void)
{
	mst_server_free(server);
}

/* Return: how many of them were taken. */
static int ask(const struct mst_request *r)
{
	int taken = 0;

	while (taken < MANY && mst_server_request(server, r))
		taken++;
	return taken;
}

static int ask_event(enum mst_ledger_event_kind kind)
{
	struct mst_request r = { .kind = MST_REQ_EVENT, .event = { .kind = kind } };

	r.event.who = (struct mst_identity){ 1, 1 };
	r.event.error = kind == MST_EV_LOST ? -EPIPE : 0;
	return ask(&r);
}

static void a_full_ring_takes_no_more(void)
{
	begin();
	CU_ASSERT(ask_event(MST_EV_LOST) < MANY);
	CU_ASSERT_EQUAL(ask_event(MST_EV_LOST), 0);
	CU_ASSERT_EQUAL(ask_event(MST_EV_HEARTBEAT), 0);
	end();
}

static void what_can_be_asked_again_leaves_a_reserve(void)
{
	static const enum mst_ledger_event_kind again[] = { MST_EV_JOIN,      MST_EV_START,
							    MST_EV_HEARTBEAT, MST_EV_STATE,
							    MST_EV_LEAVE,     MST_EV_FINISH };
	struct mst_request snapshot = { .kind = MST_REQ_SNAPSHOT };

	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++) {
		begin();
		CU_ASSERT(ask_event(again[i]) > 0);
		CU_ASSERT_EQUAL(ask(&snapshot), 0);
		/* Each session is linked once and lost once. */
		CU_ASSERT(ask_event(MST_EV_LOST) >= (int)(2 * SESSIONS_PER_RANK * WORKERS));
		end();
	}
}

static void a_link_that_is_up_finds_its_place(void)
{
	struct mst_request linked = { .kind = MST_REQ_LINKED };

	begin();
	CU_ASSERT(ask_event(MST_EV_HEARTBEAT) > 0);
	CU_ASSERT(ask(&linked) >= (int)(2 * SESSIONS_PER_RANK * WORKERS));
	end();
}

static CU_TestInfo cases[] = {
	{ "a full ring takes no more", a_full_ring_takes_no_more },
	{ "what can be asked again leaves a reserve", what_can_be_asked_again_leaves_a_reserve },
	{ "a link that is up finds its place", a_link_that_is_up_finds_its_place },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("server requests", cases);
}
