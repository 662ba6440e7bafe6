/* SPDX-License-Identifier: MIT */
/* The search on made-up jobs: what a share of bsp reaches is a step at a known place. */
#include <math.h>

#include "tests/ut.h"
#include "tools/tune/search.h"

/* Return: the answer after @tries, if shares from @enough on reach @good, and others @bad. */
static double search(struct mst_bisection b, double enough, double good, double bad, unsigned tries)
{
	for (unsigned i = 0; i < tries; i++) {
		bool is_enough = mst_bisection_next(&b) >= enough;
		CU_ASSERT_EQUAL(mst_bisection_take(&b, is_enough ? good : bad), is_enough);
	}
	CU_ASSERT(b.low < enough || enough <= 0);
	CU_ASSERT_DOUBLE_EQUAL(b.high - b.low, pow(0.5, tries), 0);
	return b.high;
}

static void the_smallest_share_that_is_enough_is_found(void)
{
	struct mst_bisection b = mst_bisection_begin(0.95, 0.01, false);

	CU_ASSERT_EQUAL(search(b, 0.3, 0.945, 0.9, 4), 0.3125);
	CU_ASSERT_EQUAL(search(b, 0.5, 0.945, 0.9, 10), 0.5);
	CU_ASSERT_EQUAL(search(b, 1, 0.945, 0.9, 5), 1);
	CU_ASSERT_EQUAL(search(b, 0, 0.945, 0.9, 5), 1.0 / 32);
}

static void where_less_is_better_more_is_not_kept(void)
{
	struct mst_bisection b = mst_bisection_begin(0.1, 0.02, true);

	CU_ASSERT_DOUBLE_EQUAL(b.wanted, 0.12, 1e-15);
	CU_ASSERT_EQUAL(search(b, 0.6, 0.11, 0.13, 3), 0.625);
}

static void what_is_worse_by_just_the_tolerance_is_kept(void)
{
	struct mst_bisection b = mst_bisection_begin(2, 0.5, false);

	CU_ASSERT(mst_bisection_take(&b, 1.5));
	CU_ASSERT(!mst_bisection_take(&b, 1.4999999));
}

static void mean_and_deviation_are_those_of_a_sample(void)
{
	static const double value[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	struct mst_spread all = mst_spread_of(value, 8), one = mst_spread_of(value, 1);

	CU_ASSERT_EQUAL(all.mean, 5);
	CU_ASSERT_DOUBLE_EQUAL(all.deviation, sqrt(32.0 / 7), 1e-15);
	CU_ASSERT_EQUAL(one.mean, 2);
	CU_ASSERT_EQUAL(one.deviation, 0);
}

static CU_TestInfo cases[] = {
	{ "the smallest share that is enough is found",
	  the_smallest_share_that_is_enough_is_found },
	{ "where less is better, more is not kept", where_less_is_better_more_is_not_kept },
	{ "what is worse by just the tolerance is kept",
	  what_is_worse_by_just_the_tolerance_is_kept },
	{ "mean and deviation are those of a sample", mean_and_deviation_are_those_of_a_sample },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("bisection", cases);
}
