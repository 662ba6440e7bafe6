/* SPDX-License-Identifier: MIT */
/* Order statistics, replays and samples of one small trace. Its means and quantiles are
 * NumPy's, its replays those of a simulation with a heap of events, its intervals those of all
 * 6^6 samples. */
#include "tests/unit/tools/plan/plan_case.h"
#include "tools/plan/bootstrap.h"
#include "tools/plan/slow.h"

static struct mst_arrivals a;

static void begin(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_arrivals(PLAN_CASE_DRAWN, &a), 0);
}

static void the_kth_arrival_has_numpys_mean_and_quantiles(void)
{
	static const double expected[4][3] = { { 75.16666666666667, 76, 96 },
					       { 99.16666666666667, 101, 132 },
					       { 166.16666666666666, 139, 244 },
					       { 237.16666666666666, 205, 376 } };
	struct mst_arrival_figures figures;
	double scratch[6];

	begin();
	for (uint32_t k = 1; k <= 4; k++) {
		mst_arrival_figures_of(&a, k, scratch, &figures);
		CU_ASSERT_DOUBLE_EQUAL(figures.mean_us, expected[k - 1][0], 1e-9);
		CU_ASSERT_DOUBLE_EQUAL(figures.p50_us, expected[k - 1][1], 1e-9);
		CU_ASSERT_DOUBLE_EQUAL(figures.p90_us, expected[k - 1][2], 1e-9);
		CU_ASSERT_EQUAL(figures.at_least, 0);
	}
	mst_arrivals_free(&a);
}

static void a_replay_is_what_a_heap_of_events_gives(void)
{
	static const double expected[4][3] = {
		{ 721, 6, 13 }, { 808, 12, 8 }, { 1088, 18, 5 }, { 1423, 24, 0 }
	};
	struct mst_replay_scratch scratch;
	struct mst_replay replay;

	begin();
	CU_ASSERT_EQUAL_FATAL(mst_replay_scratch_init(&scratch, a.ranks), 0);
	for (uint32_t quorum = 1; quorum <= 4; quorum++) {
		mst_replay_backup(&a, quorum, NULL, &scratch, &replay);
		CU_ASSERT_DOUBLE_EQUAL(replay.us, expected[quorum - 1][0], 1e-9);
		CU_ASSERT_EQUAL(replay.counted, expected[quorum - 1][1]);
		CU_ASSERT_EQUAL(replay.late, expected[quorum - 1][2]);
	}
	mst_replay_scratch_fini(&scratch);
	mst_arrivals_free(&a);
}

/* The quantiles of 2000 of the 46656 samples lie near those of all. */
static void samples_give_the_interval_of_all_samples(void)
{
	static const uint32_t quorum[] = { 1, 2, 3, 4 };
	struct mst_bootstrap_cfg cfg = { quorum, 4, 2, 1 };
	struct mst_quorum_interval interval[4], again[4];

	begin();
	CU_ASSERT_EQUAL(mst_bootstrap_quorums(&a, &cfg, interval), MST_BOOTSTRAP_SAMPLES);
	CU_ASSERT_DOUBLE_EQUAL(interval[2].gain.low, 0.8607, 0.02);
	CU_ASSERT_DOUBLE_EQUAL(interval[2].gain.high, 1.4641, 0.05);
	CU_ASSERT_DOUBLE_EQUAL(interval[2].speedup.low, interval[2].gain.low * 4 / 3, 1e-9);
	CU_ASSERT(interval[3].gain.low == 1 && interval[3].gain.high == 1);
	CU_ASSERT(interval[2].behind.low == 1 && interval[2].behind.high == 1);
	double all = interval[0].best + interval[1].best + interval[2].best + interval[3].best;
	CU_ASSERT_DOUBLE_EQUAL(all, 1, 1e-9);
	CU_ASSERT_EQUAL(mst_bootstrap_quorums(&a, &cfg, again), MST_BOOTSTRAP_SAMPLES);
	CU_ASSERT_EQUAL(memcmp(interval, again, sizeof(again)), 0);
	mst_arrivals_free(&a);
}

static void waiting_for_all_under_backup_is_waiting_for_all(void)
{
	struct mst_interval gain;

	begin();
	CU_ASSERT_EQUAL(mst_bootstrap_backup(&a, 4, 1, &gain), MST_BOOTSTRAP_SAMPLES);
	CU_ASSERT_DOUBLE_EQUAL(gain.low, 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(gain.high, 1, 1e-9);
	CU_ASSERT_EQUAL(mst_bootstrap_backup(&a, 3, 1, &gain), MST_BOOTSTRAP_SAMPLES);
	CU_ASSERT(gain.low < 1423.0 / 1088 * 3 / 4 && gain.high > 1423.0 / 1088 * 3 / 4);
	mst_arrivals_free(&a);
}

static void quantiles_lie_between_the_numbers(void)
{
	static const double v[] = { 1, 2, 4, 8 };

	CU_ASSERT_EQUAL(mst_quantile(v, 4, 0), 1);
	CU_ASSERT_EQUAL(mst_quantile(v, 4, 0.5), 3);
	CU_ASSERT_EQUAL(mst_quantile(v, 4, 1), 8);
	CU_ASSERT_EQUAL(mst_quantile(v, 1, 0.5), 1);
}

/* By sums of fractions. */
static void the_binomial_tail_is_exact(void)
{
	CU_ASSERT_EQUAL(mst_binomial_tail(10, 0.5, 0), 1);
	CU_ASSERT_EQUAL(mst_binomial_tail(10, 0.5, 11), 0);
	CU_ASSERT_DOUBLE_EQUAL(mst_binomial_tail(10, 0.5, 9), 0.0107421875, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(mst_binomial_tail(45, 0.25, 23), 0.0001481398627522792, 1e-14);
	CU_ASSERT_DOUBLE_EQUAL(mst_binomial_tail(1000, 0.25, 280), 0.016436660364215372, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(mst_binomial_tail(200, 0.25, 198) / 6.959086396903373e-116, 1, 1e-9);
}

static void ranks_are_compared_with_the_median_of_each_step(void)
{
	static const double ratio[] = { 1.1327363979223137, 1.0961393774692378, 1.0514978438734233,
					1.0844158920035132 };
	static const uint32_t slowest[] = { 2, 2, 2, 0 };
	struct mst_slow_rank slow[4];

	begin();
	mst_slow_judge(&a, slow);
	for (uint32_t rank = 0; rank < 4; rank++) {
		CU_ASSERT_DOUBLE_EQUAL(slow[rank].ratio, ratio[rank], 1e-9);
		CU_ASSERT(slow[rank].slowest == slowest[rank] && slow[rank].slow == slowest[rank]);
		CU_ASSERT_FALSE(slow[rank].persistent);
	}
	CU_ASSERT_DOUBLE_EQUAL(mst_slow_without(&a, slow), 237.16666666666666, 1e-9);
	mst_arrivals_free(&a);
}

static CU_TestInfo cases[] = {
	{ "the kth arrival has NumPy's mean and quantiles",
	  the_kth_arrival_has_numpys_mean_and_quantiles },
	{ "a replay is what a heap of events gives", a_replay_is_what_a_heap_of_events_gives },
	{ "samples give the interval of all samples", samples_give_the_interval_of_all_samples },
	{ "waiting for all under backup is waiting for all",
	  waiting_for_all_under_backup_is_waiting_for_all },
	{ "quantiles lie between the numbers", quantiles_lie_between_the_numbers },
	{ "the binomial tail is exact", the_binomial_tail_is_exact },
	{ "ranks are compared with the median of each step",
	  ranks_are_compared_with_the_median_of_each_step },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("planner_quorum", cases);
}
