/* SPDX-License-Identifier: MIT */
/* What is said of the samples that counted. */
#include <stdio.h>
#include <string.h>

#include "common/wire/counted.h"
#include "tests/ut.h"

static struct mst_status_rank row[4096];
static char line[MST_COUNTED_LEN];

/* Every rank has pushed 100 samples, and all counted. */
static void begin(uint32_t ranks)
{
	for (uint32_t i = 0; i < ranks; i++)
		row[i] = (struct mst_status_rank){ .rank = i,
						   .samples_counted = 100,
						   .samples_pushed = 100 };
}

static void each_of_a_few_ranks_is_told(void)
{
	begin(3);
	row[2].samples_counted = 0.5;
	row[2].samples_pushed = 3040;
	mst_counted_line(row, 3, line);
	CU_ASSERT_STRING_EQUAL(line, "rank 0 100 of 100 samples, rank 1 100 of 100, "
				     "rank 2 0.5 of 3040");
}

static void nothing_is_said_of_nothing(void)
{
	memset(row, 0, sizeof(row));
	mst_counted_line(row, 3, line);
	CU_ASSERT_STRING_EQUAL(line, "");
	mst_counted_line(row, 0, line);
	CU_ASSERT_STRING_EQUAL(line, "");
}

/* With equal shares the lower rank comes first. A rank that has pushed nothing has no share. */
static void of_many_ranks_the_lowest_shares_are_told(void)
{
	begin(9);
	row[7].samples_counted = row[3].samples_counted = 50;
	row[8].samples_counted = 0;
	row[5].samples_counted = row[5].samples_pushed = 0;
	mst_counted_line(row, 9, line);
	CU_ASSERT_STRING_EQUAL(line, "600 of 800 samples of 9 ranks; the lowest shares: "
				     "rank 8 0 of 100, rank 3 50 of 100, rank 7 50 of 100, "
				     "rank 0 100 of 100");
}

static void the_longest_line_has_room(void)
{
	for (uint32_t ranks = MST_COUNTED_EACH; ranks <= 4096; ranks += 4096 - MST_COUNTED_EACH) {
		begin(ranks);
		for (uint32_t i = 0; i < ranks; i++) {
			row[i].rank = UINT32_MAX;
			row[i].samples_counted = 1.234567891e+300;
			row[i].samples_pushed = 1.234567891e+301;
		}
		mst_counted_line(row, ranks, line);
		CU_ASSERT(strlen(line) < MST_COUNTED_LEN - 1);
	}
}

static CU_TestInfo cases[] = {
	{ "each of a few ranks is told", each_of_a_few_ranks_is_told },
	{ "nothing is said of nothing", nothing_is_said_of_nothing },
	{ "of many ranks the lowest shares are told", of_many_ranks_the_lowest_shares_are_told },
	{ "the longest line has room", the_longest_line_has_room },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("counted", cases);
}
