/* SPDX-License-Identifier: MIT */
/* The ledger and what ends a step before its quorum is there; late starts; rest; a changed rule
 * (PROTOCOL 2, 3, 7). */
#include <errno.h>

#include "tests/unit/server/core/ledger_job.h"
#include "tests/ut.h"

#define MS UINT64_C(1000000)

/* ---- a hand-in ---- */

static void push_part(struct ledger_job *j, uint32_t rank)
{
	struct mst_lane_header h = job_header(j, rank);

	h.flags &= ~MST_HEADER_FULL;
	job_full_all(j, rank, &h);
}

static bool asked_to_hand_in(const struct ledger_job *j, uint32_t rank)
{
	const struct mst_decision *d = job_last(j, MST_DO_ADVISE, (int)rank);

	return d != NULL && d->advice.hand_in && d->advice.version == job_version(j);
}

static void first_full_batch_has_everybody_hand_in(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	push_part(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 2);
	CU_ASSERT(asked_to_hand_in(&j, 2) && asked_to_hand_in(&j, 3));
	push_part(&j, 3);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	push_part(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 4);
	job_close(&j);
}

static void who_has_nothing_passes_and_is_not_waited_for(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	push_part(&j, 1);
	job_pass(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, 1);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 1)->share_count, 2);
	job_close(&j);
}

static void without_grace_nobody_is_late(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, 10 * JOB_LEASE_NS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	push_part(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void grace_bounds_the_collection(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking:5", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, 50 * MS, -1);
	job_push(&j, 0);
	job_wait(&j, 4 * MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	CU_ASSERT_EQUAL(mst_ledger_deadline(j.ledger), j.now_ns + MS);
	push_part(&j, 1);
	job_wait(&j, MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	push_part(&j, 2);
	CU_ASSERT_EQUAL(job_verdict(&j, 2), MUSTER_LATE);
	job_close(&j);
}

static void who_is_answered_during_the_collection_is_asked_too(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_ask(&j, 1); /* has pulled, and is answered at once */
	job_push(&j, 0);
	CU_ASSERT(asked_to_hand_in(&j, 1));
	job_forget(&j);
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 1);
	CU_ASSERT(asked_to_hand_in(&j, 1));
	job_close(&j);
}

static void worker_that_dies_is_not_collected_from(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_lose(&j, 1, -EPIPE);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* ---- a deadline ---- */

static void deadline_has_everybody_hand_in(void)
{
	struct mst_ledger_cfg cfg = job_cfg("anytime:20", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	CU_ASSERT_EQUAL(mst_ledger_deadline(j.ledger), j.now_ns + 20 * MS);
	job_wait(&j, 19 * MS, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 0);
	job_wait(&j, MS, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 3);
	push_part(&j, 0);
	push_part(&j, 1);
	job_pass(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(mst_ledger_deadline(j.ledger), j.now_ns + 20 * MS);
	job_close(&j);
}

/* Else each of them passes again at once, and the step goes round for ever. */
static void step_for_which_nobody_has_anything_begins_again(void)
{
	struct mst_ledger_cfg cfg = job_cfg("anytime:20", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, 20 * MS, -1);
	job_pass(&j, 0);
	job_forget(&j);
	job_pass(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	for (int rank = 0; rank < 2; rank++) {
		const struct mst_decision *d = job_last(&j, MST_DO_ADVISE, rank);
		CU_ASSERT_PTR_NOT_NULL_FATAL(d);
		CU_ASSERT_FALSE(d->advice.hand_in);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, rank), 1);
		CU_ASSERT(d < job_last(&j, MST_DO_RELEASE, rank));
	}
	CU_ASSERT_EQUAL(mst_ledger_deadline(j.ledger), j.now_ns + 20 * MS);
	job_close(&j);
}

static void everybody_there_before_the_deadline_commits(void)
{
	struct mst_ledger_cfg cfg = job_cfg("anytime:20", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void deadline_commits_with_those_who_are_there(void)
{
	struct mst_ledger_cfg cfg = job_cfg("deadline:20,3", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	job_wait(&j, 19 * MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_wait(&j, MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 1)->share_count, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 0);
	job_push(&j, 0);
	job_push(&j, 1);
	job_push(&j, 2); /* late: its tag is version 0 */
	CU_ASSERT_EQUAL(job_verdict(&j, 2), MUSTER_LATE);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 2); /* the quorum came before the deadline */
	job_close(&j);
}

static void deadline_that_nobody_meets_waits_for_the_first(void)
{
	struct mst_ledger_cfg cfg = job_cfg("deadline:20,2", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, 100 * MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	CU_ASSERT(mst_ledger_deadline(j.ledger) > j.now_ns);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* The time in which the server does not listen is not the workers'. */
static void deadline_stands_still_while_nobody_listens(void)
{
	struct mst_ledger_cfg cfg = job_cfg("deadline:20000,2", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	j.now_ns += 10 * JOB_LEASE_NS; /* nothing is heard meanwhile */
	job_tick(&j);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_wait(&j, 20000 * MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* ---- what the record says ---- */

static void record_has_the_pace_of_the_step_that_its_version_opens(void)
{
	struct mst_ledger_cfg cfg = job_cfg("easgd:7,0.25", 2);
	struct mst_rule rule = job_rule("downpour:3,5");
	struct ledger_job j;

	job_born(&j, &cfg);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 0)->pace.local_steps, 7);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 0)->pace.alpha, 0.25);
	job_policy(&j, &rule);
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 0)->pace.local_steps, 7);
	job_push(&j, 0);
	const struct mst_record *next = mst_ledger_record_of(j.ledger, 1);
	CU_ASSERT_EQUAL(next->pace.local_steps, 0);
	CU_ASSERT_EQUAL(next->pace.push_every, 3);
	CU_ASSERT_EQUAL(next->pace.fetch_every, 5);
	CU_ASSERT_EQUAL(next->window, MST_WINDOW_MAX);
	job_close(&j);
}

static void count_says_by_the_rule_it_was_judged_by_whether_the_rank_may_come_again(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct mst_rule rule = job_rule("bsp");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_policy(&j, &rule);
	job_push(&j, 0); /* counted under async; its commit brings bsp into force */
	CU_ASSERT(job_last(&j, MST_DO_COUNT, 0)->count.repeats);
	job_push(&j, 0);
	CU_ASSERT_FALSE(job_last(&j, MST_DO_COUNT, 0)->count.repeats);
	job_close(&j);
}

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

/* ---- a changed rule ---- */

/* Else the fast workers wait until the slowest has made up for all that they did before. */
static void clocks_begin_anew_under_a_bound(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct mst_rule rule = job_rule("ssp:1");
	struct ledger_job j;

	job_born(&j, &cfg);
	for (int i = 0; i < 20; i++)
		job_push(&j, 0);
	job_push(&j, 1);
	job_policy(&j, &rule);
	job_push(&j, 0); /* brings the rule into force */
	CU_ASSERT_EQUAL(job_member(&j, 0).clock, job_member(&j, 1).clock);
	job_forget(&j);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 1);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 1);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 2);
	job_close(&j);
}

static void second_change_takes_the_place_of_the_first(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct mst_rule first = job_rule("async"), second = job_rule("backup:2");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_policy(&j, &first);
	CU_ASSERT_EQUAL(job_version(&j), 1); /* one is enough at once, and then async holds */
	job_policy(&j, &second);
	job_policy(&j, &first);
	job_policy(&j, &second);
	job_push(&j, 1);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(mst_ledger_rule(j.ledger)->quorum, 2);
	CU_ASSERT_EQUAL(mst_ledger_rule(j.ledger)->release, MST_RELEASE_COMMIT);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "the first full batch has everybody hand in", first_full_batch_has_everybody_hand_in },
	{ "who has nothing passes, and is not waited for",
	  who_has_nothing_passes_and_is_not_waited_for },
	{ "without grace nobody is late", without_grace_nobody_is_late },
	{ "grace bounds the collection", grace_bounds_the_collection },
	{ "who is answered during the collection is asked too",
	  who_is_answered_during_the_collection_is_asked_too },
	{ "a worker that dies is not collected from", worker_that_dies_is_not_collected_from },
	{ "a deadline has everybody hand in", deadline_has_everybody_hand_in },
	{ "a step for which nobody has anything begins again",
	  step_for_which_nobody_has_anything_begins_again },
	{ "everybody there before the deadline commits",
	  everybody_there_before_the_deadline_commits },
	{ "a deadline commits with those who are there",
	  deadline_commits_with_those_who_are_there },
	{ "a deadline that nobody meets waits for the first",
	  deadline_that_nobody_meets_waits_for_the_first },
	{ "a deadline stands still while nobody listens",
	  deadline_stands_still_while_nobody_listens },
	{ "a record has the pace of the step that its version opens",
	  record_has_the_pace_of_the_step_that_its_version_opens },
	{ "a count says by the rule it was judged by whether its rank may come again",
	  count_says_by_the_rule_it_was_judged_by_whether_the_rank_may_come_again },
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
	{ "a worker that catches up is not held", worker_that_catches_up_is_not_held },
	{ "a resting worker is not waited for", resting_worker_is_not_waited_for },
	{ "the last worker cannot rest", last_worker_cannot_rest },
	{ "workers that rest return when nobody else is left",
	  workers_that_rest_return_when_nobody_else_is_left },
	{ "a worker that rests and dies leaves no trace",
	  worker_that_rests_and_dies_leaves_no_trace },
	{ "clocks begin anew under a bound", clocks_begin_anew_under_a_bound },
	{ "a second change takes the place of the first",
	  second_change_takes_the_place_of_the_first },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_modes", cases);
}
