/* SPDX-License-Identifier: MIT */
/* Ranges of a contribution, against a plain set of elements. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "client/core/ranges.h"
#include "common/base/rand.h"
#include "tests/ut.h"

#define ELEMS 100u

static struct mst_ranges ranges;

static void open_ranges(void)
{
	CU_ASSERT_EQUAL_FATAL(mst_ranges_init(&ranges, ELEMS), 0);
}

static void each_element_is_taken_once(void)
{
	open_ranges();
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 10, 10), 0);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 10, 10), -EEXIST);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 19, 1), -EEXIST);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 5, 6), -EEXIST);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 0, ELEMS), -EEXIST);
	for (uint64_t first = 0; first < 20; first++) {
		struct mst_range given = mst_ranges_given(&ranges, first);
		CU_ASSERT(given.begin == 10 && given.end == 20);
	}
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 20, 1), 0);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 9, 1), 0);
	mst_ranges_fini(&ranges);
}

static void nothing_outside_is_taken(void)
{
	open_ranges();
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, ELEMS, 1), -ERANGE);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, ELEMS - 1, 2), -ERANGE);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 1, UINT64_MAX), -ERANGE);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, UINT64_MAX, 1), -ERANGE);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 0, ELEMS), 0);
	mst_ranges_fini(&ranges);
}

static void an_empty_range_is_fine(void)
{
	open_ranges();
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 7, 0), 0);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, ELEMS, 0), 0);
	CU_ASSERT_EQUAL(ranges.count, 0);
	mst_ranges_fini(&ranges);
}

static void a_backward_pass_keeps_one_range(void)
{
	open_ranges();
	for (uint64_t first = ELEMS; first >= 10; first -= 10) {
		CU_ASSERT_EQUAL(mst_ranges_add(&ranges, first - 10, 10), 0);
		CU_ASSERT_EQUAL(ranges.count, 1);
	}
	mst_ranges_fini(&ranges);
}

static void the_next_contribution_begins_anew(void)
{
	open_ranges();
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 0, ELEMS), 0);
	mst_ranges_clear(&ranges);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 0, ELEMS), 0);
	mst_ranges_fini(&ranges);
}

static void every_second_element_fits(void)
{
	open_ranges();
	for (uint64_t i = 0; i < ELEMS; i += 2)
		CU_ASSERT_EQUAL(mst_ranges_add(&ranges, i, 1), 0);
	for (uint64_t i = 1; i < ELEMS; i += 2)
		CU_ASSERT_EQUAL(mst_ranges_add(&ranges, i, 1), 0);
	CU_ASSERT_EQUAL(ranges.count, 1);
	mst_ranges_fini(&ranges);
}

static void too_many_separate_ranges_are_enospc(void)
{
	uint64_t i = 0;
	int rc;

	CU_ASSERT_EQUAL_FATAL(mst_ranges_init(&ranges, 1000000), 0);
	do {
		rc = mst_ranges_add(&ranges, i, 1);
		i += 2;
	} while (rc == 0);
	CU_ASSERT_EQUAL(rc, -ENOSPC);
	CU_ASSERT(i > 131072);
	CU_ASSERT_EQUAL(mst_ranges_add(&ranges, 1, 1), 0);
	mst_ranges_fini(&ranges);
}

static bool is_new(const bool *taken, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		if (taken[i])
			return false;
	}
	return true;
}

/* Do the gaps, one after the other, make up what is not taken? */
static void check_gaps(const bool *taken)
{
	struct mst_range gap = { 0, 0 };
	bool covered[ELEMS];

	memcpy(covered, taken, sizeof(covered));
	while (mst_ranges_gap(&ranges, gap.end, &gap)) {
		CU_ASSERT_FATAL(gap.end <= ELEMS);
		CU_ASSERT(is_new(covered, gap.begin, gap.end - gap.begin));
		memset(covered + gap.begin, true, gap.end - gap.begin);
	}
	for (uint64_t i = 0; i < ELEMS; i++)
		CU_ASSERT(covered[i]);
}

static void random_ranges_agree_with_a_plain_set(void)
{
	struct mst_rand rand;

	mst_rand_seed(&rand, 1);
	for (int round = 0; round < 300; round++) {
		bool taken[ELEMS] = { false };
		open_ranges();
		for (int i = 0; i < 60; i++) {
			uint64_t first = mst_rand_below(&rand, ELEMS);
			uint64_t most = ELEMS - first < 8 ? ELEMS - first : 8;
			uint64_t count = 1 + mst_rand_below(&rand, most);
			bool fits = is_new(taken, first, count);
			CU_ASSERT_EQUAL(mst_ranges_add(&ranges, first, count), fits ? 0 : -EEXIST);
			if (fits)
				memset(taken + first, true, count);
		}
		check_gaps(taken);
		mst_ranges_fini(&ranges);
	}
}

static CU_TestInfo cases[] = {
	{ "each element is taken once", each_element_is_taken_once },
	{ "nothing outside the vector is taken", nothing_outside_is_taken },
	{ "an empty range is fine", an_empty_range_is_fine },
	{ "a backward pass keeps one range", a_backward_pass_keeps_one_range },
	{ "the next contribution begins anew", the_next_contribution_begins_anew },
	{ "every second element fits", every_second_element_fits },
	{ "too many separate ranges are -ENOSPC, and joining still works",
	  too_many_separate_ranges_are_enospc },
	{ "random ranges, and the gaps between them, agree with a plain set",
	  random_ranges_agree_with_a_plain_set },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ranges", cases);
}
