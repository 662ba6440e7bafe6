/* SPDX-License-Identifier: MIT */
/* Ranks that left before the job ended. */
#include <stdio.h>
#include <string.h>

#include "common/wire/leavers.h"
#include "tests/ut.h"

static struct mst_status_rank row[4096];
static char line[MST_LEAVERS_LEN];

/* Every rank has left when version @at was the newest. */
static void begin(uint32_t ranks, uint64_t at)
{
	for (uint32_t i = 0; i < ranks; i++)
		row[i] = (struct mst_status_rank){ .rank = i,
						   .state = MST_RANK_LEFT,
						   .gone_at = at };
}

static void who_left_early_is_named(void)
{
	begin(4, 130);
	row[2].gone_at = 120;
	mst_leavers_line(row, 4, 130, line);
	CU_ASSERT_STRING_EQUAL(line, "rank 2 left at version 120; the job ended at version 130");
	row[3].gone_at = 125;
	mst_leavers_line(row, 4, 130, line);
	CU_ASSERT_STRING_EQUAL(line, "rank 2 left at version 120, rank 3 at version 125; "
				     "the job ended at version 130");
}

/* Other lines tell of ranks that were lost or evicted. */
static void of_the_others_nothing_is_said(void)
{
	begin(5, 130);
	row[1] = (struct mst_status_rank){ .state = MST_RANK_LOST, .gone_at = 7 };
	row[2] = (struct mst_status_rank){ .state = MST_RANK_EVICTED, .gone_at = 7 };
	row[3].gone_at = MST_NOT_KNOWN;
	row[4] = (struct mst_status_rank){ .state = MST_RANK_LIVE, .gone_at = MST_NOT_KNOWN };
	mst_leavers_line(row, 5, 130, line);
	CU_ASSERT_STRING_EQUAL(line, "");
	mst_leavers_line(row, 0, 130, line);
	CU_ASSERT_STRING_EQUAL(line, "");
}

static void of_many_the_first_are_named(void)
{
	begin(11, 120);
	mst_leavers_line(row, 11, 121, line);
	CU_ASSERT(strstr(line, "rank 0 left at version 120, rank 1 at version 120, ") == line);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, ", rank 7 at version 120 and 3 more before the end; "
					    "the job ended at version 121"));
}

static void the_longest_line_has_room(void)
{
	begin(4096, UINT64_MAX - 2);
	for (uint32_t i = 0; i < 4096; i++)
		row[i].rank = UINT32_MAX;
	mst_leavers_line(row, 4096, UINT64_MAX - 1, line);
	CU_ASSERT(strlen(line) < MST_LEAVERS_LEN - 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "18446744073709551614"));
}

static CU_TestInfo cases[] = {
	{ "who left early is named", who_left_early_is_named },
	{ "of the others nothing is said", of_the_others_nothing_is_said },
	{ "of many the first are named", of_many_the_first_are_named },
	{ "the longest line has room", the_longest_line_has_room },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("leavers", cases);
}
