/* SPDX-License-Identifier: MIT */
/* The ranks that are waited for at the start of a later generation, and the number that it takes
 * (PROTOCOL 11). */
#include <errno.h>

#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/transfer_case.h"
#include "tests/ut.h"

/* Ids of generations: of this one, and of earlier ones. */
#define OWN 7u
#define X 11u
#define Y 22u

#define RETURN_NS (10 * MST_SECOND)
#define SOON_NS (100 * MST_MS)

static const struct mst_claimed nothing;

/* Version 9 of generation 2, which was the last start. */
static const struct mst_claimed nine = { .number = 2,
					 .version = 9,
					 .made = X,
					 .made_before = X,
					 .samples = 90,
					 .seen = 2,
					 .seen_id = X };

static struct mst_claimed seen(uint64_t number, uint64_t id)
{
	struct mst_claimed claimed = nine;

	claimed.seen = number;
	claimed.seen_id = id;
	return claimed;
}

static void open_job(struct ledger_job *j, uint32_t workers, uint32_t least)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", workers);

	cfg.generation_id = OWN;
	cfg.return_ns = RETURN_NS;
	cfg.join_until_ns = MST_NEVER;
	cfg.rule.min_workers = least;
	job_open(j, &cfg);
}

static void say_hello(struct ledger_job *j, uint32_t rank, const struct mst_claimed *claimed)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };

	ev.join.rank = (int32_t)rank;
	ev.join.comes_back = true;
	ev.join.claimed = *claimed;
	ev.join.incarnation = 1;
	job_event(j, &ev);
}

static void say_start(struct ledger_job *j, uint32_t rank, bool offers)
{
	job_link(j, rank, 0);
	job_start(j, rank, offers);
}

static void enter(struct ledger_job *j, uint32_t rank, const struct mst_claimed *claimed)
{
	say_hello(j, rank, claimed);
	say_start(j, rank, claimed->number > 0);
}

/* The first @count, with the same claim. */
static void enter_first(struct ledger_job *j, uint32_t count, const struct mst_claimed *claimed)
{
	for (uint32_t rank = 0; rank < count; rank++)
		enter(j, rank, claimed);
}

static bool has_begun(const struct ledger_job *j, uint64_t number)
{
	return mst_ledger_started(j->ledger) && mst_ledger_generation(j->ledger).number == number;
}

/* The worker that was told to send the version has sent it: another that is not there may come, and
 * lack it. */
static void bring(struct ledger_job *j)
{
	const struct mst_decision *d = job_last(j, MST_DO_SEND_STATE, -1);
	struct mst_ledger_event ev = { .kind = MST_EV_STATE };

	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	CU_ASSERT_FALSE(mst_ledger_started(j->ledger));
	ev.who = d->who;
	job_event(j, &ev);
}

static bool begins(struct ledger_job *j, uint64_t number)
{
	bring(j);
	return has_begun(j, number);
}

static bool is_answered(const struct ledger_job *j, uint32_t rank, uint64_t version,
			enum mst_where where)
{
	const struct mst_decision *d = job_last(j, MST_DO_RELEASE, (int)rank);

	return d != NULL && d->answer.version == version && d->answer.where == where;
}

static uint64_t number_told(const struct ledger_job *j, uint32_t rank)
{
	const struct mst_decision *d = job_last(j, MST_DO_ADMIT, (int)rank);

	return d != NULL ? d->join.number : 0;
}

/* ---- who is waited for ---- */

static void all_ranks_start_at_once(void)
{
	struct ledger_job j;

	open_job(&j, 4, 3);
	enter_first(&j, 4, &nine);
	CU_ASSERT(has_begun(&j, 3));
	job_close(&j);
}

/* A host with the server and a rank is lost. */
static void rank_that_does_not_come_back_is_waited_for_so_long(void)
{
	struct ledger_job j;

	open_job(&j, 4, 3);
	enter_first(&j, 3, &nine);
	job_wait(&j, RETURN_NS - SOON_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	CU_ASSERT(mst_ledger_deadline(j.ledger) <= j.now_ns + SOON_NS);
	job_wait(&j, SOON_NS, -1);
	CU_ASSERT(begins(&j, 3));
	CU_ASSERT_EQUAL(job_version(&j), 9);
	transfer_case_versions(&j, 3, 2); /* the three make versions alone */
	CU_ASSERT_EQUAL(job_version(&j), 11);
	job_close(&j);
}

/* The first that comes back begins the time, and not the server. */
static void time_runs_from_the_first_that_comes_back(void)
{
	struct ledger_job j;

	open_job(&j, 3, 2);
	enter(&j, 0, &nothing);
	job_wait(&j, 3 * RETURN_NS, -1);
	enter(&j, 1, &nine);
	job_wait(&j, RETURN_NS - SOON_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	enter(&j, 2, &nine);
	CU_ASSERT(has_begun(&j, 3));
	job_close(&j);
}

static void half_of_the_ranks_do_not_start(void)
{
	struct ledger_job j;

	open_job(&j, 4, 3);
	enter_first(&j, 2, &nine);
	job_wait(&j, 5 * RETURN_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	enter(&j, 2, &nine);
	CU_ASSERT(begins(&j, 3)); /* the time is over */
	job_close(&j);
}

static void fewer_than_the_least_do_not_start(void)
{
	struct ledger_job j;

	open_job(&j, 5, 4);
	enter_first(&j, 3, &nine);
	job_wait(&j, 2 * RETURN_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	enter(&j, 3, &nothing);
	CU_ASSERT(begins(&j, 3));
	job_close(&j);
}

/* Else a job begins anew though a rank that is away has everything, or a number is drawn that the
 * lost memory of a process knew. */
static void new_processes_are_no_part_of_the_majority(void)
{
	struct ledger_job j;

	open_job(&j, 3, 2);
	enter(&j, 0, &nothing);
	enter(&j, 1, &nine);
	job_wait(&j, 5 * RETURN_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	enter(&j, 2, &nine); /* and then all are there */
	CU_ASSERT(has_begun(&j, 3));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 0); /* it takes a state */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 0), 1);
	job_close(&j);
}

/* It has been in the last generation, and was late for each of its versions. */
static const struct mst_claimed late = { .seen = 2, .seen_id = X };

static void rank_that_has_had_no_version_yet_counts(void)
{
	struct ledger_job j;

	open_job(&j, 4, 3);
	enter(&j, 0, &late); /* time runs from here */
	enter(&j, 1, &nine);
	enter(&j, 2, &nine);
	job_wait(&j, RETURN_NS - SOON_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	job_wait(&j, SOON_NS, -1);
	CU_ASSERT(begins(&j, 3));
	CU_ASSERT_EQUAL(job_version(&j), 9);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 0); /* it takes a state */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 0), 1);
	job_close(&j);
}

/* The fourth may have any of them. */
static void without_any_version_all_are_waited_for(void)
{
	struct ledger_job j;

	open_job(&j, 4, 3);
	enter_first(&j, 3, &late);
	job_wait(&j, 5 * RETURN_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	enter(&j, 3, &nine);
	CU_ASSERT(has_begun(&j, 3));
	CU_ASSERT_EQUAL(job_version(&j), 9);
	job_close(&j);
	open_job(&j, 4, 3);
	enter_first(&j, 3, &late);
	enter(&j, 3, &nothing);
	CU_ASSERT(has_begun(&j, 3)); /* no version is left of the run: it begins anew */
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_close(&j);
}

static void without_a_claim_all_are_waited_for(void)
{
	struct ledger_job j;

	open_job(&j, 3, 2);
	enter_first(&j, 2, &nothing);
	job_wait(&j, 5 * RETURN_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	enter(&j, 2, &nothing);
	CU_ASSERT(has_begun(&j, 1));
	job_close(&j);
}

static void with_a_least_number_of_at_most_half_all_are_waited_for(void)
{
	struct ledger_job j;

	open_job(&j, 4, 2);
	enter_first(&j, 3, &nine);
	job_wait(&j, 5 * RETURN_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	enter(&j, 3, &nine);
	CU_ASSERT(has_begun(&j, 3));
	job_close(&j);
}

static void where_a_loss_fails_the_job_all_are_waited_for(void)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", 3);
	struct ledger_job j;

	cfg.generation_id = OWN;
	cfg.return_ns = RETURN_NS;
	cfg.join_until_ns = MST_NEVER;
	cfg.rule.min_workers = 2;
	cfg.rule.on_loss = MST_LOSS_FAIL;
	job_open(&j, &cfg);
	enter_first(&j, 2, &nine);
	job_wait(&j, 5 * RETURN_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	job_close(&j);
}

/* It computes, and is there. */
static void rank_that_has_said_hello_is_waited_for_as_long_as_patience(void)
{
	struct ledger_job j;

	open_job(&j, 4, 3);
	enter_first(&j, 3, &nine);
	say_hello(&j, 3, &nine);
	job_wait(&j, JOB_PATIENCE_NS - SOON_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	job_wait(&j, SOON_NS, -1);
	CU_ASSERT(has_begun(&j, 3));
	say_start(&j, 3, true); /* it may come yet */
	transfer_case_versions(&j, 3, 1);
	CU_ASSERT(is_answered(&j, 3, 10, MST_WHERE_COPIED));
	job_close(&j);
}

static void rank_whose_session_ends_before_the_start_is_as_one_that_has_not_come(void)
{
	struct ledger_job j;

	open_job(&j, 4, 3);
	enter_first(&j, 3, &nine);
	say_hello(&j, 3, &nine);
	job_wait(&j, 2 * RETURN_NS, -1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	job_lose(&j, 3, -EPIPE);
	CU_ASSERT(begins(&j, 3));
	job_close(&j);
}

static void what_one_has_that_is_not_waited_for_is_not_begun_with(void)
{
	struct mst_claimed ten = nine;
	struct ledger_job j;

	ten.version = 10;
	open_job(&j, 4, 3);
	enter_first(&j, 3, &nine);
	say_hello(&j, 3, &ten);
	job_wait(&j, JOB_PATIENCE_NS, -1);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_SEND_STATE, 0), 1);
	CU_ASSERT(begins(&j, 3));
	CU_ASSERT_EQUAL(job_version(&j), 9);
	say_start(&j, 3, true);
	transfer_case_versions(&j, 3, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 3), 1); /* its line has ended */
	job_close(&j);
}

/* It was cut off for a moment, and has what led to the version that the others began with. */
static void rank_that_comes_later_gets_the_version_that_it_lacks(void)
{
	struct mst_claimed eight = nine;
	struct ledger_job j;

	eight.version = 8;
	open_job(&j, 4, 3);
	enter_first(&j, 3, &nine);
	job_wait(&j, RETURN_NS, -1);
	CU_ASSERT(begins(&j, 3));
	enter(&j, 3, &eight);
	transfer_case_versions(&j, 3, 1); /* it takes part from the next step on */
	CU_ASSERT(is_answered(&j, 3, 9, MST_WHERE_COPIED));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 3), 0);
	job_close(&j);
}

/* Nobody sends what it took with it. */
static void rank_that_is_gone_is_not_asked_for_what_it_had(void)
{
	struct mst_claimed ten = nine;
	struct ledger_job j;

	ten.version = 10;
	ten.made = Y;
	open_job(&j, 4, 3);
	enter(&j, 3, &ten);
	job_lose(&j, 3, -EPIPE);
	enter_first(&j, 3, &nine);
	job_wait(&j, RETURN_NS, -1);
	CU_ASSERT(begins(&j, 3));
	CU_ASSERT_EQUAL(job_version(&j), 9);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 3), 0);
	job_close(&j);
}

/* ---- numbers ---- */

/* Else two starts that share a rank have the same number, and what it was told counted in one of
 * them is lost in favour of the other. */
static void number_is_above_all_starts_that_a_rank_has_taken_part_in(void)
{
	const struct mst_claimed later = seen(5, Y);
	struct ledger_job j;

	open_job(&j, 3, 2);
	enter(&j, 0, &later);
	enter(&j, 1, &nine);
	enter(&j, 2, &nine);
	CU_ASSERT(number_told(&j, 0) == 6 && number_told(&j, 1) == 6);
	CU_ASSERT(has_begun(&j, 6));
	CU_ASSERT_EQUAL(job_version(&j), 9);
	job_close(&j);
}

static void who_was_told_of_a_lower_number_says_hello_again(void)
{
	const struct mst_claimed later = seen(3, Y);
	struct ledger_job j;

	open_job(&j, 4, 3);
	enter(&j, 0, &nine);
	enter(&j, 1, &nothing);
	say_hello(&j, 2, &nine);
	CU_ASSERT_EQUAL(number_told(&j, 0), 3);
	enter(&j, 3, &later);
	CU_ASSERT_EQUAL(number_told(&j, 3), 4);
	CU_ASSERT_TRUE(job_evicted(&j, 0, MST_EVICT_OUTNUMBERED));
	CU_ASSERT_TRUE(job_evicted(&j, 2, MST_EVICT_OUTNUMBERED));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 1), 0); /* it remembers nothing */
	CU_ASSERT_EQUAL(mst_evict_word(MST_EVICT_OUTNUMBERED, true), MST_AGAIN);
	/* What this start has told is no reason for another number. */
	const struct mst_claimed own = seen(3, OWN);
	enter(&j, 0, &own);
	enter(&j, 2, &own);
	CU_ASSERT_EQUAL(number_told(&j, 0), 4);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 2);
	CU_ASSERT(has_begun(&j, 4));
	job_close(&j);
}

/* The one that came first may have come long ago; they have all the time again. */
static void after_another_number_the_time_begins_anew(void)
{
	const struct mst_claimed later = seen(3, Y);
	struct ledger_job j;

	open_job(&j, 4, 3);
	enter(&j, 0, &nine);
	job_wait(&j, RETURN_NS, -1);
	enter(&j, 1, &later);
	enter(&j, 2, &nine);
	enter(&j, 0, &nine);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	job_wait(&j, RETURN_NS, -1);
	CU_ASSERT(begins(&j, 4));
	job_close(&j);
}

/* A leader that stood still, and whose successor has had more than half of the ranks. */
static void leader_ends_when_a_rank_has_been_at_a_later_start(void)
{
	const struct mst_claimed same = seen(3, Y), later = seen(4, Y);

	for (int ends = 0; ends < 2; ends++) {
		struct ledger_job j;

		open_job(&j, 3, 2);
		enter_first(&j, 3, &nine);
		CU_ASSERT(has_begun(&j, 3));
		job_lose(&j, 2, -EPIPE);
		say_hello(&j, 2, ends ? &later : &same);
		CU_ASSERT_EQUAL(job_finished(&j, MST_FINISH_SUPERSEDED), ends);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADMIT, 2), 2 - ends);
		if (ends)
			CU_ASSERT_EQUAL(job_last(&j, MST_DO_REFUSE, -1)->join.error, MST_AGAIN);
		job_push(&j, 0);
		job_push(&j, 1);
		CU_ASSERT(!ends || job_version(&j) == 9);
		job_close(&j);
	}
	CU_ASSERT_EQUAL(mst_finish_word(MST_FINISH_SUPERSEDED, true), MST_AGAIN);
}

/* What one worker has brought is written over by what the next one is to send. */
static void version_is_brought_again_if_who_sends_it_is_lost(void)
{
	struct mst_claimed eight = nine, seven = nine;
	struct ledger_job j;

	eight.version = 8;
	seven.version = 7;
	open_job(&j, 3, 2);
	enter(&j, 0, &eight);
	enter(&j, 1, &seven);
	enter(&j, 2, &seven);
	job_lose(&j, 2, 0);
	bring(&j); /* version 8, of rank 0 */
	job_lose(&j, 1, 0);
	enter(&j, 1, &nine);
	enter(&j, 2, &nine);
	job_lose(&j, 1, 0);
	enter(&j, 1, &seven);
	const struct mst_decision *d = job_last(&j, MST_DO_SEND_STATE, 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	CU_ASSERT_EQUAL(d->commit.version, 9);
	CU_ASSERT(begins(&j, 3));
	job_close(&j);
}

/* ---- the time to join ---- */

#define JOIN_NS (60 * MST_SECOND)

/* Rank 0 has said START. Rank 1 has said hello alone: it is in a step, or is away for good. */
static void open_with_one_in_a_step(struct ledger_job *j, uint64_t patience_ns)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", 2);

	cfg.generation_id = OWN;
	cfg.join_until_ns = JOIN_NS;
	cfg.lease_ns = 10 * JOIN_NS;
	cfg.rule.patience_ns = patience_ns;
	job_open(j, &cfg);
	say_hello(j, 1, &nine);
}

static void step_may_take_longer_than_the_time_to_join(void)
{
	for (int ends = 0; ends < 2; ends++) {
		struct ledger_job j;

		open_with_one_in_a_step(&j, 2 * JOIN_NS);
		enter(&j, 0, &nine);
		job_wait(&j, JOIN_NS + JOIN_NS / 2, -1);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
		if (ends) {
			say_start(&j, 1, true);
			CU_ASSERT(has_begun(&j, 3));
		} else {
			job_wait(&j, JOIN_NS, -1);
			CU_ASSERT(job_finished(&j, MST_FINISH_NOT_BEGUN));
		}
		job_close(&j);
	}
}

/* So it is told to come again, as one that has said START is. */
static void job_has_not_begun_though_nobody_has_said_start(void)
{
	struct ledger_job j;

	open_with_one_in_a_step(&j, MST_SECOND);
	job_wait(&j, JOIN_NS, -1);
	CU_ASSERT(job_finished(&j, MST_FINISH_NOT_BEGUN));
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a step may take longer than the time to join",
	  step_may_take_longer_than_the_time_to_join },
	{ "a job has not begun, though nobody has said START",
	  job_has_not_begun_though_nobody_has_said_start },
	{ "a version is brought again if who sends it is lost",
	  version_is_brought_again_if_who_sends_it_is_lost },
	{ "all ranks start at once", all_ranks_start_at_once },
	{ "a rank that does not come back is waited for so long",
	  rank_that_does_not_come_back_is_waited_for_so_long },
	{ "the time runs from the first that comes back",
	  time_runs_from_the_first_that_comes_back },
	{ "half of the ranks do not start", half_of_the_ranks_do_not_start },
	{ "fewer than the least do not start", fewer_than_the_least_do_not_start },
	{ "new processes are no part of the majority", new_processes_are_no_part_of_the_majority },
	{ "a rank that has had no version yet counts", rank_that_has_had_no_version_yet_counts },
	{ "without any version all are waited for", without_any_version_all_are_waited_for },
	{ "without a claim all are waited for", without_a_claim_all_are_waited_for },
	{ "with a least number of at most half all are waited for",
	  with_a_least_number_of_at_most_half_all_are_waited_for },
	{ "where a loss fails the job all are waited for",
	  where_a_loss_fails_the_job_all_are_waited_for },
	{ "a rank that has said hello is waited for as long as patience",
	  rank_that_has_said_hello_is_waited_for_as_long_as_patience },
	{ "a rank whose session ends before the start is as one that has not come",
	  rank_whose_session_ends_before_the_start_is_as_one_that_has_not_come },
	{ "what one has that is not waited for is not begun with",
	  what_one_has_that_is_not_waited_for_is_not_begun_with },
	{ "a rank that comes later gets the version that it lacks",
	  rank_that_comes_later_gets_the_version_that_it_lacks },
	{ "a rank that is gone is not asked for what it had",
	  rank_that_is_gone_is_not_asked_for_what_it_had },
	{ "the number is above all starts that a rank has taken part in",
	  number_is_above_all_starts_that_a_rank_has_taken_part_in },
	{ "who was told of a lower number says hello again",
	  who_was_told_of_a_lower_number_says_hello_again },
	{ "after another number the time begins anew", after_another_number_the_time_begins_anew },
	{ "a leader ends when a rank has been at a later start",
	  leader_ends_when_a_rank_has_been_at_a_later_start },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("who is waited for at a start", cases);
}
