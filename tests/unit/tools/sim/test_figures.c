/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "tests/ut.h"
#include "tools/sim/figures.h"

static struct mst_sim_figures f;

static void decided(struct mst_decision d, uint64_t now_ns)
{
	mst_sim_figures_decided(&f, &d, now_ns);
}

static void begin(uint32_t workers, uint64_t now_ns)
{
	CU_ASSERT_FATAL(mst_sim_figures_init(&f, workers) == 0);
	decided((struct mst_decision){ .kind = MST_DO_START }, now_ns);
}

static void commit(uint64_t version, uint64_t now_ns)
{
	decided((struct mst_decision){ .kind = MST_DO_COMMIT, .commit.version = version }, now_ns);
}

static void verdict(uint32_t rank, enum muster_verdict what, uint64_t tag, uint64_t now_ns)
{
	decided(
		(struct mst_decision){
			.kind = MST_DO_VERDICT,
			.who = { rank, 1 },
			.verdict = { .tag = tag, .counted_in = f.commits + 1, .verdict = what } },
		now_ns);
}

/* Rank 1 is late for version 1, and then computes in vain until it gives up. */
static void live(void)
{
	begin(2, 1000);
	mst_sim_figures_pushed(&f, 0, 1, 100);
	verdict(0, MUSTER_COUNTED, 0, 1100);
	commit(1, 1100);
	mst_sim_figures_pushed(&f, 1, 1, 150);
	verdict(1, MUSTER_LATE, 0, 1150);
	mst_sim_figures_pushed(&f, 0, 1, 300);
	verdict(0, MUSTER_COUNTED, 1, 1400);
	commit(2, 1400);
	mst_sim_figures_given_up(&f, 1, 250);
}

static void a_step_lasts_from_commit_to_commit(void)
{
	live();
	CU_ASSERT_EQUAL(f.commits, 2);
	CU_ASSERT_EQUAL(f.step.count, 2);
	CU_ASSERT_EQUAL(mst_hist_mean(&f.step), 200);
	CU_ASSERT(f.step.min == 100 && f.step.max == 300);
	CU_ASSERT_EQUAL(mst_sim_figures_elapsed_ns(&f), 400);
	mst_sim_figures_fini(&f);
}

static void arrivals_are_counted_from_the_commit_in_time_or_not(void)
{
	live();
	CU_ASSERT_EQUAL(f.arrival[0].count, 2);
	CU_ASSERT_EQUAL(f.arrival[0].sum_ns, 100 + 300);
	CU_ASSERT_EQUAL(f.arrival[1].count, 1);
	CU_ASSERT_EQUAL(f.arrival[1].sum_ns, 150);
	mst_sim_figures_fini(&f);
}

static void a_gradient_that_is_very_old_is_no_arrival(void)
{
	begin(2, 0);
	for (uint64_t v = 1; v <= f.room; v++)
		commit(v, v);
	verdict(0, MUSTER_COUNTED, 0, f.room);
	verdict(0, MUSTER_COUNTED, 1, f.room);
	CU_ASSERT_EQUAL(f.arrival[0].count, 1);
	CU_ASSERT_EQUAL(f.staleness.max, f.room);
	mst_sim_figures_fini(&f);
}

static void what_is_not_counted_is_wasted(void)
{
	live();
	struct mst_sim_rank total = mst_sim_figures_total(&f);
	CU_ASSERT(total.counted == 2 && total.late == 1 && total.given_up == 1);
	CU_ASSERT(total.useful_ns == 400 && total.wasted_ns == 400);
	CU_ASSERT_EQUAL(mst_sim_wasted_gradients(&total), 0.5);
	CU_ASSERT_EQUAL(mst_sim_wasted_time(&total), 0.5);
	CU_ASSERT_EQUAL(mst_sim_wasted_time(&f.rank[0]), 0);
	CU_ASSERT_EQUAL(mst_sim_wasted_gradients(&f.rank[1]), 1);
	mst_sim_figures_cut_off(&f, 0, 10);
	mst_sim_figures_pushed(&f, 1, 1, 20);
	verdict(1, MUSTER_STALE, 2, 1500);
	verdict(1, MUSTER_CANCELLED, 2, 1500);
	total = mst_sim_figures_total(&f);
	CU_ASSERT(total.lost == 2 && total.stale == 1 && total.wasted_ns == 450);
	mst_sim_figures_fini(&f);
}

static void what_is_not_judged_by_the_end_of_its_session_is_lost(void)
{
	begin(2, 1000);
	mst_sim_figures_pushed(&f, 1, 1, 150);
	decided((struct mst_decision){ .kind = MST_DO_EVICT, .who = { 1, 1 } }, 1200);
	decided((struct mst_decision){ .kind = MST_DO_EVICT, .who = { 1, 2 } }, 1300);
	CU_ASSERT(f.rank[1].lost == 1 && f.rank[1].wasted_ns == 150);
	mst_sim_figures_pushed(&f, 1, 1, 150);
	verdict(1, MUSTER_COUNTED, 0, 1400);
	decided((struct mst_decision){ .kind = MST_DO_EVICT, .who = { 1, 3 } }, 1500);
	CU_ASSERT(f.rank[1].lost == 1 && f.rank[1].wasted_ns == 150);
	mst_sim_figures_fini(&f);
}

/* 400 ns for two gradients, and 300 ns for three. */
static void saved_is_of_the_time_for_a_counted_gradient(void)
{
	live();
	struct mst_sim_figures base = f;
	begin(2, 0);
	CU_ASSERT_TRUE(isnan(mst_sim_saved(&f, &base))); /* nothing is counted yet */
	for (int i = 0; i < 3; i++) {
		mst_sim_figures_pushed(&f, 0, 1, 100);
		verdict(0, MUSTER_COUNTED, 0, 300);
	}
	commit(1, 300);
	CU_ASSERT_DOUBLE_EQUAL(mst_sim_saved(&f, &base), 0.5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(mst_sim_saved(&base, &f), -1, 1e-12);
	mst_sim_figures_fini(&f);
	mst_sim_figures_fini(&base);
}

static CU_TestInfo cases[] = {
	{ "a step lasts from commit to commit", a_step_lasts_from_commit_to_commit },
	{ "arrivals are counted from the commit, in time or not",
	  arrivals_are_counted_from_the_commit_in_time_or_not },
	{ "a gradient that is very old is no arrival", a_gradient_that_is_very_old_is_no_arrival },
	{ "what is not counted is wasted", what_is_not_counted_is_wasted },
	{ "what is not judged by the end of its session is lost",
	  what_is_not_judged_by_the_end_of_its_session_is_lost },
	{ "saved is of the time for a counted gradient",
	  saved_is_of_the_time_for_a_counted_gradient },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim_figures", cases);
}
