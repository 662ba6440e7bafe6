/* SPDX-License-Identifier: MIT */
/* The number of workers in force: of the command line, of an operator, and as ranks bring it. */
#include "server/control/generations/workforce.h"
#include "tests/ut.h"

static struct mst_job_workforce job;
static const struct mst_renewal nothing;

static void begin(uint32_t workers)
{
	mst_workforce_init(&job, &nothing, workers);
}

static void says(uint32_t rank, uint32_t workers, uint32_t given, uint64_t change)
{
	const struct mst_workforce told = { workers, given, change };

	mst_workforce_hear(&job, rank, &told);
}

static bool is(uint32_t workers, uint32_t given, uint64_t change)
{
	struct mst_workforce now = mst_workforce_now(&job);

	return now.workers == workers && now.given == given && now.change == change;
}

static void first_number_is_that_of_the_command_line(void)
{
	begin(4);
	CU_ASSERT_TRUE(is(4, 4, 0));
	says(0, 0, 0, 0); /* a new worker knows of none */
	says(1, 0, 0, 0);
	CU_ASSERT_TRUE(is(4, 4, 0));
}

static void what_an_operator_asks_for_is_in_force_at_once(void)
{
	begin(4);
	struct mst_workforce now = mst_workforce_change(&job, 8);

	CU_ASSERT_TRUE(is(8, 4, 1));
	CU_ASSERT_EQUAL(now.change, 1);
	(void)mst_workforce_change(&job, 3);
	CU_ASSERT_TRUE(is(3, 4, 2));
}

static void server_of_the_old_command_line_goes_on_with_what_ranks_bring(void)
{
	begin(4);
	says(0, 8, 4, 1);
	says(5, 8, 4, 1);
	CU_ASSERT_TRUE(is(8, 4, 1));
}

static void another_command_line_comes_after_all_that_ranks_bring(void)
{
	begin(3);
	says(0, 8, 4, 7);
	says(5, 8, 4, 7);
	CU_ASSERT_TRUE(is(3, 3, 8));
}

static void last_change_counts_in_whatever_order_ranks_come(void)
{
	static const uint32_t order[][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 0, 2, 1, 3 } };

	for (size_t i = 0; i < 3; i++) {
		begin(4);
		for (size_t k = 0; k < 4; k++) {
			uint32_t rank = order[i][k];
			says(rank, rank < 2 ? 8 : 6, 4, rank < 2 ? 1 : 2);
		}
		CU_ASSERT_TRUE(is(6, 4, 2));
	}
}

static void one_rank_alone_changes_nothing(void)
{
	begin(4);
	says(2, 3, 4, 1000);
	says(2, 3, 4, 1000);
	CU_ASSERT_TRUE(is(4, 4, 0));
	says(0, 8, 4, 1);
	says(1, 8, 4, 1);
	CU_ASSERT_TRUE(is(8, 4, 1));
}

static void one_that_says_ever_more_does_not_drown_the_others(void)
{
	begin(4);
	says(0, 8, 4, 1);
	for (uint32_t i = 0; i < 50; i++)
		says(3, 5 + i, 4, 2 + i);
	says(1, 8, 4, 1);
	says(2, 8, 4, 1);
	CU_ASSERT_TRUE(is(8, 4, 1));
}

static void first_of_one_or_two_ranks_is_believed(void)
{
	begin(4);
	says(0, 2, 4, 3);
	CU_ASSERT_TRUE(is(2, 4, 3));
	begin(4);
	says(1, 4, 4, 0);
	says(0, 1, 4, 3); /* another rank knows of more */
	CU_ASSERT_TRUE(is(4, 4, 0));
}

static void of_two_changes_of_one_number_that_of_the_command_line_counts(void)
{
	for (uint32_t first = 0; first < 2; first++) {
		begin(4);
		for (uint32_t i = 0; i < 4; i++) {
			bool ours = (i < 2) == (first == 0);
			says(i, ours ? 6 : 9, ours ? 4 : 9, 1);
		}
		CU_ASSERT_TRUE(is(6, 4, 1));
	}
}

static void leader_that_begins_anew_keeps_what_it_knew(void)
{
	begin(4);
	(void)mst_workforce_change(&job, 8);
	mst_workforce_names(&job, 4);
	struct mst_renewal kept = mst_workforce_keep(&job);

	mst_workforce_init(&job, &kept, 8);
	CU_ASSERT_TRUE(is(8, 4, 1));
	CU_ASSERT_EQUAL(job.record_ranks, 4);
}

static void what_cannot_be_is_not_heard(void)
{
	begin(4);
	says(0, 8, 0, 1);
	says(1, 8, 0, 1);
	says(0, 8, 4, UINT64_MAX);
	says(1, 8, 4, UINT64_MAX);
	CU_ASSERT_TRUE(is(4, 4, 0));
}

static CU_TestInfo cases[] = {
	{ "the first number is that of the command line",
	  first_number_is_that_of_the_command_line },
	{ "what an operator asks for is in force at once",
	  what_an_operator_asks_for_is_in_force_at_once },
	{ "a server of the old command line goes on with what ranks bring",
	  server_of_the_old_command_line_goes_on_with_what_ranks_bring },
	{ "another command line comes after all that ranks bring",
	  another_command_line_comes_after_all_that_ranks_bring },
	{ "the last change counts, in whatever order ranks come",
	  last_change_counts_in_whatever_order_ranks_come },
	{ "one rank alone changes nothing", one_rank_alone_changes_nothing },
	{ "one that says ever more does not drown the others",
	  one_that_says_ever_more_does_not_drown_the_others },
	{ "the first of one or two ranks is believed", first_of_one_or_two_ranks_is_believed },
	{ "of two changes of one number, that of the command line counts",
	  of_two_changes_of_one_number_that_of_the_command_line_counts },
	{ "a leader that begins anew keeps what it knew",
	  leader_that_begins_anew_keeps_what_it_knew },
	{ "what cannot be is not heard", what_cannot_be_is_not_heard },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("the number of workers in force", cases);
}
