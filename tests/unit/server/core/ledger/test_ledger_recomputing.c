/* SPDX-License-Identifier: MIT */
/* Gradients that are computed again under bounded:S: the others wait for each of them once. */
#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

/* Pushes of @rank, each of which is judged or waits. Return: how many versions they have made. */
static uint64_t versions_of(struct ledger_job *j, uint32_t rank, int pushes)
{
	uint64_t before = job_version(j);

	for (int i = 0; i < pushes; i++)
		job_push(j, rank);
	return job_version(j) - before;
}

/* Rank 0 has pushed a gradient that was stale, and has been given the newest version. */
static void begin_with_a_stale_one(struct ledger_job *j, const struct mst_ledger_cfg *cfg)
{
	job_born(j, cfg);
	CU_ASSERT_EQUAL(versions_of(j, 1, 3), 3);
	struct mst_lane_header h = job_header(j, 0);
	h.tag = 0;
	job_full_all(j, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(j, 0), MUSTER_STALE);
	job_forget(j);
}

static void recomputed_gradient_is_waited_for(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bounded:2", 3);
	struct ledger_job j;

	begin_with_a_stale_one(&j, &cfg);
	CU_ASSERT_EQUAL(versions_of(&j, 1, 2), 2); /* as many as do no harm */
	CU_ASSERT_EQUAL(versions_of(&j, 1, 1), 0);
	uint64_t before = job_version(&j);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_COUNTED);
	/* and then what has waited */
	CU_ASSERT_EQUAL(job_version(&j), before + 2);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	job_close(&j);
}

static void each_is_waited_for_once(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bounded:2", 2);
	struct ledger_job j;

	begin_with_a_stale_one(&j, &cfg);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(versions_of(&j, 1, 9), 9); /* the next gradient is a new one */
	job_close(&j);
}

static void who_dies_or_rests_is_not_waited_for(void)
{
	for (int way = 0; way < 2; way++) {
		struct mst_ledger_cfg cfg = job_cfg("bounded:2", 3);
		struct mst_ledger_event rest = { .kind = MST_EV_REST, .rests = true };
		struct ledger_job j;

		begin_with_a_stale_one(&j, &cfg);
		CU_ASSERT_EQUAL(versions_of(&j, 1, 3), 2);
		rest.who = j.worker[0].who;
		if (way == 0)
			job_tell(&j, 0, MST_EV_LOST);
		else
			job_event(&j, &rest);
		CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
		CU_ASSERT_EQUAL(versions_of(&j, 1, 5), 5);
		job_close(&j);
	}
}

/* Two that were given the same version cannot both be in the last one that takes it. */
static void several_are_waited_for_one_version_earlier_each(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bounded:2", 3);
	struct ledger_job j;

	begin_with_a_stale_one(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 2);
	h.tag = 0;
	job_full_all(&j, 2, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 2), MUSTER_STALE);
	CU_ASSERT_EQUAL(versions_of(&j, 1, 2), 1);
	job_push(&j, 2);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(job_verdict(&j, 2), MUSTER_COUNTED);
	job_close(&j);
}

static void patience_bounds_the_wait_and_nobody_else_is_evicted_for_it(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bounded:2", 2);
	struct ledger_job j;

	cfg.rule.patience_ns = 2 * MST_SECOND;
	begin_with_a_stale_one(&j, &cfg);
	CU_ASSERT_EQUAL(versions_of(&j, 1, 3), 2);
	job_wait(&j, MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(versions_of(&j, 1, 5), 5);
	job_close(&j);
}

static void another_rule_or_the_end_waits_for_nobody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bounded:2", 2);
	struct mst_rule rule = job_rule("async");
	struct ledger_job j;

	begin_with_a_stale_one(&j, &cfg);
	job_policy(&j, &rule);
	CU_ASSERT_EQUAL(versions_of(&j, 1, 9), 9);
	job_close(&j);

	begin_with_a_stale_one(&j, &cfg);
	CU_ASSERT_EQUAL(versions_of(&j, 1, 3), 2);
	job_tell(&j, 1, MST_EV_FINISH);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	job_close(&j);
}

static void where_old_ones_are_dropped_nothing_is_computed_again(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bounded:2", 2);
	struct ledger_job j;

	cfg.rule.late = MST_LATE_DROP;
	job_born(&j, &cfg);
	CU_ASSERT_EQUAL(versions_of(&j, 1, 3), 3);
	struct mst_lane_header h = job_header(&j, 0);
	h.tag = 0;
	job_full_all(&j, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_LATE);
	CU_ASSERT_EQUAL(versions_of(&j, 1, 9), 9);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a gradient that is computed again is waited for", recomputed_gradient_is_waited_for },
	{ "each is waited for once", each_is_waited_for_once },
	{ "who dies or rests is not waited for", who_dies_or_rests_is_not_waited_for },
	{ "several are waited for, each one version earlier",
	  several_are_waited_for_one_version_earlier_each },
	{ "patience bounds the wait, and nobody else is evicted for it",
	  patience_bounds_the_wait_and_nobody_else_is_evicted_for_it },
	{ "another rule, or the end, waits for nobody", another_rule_or_the_end_waits_for_nobody },
	{ "where old ones are dropped nothing is computed again",
	  where_old_ones_are_dropped_nothing_is_computed_again },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_recomputing", cases);
}
