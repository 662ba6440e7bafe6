/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "common/base/clock.h"
#include "tests/ut.h"
#include "tools/straggler.h"

static struct mst_job_snapshot job;
static char reason[256], words[64];

/* Ranks that are all alike: steps of 20 ms, gradients ready after 19 ms. */
static void even_job(uint32_t workers)
{
	memset(&job, 0, sizeof(job));
	job.job.state = MST_JOB_RUNNING;
	job.job.step_mean_ns = job.job.recent_step_ns = 20 * MST_MS;
	job.row_count = workers;
	for (uint32_t i = 0; i < workers; i++)
		job.row[i] = (struct mst_status_rank){ .rank = i,
						       .state = MST_RANK_LIVE,
						       .counted = 100,
						       .ready_mean_ns = 19 * MST_MS,
						       .recent_came = 20,
						       .recent_ready_ns = 19 * MST_MS,
						       .heard_ns = 400 * MST_MS };
}

static void miss(uint32_t rank, uint64_t late, uint64_t behind_ns)
{
	job.row[rank].recent_missed = late;
	job.row[rank].recent_behind_ns = behind_ns;
}

static struct mst_straggler judge(void)
{
	struct mst_straggler g = mst_straggler_find(&job);

	mst_straggler_reason(&g, reason, sizeof(reason));
	mst_straggler_words(&g, words, sizeof(words));
	return g;
}

static void an_even_job_has_none(void)
{
	even_job(4);
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_STRING_EQUAL(reason, "nobody is late");
	CU_ASSERT_STRING_EQUAL(words, "");
}

static void an_empty_job_has_none(void)
{
	even_job(0);
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
}

static void who_has_handed_nothing_in_is_not_judged(void)
{
	even_job(2);
	for (int i = 0; i < 2; i++)
		job.row[i].recent_came = job.row[i].recent_ready_ns = job.row[i].counted = 0;
	job.row[1].busy_ns = 5 * MST_SECOND;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
}

static void the_late_one_is_named(void)
{
	even_job(4);
	miss(2, 9, 3 * MST_MS);
	miss(0, 1, 5 * MST_MS);
	struct mst_straggler g = judge();
	CU_ASSERT_EQUAL(g.kind, MST_STRAGGLER_LATE);
	CU_ASSERT_EQUAL(g.row->rank, 2);
	CU_ASSERT_STRING_EQUAL(reason,
			       "rank 2 is late: 3.00 ms after its step's commit on average, in 9 "
			       "of its last 20 gradients (45 %)");
	CU_ASSERT_STRING_EQUAL(words, "rank 2 late 45 %");
}

static void whose_session_is_over_is_named_after_the_job_only(void)
{
	even_job(4);
	miss(2, 9, 3 * MST_MS);
	job.row[1].recent_ready_ns = 40 * MST_MS;
	job.row[2].late = 90;
	job.row[2].behind_mean_ns = 3 * MST_MS;
	job.row[1].state = MST_RANK_LEFT;
	job.row[2].state = MST_RANK_LOST;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	job.job.state = MST_JOB_FINISHED;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_LATE);
}

static void of_two_the_later_one_is_named(void)
{
	even_job(2);
	miss(0, 2, 3 * MST_MS);
	miss(1, 18, 3 * MST_MS);
	CU_ASSERT_EQUAL(judge().row->rank, 1);
}

/* However often: 193 us of 20 ms hold nobody up. */
static void less_than_a_tenth_of_a_step_is_not_late(void)
{
	even_job(5);
	miss(3, 10, 193000);
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_STRING_EQUAL(
		reason, "nobody stands out: 10 of 100 gradients (10 %) missed their step, at "
			"most 193 us after its commit on average by rank");
	miss(3, 10, 2 * MST_MS);
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	miss(3, 10, 2 * MST_MS + 1000);
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_LATE);
}

static void where_all_are_late_nobody_stands_out(void)
{
	even_job(3);
	miss(0, 6, 5 * MST_MS);
	miss(1, 7, 5 * MST_MS);
	miss(2, 8, 5 * MST_MS);
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_EQUAL(strncmp(reason, "nobody stands out: 21 of 60 gradients (35 %)", 44), 0);
}

/* Their times are not known: nobody waited for them. */
static void who_gives_most_up_is_late(void)
{
	even_job(4);
	for (int i = 0; i < 4; i++)
		job.row[i].recent_missed = job.row[i].recent_given_up = 4;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	job.row[3].recent_missed = job.row[3].recent_given_up = 19;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_LATE);
	CU_ASSERT_STRING_EQUAL(reason, "rank 3 is late: it was told to give up 19 of its last 20 "
				       "gradients (95 %)");
}

static void a_slow_rank_is_named_where_none_is_late(void)
{
	even_job(3);
	job.row[1].recent_ready_ns = 23 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	job.row[1].recent_ready_ns = 60 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_SLOW);
	CU_ASSERT_STRING_EQUAL(words, "rank 1 slow, 60.0 ms");
	CU_ASSERT_STRING_EQUAL(reason, "nobody is late, but rank 1 is slow: it takes 60.0 ms, "
				       "and half of the ranks at most 19.0 ms");
}

/* Computing takes little of the step here: twice as long is still next to nothing. */
static void less_than_a_tenth_of_a_step_is_not_slow(void)
{
	even_job(3);
	for (int i = 0; i < 3; i++)
		job.row[i].recent_ready_ns = MST_MS;
	job.row[1].recent_ready_ns = 3 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	job.row[1].recent_ready_ns = 4 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_SLOW);
}

/* Rank 0 is frozen, and rank 2 was late before. */
static void who_is_at_it_for_too_long_comes_first(void)
{
	even_job(3);
	miss(2, 9, 5 * MST_MS);
	job.row[0].awaited = 1;
	job.row[0].waiting_ns = 60 * MST_MS;
	job.row[0].busy_ns = 56 * MST_MS;
	CU_ASSERT_EQUAL(judge().row->rank, 2);
	job.row[0].busy_ns = 58 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_HELD);
	CU_ASSERT_STRING_EQUAL(words, "rank 0 at it for 58.0 ms");
	CU_ASSERT_STRING_EQUAL(reason, "the open step waits: rank 0 has been at its gradient for "
				       "58.0 ms, where 19.0 ms is usual, and was last heard of "
				       "400 ms ago");
	job.row[1].busy_ns = 3 * MST_SECOND;
	CU_ASSERT_EQUAL(judge().row->rank, 1);
	CU_ASSERT_EQUAL(strncmp(reason, "rank 1 has been at its gradient for 3.00 s", 42), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(reason, "; so have 1 more ranks"));
}

static void it_must_be_long_for_that_rank(void)
{
	even_job(3);
	job.row[0].busy_ns = 65 * MST_MS; /* more than three times what the others take */
	job.row[0].recent_ready_ns = 22 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	job.row[0].state = MST_RANK_LOST;
	job.row[0].busy_ns = 70 * MST_SECOND;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
}

static void and_more_than_ten_ms(void)
{
	even_job(3);
	for (int i = 0; i < 3; i++)
		job.row[i].recent_ready_ns = 100000;
	job.row[1].busy_ns = 10 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	job.row[1].busy_ns = 10 * MST_MS + 1;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_HELD);
}

static void of_a_job_that_has_ended_all_counts(void)
{
	even_job(3);
	job.job.state = MST_JOB_FINISHED;
	job.row[0].busy_ns = 5 * MST_SECOND;
	miss(2, 19, 5 * MST_MS);
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	job.row[1].counted = 60;
	job.row[1].late = 30;
	job.row[1].stale = 10;
	job.row[1].behind_mean_ns = 4 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_LATE);
	CU_ASSERT_STRING_EQUAL(reason, "rank 1 is late: 4.00 ms after its step's commit on "
				       "average, in 40 of 100 gradients (40 %)");
}

static CU_TestInfo cases[] = {
	{ "an even job has no straggler", an_even_job_has_none },
	{ "a job without rows has none", an_empty_job_has_none },
	{ "who has handed nothing in is not judged", who_has_handed_nothing_in_is_not_judged },
	{ "the rank that is late most often is named", the_late_one_is_named },
	{ "of two the later one is named", of_two_the_later_one_is_named },
	{ "whose session is over is named after the job only",
	  whose_session_is_over_is_named_after_the_job_only },
	{ "less than a tenth of a step is not late", less_than_a_tenth_of_a_step_is_not_late },
	{ "where all are late nobody stands out", where_all_are_late_nobody_stands_out },
	{ "who gives most of its gradients up is late", who_gives_most_up_is_late },
	{ "a slow rank is named where none is late", a_slow_rank_is_named_where_none_is_late },
	{ "less than a tenth of a step is not slow", less_than_a_tenth_of_a_step_is_not_slow },
	{ "a rank that is at its gradient for too long comes first",
	  who_is_at_it_for_too_long_comes_first },
	{ "it must be long for that rank", it_must_be_long_for_that_rank },
	{ "and more than 10 ms", and_more_than_ten_ms },
	{ "of a job that has ended all counts", of_a_job_that_has_ended_all_counts },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("straggler", cases);
}
