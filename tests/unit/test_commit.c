/* SPDX-License-Identifier: MIT */
/*
 * The promise of common/kernels/commit.h: with every instruction set, for every commit, however it
 * is cut into ranges, the bits of a reference that knows neither strips nor vectors.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/kernels/isa.h"
#include "common/kernels/select.h"
#include "common/kernels/sum.h"
#include "tests/unit/commit_case.h"
#include "tests/unit/reference_float.h"
#include "tests/ut.h"

#define ROUNDS 250

static struct commit_case drawn;

/* In ranges that begin and end anywhere, the last one first. */
static void commit_in_ranges(struct mst_rand *rand)
{
	size_t end = drawn.elems;

	while (end > 0) {
		size_t count = 1 + mst_rand_below(rand, end);

		mst_commit_range(&drawn.commit, end - count, count);
		end -= count;
	}
}

static void every_instruction_set_has_the_references_bits(void)
{
	struct mst_rand rand;
	const char *name;

	mst_rand_seed(&rand, 11);
	for (unsigned round = 0; round < ROUNDS; round++) {
		commit_case_draw(&rand, &drawn);
		for (size_t i = 0; (name = mst_kernels_name(i)) != NULL; i++) {
			size_t wrong;

			CU_ASSERT_EQUAL_FATAL(mst_kernels_select(name), 0);
			commit_case_reset(&drawn);
			commit_in_ranges(&rand);
			wrong = commit_case_wrong(&drawn);
			if (wrong > 0)
				printf("\nround %u, %s: %zu wrong\n", round, name, wrong);
			CU_ASSERT_EQUAL_FATAL(wrong, 0);
		}
	}
}

/* The element of several strips' worth of quotients that is no correctly rounded one. */
static unsigned quotients_wrong(struct mst_rand *rand, float divisor)
{
	float value[300], quotient[300];
	unsigned wrong = 0;

	for (size_t i = 0; i < 300; i++)
		value[i] = quotient[i] = float_of((uint32_t)mst_rand_next(rand));
	mst_sum_divide(quotient, divisor, 300);
	for (size_t i = 0; i < 300; i++)
		wrong += !same(quotient[i], rounded_quotient(value[i], divisor));
	return wrong;
}

/* Where the reciprocal is a number, where it is subnormal, and where it is none. */
static void powers_of_two_divide_as_other_numbers_do(void)
{
	struct mst_rand rand;
	const char *name;
	unsigned wrong = 0;

	mst_rand_seed(&rand, 12);
	for (size_t i = 0; (name = mst_kernels_name(i)) != NULL; i++) {
		CU_ASSERT_EQUAL_FATAL(mst_kernels_select(name), 0);
		for (int exponent = -149; exponent <= 127; exponent++) {
			float power = ldexpf(1, exponent);

			wrong += quotients_wrong(&rand, power);
			wrong += quotients_wrong(&rand, -power);
			wrong += quotients_wrong(&rand, nextafterf(power, 0));
		}
		wrong += quotients_wrong(&rand, 0.0f) + quotients_wrong(&rand, INFINITY) +
			 quotients_wrong(&rand, NAN);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void kernels_are_found_by_name(void)
{
	const char *best = mst_kernels_name(0), *last = NULL;

	CU_ASSERT_FATAL(best != NULL);
	for (size_t i = 0; mst_kernels_name(i) != NULL; i++)
		last = mst_kernels_name(i);
	CU_ASSERT_EQUAL(mst_kernels_select(last), 0);
	CU_ASSERT_STRING_EQUAL(mst_isa()->name, last);
	CU_ASSERT_EQUAL(mst_kernels_select("mmx"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(mst_isa()->name, last);
	CU_ASSERT_EQUAL(mst_kernels_select(best), 0);
	CU_ASSERT_STRING_EQUAL(mst_isa()->name, best);
}

/* The first case: nothing has asked for kernels before. */
static void the_environment_names_the_kernels(void)
{
	const char *name = getenv("MUSTER_KERNELS");
	bool found = false;

	for (size_t i = 0; name != NULL && mst_kernels_name(i) != NULL; i++)
		found = found || strcmp(mst_kernels_name(i), name) == 0;
	CU_ASSERT_STRING_EQUAL(mst_isa()->name, found ? name : mst_kernels_name(0));
}

static CU_TestInfo cases[] = {
	{ "the environment names the kernels, else they are the best ones",
	  the_environment_names_the_kernels },
	{ "kernels are found by name", kernels_are_found_by_name },
	{ "every instruction set has the reference's bits",
	  every_instruction_set_has_the_references_bits },
	{ "powers of two divide as other numbers do", powers_of_two_divide_as_other_numbers_do },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("commit", cases);
}
