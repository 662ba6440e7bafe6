/* SPDX-License-Identifier: MIT */
/* Sums without rounding: the same bits in any order, and the right ones. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "common/base/exact_sum.h"
#include "common/base/rand.h"
#include "tests/ut.h"

#define COUNT 300

static void nothing_is_zero(void)
{
	struct mst_exact_sum sum = { { 0 } };

	CU_ASSERT_EQUAL(mst_exact_value(&sum), 0);
	mst_exact_add(&sum, 0);
	CU_ASSERT_EQUAL(mst_exact_value(&sum), 0);
}

/* Each of the numbers from the square of the least f32 to that of the largest. */
static void one_number_comes_back(void)
{
	for (int exponent = -149; exponent < 128; exponent++) {
		struct mst_exact_sum sum = { { 0 } };
		double x = ldexp(exponent < -126 ? 1 : 1.75, exponent);

		mst_exact_add(&sum, x * x);
		CU_ASSERT_EQUAL(mst_exact_value(&sum), x * x);
	}
}

/* 2^53 and a half of its last place is a tie, which goes to even; anything more goes up. */
static void a_sum_is_rounded_once_to_nearest_even(void)
{
	struct mst_exact_sum sum = { { 0 } };

	mst_exact_add(&sum, 0x1p53);
	mst_exact_add(&sum, 1);
	CU_ASSERT_EQUAL(mst_exact_value(&sum), 0x1p53);
	mst_exact_add(&sum, 0x1p-298);
	CU_ASSERT_EQUAL(mst_exact_value(&sum), 0x1p53 + 2);
	mst_exact_add(&sum, 2);
	CU_ASSERT_EQUAL(mst_exact_value(&sum), 0x1p53 + 4);
}

/* What plain addition gets wrong, whoever is first. */
static void small_numbers_are_not_lost_among_large_ones(void)
{
	struct mst_exact_sum sum = { { 0 } };

	for (int i = 0; i < 1024; i++)
		mst_exact_add(&sum, 0x1p-60);
	mst_exact_add(&sum, 1);
	CU_ASSERT_EQUAL(mst_exact_value(&sum), 1 + 0x1p-50);
}

static void the_order_and_the_cut_change_no_bit(void)
{
	struct mst_exact_sum all = { { 0 } }, part[3] = { { { 0 } } };
	struct mst_rand rand;
	double value[COUNT];

	mst_rand_seed(&rand, 11);
	for (int i = 0; i < COUNT; i++) {
		double x = (double)ldexpf((float)mst_rand_unit(&rand),
					  (int)mst_rand_below(&rand, 240) - 120);
		value[i] = x * x;
		mst_exact_add(&all, value[i]);
	}
	for (int i = COUNT - 1; i >= 0; i--)
		mst_exact_add(&part[mst_rand_below(&rand, 3)], value[i]);
	mst_exact_join(&part[2], &part[0]);
	mst_exact_join(&part[2], &part[1]);
	CU_ASSERT_EQUAL(memcmp(&all, &part[2], sizeof(all)), 0);
}

static void the_largest_sum_there_can_be_fits(void)
{
	double largest = (double)FLT_MAX * (double)FLT_MAX * 4096;
	struct mst_exact_sum sum = { { 0 } };

	mst_exact_add(&sum, largest);
	for (int i = 0; i < 28; i++) {
		struct mst_exact_sum same = sum;
		mst_exact_join(&sum, &same);
	}
	CU_ASSERT_EQUAL(mst_exact_value(&sum), ldexp(largest, 28));
}

static void what_is_not_finite_stays_so(void)
{
	struct mst_exact_sum sum = { { 0 } }, other = { { 0 } };

	mst_exact_add(&sum, (double)NAN);
	mst_exact_add(&sum, 1);
	CU_ASSERT(isinf(mst_exact_value(&sum)));
	mst_exact_add(&other, 1);
	mst_exact_join(&other, &sum);
	mst_exact_join(&other, &other);
	CU_ASSERT(isinf(mst_exact_value(&other)));
}

static CU_TestInfo cases[] = {
	{ "nothing is zero", nothing_is_zero },
	{ "one number comes back", one_number_comes_back },
	{ "a sum is rounded once, to nearest even", a_sum_is_rounded_once_to_nearest_even },
	{ "small numbers are not lost among large ones",
	  small_numbers_are_not_lost_among_large_ones },
	{ "the order and the cut change no bit", the_order_and_the_cut_change_no_bit },
	{ "the largest sum there can be fits", the_largest_sum_there_can_be_fits },
	{ "what is not finite stays so", what_is_not_finite_stays_so },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("exact_sum", cases);
}
