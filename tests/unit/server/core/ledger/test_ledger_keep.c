/* SPDX-License-Identifier: MIT */
/*
 * The ledger and pushes that do not ask, followed by an ask of its own: it comes to the leader
 * alone, while the header still goes to other servers, or waits for a commit (PROTOCOL 7).
 */
#include "common/base/clock.h"
#include "tests/policies.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

static struct mst_ledger_cfg sharded(const char *policy, uint32_t workers)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.shards = 2;
	return cfg;
}

/* A push with `keep` of @rank, in @slot. */
static struct mst_lane_header keep(struct ledger_job *j, uint32_t rank, uint32_t slot)
{
	struct mst_lane_header h = job_header(j, rank);

	j->worker[rank].asks--;
	h.epoch = j->worker[rank].epoch[slot];
	h.slot = (uint16_t)slot;
	h.flags = MST_HEADER_FULL;
	return h;
}

static size_t answers(const struct ledger_job *j, uint32_t rank)
{
	return job_count(j, MST_DO_RELEASE, (int)rank);
}

/* ---- an ask waits for what was pushed before it ---- */

static void ask_waits_for_a_header_that_one_server_lacks(void)
{
	for (size_t i = 0; i < POLICY_ROWS; i++) {
		struct mst_ledger_cfg cfg = sharded(policy_rows[i].text, 2);
		struct ledger_job j;

		if (policy_rows[i].rule.quorum < 0)
			continue; /* rank 1 alone commits, and what comes then is late */
		job_born(&j, &cfg);
		struct mst_lane_header h = keep(&j, 0, 0);
		job_full(&j, 0, 0, &h);
		job_ask(&j, 0);
		CU_ASSERT_EQUAL(answers(&j, 0), 0);
		job_push(&j, 1);
		CU_ASSERT_EQUAL(answers(&j, 0), 0);
		job_full(&j, 0, 1, &h);
		CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_COUNTED);
		CU_ASSERT_EQUAL_FATAL(answers(&j, 0), 1);
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 0)->answer.version, job_version(&j));
		CU_ASSERT(job_version(&j) >= 1);
		job_close(&j);
	}
}

static void ask_waits_for_all_headers_before_it(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 1);
	struct mst_lane_header h[2];
	struct ledger_job j;

	job_born(&j, &cfg);
	for (uint32_t slot = 0; slot < 2; slot++) {
		h[slot] = keep(&j, 0, slot);
		job_full(&j, 0, 0, &h[slot]);
	}
	job_ask(&j, 0);
	job_full(&j, 0, 1, &h[0]);
	CU_ASSERT_EQUAL(answers(&j, 0), 0);
	job_full(&j, 0, 1, &h[1]);
	CU_ASSERT_EQUAL_FATAL(answers(&j, 0), 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 0)->answer.version, 2);
	job_close(&j);
}

/* What another server reports first may have been pushed after the ask. */
static void ask_does_not_wait_for_headers_after_it(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 1);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = keep(&j, 0, 0);
	job_full(&j, 0, 1, &h);
	job_ask(&j, 0);
	CU_ASSERT_EQUAL(answers(&j, 0), 1);
	job_close(&j);
}

static void ask_waits_for_a_header_that_waits_for_a_commit(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kasync:1", 5);
	struct ledger_job j;

	cfg.buffers = 3;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 4; rank++) /* the fourth commit waits for a buffer */
		job_push(&j, rank);
	struct mst_lane_header h = keep(&j, 4, 0);
	job_full(&j, 4, 0, &h);
	job_ask(&j, 4);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	CU_ASSERT_EQUAL(answers(&j, 4), 0);
	job_answered(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 4);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_VERDICT, 4)->verdict.counted_in, 5);
	CU_ASSERT_EQUAL(answers(&j, 4), 0);
	job_answered(&j, 1);
	CU_ASSERT_EQUAL_FATAL(answers(&j, 4), 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 4)->answer.version, 5);
	job_close(&j);
}

/* Else: "goes on with clock 1, the slowest had begun 0". */
static void clock_bound_sees_what_was_pushed_before(void)
{
	struct mst_ledger_cfg cfg = sharded("ssp:0", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = keep(&j, 0, 0);
	job_full(&j, 0, 0, &h);
	job_ask(&j, 0);
	job_full(&j, 0, 1, &h);
	CU_ASSERT_EQUAL(job_member(&j, 0).clock, 1);
	CU_ASSERT_EQUAL(answers(&j, 0), 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(answers(&j, 0), 1);
	job_close(&j);
}

/* ---- whose time it is ---- */

/* The others wait for a header that is at one server only: no longer than that server would be
 * waited for, though the worker says that it waits itself. */
static void ask_does_not_excuse_a_header_that_never_comes(void)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct ledger_job j;

	cfg.rule.patience_ns = 2 * MST_SECOND;
	job_born(&j, &cfg);
	job_push(&j, 0);
	struct mst_lane_header h = keep(&j, 1, 0);
	job_full(&j, 1, 0, &h);
	job_ask(&j, 1);
	job_wait(&j, JOB_LEASE_NS - MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, 4 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* While a member stands still with a header of rank 0, the bound has held nobody up, though rank 0
 * is ahead already. */
static void patience_of_the_bound_begins_when_all_is_judged(void)
{
	struct mst_ledger_cfg cfg = sharded("ssp:0", 2);
	struct ledger_job j;

	cfg.rule.patience_ns = 4 * MST_SECOND;
	job_born(&j, &cfg);
	struct mst_lane_header h = keep(&j, 0, 1);
	job_full_all(&j, 0, &h);
	h = keep(&j, 0, 0);
	job_full(&j, 0, 0, &h);
	job_ask(&j, 0);
	job_wait(&j, 3 * MST_SECOND, -1);
	job_ask(&j, 1); /* a sign of life */
	job_answered(&j, 1);
	job_wait(&j, 3 * MST_SECOND / 2, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_full(&j, 0, 1, &h);
	job_wait(&j, 3 * MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	CU_ASSERT_EQUAL(answers(&j, 0), 1);
	job_close(&j);
}

/* ---- ends ---- */

static void end_of_the_job_answers_an_ask_whose_header_never_comes(void)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = keep(&j, 0, 0);
	job_full(&j, 0, 0, &h);
	job_ask(&j, 0);
	job_tell(&j, 1, MST_EV_FINISH);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	CU_ASSERT_EQUAL(answers(&j, 0), 1);
	job_close(&j);
}

static void loss_of_a_server_answers_an_ask_whose_header_never_comes(void)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct mst_ledger_event lost = { .kind = MST_EV_SERVER };
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = keep(&j, 0, 0);
	job_full(&j, 0, 0, &h);
	job_ask(&j, 0);
	job_event(&j, &lost);
	CU_ASSERT(job_finished(&j, MST_FINISH_SERVER));
	CU_ASSERT_EQUAL(answers(&j, 0), 1);
	job_close(&j);
}

static void end_of_the_session_drops_its_ask(void)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = keep(&j, 0, 0);
	job_full(&j, 0, 0, &h);
	job_ask(&j, 0);
	job_tell(&j, 0, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_CANCELLED);
	job_enter(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(answers(&j, 0), 1); /* its START: nothing of the session before delays it */
	job_close(&j);
}

/* ---- who is in a step whose commit waits for a buffer ---- */

static void counted_worker_is_not_answered_before_its_commit_that_is_due(void)
{
	static const char *const policies[] = { "async", "bounded:3", "kbatchasync:1", "softsync:1",
						"ssp:9" };

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct mst_ledger_cfg cfg = job_cfg(policies[i], 4);
		struct ledger_job j;
		cfg.buffers = 3;
		job_born(&j, &cfg);
		for (uint32_t rank = 0; rank < 4; rank++) /* no copy is done */
			job_push(&j, rank);
		CU_ASSERT_EQUAL(job_version(&j), 3);
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_VERDICT, 3)->verdict.counted_in, 4);
		CU_ASSERT_EQUAL(answers(&j, 3), 0);
		job_answered(&j, 0);
		CU_ASSERT_EQUAL_FATAL(answers(&j, 3), 1);
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 3)->answer.version, 4);
		job_close(&j);
	}
}

/* Rank 4's first gradient lets rank 3 go on, and is in the version that rank 3 then gets. */
static void clock_bound_lets_go_on_with_what_it_rests_on(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:1", 5);
	struct ledger_job j;

	cfg.buffers = 3;
	job_born(&j, &cfg);
	job_push(&j, 3);
	job_push(&j, 3);
	for (uint32_t rank = 0; rank < 3; rank++) /* no copy is done */
		job_push(&j, rank);
	CU_ASSERT_EQUAL(job_version(&j), 5);
	job_push(&j, 4);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_VERDICT, 4)->verdict.counted_in, 6);
	CU_ASSERT_EQUAL(job_version(&j), 5);
	CU_ASSERT_EQUAL(answers(&j, 3), 1); /* of its first */
	job_answered(&j, 0);
	CU_ASSERT_EQUAL_FATAL(answers(&j, 3), 2);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 3)->answer.version, 6);
	job_close(&j);
}

/* A worker that waits for a commit that lacks a buffer lets go of the buffers that it had. Here no
 * other buffers are held, so the commit comes. */
static void who_waits_for_a_buffer_holds_none(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 3);
	struct ledger_job j;

	cfg.buffers = 3;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	for (uint32_t rank = 0; rank < 3; rank++) {
		job_push(&j, rank);
		CU_ASSERT_EQUAL(job_version(&j), 4 + rank);
		CU_ASSERT_EQUAL(j.worker[rank].have, 4 + rank);
	}
	job_close(&j);
}

/* ---- who is told to keep what it reads in place ---- */

/* Three buffers besides the history: two may be held by readers in place. */
static struct mst_ledger_cfg read_in_place(void)
{
	struct mst_ledger_cfg cfg = sharded("backup:1", 4);

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.optimizer.row = NULL;
	cfg.history = 4;
	cfg.buffers = 3;
	cfg.in_place = true;
	return cfg;
}

static void ask_often(struct ledger_job *j, uint32_t rank, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++)
		job_ask(j, rank);
}

/* Ranks 0 and 2 read version 3, rank 3 reads version 2, rank 1 still has version 0. */
static void born_with_readers(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = read_in_place();

	job_born(j, &cfg);
	for (uint32_t i = 0; i < 3; i++)
		job_push(j, 0);
	ask_often(j, 2, 3);
	ask_often(j, 3, 2);
	CU_ASSERT_EQUAL_FATAL(j->worker[0].have, 3);
	CU_ASSERT_EQUAL_FATAL(j->worker[2].have, 3);
	CU_ASSERT_EQUAL_FATAL(j->worker[3].have, 2);
	CU_ASSERT_EQUAL(job_last(j, MST_DO_RELEASE, 2)->answer.where, MST_WHERE_IN_PLACE);
	CU_ASSERT_EQUAL(job_last(j, MST_DO_RELEASE, 3)->answer.where, MST_WHERE_IN_PLACE);
}

/* Rank 0 alone makes versions until all that were read at first have left the history. */
static void commits_go_on(struct ledger_job *j, uint64_t from)
{
	for (uint64_t version = from; version <= 10; version++) {
		job_push(j, 0);
		CU_ASSERT_EQUAL_FATAL(job_version(j), version);
	}
}

/* Ranks 0 and 2 ask with the newest version while a header of theirs is not judged. Were its buffer
 * let go meanwhile, rank 1 would read a third one in place: and no commit could come once all three
 * had left the history, since nobody is answered, nor evicted, while a commit is due. */
static void reader_that_keeps_while_its_header_is_judged_holds_up_no_commit(void)
{
	struct mst_lane_header late, good;
	struct ledger_job j;

	born_with_readers(&j);
	late = keep(&j, 2, 0);
	late.tag = 0;
	job_full(&j, 2, 0, &late);
	job_ask(&j, 2);
	good = keep(&j, 0, 0);
	job_full(&j, 0, 0, &good);
	job_ask(&j, 0);
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.where, MST_WHERE_COPIED);
	job_answered(&j, 1);
	job_full(&j, 2, 1, &late);
	CU_ASSERT_EQUAL(job_verdict(&j, 2), MUSTER_LATE);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.where, MST_WHERE_KEEP);
	job_full(&j, 0, 1, &good);
	CU_ASSERT_EQUAL(job_version(&j), 4);
	commits_go_on(&j, 5);
	job_close(&j);
}

/* The same while it waits for the commit of a step that it has passed, and that then waits for
 * everybody again, because all have. */
static void reader_that_keeps_after_all_have_passed_holds_up_no_commit(void)
{
	struct mst_lane_header h;
	struct ledger_job j;

	born_with_readers(&j);
	job_pass(&j, 0);
	job_pass(&j, 2);
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.where, MST_WHERE_COPIED);
	job_answered(&j, 1);
	for (uint32_t rank = 1; rank <= 3; rank += 2) {
		h = keep(&j, rank, 0);
		h.flags |= MST_HEADER_PASS;
		h.weight = 0;
		job_full_all(&j, rank, &h);
	}
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 0)->answer.where, MST_WHERE_KEEP);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.where, MST_WHERE_KEEP);
	commits_go_on(&j, 4);
	job_close(&j);
}

/* What is held while its reader may be told to keep it is let go once it is not the newest. */
static void reader_that_asks_lets_go_of_what_is_not_the_newest(void)
{
	struct ledger_job j;

	born_with_readers(&j);
	for (uint32_t rank = 2; rank <= 3; rank++) {
		struct mst_lane_header h = keep(&j, rank, 0);
		job_full(&j, rank, 0, &h);
		job_ask(&j, rank);
	}
	job_push(&j, 0);
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.where, MST_WHERE_IN_PLACE);
	CU_ASSERT_EQUAL(j.worker[1].have, 1);
	commits_go_on(&j, 5);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "an ask waits for a header that one server lacks",
	  ask_waits_for_a_header_that_one_server_lacks },
	{ "an ask waits for all headers before it", ask_waits_for_all_headers_before_it },
	{ "an ask does not wait for headers after it", ask_does_not_wait_for_headers_after_it },
	{ "an ask waits for a header that waits for a commit",
	  ask_waits_for_a_header_that_waits_for_a_commit },
	{ "the clock bound sees what was pushed before", clock_bound_sees_what_was_pushed_before },
	{ "an ask does not excuse a header that never comes",
	  ask_does_not_excuse_a_header_that_never_comes },
	{ "patience of the bound begins when all is judged",
	  patience_of_the_bound_begins_when_all_is_judged },
	{ "the end of the job answers an ask whose header never comes",
	  end_of_the_job_answers_an_ask_whose_header_never_comes },
	{ "the loss of a server answers an ask whose header never comes",
	  loss_of_a_server_answers_an_ask_whose_header_never_comes },
	{ "the end of the session drops its ask", end_of_the_session_drops_its_ask },
	{ "a counted worker is not answered before its commit that is due",
	  counted_worker_is_not_answered_before_its_commit_that_is_due },
	{ "the clock bound lets go on with what it rests on",
	  clock_bound_lets_go_on_with_what_it_rests_on },
	{ "who waits for a buffer holds none", who_waits_for_a_buffer_holds_none },
	{ "a reader that keeps while its header is judged holds up no commit",
	  reader_that_keeps_while_its_header_is_judged_holds_up_no_commit },
	{ "a reader that keeps after all have passed holds up no commit",
	  reader_that_keeps_after_all_have_passed_holds_up_no_commit },
	{ "a reader that asks lets go of what is not the newest",
	  reader_that_asks_lets_go_of_what_is_not_the_newest },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, pushes that keep", cases);
}
