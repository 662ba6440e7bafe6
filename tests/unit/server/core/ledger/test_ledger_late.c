/* SPDX-License-Identifier: MIT */
/* The ledger and workers that wait: those that were late, and those that rest (PROTOCOL 3, 7). */
#include <errno.h>

#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

#define MS UINT64_C(1000000)

/* ---- late starts ---- */

/* Steps of 20 ms of four equal workers, until the medians are known. */
static void run_even(struct ledger_job *j, uint32_t workers, int steps)
{
	for (int i = 0; i < steps; i++) {
		job_wait(j, 20 * MS, -1);
		for (uint32_t rank = 0; rank < workers; rank++)
			job_push(j, rank);
	}
}

/* The rank has slept through a commit, and its late gradient comes @ns into the next step. */
static void come_late(struct ledger_job *j, uint32_t rank, uint64_t ns)
{
	job_wait(j, 20 * MS, -1);
	for (uint32_t other = 0; other < 4; other++) {
		if (other != rank)
			job_push(j, other);
	}
	job_wait(j, ns, -1);
	job_forget(j);
	job_push(j, rank);
	CU_ASSERT_EQUAL(job_verdict(j, rank), MUSTER_LATE);
}

static void begin_late(struct ledger_job *j, enum mst_late_start start)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:3", 4);

	cfg.rule.late_start = start;
	job_born(j, &cfg);
}

static void late_worker_starts_with_the_next_version(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_COMMIT);
	come_late(&j, 3, 10 * MS);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	CU_ASSERT(job_member(&j, 3).held);
	uint64_t version = job_version(&j) + 1;
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 3)->answer.version, version);
	CU_ASSERT_FALSE(job_member(&j, 3).held);
	job_close(&j);
}

/* The others are live, but do not come: one of them may be stopped. Steps take 20 ms. */
static void late_worker_is_held_no_longer_than_two_steps(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_AUTO);
	run_even(&j, 4, 9);
	come_late(&j, 3, MS);
	CU_ASSERT(job_member(&j, 3).held);
	job_wait(&j, 38 * MS, -1);
	CU_ASSERT(job_member(&j, 3).held);
	job_wait(&j, 2 * MS, -1);
	CU_ASSERT_FALSE(job_member(&j, 3).held);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

static void late_worker_starts_at_once_if_it_is_told_so(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_NOW);
	run_even(&j, 4, 5);
	come_late(&j, 3, 10 * MS);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

static void late_worker_that_can_still_be_in_time_starts_at_once(void)
{
	struct ledger_job j;

	/* Nothing is known yet. */
	begin_late(&j, MST_LATE_START_AUTO);
	come_late(&j, 3, 10 * MS);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);

	/* Its gradients take 20 ms, and so do steps: it is too late from the first moment on. */
	begin_late(&j, MST_LATE_START_AUTO);
	run_even(&j, 4, 9);
	come_late(&j, 3, MS);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	job_close(&j);

	/* Steps take 30 ms, since one of the three is slow. */
	begin_late(&j, MST_LATE_START_AUTO);
	for (int i = 0; i < 9; i++) {
		job_wait(&j, 20 * MS, -1);
		job_push(&j, 0);
		job_push(&j, 3);
		job_wait(&j, 10 * MS, -1);
		job_push(&j, 1);
		job_push(&j, 2);
	}
	come_late(&j, 3, 2 * MS);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

static void only_a_late_push_is_held(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_COMMIT);
	job_ask(&j, 3); /* a pull, while the others compute */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	struct mst_lane_header h = job_header(&j, 3);
	h.weight = 0; /* refused */
	job_full_all(&j, 3, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 3), MUSTER_REFUSED);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 2);
	job_close(&j);
}

/* The quorum needs it: whoever else was to make it is gone. */
static void held_worker_goes_on_when_the_step_may_need_it(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_COMMIT);
	come_late(&j, 3, 10 * MS);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	job_lose(&j, 1, -EPIPE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

static void as_many_are_held_as_the_quorum_spares(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:2", 4);
	struct ledger_job j;

	cfg.rule.late_start = MST_LATE_START_COMMIT;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1); /* version 1, with ranks 2 and 3 behind */
	job_forget(&j);
	job_push(&j, 2);
	job_push(&j, 3);
	CU_ASSERT(job_member(&j, 2).held && job_member(&j, 3).held);
	job_lose(&j, 0, -EPIPE);
	CU_ASSERT_FALSE(job_member(&j, 2).held || job_member(&j, 3).held);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

static void bsp_holds_nobody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("deadline:20,4", 4);
	struct ledger_job j;

	cfg.rule.late_start = MST_LATE_START_COMMIT;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, 20 * MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_forget(&j);
	job_push(&j, 3);
	CU_ASSERT_EQUAL(job_verdict(&j, 3), MUSTER_LATE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

static void held_worker_is_nobody_that_is_waited_for(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_COMMIT);
	come_late(&j, 3, 10 * MS);
	job_push(&j, 0);
	job_push(&j, 1);
	job_wait(&j, JOB_PATIENCE_NS, -1);
	CU_ASSERT(job_evicted(&j, 2, MST_EVICT_PATIENCE));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 3), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

/* Workers whose headers one server has read already are excused, so the quorum stays in reach. */
static void nobody_is_held_for_longer_than_patience(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:3", 5);
	struct mst_lane_header half;
	struct ledger_job j;

	cfg.shards = 2;
	cfg.rule.late_start = MST_LATE_START_COMMIT;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank);
	job_push(&j, 4);
	CU_ASSERT(job_member(&j, 4).held);
	job_push(&j, 0);
	job_wait(&j, JOB_PATIENCE_NS - JOB_LEASE_NS / 2, -1);
	for (uint32_t rank = 1; rank < 4; rank++) {
		half = job_header(&j, rank);
		job_full(&j, rank, 0, &half);
	}
	job_forget(&j);
	job_wait(&j, JOB_LEASE_NS / 2, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 4), 1);
	job_close(&j);
}

static void worker_that_catches_up_is_not_held(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:3", 4);
	struct ledger_job j;

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.history = 4;
	cfg.optimizer.row = NULL;
	cfg.rule.late_start = MST_LATE_START_COMMIT;
	job_born(&j, &cfg);
	for (int version = 0; version < 2; version++) {
		for (uint32_t rank = 0; rank < 3; rank++)
			job_push(&j, rank);
	}
	job_push(&j, 3); /* late, and two versions behind */
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 3)->answer.version, 1);
	job_close(&j);
}

/* The ask came with the late contribution, whatever follows. */
static void held_worker_that_pushes_more_is_still_held(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_COMMIT);
	come_late(&j, 3, 10 * MS);
	struct mst_lane_header h = job_header(&j, 3);
	j.worker[3].asks--;
	h.flags &= ~MST_HEADER_ASK;
	job_full_all(&j, 3, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 3), MUSTER_LATE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	CU_ASSERT(job_member(&j, 3).held);
	job_close(&j);
}

static void held_worker_whose_next_push_commits_starts_with_that_version(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_COMMIT);
	come_late(&j, 3, 10 * MS);
	job_push(&j, 0);
	job_push(&j, 1);
	struct mst_lane_header h = job_header(&j, 3);
	j.worker[3].asks--;
	h.flags &= ~MST_HEADER_ASK;
	h.tag = job_version(&j);
	uint64_t version = h.tag + 1;
	job_full_all(&j, 3, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 3), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(job_version(&j), version);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

static void held_worker_starts_with_the_version_that_brings_another_rule(void)
{
	struct mst_rule rule = job_rule("backup:2");
	struct ledger_job j;

	rule.late_start = MST_LATE_START_COMMIT;
	begin_late(&j, MST_LATE_START_COMMIT);
	come_late(&j, 3, 10 * MS);
	CU_ASSERT(job_member(&j, 3).held);
	job_policy(&j, &rule);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(mst_ledger_rule(j.ledger)->quorum, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

/* A job that ends, or a gradient that is not late, leaves nothing behind for the next session. */
static void time_between_two_sessions_is_nobodys_stride(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_AUTO);
	run_even(&j, 4, 9);
	for (int i = 0; i < 9; i++) {
		/* It dies while it computes; the next session pushes before its first version. */
		job_lose(&j, 3, -EPIPE);
		job_enter(&j, 3);
		struct mst_lane_header h = job_header(&j, 3);
		j.worker[3].asks--;
		h.flags &= ~MST_HEADER_ASK;
		h.weight = 0;
		job_full_all(&j, 3, &h);
		CU_ASSERT_EQUAL(job_verdict(&j, 3), MUSTER_REFUSED);
		job_forget(&j);
		for (uint32_t rank = 0; rank < 3; rank++)
			job_push(&j, rank);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	}
	run_even(&j, 3, 9);
	come_late(&j, 3, MS);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	job_close(&j);
}

/* ---- rest ---- */

static void rest(struct ledger_job *j, uint32_t rank, bool rests)
{
	struct mst_ledger_event ev = { .kind = MST_EV_REST, .who = j->worker[rank].who };

	ev.rests = rests;
	job_event(j, &ev);
}

static void resting_worker_is_not_waited_for(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	rest(&j, 2, true);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT(job_member(&j, 2).rests);
	job_push(&j, 2); /* late; its ask waits until it returns */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	rest(&j, 2, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, 2);
	CU_ASSERT(job_member(&j, 2).awaited);
	job_close(&j);
}

static void last_worker_cannot_rest(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	rest(&j, 0, true);
	rest(&j, 1, true);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_REST, -1), 1);
	CU_ASSERT_FALSE(job_member(&j, 1).rests);
	job_close(&j);
}

static void workers_that_rest_return_when_nobody_else_is_left(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	rest(&j, 1, true);
	rest(&j, 2, true);
	job_lose(&j, 0, -EPIPE);
	CU_ASSERT_FALSE(job_member(&j, 1).rests || job_member(&j, 2).rests);
	job_push(&j, 1);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void nobody_returns_to_a_job_that_has_failed(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 4);
	struct ledger_job j;

	cfg.rule.min_workers = 4;
	job_born(&j, &cfg);
	rest(&j, 0, true);
	rest(&j, 1, true);
	for (int i = 0; i < 16; i++) { /* ranks 2 and 3 are silent until one tick ends both */
		j.now_ns += cfg.lease_ns / 8;
		job_tell(&j, 0, MST_EV_HEARTBEAT);
		job_tell(&j, 1, MST_EV_HEARTBEAT);
		job_heard(&j, j.now_ns);
		job_tick(&j);
	}
	CU_ASSERT(job_finished(&j, MST_FINISH_TOO_FEW));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_REST, -1), 2);
	job_close(&j);
}

static void worker_that_rests_and_dies_leaves_no_trace(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	rest(&j, 2, true);
	job_lose(&j, 2, -EPIPE);
	rest(&j, 1, true);
	CU_ASSERT(job_member(&j, 1).rests); /* rank 0 is left */
	job_enter(&j, 2);
	CU_ASSERT_FALSE(job_member(&j, 2).rests);
	job_close(&j);
}

static void who_returns_is_as_slow_as_the_slowest(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:4", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	rest(&j, 2, true);
	for (int i = 0; i < 2; i++) {
		job_push(&j, 0);
		job_push(&j, 1);
	}
	rest(&j, 2, false);
	CU_ASSERT_EQUAL(job_member(&j, 2).clock, 2);
	job_close(&j);
}

/* It starts with the version that it takes part from. */
static void late_worker_that_has_rested_is_not_held_again(void)
{
	struct ledger_job j;

	begin_late(&j, MST_LATE_START_COMMIT);
	come_late(&j, 3, 10 * MS);
	CU_ASSERT(job_member(&j, 3).held);
	rest(&j, 3, true);
	rest(&j, 3, false);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 1);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a late worker starts with the next version", late_worker_starts_with_the_next_version },
	{ "a late worker is held no longer than two steps",
	  late_worker_is_held_no_longer_than_two_steps },
	{ "a late worker starts at once if it is told so",
	  late_worker_starts_at_once_if_it_is_told_so },
	{ "a late worker that can still be in time starts at once",
	  late_worker_that_can_still_be_in_time_starts_at_once },
	{ "only a late push is held", only_a_late_push_is_held },
	{ "a held worker goes on when the step may need it",
	  held_worker_goes_on_when_the_step_may_need_it },
	{ "as many are held as the quorum spares", as_many_are_held_as_the_quorum_spares },
	{ "a step that needs everybody holds nobody", bsp_holds_nobody },
	{ "a held worker is nobody that is waited for", held_worker_is_nobody_that_is_waited_for },
	{ "nobody is held for longer than patience", nobody_is_held_for_longer_than_patience },
	{ "a worker that catches up is not held", worker_that_catches_up_is_not_held },
	{ "a held worker that pushes more is still held",
	  held_worker_that_pushes_more_is_still_held },
	{ "a held worker whose next push commits starts with that version",
	  held_worker_whose_next_push_commits_starts_with_that_version },
	{ "a held worker starts with the version that brings another rule",
	  held_worker_starts_with_the_version_that_brings_another_rule },
	{ "the time between two sessions is nobody's stride",
	  time_between_two_sessions_is_nobodys_stride },
	{ "who returns is as slow as the slowest", who_returns_is_as_slow_as_the_slowest },
	{ "a late worker that has rested is not held again",
	  late_worker_that_has_rested_is_not_held_again },
	{ "a resting worker is not waited for", resting_worker_is_not_waited_for },
	{ "the last worker cannot rest", last_worker_cannot_rest },
	{ "workers that rest return when nobody else is left",
	  workers_that_rest_return_when_nobody_else_is_left },
	{ "nobody returns to a job that has failed", nobody_returns_to_a_job_that_has_failed },
	{ "a worker that rests and dies leaves no trace",
	  worker_that_rests_and_dies_leaves_no_trace },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_late", cases);
}
