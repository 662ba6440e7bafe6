/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "common/base/clock.h"
#include "tests/ut.h"
#include "tools/straggler.h"

static struct mst_snapshot job;
static char sentence[256], words[64];

/* Ranks that are all alike: 100 gradients, ready after 10 ms. */
static void even_job(uint32_t workers)
{
	memset(&job, 0, sizeof(job));
	job.job.state = MST_JOB_RUNNING;
	job.job.step_mean_ns = 20 * MST_MS;
	job.row_count = workers;
	for (uint32_t i = 0; i < workers; i++)
		job.row[i] = (struct mst_status_rank){ .rank = i,
						       .state = MST_RANK_LIVE,
						       .counted = 100,
						       .ready_mean_ns = 10 * MST_MS };
}

static void miss(uint32_t rank, uint64_t late)
{
	job.row[rank].counted = 100 - late;
	job.row[rank].late = late;
	job.row[rank].behind_mean_ns = 3 * MST_MS;
}

static struct mst_straggler judge(void)
{
	struct mst_straggler g = mst_straggler_find(&job);

	mst_straggler_sentence(&g, sentence, sizeof(sentence));
	mst_straggler_words(&g, words, sizeof(words));
	return g;
}

static void an_even_job_has_none(void)
{
	even_job(4);
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_STRING_EQUAL(sentence, "nobody is late");
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
	job.row[0].counted = job.row[1].counted = 0;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
}

static void the_late_one_is_named(void)
{
	even_job(4);
	miss(2, 45);
	miss(0, 2);
	struct mst_straggler g = judge();
	CU_ASSERT_EQUAL(g.kind, MST_STRAGGLER_LATE);
	CU_ASSERT_EQUAL(g.row->rank, 2);
	CU_ASSERT_STRING_EQUAL(sentence,
			       "rank 2 is late: 3.00 ms after its step's commit on average, in 45 "
			       "of 100 gradients (45 %)");
	CU_ASSERT_STRING_EQUAL(words, "rank 2 late 45 %");
}

static void of_two_the_later_one_is_named(void)
{
	even_job(2);
	miss(0, 10);
	miss(1, 90);
	CU_ASSERT_EQUAL(judge().row->rank, 1);
}

static void where_all_are_late_nobody_stands_out(void)
{
	even_job(3);
	miss(0, 30);
	miss(1, 33);
	miss(2, 36);
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_STRING_EQUAL(sentence, "all are late about as often: 99 of 300 gradients (33 %) "
					 "came after their step's commit");
}

static void a_slow_rank_is_named_where_none_is_late(void)
{
	even_job(3);
	job.row[1].ready_mean_ns = 12 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_NONE);
	job.row[1].ready_mean_ns = 60 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_SLOW);
	CU_ASSERT_STRING_EQUAL(words, "rank 1 slow, 60.0 ms");
}

static void a_rank_the_job_hangs_on_comes_first(void)
{
	even_job(3);
	miss(2, 45);
	job.row[0].awaited = 1;
	job.row[0].waiting_ns = 190 * MST_MS;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_LATE);
	job.row[0].waiting_ns = 4 * MST_SECOND;
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_AWAITED);
	CU_ASSERT_STRING_EQUAL(words, "waiting 4.00 s for rank 0");
	job.job.step_mean_ns = 2 * MST_SECOND; /* such steps take their time */
	CU_ASSERT_EQUAL(judge().kind, MST_STRAGGLER_LATE);
}

static CU_TestInfo cases[] = {
	{ "an even job has no straggler", an_even_job_has_none },
	{ "a job without rows has none", an_empty_job_has_none },
	{ "who has handed nothing in is not judged", who_has_handed_nothing_in_is_not_judged },
	{ "the rank that is late most often is named", the_late_one_is_named },
	{ "of two the later one is named", of_two_the_later_one_is_named },
	{ "where all are late nobody stands out", where_all_are_late_nobody_stands_out },
	{ "a slow rank is named where none is late", a_slow_rank_is_named_where_none_is_late },
	{ "a rank the job hangs on comes first", a_rank_the_job_hangs_on_comes_first },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("straggler", cases);
}
