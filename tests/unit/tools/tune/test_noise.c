/* SPDX-License-Identifier: MIT */
/* Student's t against tables, and what is sure against drawn runs whose truth is known. */
#include <math.h>
#include <stdint.h>

#include "common/base/rand.h"
#include "tests/ut.h"
#include "tools/student.h"
#include "tools/tune/noise.h"

#define TRIALS 600

/* ---- Student's t, by tables ---- */

static void quantiles_are_those_of_tables(void)
{
	static const struct {
		double share, freedom, t;
	} known[] = { { 0.975, 1, 12.7062 },       { 0.975, 2, 4.3027 },   { 0.975, 4, 2.7764 },
		      { 0.975, 30, 2.0423 },       { 0.8, 1, 1.3764 },     { 0.8, 10, 0.8791 },
		      { 0.975, INFINITY, 1.9600 }, { 0.025, 10, -2.2281 }, { 0.5, 3, 0 } };

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		CU_ASSERT_DOUBLE_EQUAL(mst_student_quantile(known[i].share, known[i].freedom),
				       known[i].t, 5e-5);
	CU_ASSERT_DOUBLE_EQUAL(mst_student_below(2, 5), 0.949030, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(mst_student_below(-2, 5), 1 - 0.949030, 1e-6);
}

/* ---- distances ---- */

static struct mst_noise noise_of(double a, double b, double c)
{
	const double value[] = { a, b, c };
	struct mst_spread spread = mst_spread_of(value, 3);

	return mst_noise_of(&spread);
}

/* By hand: the mean is 0.0095, the error 0.00275, t of two degrees of freedom 4.30; and
 * (2.776 + 0.941)^2 x 0.252 is 3.5 for five runs, and 4.4 for four. */
static void a_distance_that_may_be_chance_is_not_sure(void)
{
	struct mst_noise noise = noise_of(0.012, 0.004, 0.0125);

	CU_ASSERT_FALSE(noise.sure);
	CU_ASSERT_DOUBLE_EQUAL(noise.error, 0.00275, 0.00001);
	CU_ASSERT_EQUAL(noise.runs, 5);
	noise = noise_of(-0.012, -0.004, -0.0125);
	CU_ASSERT(!noise.sure && noise.runs == 5);
}

static void a_distance_far_beyond_the_deviation_is_sure(void)
{
	CU_ASSERT(noise_of(0.46, 0.45, 0.47).sure);
	CU_ASSERT_EQUAL(noise_of(0.46, 0.45, 0.47).runs, 0);
}

static void runs_that_do_not_differ_are_sure(void)
{
	CU_ASSERT(noise_of(0.01, 0.01, 0.01).sure);
	CU_ASSERT(noise_of(0, 0, 0).sure);
}

static void one_run_says_nothing_of_chance(void)
{
	const struct mst_spread one = { 1, 0, 1 };

	CU_ASSERT_FALSE(mst_noise_of(&one).sure);
	CU_ASSERT_EQUAL(mst_noise_of(&one).runs, 0);
}

static void no_number_of_runs_tells_no_distance(void)
{
	CU_ASSERT_EQUAL(noise_of(-1, 0, 1).runs, MST_NOISE_RUNS_MAX);
	CU_ASSERT_EQUAL(noise_of(-1, 0, 1 + 1e-9).runs, MST_NOISE_RUNS_MAX);
	CU_ASSERT_EQUAL(noise_of(-1, 0, (double)NAN).runs, MST_NOISE_RUNS_MAX);
}

/* ---- drawn runs ---- */

static struct mst_rand rnd;

static double normal(void)
{
	double radius = sqrt(-2 * log(1 - mst_rand_unit(&rnd)));

	return radius * cos(2 * 3.14159265358979 * mst_rand_unit(&rnd));
}

/* Return: the share of searches that are sure of a distance. */
static double sure_share(uint32_t runs, double mean)
{
	int sure = 0;

	mst_rand_seed(&rnd, 3);
	for (int i = 0; i < TRIALS; i++) {
		double value[64];
		for (uint32_t run = 0; run < runs; run++)
			value[run] = mean + normal();
		struct mst_spread spread = mst_spread_of(value, runs);
		sure += mst_noise_of(&spread).sure;
	}
	return (double)sure / TRIALS;
}

static void without_a_distance_one_in_twenty_is_sure(void)
{
	CU_ASSERT_DOUBLE_EQUAL(sure_share(3, 0), 0.05, 0.02);
	CU_ASSERT_DOUBLE_EQUAL(sure_share(10, 0), 0.05, 0.02);
}

static void as_many_runs_as_are_told_find_it_in_four_of_five(void)
{
	const struct mst_spread one = { 1, 1, 3 };
	uint32_t runs = mst_noise_of(&one).runs;

	CU_ASSERT_EQUAL_FATAL(runs, 10);
	CU_ASSERT_DOUBLE_EQUAL(sure_share(runs, 1), 0.8, 0.03);
	CU_ASSERT(sure_share(runs / 2, 1) < 0.5);
}

static CU_TestInfo cases[] = {
	{ "quantiles are those of tables", quantiles_are_those_of_tables },
	{ "a distance that may be chance is not sure", a_distance_that_may_be_chance_is_not_sure },
	{ "a distance far beyond the deviation is sure",
	  a_distance_far_beyond_the_deviation_is_sure },
	{ "runs that do not differ are sure", runs_that_do_not_differ_are_sure },
	{ "one run says nothing of chance", one_run_says_nothing_of_chance },
	{ "no number of runs tells no distance", no_number_of_runs_tells_no_distance },
	{ "without a distance one in twenty is sure", without_a_distance_one_in_twenty_is_sure },
	{ "as many runs as are told find it in four of five",
	  as_many_runs_as_are_told_find_it_in_four_of_five },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("tune_noise", cases);
}
