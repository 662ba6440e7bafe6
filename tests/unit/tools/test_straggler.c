/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "common/base/clock.h"
#include "common/wire/message.h"
#include "tests/ut.h"
#include "tools/straggler.h"

static struct mst_job_snapshot job;
static char reason[512], words[64];

/* Ranks that are all alike: steps of 20 ms, gradients ready after 19 ms. */
static void even_job(uint32_t workers)
{
	memset(&job, 0, sizeof(job));
	job.job.state = MST_JOB_RUNNING;
	job.job.live = workers;
	job.job.step_mean_ns = job.job.recent_step_ns = 20 * MST_MS;
	job.job.fast_ready_ns = 19 * MST_MS;
	job.job.elapsed_ns = 60 * MST_SECOND;
	job.row_count = workers;
	for (uint32_t i = 0; i < workers; i++) {
		job.row[i] = (struct mst_status_rank){ MST_STATUS_RANK_NOTHING };
		job.row[i].rank = i;
		job.row[i].state = MST_RANK_LIVE;
		job.row[i].counted = 100;
		job.row[i].ready_mean_ns = job.row[i].recent_ready_ns = 19 * MST_MS;
		job.row[i].recent_came = 20;
		job.row[i].heard_ns = 400 * MST_MS;
		job.row[i].straggler_total_ns = job.row[i].waited_ns = 0;
	}
}

/* As the servers have found it. */
static void is(uint32_t rank, enum mst_straggler_kind kind, double ratio, uint64_t for_ms)
{
	job.row[rank].straggler = kind;
	job.row[rank].straggler_ratio = ratio;
	job.row[rank].straggler_ns = for_ms * MST_MS;
}

static void miss(uint32_t rank, uint64_t late, uint64_t behind_ns)
{
	job.row[rank].recent_missed = late;
	job.row[rank].recent_behind_ns = behind_ns;
}

static struct mst_named_straggler name(void)
{
	struct mst_named_straggler g = mst_straggler_find(&job);

	mst_straggler_reason(&g, reason, sizeof(reason));
	mst_straggler_words(&g, words, sizeof(words));
	return g;
}

static void of_no_stragglers_none_is_named(void)
{
	even_job(4);
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_STRING_EQUAL(reason, "nobody is late");
	CU_ASSERT_STRING_EQUAL(words, "");
	even_job(0);
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_NONE);
	even_job(5);
	miss(3, 10, 193000);
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_STRING_EQUAL(
		reason, "nobody stands out: 10 of 100 gradients (10 %) missed their step, at "
			"most 193 us after its commit on average by rank");
}

/* A server of protocol 18 or earlier does not send it. */
static void of_a_server_that_does_not_judge_nobody_is_named(void)
{
	even_job(2);
	job.row[1] = (struct mst_status_rank){ MST_STATUS_RANK_NOTHING, .state = MST_RANK_LIVE };
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_NONE);
	job.job.state = MST_JOB_FINISHED;
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_NONE);
}

static void the_late_one_is_named_with_what_it_missed(void)
{
	even_job(4);
	miss(2, 9, 3 * MST_MS);
	is(2, MST_STRAGGLER_LATE, 1.2, 4100);
	CU_ASSERT_EQUAL(name().row->rank, 2);
	CU_ASSERT_STRING_EQUAL(reason,
			       "rank 2 is late: 3.00 ms after its step's commit on average, in 9 "
			       "of its last 20 gradients (45 %); that has been so for 4.10 s");
	CU_ASSERT_STRING_EQUAL(words, "rank 2 late 45 %");
	job.row[2].recent_missed = job.row[2].recent_given_up = 19;
	(void)name();
	CU_ASSERT_STRING_EQUAL(reason, "rank 2 is late: it was told to give up 19 of its last 20 "
				       "gradients (95 %); that has been so for 4.10 s");
}

static void the_slowest_is_named_with_its_ratio_and_what_it_costs(void)
{
	even_job(4);
	is(1, MST_STRAGGLER_SLOW, 3.1, 12300);
	is(2, MST_STRAGGLER_SLOW, 2.2, 40000);
	is(3, MST_STRAGGLER_LATE, 1, 40000);
	job.row[1].waited_ns = 8200 * MST_MS;
	CU_ASSERT_EQUAL(name().row->rank, 1);
	CU_ASSERT_STRING_EQUAL(reason,
			       "rank 1 is slow: its gradients take 3.1 times as long as those of "
			       "the fast ranks, which take 19.0 ms; that has been so for 12.3 s; "
			       "steps have waited 8.20 s for it; 2 more ranks are stragglers");
	CU_ASSERT_STRING_EQUAL(words, "rank 1 slow, 3.1 times");
	job.row[1].rests = 1;
	(void)name();
	CU_ASSERT_PTR_NOT_NULL(strstr(reason, "; it rests; 2 more"));
}

static void whose_session_is_over_is_named_after_the_job_only(void)
{
	even_job(4);
	is(2, MST_STRAGGLER_SLOW, 3, 100);
	job.row[2].state = MST_RANK_LOST;
	job.row[2].straggler_ns = MST_NOT_KNOWN;
	job.row[2].straggler_total_ns = 10 * MST_SECOND;
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_NONE);
	job.job.state = MST_JOB_FINISHED;
	CU_ASSERT_EQUAL(name().row->rank, 2);
}

static void who_stands_still_comes_first(void)
{
	even_job(3);
	is(2, MST_STRAGGLER_SLOW, 9, 5000);
	is(0, MST_STRAGGLER_STALLED, 3, 58);
	job.row[0].awaited = 1;
	job.row[0].waiting_ns = 60 * MST_MS;
	job.row[0].busy_ns = 58 * MST_MS;
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_STALLED);
	CU_ASSERT_STRING_EQUAL(words, "rank 0 at it for 58.0 ms");
	CU_ASSERT_STRING_EQUAL(reason, "the open step waits: rank 0 has been at its gradient for "
				       "58.0 ms, where the fast ranks take 19.0 ms, and was last "
				       "heard of 400 ms ago");
	is(1, MST_STRAGGLER_STALLED, 150, 3000);
	job.row[1].busy_ns = 3 * MST_SECOND;
	CU_ASSERT_EQUAL(name().row->rank, 1);
	CU_ASSERT_EQUAL(strncmp(reason, "rank 1 has been at its gradient for 3.00 s", 42), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(reason, "; 1 more rank stands still"));
}

/* Before anybody knows how long a gradient usually takes, there is no straggler; and still it is
 * worth to know whom the first step waits for. */
static void whom_an_open_step_waits_for_is_said_without_a_verdict(void)
{
	even_job(4);
	job.job.recent_step_ns = 0;
	job.row[3].awaited = 1;
	job.row[3].busy_ns = 12 * MST_SECOND;
	job.row[3].waiting_ns = 900 * MST_MS;
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_STRING_EQUAL(reason, "nobody is late");
	job.row[3].waiting_ns = 12 * MST_SECOND;
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_STRING_EQUAL(reason, "the open step waits: rank 3 has been at its gradient for "
				       "12.0 s, and was last heard of 400 ms ago");
	for (int i = 1; i < 3; i++) {
		job.row[i].awaited = 1;
		job.row[i].busy_ns = job.row[i].waiting_ns = 12 * MST_SECOND;
	}
	(void)name(); /* it waits for most */
	CU_ASSERT_STRING_EQUAL(reason, "nobody is late");
}

static void of_a_job_that_has_ended_the_dearest_is_named(void)
{
	even_job(4);
	job.job.state = MST_JOB_FINISHED;
	for (uint32_t rank = 0; rank < 3; rank++) {
		job.row[rank].straggler = MST_STRAGGLER_SLOW;
		job.row[rank].straggler_ratio = 3.1;
		job.row[rank].straggler_total_ns = (8 - 3 * rank) * MST_SECOND;
		job.row[rank].waited_ns = rank * MST_SECOND;
	}
	CU_ASSERT_EQUAL(name().row->rank, 0); /* the two others were too short for a word */
	job.row[1].straggler_total_ns = 40 * MST_SECOND;
	CU_ASSERT_EQUAL(name().row->rank, 1);
	CU_ASSERT_STRING_EQUAL(reason,
			       "rank 1 was slow: its gradients took 3.1 times as long as those of "
			       "the fast ranks, which took 19.0 ms; that was so for 40.0 s of "
			       "60.0 s; steps waited 1.00 s for it; 1 more rank was a straggler");
	job.row[1].straggler = MST_STRAGGLER_LATE;
	job.row[1].late = 30;
	job.row[1].stale = 10;
	job.row[1].counted = 60;
	job.row[1].behind_mean_ns = 4 * MST_MS;
	(void)name();
	CU_ASSERT_EQUAL(strncmp(reason,
				"rank 1 was late: 4.00 ms after its step's commit on average, in "
				"40 of 100 gradients (40 %); that was so for",
				107),
			0);
	job.row[1].straggler = MST_STRAGGLER_STALLED;
	(void)name();
	CU_ASSERT_PTR_NOT_NULL(strstr(reason, "rank 1 stood still: it was at one gradient for 3.1 "
					      "times as long as the fast ranks take"));
}

static void a_kind_of_a_later_release_is_not_named(void)
{
	even_job(2);
	is(1, (enum mst_straggler_kind)17, 3, 1000);
	CU_ASSERT_EQUAL(name().kind, MST_STRAGGLER_NONE);
	CU_ASSERT_STRING_EQUAL(mst_straggler_kind_word(17), "unknown");
}

static CU_TestInfo cases[] = {
	{ "of no stragglers none is named", of_no_stragglers_none_is_named },
	{ "of a server that does not judge nobody is named",
	  of_a_server_that_does_not_judge_nobody_is_named },
	{ "the late one is named with what it missed", the_late_one_is_named_with_what_it_missed },
	{ "the slowest is named with its ratio and what it costs",
	  the_slowest_is_named_with_its_ratio_and_what_it_costs },
	{ "whose session is over is named after the job only",
	  whose_session_is_over_is_named_after_the_job_only },
	{ "who stands still comes first", who_stands_still_comes_first },
	{ "whom an open step waits for is said without a verdict",
	  whom_an_open_step_waits_for_is_said_without_a_verdict },
	{ "of a job that has ended the dearest is named",
	  of_a_job_that_has_ended_the_dearest_is_named },
	{ "a kind of a later release is not named", a_kind_of_a_later_release_is_not_named },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("straggler", cases);
}
