/* SPDX-License-Identifier: MIT */
/* The ledger and what ends a step before its quorum is there; what the record tells workers; a
 * changed rule (PROTOCOL 3). */
#include <errno.h>

#include "tests/unit/server/core/ledger/ledger_job.h"
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

/* Both may be due when a server has not looked for a while. */
static void deadline_comes_before_patience(void)
{
	struct mst_ledger_cfg cfg = job_cfg("deadline:20,2", 2);
	struct ledger_job j;

	cfg.rule.patience_ns = 20 * MS;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, 20 * MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_close(&j);
}

/* All workers pass, and one of them dies before the passes become void. */
static void hint_is_taken_back_from_sessions_alone(void)
{
	struct mst_ledger_cfg cfg = job_cfg("anytime:20", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, 20 * MS, -1);
	job_pass(&j, 0);
	job_lose(&j, 0, -EPIPE);
	job_pass(&j, 1);
	job_forget(&j);
	job_pass(&j, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, 0), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, 2), 1);
	job_close(&j);
}

/* It was asked to hand in before it rested, and the step that it returns to begins again. */
static void hint_is_taken_back_from_who_returns(void)
{
	struct mst_ledger_cfg cfg = job_cfg("anytime:20", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, 20 * MS, -1);
	CU_ASSERT(asked_to_hand_in(&j, 1));
	struct mst_ledger_event ev = { .kind = MST_EV_REST, .who = j.worker[1].who, .rests = true };
	job_event(&j, &ev);
	job_lose(&j, 0, -EPIPE);
	CU_ASSERT(job_member(&j, 1).awaited);
	CU_ASSERT_FALSE(job_last(&j, MST_DO_ADVISE, 1)->advice.hand_in);
	job_close(&j);
}

static void job_that_fails_begins_no_step_again(void)
{
	struct mst_ledger_cfg cfg = job_cfg("anytime:20", 3);
	struct ledger_job j;

	cfg.rule.on_loss = MST_LOSS_FAIL;
	job_born(&j, &cfg);
	job_wait(&j, 20 * MS, -1);
	job_pass(&j, 0);
	job_pass(&j, 1);
	job_forget(&j);
	job_lose(&j, 2, -EPIPE);
	CU_ASSERT(job_finished(&j, MST_FINISH_LOSS));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 0);
	job_close(&j);
}

static void nobody_hands_in_when_the_job_is_over(void)
{
	struct mst_ledger_cfg cfg = job_cfg("nonblocking", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_forget(&j);
	job_spoilt(&j, 0);
	CU_ASSERT(job_finished(&j, MST_FINISH_SPOILT));
	job_ask(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 0);
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

static void clocks_go_on_under_another_bound(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:1", 2);
	struct mst_rule rule = job_rule("ssp:2");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_policy(&j, &rule);
	job_push(&j, 0); /* brings the rule into force */
	CU_ASSERT_EQUAL(mst_ledger_rule(j.ledger)->bound, 2);
	CU_ASSERT_EQUAL(job_member(&j, 0).clock, 2);
	CU_ASSERT_EQUAL(job_member(&j, 1).clock, 0);
	job_close(&j);
}

static bool called(const struct ledger_job *j, uint32_t rank, uint64_t version)
{
	const struct mst_decision *d = job_last(j, MST_DO_ADVISE, (int)rank);

	return d != NULL && d->advice.hand_in && d->advice.version == version;
}

/* Else it computes for ever when it returns, and patience ends its session. */
static void who_rests_is_asked_for_what_grows_when_the_rule_goes(void)
{
	struct mst_ledger_cfg cfg = job_cfg("anytime:20", 2);
	struct mst_rule rule = job_rule("bsp");
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_ledger_event ev = { .kind = MST_EV_REST, .who = j.worker[1].who, .rests = true };
	job_event(&j, &ev);
	job_policy(&j, &rule);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, 1), 0);
	push_part(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT(called(&j, 1, 0));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, 0), 0); /* it waited */
	push_part(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_LATE);
	ev.rests = false;
	job_event(&j, &ev);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 2);
	job_close(&j);
}

static void who_computes_is_asked_when_a_change_ends_the_step_early(void)
{
	struct mst_ledger_cfg cfg = job_cfg("anytime:20", 3);
	struct mst_rule rule = job_rule("async");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_policy(&j, &rule);
	push_part(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT(called(&j, 1, 0) && called(&j, 2, 0));
	job_forget(&j);
	push_part(&j, 1); /* no version is too old for async */
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	job_close(&j);
}

/* Where workers own it is answered version by version, and may compute on each of them. */
static void who_catches_up_is_asked_for_what_grows_too(void)
{
	struct mst_ledger_cfg cfg = job_cfg("anytime:20", 2);
	struct mst_rule rule = job_rule("backup:1");
	struct ledger_job j;

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.history = 8;
	cfg.optimizer.row = NULL;
	job_born(&j, &cfg);
	struct mst_ledger_event ev = { .kind = MST_EV_REST, .who = j.worker[1].who, .rests = true };
	job_event(&j, &ev);
	push_part(&j, 0);
	ev.rests = false;
	job_event(&j, &ev);
	job_policy(&j, &rule);
	push_part(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	push_part(&j, 1); /* on version 0; the next one is of anytime, too */
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 1);
	CU_ASSERT(called(&j, 1, 1));
	job_close(&j);
}

static void second_change_takes_the_place_of_the_first(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct mst_rule first = job_rule("async"), second = job_rule("backup:2");
	struct mst_rule never = job_rule("ssp:1");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_policy(&j, &first);
	CU_ASSERT_EQUAL(job_version(&j), 1); /* one is enough at once, and then async holds */
	job_policy(&j, &never);
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
	{ "a deadline comes before patience", deadline_comes_before_patience },
	{ "a hint is taken back from sessions alone", hint_is_taken_back_from_sessions_alone },
	{ "a hint is taken back from who returns", hint_is_taken_back_from_who_returns },
	{ "a job that fails begins no step again", job_that_fails_begins_no_step_again },
	{ "nobody hands in when the job is over", nobody_hands_in_when_the_job_is_over },
	{ "a record has the pace of the step that its version opens",
	  record_has_the_pace_of_the_step_that_its_version_opens },
	{ "a count says by the rule it was judged by whether its rank may come again",
	  count_says_by_the_rule_it_was_judged_by_whether_the_rank_may_come_again },
	{ "clocks begin anew under a bound", clocks_begin_anew_under_a_bound },
	{ "clocks go on under another bound", clocks_go_on_under_another_bound },
	{ "who rests is asked for what grows when the rule goes",
	  who_rests_is_asked_for_what_grows_when_the_rule_goes },
	{ "who computes is asked when a change ends the step early",
	  who_computes_is_asked_when_a_change_ends_the_step_early },
	{ "who catches up is asked for what grows, too",
	  who_catches_up_is_asked_for_what_grows_too },
	{ "a second change takes the place of the first",
	  second_change_takes_the_place_of_the_first },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_modes", cases);
}
