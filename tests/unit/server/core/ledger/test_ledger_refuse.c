/* SPDX-License-Identifier: MIT */
/* What a ledger does not take: figures that cannot be, and a worker that says again what is said
 * once. */
#include <errno.h>

#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

static void refused(const struct mst_ledger_cfg *cfg)
{
	struct mst_ledger *l = NULL;

	CU_ASSERT_EQUAL(mst_ledger_new(cfg, &l), -EINVAL);
	CU_ASSERT_PTR_NULL(l);
}

/* One figure beyond its range at a time. */
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		struct mst_ledger_cfg cfg = job_cfg("bsp", 4);                                     \
		cfg.field = (value);                                                               \
		refused(&cfg);                                                                     \
	} while (0)

static void figures_that_cannot_be_are_refused(void)
{
	REFUSED(workers, 0);
	REFUSED(workers, MST_LEDGER_WORKERS_MAX + 1);
	REFUSED(shards, 0);
	REFUSED(shards, MST_LEDGER_SHARDS_MAX + 1);
	REFUSED(slots, 0);
	REFUSED(slots, MST_SLOTS_MAX + 1);
	REFUSED(buffers, 2);
	REFUSED(lease_ns, 0);
	REFUSED(history, 1);                /* servers own: there is none */
	REFUSED(owner, MUSTER_WORKERS_OWN); /* and here there must be one */
}

static void a_worker_starts_once(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_join(&j, 0);
	job_join(&j, 1);
	job_link(&j, 0, 0);
	job_start(&j, 0, true);
	CU_ASSERT(job_member(&j, 0).live);
	job_start(&j, 0, true);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_INVALID));
	CU_ASSERT(!job_member(&j, 0).live);
	CU_ASSERT(job_member(&j, 1).live);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "figures that cannot be are refused", figures_that_cannot_be_are_refused },
	{ "a worker starts once; one that starts again is put out", a_worker_starts_once },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger: refusals", cases);
}
