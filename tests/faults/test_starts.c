/* SPDX-License-Identifier: MIT */
/* What allocates all it will need at the start: each allocation fails in turn, the caller gets
 * -ENOMEM and nothing else, and none of the memory that was there already is lost. */
#include <errno.h>

#include "client/core/worker.h"
#include "common/base/clock.h"
#include "common/base/spsc.h"
#include "server/core/ledger/ledger.h"
#include "server/core/statistics/statistics.h"
#include "server/data/aggregator.h"
#include "server/data/server.h"
#include "tests/faults/scenario.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"

enum { STARTER = 1 };

#define WORKERS 3u
#define ELEMS 5000u

static const struct mst_ledger_cfg ledger_cfg = {
	.workers = WORKERS,
	.shards = 1,
	.slots = 2,
	.buffers = 4,
	.owner = MUSTER_SERVERS_OWN,
	.rule = { .divide = true, .min_workers = 1 },
	.lease_ns = MST_SECOND,
	.join_until_ns = MST_NEVER,
};

static struct mst_aggregator_cfg aggregator_cfg(void)
{
	struct mst_lane_figures figures = { ELEMS, 4, 2, 2, WORKERS, false };
	struct mst_aggregator_cfg cfg = {
		.shards = 1,
		.elems = ELEMS,
		.result_type = MUSTER_BF16, /* so that the parameters are kept beside it */
		.chunk_elems = 1024,
		.group = 8,
		.workers = WORKERS,
		.slots = 2,
		.sessions_max = 4,
		.buffers = 4,
		.entries_max = 8,
		.partials = 2,
		.optimizer = optim_case_sgd(0.1, 0.9),
	};

	mst_lane_layout(&figures, &cfg.layout);
	return cfg;
}

static void judge(int rc, const void *made)
{
	faulty_enter(FAULTY_NOBODY);
	scenario_holds((rc == 0) == (made != NULL), "a failure gives nothing");
	scenario_holds(rc == 0 || (rc == -ENOMEM && faulty_struck()), "a failure is -ENOMEM");
}

static void start_ledger(void)
{
	struct mst_ledger *l = NULL;

	faulty_enter(STARTER);
	int rc = mst_ledger_new(&ledger_cfg, &l);
	judge(rc, l);
	mst_ledger_free(l);
}

static void start_aggregator(void)
{
	struct mst_aggregator_cfg cfg = aggregator_cfg();
	struct mst_aggregator_up up = { 0 };
	struct mst_aggregator *s = NULL;

	faulty_enter(STARTER);
	int rc = mst_aggregator_new(&cfg, &up, &s);
	judge(rc, s);
	mst_aggregator_free(s);
}

static void start_statistics(void)
{
	struct mst_statistics *t = NULL;

	faulty_enter(STARTER);
	int rc = mst_statistics_new(WORKERS, &t);
	judge(rc, t);
	mst_statistics_free(t);
}

static void start_server(void)
{
	struct mst_server_cfg cfg = { .ledger = ledger_cfg,
				      .aggregator = aggregator_cfg(),
				      .transport = &mst_shm };
	struct mst_server *s = NULL;

	faulty_enter(STARTER);
	int rc = mst_server_new(&cfg, &s, UT_UNREAD);
	faulty_enter(FAULTY_NOBODY);
	scenario_holds((rc == 0) == (s != NULL), "a failure gives nothing");
	scenario_holds(rc == 0 || faulty_struck(), "without a fault it starts");
	mst_server_free(s);
}

static void start_worker(void)
{
	struct mst_worker_cfg cfg = {
		.elems = ELEMS, .slots = 2, .workers = WORKERS, .servers = 1
	};
	static struct mst_worker w;

	faulty_enter(STARTER);
	int rc = mst_worker_init(&w, &cfg);
	judge(rc, rc == 0 ? &w : NULL);
	if (rc == 0)
		mst_worker_fini(&w);
}

static void start_ring(void)
{
	faulty_enter(STARTER);
	struct mst_spsc *ring = mst_spsc_new(16, 8);
	judge(ring != NULL ? 0 : -ENOMEM, ring);
	mst_spsc_free(ring);
}

static void play(const char *name, void (*run)(void), unsigned least)
{
	struct scenario s = { .name = name,
			      .side = STARTER,
			      .most = 100,
			      .patience_ns = 60 * MST_SECOND,
			      .run = run };

	CU_ASSERT(scenario_play(&s) >= least);
}

static void everything(void)
{
	play("ledger", start_ledger, 8);
	play("shard", start_aggregator, 12);
	play("statistics", start_statistics, 3);
	play("server", start_server, 35);
	play("worker", start_worker, 2);
	play("ring", start_ring, 1);
}

static CU_TestInfo cases[] = {
	{ "whatever cannot be allocated, nothing is left behind", everything },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("starts that meet faults", cases);
}
