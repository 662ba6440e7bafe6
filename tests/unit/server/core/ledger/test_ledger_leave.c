/* SPDX-License-Identifier: MIT */
/* The ledger and workers that leave before all that they have announced is there (PROTOCOL 2). */
#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

/* The link of @rank with @shard is gone, and all that came over it has been reported. */
static void unlinked(struct ledger_job *j, uint32_t rank, uint32_t shard)
{
	struct mst_ledger_event ev = { .kind = MST_EV_UNLINKED,
				       .who = j->worker[rank].who,
				       .shard = shard };

	job_event(j, &ev);
}

/* Rank 0 of two has contributed, and rank 1 leaves after @announced headers. */
static void begin(struct ledger_job *j, uint32_t shards, uint64_t announced)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);

	cfg.shards = shards;
	job_born(j, &cfg);
	job_push(j, 0);
	job_leave(j, 1, announced);
	CU_ASSERT_EQUAL(job_count(j, MST_DO_EVICT, -1), 0);
	CU_ASSERT_EQUAL(job_version(j), 0);
}

static bool ended(const struct ledger_job *j, enum mst_evict_why why, uint64_t announced,
		  uint64_t came)
{
	const struct mst_decision *d = job_last(j, MST_DO_EVICT, 1);

	return d != NULL && d->evict == why && d->announced == announced && d->came == came &&
	       job_count(j, MST_DO_EVICT, -1) == 1;
}

static void what_a_lost_link_can_no_longer_bring_is_not_waited_for(void)
{
	struct ledger_job j;

	begin(&j, 1, 3);
	job_tell(&j, 1, MST_EV_LOST); /* the control connection: the link may still bring all */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	unlinked(&j, 1, 0);
	CU_ASSERT(ended(&j, MST_EVICT_LOST, 3, 0));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 1), 0); /* no server has read any of it */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_close(&j);
}

/* Such as when the last push could not be sent any more. */
static void what_came_before_the_link_was_lost_counts(void)
{
	struct ledger_job j;

	begin(&j, 1, 2);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	unlinked(&j, 1, 0);
	CU_ASSERT(ended(&j, MST_EVICT_LOST, 2, 1));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 1), 1);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_close(&j);
}

/* The other link still brings what this server has read. */
static void what_one_server_has_and_another_may_still_get_is_waited_for(void)
{
	struct mst_lane_header h;
	struct ledger_job j;

	begin(&j, 2, 1);
	h = job_header(&j, 1);
	job_full(&j, 1, 1, &h);
	unlinked(&j, 1, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_full(&j, 1, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	CU_ASSERT(ended(&j, MST_EVICT_LEFT, 1, 1));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void what_one_server_has_and_another_cannot_get_is_cancelled(void)
{
	struct mst_lane_header h;
	struct ledger_job j;

	begin(&j, 2, 1);
	h = job_header(&j, 1);
	job_full(&j, 1, 0, &h);
	unlinked(&j, 1, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 1), 1);
	CU_ASSERT(ended(&j, MST_EVICT_LOST, 1, 0));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* The second header is whole, and is judged after the first, of which one server will never have
 * its part. */
static void nothing_is_judged_after_what_cannot_come(void)
{
	struct mst_lane_header first, second;
	struct ledger_job j;

	begin(&j, 2, 2);
	first = job_header(&j, 1);
	first.flags &= (uint16_t)~MST_HEADER_ASK;
	second = job_header(&j, 1);
	second.slot = 1;
	second.unheard = 1;
	second.ask.number = first.ask.number;
	job_full(&j, 1, 0, &first);
	job_full(&j, 1, 0, &second);
	job_full(&j, 1, 1, &second);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	unlinked(&j, 1, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 1), 2);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_CANCELLED);
	CU_ASSERT(ended(&j, MST_EVICT_LOST, 2, 0));
	job_close(&j);
}

/* It waits for a commit that is due, which lacks a buffer: each is being copied from. */
static void what_has_come_and_waits_for_a_commit_is_judged(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 3);
	struct mst_lane_header h;
	struct ledger_job j;

	cfg.buffers = 3;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank);
	h = job_header(&j, 0);
	h.flags &= (uint16_t)~MST_HEADER_ASK;
	job_full_all(&j, 0, &h);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 1), 1);
	job_leave(&j, 1, 2);
	unlinked(&j, 1, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	j.worker[0].asks = 2; /* that is being answered */
	job_answered(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 1), 2);
	CU_ASSERT(ended(&j, MST_EVICT_LEFT, 2, 2));
	job_close(&j);
}

/* A live link may bring the rest for as long as any gradient may take. */
static void a_silent_link_is_waited_for_as_long_as_patience_lasts(void)
{
	struct ledger_job j;

	begin(&j, 1, 3);
	job_wait(&j, JOB_PATIENCE_NS - MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, MST_SECOND, -1);
	CU_ASSERT(ended(&j, MST_EVICT_PATIENCE, 3, 0));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void a_silent_worker_is_waited_for_as_long_as_its_lease_lasts(void)
{
	struct ledger_job j;

	begin(&j, 1, 3);
	job_wait(&j, JOB_LEASE_NS, 1);
	CU_ASSERT(ended(&j, MST_EVICT_LEASE, 3, 0));
	job_close(&j);
}

/* Else: a worker that leaves has one header under way whenever patience is over, all of which are
 * refused, and holds the step for ever. */
static void a_header_that_is_refused_excuses_one_that_leaves_no_longer(void)
{
	struct mst_lane_header half;
	struct ledger_job j;

	begin(&j, 2, 9);
	job_wait(&j, JOB_PATIENCE_NS - JOB_LEASE_NS / 2, -1);
	half = job_header(&j, 1);
	half.weight = 0;
	half.flags &= (uint16_t)~MST_HEADER_ASK;
	job_full(&j, 1, 0, &half);
	job_wait(&j, JOB_LEASE_NS / 2, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_full(&j, 1, 1, &half);
	CU_ASSERT(ended(&j, MST_EVICT_PATIENCE, 9, 1));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void one_that_has_not_left_is_ended_by_its_loss(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	unlinked(&j, 1, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_tell(&j, 1, MST_EV_LOST);
	CU_ASSERT(ended(&j, MST_EVICT_LOST, 0, 0));
	unlinked(&j, 1, 0); /* of a session that is over */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 1);
	job_enter(&j, 1);
	job_push(&j, 0); /* so that the next step is open, with rank 1 in it */
	job_push(&j, 1);
	job_leave(&j, 1, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 1); /* its own link is there */
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "what a lost link can no longer bring is not waited for",
	  what_a_lost_link_can_no_longer_bring_is_not_waited_for },
	{ "what came before the link was lost counts", what_came_before_the_link_was_lost_counts },
	{ "what one server has, and another may still get, is waited for",
	  what_one_server_has_and_another_may_still_get_is_waited_for },
	{ "what one server has, and another cannot get, is cancelled",
	  what_one_server_has_and_another_cannot_get_is_cancelled },
	{ "nothing is judged after what cannot come", nothing_is_judged_after_what_cannot_come },
	{ "what has come and waits for a commit is judged",
	  what_has_come_and_waits_for_a_commit_is_judged },
	{ "a silent link is waited for as long as patience lasts",
	  a_silent_link_is_waited_for_as_long_as_patience_lasts },
	{ "a silent worker is waited for as long as its lease lasts",
	  a_silent_worker_is_waited_for_as_long_as_its_lease_lasts },
	{ "a header that is refused excuses one that leaves no longer",
	  a_header_that_is_refused_excuses_one_that_leaves_no_longer },
	{ "one that has not left is ended by its loss",
	  one_that_has_not_left_is_ended_by_its_loss },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, leave", cases);
}
