/* SPDX-License-Identifier: MIT */
/* Order statistics, replays and samples of one small trace. Its means and quantiles are
 * NumPy's, its replays those of a simulation with a heap of events, its intervals those of all
 * 6^6 samples, corrected as bootstrap.h says. */
#include <math.h>

#include "tests/unit/tools/plan/plan_case.h"
#include "tools/plan/bootstrap.h"
#include "tools/plan/replay.h"

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

/* Late gradients are those that were begun, with those that are not finished at the end. */
static void a_replay_is_what_a_heap_of_events_gives(void)
{
	static const double expected[4][4] = { { 393436, 4000, 4000, 5825 },
					       { 244965, 2000, 4000, 2032 },
					       { 236091, 1334, 4002, 1331 },
					       { 237105, 1000, 4000, 0 } };
	struct mst_replay_scratch scratch;
	struct mst_replay replay;

	begin();
	CU_ASSERT_EQUAL_FATAL(mst_replay_scratch_init(&scratch, a.ranks), 0);
	for (uint32_t quorum = 1; quorum <= 4; quorum++) {
		mst_replay_backup(&a, quorum, NULL, &scratch, &replay);
		CU_ASSERT_DOUBLE_EQUAL(replay.us, expected[quorum - 1][0], 1e-6);
		CU_ASSERT_EQUAL(replay.steps, expected[quorum - 1][1]);
		CU_ASSERT_EQUAL(replay.counted, expected[quorum - 1][2]);
		CU_ASSERT(replay.late >= expected[quorum - 1][3] &&
			  replay.late <= expected[quorum - 1][3] + 4 - quorum);
	}
	CU_ASSERT_DOUBLE_EQUAL(mst_replay_all(&a, NULL), 237.105, 1e-9);
	mst_replay_scratch_fini(&scratch);
	mst_arrivals_free(&a);
}

/* When gradients arrive at the same moment, no more count than the quorum has room for. */
static void of_equal_gradients_only_the_quorum_counts(void)
{
	struct mst_replay_scratch scratch;
	struct mst_replay replay;

	CU_ASSERT_EQUAL_FATAL(plan_case_arrivals(PLAN_CASE_TRACE "0,0,20\n0,1,20\n0,2,20\n"
								 "1,0,20\n1,1,20\n1,2,20\n",
						 &a),
			      0);
	CU_ASSERT_EQUAL_FATAL(mst_replay_scratch_init(&scratch, a.ranks), 0);
	mst_replay_backup(&a, 2, NULL, &scratch, &replay);
	CU_ASSERT(replay.counted == 2 * replay.steps && replay.us == 20 * replay.steps);
	CU_ASSERT_EQUAL(replay.late, replay.steps);
	mst_replay_scratch_fini(&scratch);
	mst_arrivals_free(&a);
}

static const struct mst_bootstrap_cfg one_by_one = { .block = 1, .seed = 1 };

/* The quantiles of 2000 of the 46656 samples lie near those of all: 0.8607 and 1.4641. Their
 * logarithms are centred on the figure, and by the root of 6 / 5 and 2.5706 / 1.9600 wider. */
static void samples_give_the_interval_of_all_samples(void)
{
	static const struct mst_quorum_figures figures[] = {
		{ 1, 3.155, 0.789 }, { 2, 2.392, 1.196 }, { 3, 1.4272, 1.0704 }, { 4, 1, 1 }
	};
	struct mst_quorum_interval interval[4], again[4];

	begin();
	CU_ASSERT_EQUAL(mst_bootstrap_quorums(&a, &one_by_one, figures, 4, 2, interval),
			MST_BOOTSTRAP_SAMPLES);
	double wide = log(interval[2].gain.high / interval[2].gain.low) / log(1.4641 / 0.8607);
	CU_ASSERT_DOUBLE_EQUAL(wide, sqrt(1.2) * 2.5706 / 1.96, 0.1);
	CU_ASSERT(interval[2].gain.low < 1.0704 && interval[2].gain.high > 1.0704);
	CU_ASSERT_DOUBLE_EQUAL(interval[2].speedup.low, interval[2].gain.low * 4 / 3, 1e-3);
	CU_ASSERT(interval[3].gain.low == 1 && interval[3].gain.high == 1);
	CU_ASSERT(interval[2].behind.low == 1 && interval[2].behind.high == 1);
	double all = interval[0].best + interval[1].best + interval[2].best + interval[3].best;
	CU_ASSERT_DOUBLE_EQUAL(all, 1, 1e-9);
	CU_ASSERT_EQUAL(mst_bootstrap_quorums(&a, &one_by_one, figures, 4, 2, again),
			MST_BOOTSTRAP_SAMPLES);
	CU_ASSERT_EQUAL(memcmp(interval, again, sizeof(again)), 0);
	mst_arrivals_free(&a);
}

static void waiting_for_all_under_backup_is_waiting_for_all(void)
{
	const struct mst_quorum_figures all = { 4, 1, 1 }, three = { 3, 1.339, 1.0048 };
	struct mst_interval gain;

	begin();
	CU_ASSERT(mst_bootstrap_backup(&a, &one_by_one, &all, &gain) > 100);
	CU_ASSERT_DOUBLE_EQUAL(gain.low, 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(gain.high, 1, 1e-9);
	CU_ASSERT(mst_bootstrap_backup(&a, &one_by_one, &three, &gain) > 100);
	CU_ASSERT(gain.low < 1.0048 && gain.high > 1.0048);
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

static CU_TestInfo cases[] = {
	{ "the kth arrival has NumPy's mean and quantiles",
	  the_kth_arrival_has_numpys_mean_and_quantiles },
	{ "a replay is what a heap of events gives", a_replay_is_what_a_heap_of_events_gives },
	{ "of equal gradients only the quorum counts", of_equal_gradients_only_the_quorum_counts },
	{ "samples give the interval of all samples", samples_give_the_interval_of_all_samples },
	{ "waiting for all under backup is waiting for all",
	  waiting_for_all_under_backup_is_waiting_for_all },
	{ "quantiles lie between the numbers", quantiles_lie_between_the_numbers },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("planner_quorum", cases);
}
