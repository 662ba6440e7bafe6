/* SPDX-License-Identifier: MIT */
/* With which ranks a generation may start, and the others are not waited for. */
#include "server/core/policy/majority.h"
#include "tests/ut.h"

static bool starts(uint32_t workers, uint32_t least, uint32_t started, uint32_t claims)
{
	return mst_majority_starts(&(struct mst_gathered){ workers, least, started, claims });
}

/* Else two leaders each have enough. */
static void two_starts_always_share_a_rank_that_brings_a_claim(void)
{
	for (uint32_t workers = 1; workers <= 9; workers++) {
		for (uint32_t claims = 0; claims <= workers; claims++) {
			bool may = starts(workers, mst_majority(workers), workers, claims);
			CU_ASSERT_EQUAL(may, 2 * claims > workers);
		}
	}
}

/* Else an old leader goes on with those that are not there. */
static void no_leader_can_go_on_with_the_others(void)
{
	for (uint32_t workers = 1; workers <= 9; workers++) {
		for (uint32_t least = 1; least <= workers; least++) {
			for (uint32_t there = 0; there <= workers; there++) {
				if (starts(workers, least, there, there))
					CU_ASSERT(workers - there < least && there >= least);
			}
		}
	}
}

static void new_processes_do_not_count_for_the_majority(void)
{
	CU_ASSERT_TRUE(starts(5, 3, 4, 3));
	CU_ASSERT_FALSE(starts(5, 3, 4, 2));
	CU_ASSERT_TRUE(starts(5, 4, 4, 3)); /* but for the least number */
	CU_ASSERT_FALSE(starts(5, 4, 3, 3));
}

static void one_of_three_ranks_or_more_may_be_lost_by_default(void)
{
	CU_ASSERT_EQUAL(mst_majority_least(1), 1);
	CU_ASSERT_EQUAL(mst_majority_least(2), 1); /* or the loss of one ends a job of two */
	for (uint32_t workers = 3; workers <= 9; workers++) {
		uint32_t least = mst_majority_least(workers);
		CU_ASSERT_EQUAL(least, workers / 2 + 1);
		CU_ASSERT_TRUE(starts(workers, least, workers - 1, workers - 1));
	}
}

static CU_TestInfo cases[] = {
	{ "two starts always share a rank that brings a claim",
	  two_starts_always_share_a_rank_that_brings_a_claim },
	{ "no leader can go on with the others", no_leader_can_go_on_with_the_others },
	{ "new processes do not count for the majority",
	  new_processes_do_not_count_for_the_majority },
	{ "one of three ranks or more may be lost by default",
	  one_of_three_ranks_or_more_may_be_lost_by_default },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("who starts without some ranks", cases);
}
