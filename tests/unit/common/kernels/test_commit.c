/* SPDX-License-Identifier: MIT */
/*
 * The promise of common/kernels/commit.h: with every instruction set, for every commit, however it
 * is cut into ranges, the bits of a reference that knows neither tiles nor vectors.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/kernels/isa.h"
#include "common/kernels/select.h"
#include "common/kernels/sum.h"
#include "common/kernels/tune.h"
#include "tests/unit/common/kernels/commit_case.h"
#include "tests/unit/common/kernels/reference_float.h"
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

/* The instruction set in any of its variants. */
static void kernels_draw(struct mst_rand *rand, const char *name)
{
	char text[MST_KERNELS_TEXT], used[MST_KERNELS_TEXT];

	(void)snprintf(text, sizeof(text), "%s:tile=%u,lines=%u,ahead=%u,stream=none", name,
		       64u << mst_rand_below(rand, 5), 1u << mst_rand_below(rand, 3),
		       512u * (unsigned)mst_rand_below(rand, 5));
	CU_ASSERT_EQUAL_FATAL(mst_kernels_select(text), 0);
	mst_kernels_text(used);
	CU_ASSERT_STRING_EQUAL(used, text);
}

static void every_variant_has_the_references_bits(void)
{
	struct mst_rand rand;
	const char *name;

	mst_rand_seed(&rand, 11);
	for (unsigned round = 0; round < ROUNDS; round++) {
		commit_case_draw(&rand, &drawn);
		for (size_t i = 0; (name = mst_kernels_name(i)) != NULL; i++) {
			size_t wrong;

			kernels_draw(&rand, name);
			commit_case_reset(&drawn);
			commit_in_ranges(&rand);
			wrong = commit_case_wrong(&drawn);
			if (wrong > 0)
				printf("\nround %u, %s: %zu wrong\n", round, name, wrong);
			CU_ASSERT_EQUAL_FATAL(wrong, 0);
		}
	}
}

/* Ranges of it in turn. Return: how many of them were told wrongly. */
static unsigned told_wrongly(struct mst_rand *rand)
{
	unsigned wrong = 0;

	for (size_t first = 0, count; first < drawn.elems; first += count) {
		count = 1 + mst_rand_below(rand, drawn.elems - first);
		wrong += mst_commit_range(&drawn.commit, first, count) !=
			 commit_case_finite(&drawn, first, count);
	}
	return wrong;
}

/* Most elements are finite, one at most is not, or becomes infinite when it is rounded. */
static void a_commit_tells_whether_all_it_wrote_is_finite(void)
{
	struct mst_rand rand;
	const char *name;
	unsigned finite = 0, infinite = 0;

	mst_rand_seed(&rand, 13);
	drawn.tame = true;
	for (unsigned round = 0; round < 2 * ROUNDS; round++) {
		commit_case_draw(&rand, &drawn);
		if (mst_rand_below(&rand, 4) != 0)
			commit_case_poison(&rand, &drawn);
		for (size_t i = 0; (name = mst_kernels_name(i)) != NULL; i++) {
			kernels_draw(&rand, name);
			commit_case_reset(&drawn);
			CU_ASSERT_EQUAL(told_wrongly(&rand), 0);
		}
		if (commit_case_finite(&drawn, 0, drawn.elems))
			finite++;
		else
			infinite++;
	}
	CU_ASSERT(finite > ROUNDS / 2 && infinite > ROUNDS / 2);
	drawn.tame = false;
}

static bool told_of(float value, enum muster_type type)
{
	float gradient[70] = { 0 }, out[70];
	struct mst_leaf leaf = { .coefficient = 1, .data = gradient };
	struct mst_commit commit = {
		.tree = { .type = MUSTER_F32, .group = 8, .leaf = &leaf, .leaf_count = 1 },
		.divisor = 1,
		.result_type = type,
		.out = out,
	};

	gradient[69] = value;
	return mst_commit_range(&commit, 0, 70);
}

/* Half a last place above the largest number begins what rounds to infinity. */
static void what_rounds_to_infinity_is_told(void)
{
	static const uint32_t least[] = {
		[MUSTER_F32] = 0x7f800000, [MUSTER_BF16] = 0x7f7f8000, [MUSTER_F16] = 0x477ff000
	};
	const char *name;

	for (size_t i = 0; (name = mst_kernels_name(i)) != NULL; i++) {
		CU_ASSERT_EQUAL_FATAL(mst_kernels_select(name), 0);
		for (unsigned t = 0; t < 3; t++) {
			CU_ASSERT(told_of(float_of(least[t] - 1), (enum muster_type)t));
			CU_ASSERT(told_of(-float_of(least[t] - 1), (enum muster_type)t));
			CU_ASSERT(!told_of(float_of(least[t]), (enum muster_type)t));
			CU_ASSERT(!told_of(-float_of(least[t]), (enum muster_type)t));
		}
	}
}

/* The element of several tiles' worth of quotients that is no correctly rounded one. */
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

static void variants_are_named(void)
{
	static const char *const wrong[] = {
		":tile=63",   ":tile=32",        ":tile=2048",
		":lines=3",   ":lines=",         ":ahead=-1",
		":ahead=1M",  ":stream=8X",      ":stream=nonesuch",
		":stride=64", ":lines=1ahead=0", ":stream=99999999999999999999G",
	};
	const char *best = mst_kernels_name(0);
	char text[MST_KERNELS_TEXT], used[MST_KERNELS_TEXT];

	(void)snprintf(text, sizeof(text), "%s:tile=128,lines=2,ahead=512,stream=3M", best);
	CU_ASSERT_EQUAL(mst_kernels_select(text), 0);
	CU_ASSERT(!mst_kernels_streams((3 << 20) - 1));
	CU_ASSERT(mst_kernels_streams(3 << 20));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char bad[MST_KERNELS_TEXT];

		(void)snprintf(bad, sizeof(bad), "%s%s", best, wrong[i]);
		CU_ASSERT_EQUAL(mst_kernels_select(bad), -EINVAL);
	}
	mst_kernels_text(used);
	CU_ASSERT_STRING_EQUAL(used, text);
	(void)snprintf(text, sizeof(text), "%s:stream=none", best);
	CU_ASSERT_EQUAL(mst_kernels_select(text), 0);
	CU_ASSERT(!mst_kernels_streams(UINT64_MAX - 1));
}

/* Where the processor can be measured at all; what is named stays. */
static void what_is_measured_can_be_named(void)
{
	char text[MST_KERNELS_TEXT], used[MST_KERNELS_TEXT];

	CU_ASSERT_EQUAL_FATAL(mst_kernels_select(mst_kernels_name(0)), 0);
	CU_ASSERT_EQUAL(mst_kernels_tune(MUSTER_F32, MUSTER_F32, 4, 4096),
			0); /* fits into any cache */
	for (uint32_t sources = 0; sources < 40; sources += 13) {
		uint64_t took = mst_kernels_tune(MUSTER_BF16, (enum muster_type)(sources % 3),
						 sources, UINT64_MAX);

		CU_ASSERT_EQUAL(took > 0, mst_isa()->evict(&took, 0));
	}
	mst_kernels_text(text);
	CU_ASSERT_EQUAL(mst_kernels_select(text), 0);
	CU_ASSERT_EQUAL(mst_kernels_tune(MUSTER_F32, MUSTER_F32, 4, UINT64_MAX), 0);
	mst_kernels_text(used);
	CU_ASSERT_STRING_EQUAL(used, text);
}

/* The first case: nothing has asked for kernels before. */
static void the_environment_names_the_kernels(void)
{
	const char *name = getenv("MUSTER_KERNELS");
	char used[MST_KERNELS_TEXT];
	bool found = false;

	mst_kernels_text(used);
	for (size_t i = 0; name != NULL && mst_kernels_name(i) != NULL; i++)
		found = found || strcmp(mst_kernels_name(i), name) == 0;
	if (name != NULL && strchr(name, ':') != NULL)
		CU_ASSERT_STRING_EQUAL(used, name);
	if (name == NULL || strchr(name, ':') == NULL)
		CU_ASSERT_STRING_EQUAL(mst_isa()->name, found ? name : mst_kernels_name(0));
}

static CU_TestInfo cases[] = {
	{ "the environment names the kernels, else they are the best ones",
	  the_environment_names_the_kernels },
	{ "kernels are found by name", kernels_are_found_by_name },
	{ "variants are named", variants_are_named },
	{ "what is measured can be named", what_is_measured_can_be_named },
	{ "every variant of every instruction set has the reference's bits",
	  every_variant_has_the_references_bits },
	{ "a commit tells whether all it wrote is finite",
	  a_commit_tells_whether_all_it_wrote_is_finite },
	{ "what rounds to infinity is told", what_rounds_to_infinity_is_told },
	{ "powers of two divide as other numbers do", powers_of_two_divide_as_other_numbers_do },
	CU_TEST_INFO_NULL,
};

/* test_commit [named]: only the first case; for the others the environment names nothing, they
 * choose the kernels themselves. */
int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "named") == 0)
		cases[1] = (CU_TestInfo)CU_TEST_INFO_NULL;
	return ut_main("commit", cases);
}
