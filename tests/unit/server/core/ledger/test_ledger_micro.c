/* SPDX-License-Identifier: MIT */
/* Micro-batches that are contributions: nonblocking:MS,AGE (PROTOCOL 3, "Micro-batches"). */
#include <errno.h>

#include "server/core/policy/rule.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

#define MS UINT64_C(1000000)

/* A quarter of a batch; the @last of its batch ends it. */
static void hand_over(struct ledger_job *j, uint32_t rank, bool last)
{
	struct mst_lane_header h = job_header(j, rank);

	h.weight = 0.25;
	h.flags &= ~MST_HEADER_FULL;
	h.flags |= last ? MST_HEADER_FULL : MST_HEADER_PART;
	job_full_all(j, rank, &h);
	job_answered(j, rank);
}

static void hand_over_batch(struct ledger_job *j, uint32_t rank)
{
	for (int i = 0; i < 4; i++)
		hand_over(j, rank, i == 3);
}

static void opened(struct ledger_job *j, const char *policy, uint32_t workers)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.rule.weigh = MST_WEIGH_SAMPLES;
	job_born(j, &cfg);
}

static void every_micro_batch_counts_and_its_worker_goes_on(void)
{
	struct ledger_job j;

	opened(&j, "nonblocking:0,4", 3);
	for (uint64_t i = 1; i <= 3; i++) {
		hand_over(&j, 0, false);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_COUNT, 0), i);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), i);
	}
	CU_ASSERT_EQUAL(job_version(&j), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 0);
	hand_over(&j, 1, false);
	hand_over(&j, 0, true);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	const struct mst_record *r = mst_ledger_record_of(j.ledger, 1);
	CU_ASSERT(r->entry_count == 5 && r->share_count == 2);
	CU_ASSERT_DOUBLE_EQUAL(r->samples, 1.25, 0);
	CU_ASSERT_DOUBLE_EQUAL(r->divisor, 1.25F, 0);
	job_close(&j);
}

/* Otherwise each rank's batch would make a version of what had been finished since the last. */
static void a_batch_that_began_before_the_step_does_not_end_it(void)
{
	struct ledger_job j;

	opened(&j, "nonblocking:0,4", 2);
	for (int i = 0; i < 3; i++) {
		hand_over(&j, 0, false);
		hand_over(&j, 1, false);
	}
	hand_over(&j, 0, true);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	hand_over(&j, 1, true);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	for (int i = 0; i < 3; i++)
		hand_over(&j, 1, false); /* with the quarter before it is as much as a batch */
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_close(&j);
}

static void whole_batches_each_make_a_version(void)
{
	struct ledger_job j;

	opened(&j, "nonblocking:0,4", 3);
	struct mst_lane_header h = job_header(&j, 1);
	h.flags &= ~MST_HEADER_FULL; /* a loop that says nothing of its batches */
	job_full_all(&j, 1, &h);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_close(&j);
}

static void a_micro_batch_counts_at_its_own_age_up_to_the_bound(void)
{
	struct ledger_job j;

	opened(&j, "nonblocking:5,2", 2);
	hand_over_batch(&j, 0);
	hand_over_batch(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	hand_over(&j, 1, false); /* on version 0, into version 3 */
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	hand_over_batch(&j, 0);
	const struct mst_record *r = mst_ledger_record_of(j.ledger, 3);
	CU_ASSERT_EQUAL_FATAL(r->entry_count, 5);
	CU_ASSERT_EQUAL(r->version - 1 - r->entry[0].tag, 2);
	job_close(&j);
}

/* Rank 1 computes on version 0, and two versions have been made since. */
static void made_two(struct ledger_job *j, const char *policy)
{
	opened(j, policy, 3);
	for (int i = 0; i < 2; i++) {
		hand_over_batch(j, 0);
		hand_over(j, 2, false);
	}
	hand_over_batch(j, 0);
}

static void a_commit_is_held_for_a_micro_batch_that_would_be_too_old(void)
{
	struct ledger_job j;

	made_two(&j, "nonblocking:0,2");
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_forget(&j);
	hand_over_batch(&j, 0); /* nobody stands still meanwhile */
	hand_over(&j, 2, false);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	CU_ASSERT(job_count(&j, MST_DO_RELEASE, 0) == 4 && job_count(&j, MST_DO_RELEASE, 2) == 1);
	hand_over(&j, 1, false);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 3);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 3)->entry_count, 11);
	job_close(&j);
}

static void ms_bounds_the_time_for_which_a_commit_is_held(void)
{
	struct ledger_job j;

	made_two(&j, "nonblocking:5,2");
	CU_ASSERT_EQUAL(mst_ledger_deadline(j.ledger), j.now_ns + 5 * MS);
	job_wait(&j, 4 * MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_wait(&j, MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	hand_over(&j, 1, false);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_STALE);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 3);
	job_close(&j);
}

static void no_commit_is_held_for_longer_than_patience(void)
{
	struct ledger_job j;

	made_two(&j, "nonblocking:0,2");
	job_wait(&j, JOB_PATIENCE_NS - MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_wait(&j, MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_close(&j);
}

static void a_commit_is_not_held_for_who_is_gone_or_rests(void)
{
	struct ledger_job j;

	made_two(&j, "nonblocking:0,2");
	job_lose(&j, 1, -EPIPE);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_close(&j);
	made_two(&j, "nonblocking:0,2");
	job_wait(&j, 2 * JOB_LEASE_NS, 1); /* it has fallen silent */
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_close(&j);
	made_two(&j, "nonblocking:0,2");
	struct mst_ledger_event ev = { .kind = MST_EV_REST, .who = j.worker[1].who, .rests = true };
	job_event(&j, &ev);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_close(&j);
}

static void a_job_that_is_to_end_holds_nothing(void)
{
	struct ledger_job j;

	made_two(&j, "nonblocking:0,2");
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_close(&j);
}

static void a_step_that_is_full_is_made(void)
{
	struct ledger_job j;

	opened(&j, "nonblocking:0,1", 2);
	hand_over_batch(&j, 0);
	for (uint32_t i = 1; i < 2 * MST_MICRO_MAX; i++) {
		hand_over(&j, 0, i % 4 == 0);
		CU_ASSERT_EQUAL(job_version(&j), 1);
		job_forget(&j);
	}
	hand_over(&j, 0, true);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 2)->entry_count, 2 * MST_MICRO_MAX);
	job_close(&j);
}

static void the_rate_counts_ranks_and_weights_are_samples(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking:0,2", 4);
	struct ledger_job j;

	cfg.rule.linear = true;
	cfg.rule.weigh = MST_WEIGH_SAMPLES;
	job_born(&j, &cfg);
	hand_over(&j, 3, false);
	struct mst_lane_header h = job_header(&j, 2);
	h.weight = 3; /* micro-batches of another size */
	h.flags |= MST_HEADER_PART;
	h.flags &= ~MST_HEADER_FULL;
	job_full_all(&j, 2, &h);
	hand_over_batch(&j, 0);
	const struct mst_record *r = mst_ledger_record_of(j.ledger, 1);
	CU_ASSERT_DOUBLE_EQUAL(r->lr_scale, 0.75, 0);
	CU_ASSERT_DOUBLE_EQUAL(r->divisor, 4.25F, 0);
	CU_ASSERT_DOUBLE_EQUAL(r->entry[1].coefficient, 3.0F, 0);
	job_close(&j);
}

static void a_record_says_whether_micro_batches_are_wanted(void)
{
	struct mst_rule bsp = job_rule("bsp"), micro = job_rule("nonblocking:0,2");
	struct ledger_job j;

	opened(&j, "nonblocking:0,2", 2);
	CU_ASSERT(mst_ledger_record_of(j.ledger, 0)->by_micro);
	job_policy(&j, &bsp);
	hand_over_batch(&j, 0);
	CU_ASSERT_FALSE(mst_ledger_record_of(j.ledger, 1)->by_micro);
	hand_over(&j, 1, false); /* computed on version 0: bsp takes none of it */
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_LATE);
	job_policy(&j, &micro);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT(mst_ledger_record_of(j.ledger, 2)->by_micro);
	job_close(&j);
}

/* Under async rank 1 was given version 0, and computes on it when the policy changes. */
static void a_commit_is_held_for_what_was_begun_before_the_policy_changed(void)
{
	struct mst_rule micro = job_rule("nonblocking:0,2");
	struct ledger_job j;

	micro.weigh = MST_WEIGH_SAMPLES;
	opened(&j, "async", 2);
	job_policy(&j, &micro);
	for (int i = 0; i < 3; i++)
		job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_close(&j);
}

/* A history as long as the age is enough, also for one that is as late as it may be. */
static void a_worker_that_owns_is_given_the_next_version_before_it_goes(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking:0,2", 2);
	struct ledger_job j;

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.history = 2;
	cfg.optimizer.row = NULL;
	job_born(&j, &cfg);
	for (int i = 0; i < 3; i++)
		hand_over_batch(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_forget(&j);
	hand_over(&j, 1, false);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 1);
	job_ask(&j, 1);
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 3);
	job_close(&j);
}

/* Each version goes to each worker in order, and no worker waits for another one. */
static void a_worker_that_owns_is_told_that_there_is_nothing_new(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking:0,2", 2);
	struct ledger_job j;

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.history = 2;
	cfg.optimizer.row = NULL;
	job_born(&j, &cfg);
	hand_over(&j, 0, false);
	const struct mst_decision *d = job_last(&j, MST_DO_RELEASE, 0);
	CU_ASSERT(d->answer.version == 0 && d->answer.where == MST_WHERE_KEEP);
	hand_over(&j, 0, false);
	hand_over(&j, 0, false);
	hand_over(&j, 0, true);
	hand_over_batch(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	hand_over(&j, 1, false);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 1);
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 2);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "every micro-batch counts, and its worker goes on",
	  every_micro_batch_counts_and_its_worker_goes_on },
	{ "a batch that began before the step does not end it",
	  a_batch_that_began_before_the_step_does_not_end_it },
	{ "whole batches each make a version", whole_batches_each_make_a_version },
	{ "a micro-batch counts at its own age, up to the bound",
	  a_micro_batch_counts_at_its_own_age_up_to_the_bound },
	{ "a commit is held for a micro-batch that would be too old",
	  a_commit_is_held_for_a_micro_batch_that_would_be_too_old },
	{ "MS bounds the time for which a commit is held",
	  ms_bounds_the_time_for_which_a_commit_is_held },
	{ "no commit is held for longer than patience",
	  no_commit_is_held_for_longer_than_patience },
	{ "a commit is not held for who is gone or rests",
	  a_commit_is_not_held_for_who_is_gone_or_rests },
	{ "a job that is to end holds nothing", a_job_that_is_to_end_holds_nothing },
	{ "a step that is full is made", a_step_that_is_full_is_made },
	{ "the rate counts ranks, and weights are samples",
	  the_rate_counts_ranks_and_weights_are_samples },
	{ "a record says whether micro-batches are wanted",
	  a_record_says_whether_micro_batches_are_wanted },
	{ "a commit is held for what was begun before the policy changed",
	  a_commit_is_held_for_what_was_begun_before_the_policy_changed },
	{ "a worker that owns is given the next version before it goes",
	  a_worker_that_owns_is_given_the_next_version_before_it_goes },
	{ "a worker that owns is told that there is nothing new",
	  a_worker_that_owns_is_told_that_there_is_nothing_new },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_micro", cases);
}
