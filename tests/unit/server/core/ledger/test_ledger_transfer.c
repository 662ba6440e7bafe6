/* SPDX-License-Identifier: MIT */
/* The ledger and workers that come back with the state of another (PROTOCOL 7). */
#include <errno.h>

#include "tests/unit/server/core/ledger/transfer_case.h"
#include "tests/ut.h"

/* Rank 2 of three workers under bsp is lost at version 5, and joins again at version 10. */
static void begin_lost(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", 3);

	transfer_case_begin(j, &cfg);
	transfer_case_versions(j, 3, 5);
	job_lose(j, 2, -EPIPE);
	transfer_case_versions(j, 2, 5);
	transfer_case_enter(j, 2);
	/* it takes part from the next step on, and is found to lack versions then */
	transfer_case_versions(j, 2, 1);
}

static void one_that_joins_late_gets_a_state_and_what_follows(void)
{
	struct ledger_job j;

	begin_lost(&j);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, -1), 1);
	uint32_t donor = transfer_case_asked(&j)->who.rank;
	uint64_t number = transfer_case_asked(&j)->state.number, version = job_version(&j);
	transfer_case_versions(&j, 2, 2); /* nobody waits for it */
	CU_ASSERT_EQUAL(job_version(&j), version + 2);
	transfer_case_given(&j, donor, number, version);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 1);
	transfer_case_versions(&j, 2, 1);
	transfer_case_taken(&j, 2, number, version);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, version + 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 1);
	CU_ASSERT_TRUE(job_member(&j, 2).behind);
	for (uint64_t v = version + 2; v <= version + 3; v++) {
		job_answered(&j, 2);
		job_ask(&j, 2);
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, v);
	}
	CU_ASSERT_FALSE(job_member(&j, 2).behind);
	transfer_case_versions(&j, 2, 1);
	CU_ASSERT_TRUE(job_member(&j, 2).awaited);
	job_close(&j);
}

/* The versions are there, but not the moments that an optimiser may have begun with. */
static void one_that_joins_late_takes_a_state_though_no_version_is_gone(void)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("backup:1", 2);
	struct ledger_job j;

	transfer_case_begin(&j, &cfg);
	job_lose(&j, 1, -EPIPE);
	transfer_case_enter(&j, 1);
	transfer_case_versions(&j, 1, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, 0), 1);
	job_close(&j);
}

static void one_that_joins_late_where_nobody_can_give_gets_the_versions(void)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("backup:1", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_enter(&j, 0);
	transfer_case_enter(&j, 1);
	job_lose(&j, 1, -EPIPE);
	transfer_case_enter(&j, 1);
	transfer_case_versions(&j, 1, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 1), 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 0);
	job_close(&j);
}

/* Without the pin, the version after the state would be gone. The donor may have been slow, so
 * another is asked each time. The worker is never refused for it: a busy host is no fault. */
static void no_more_versions_are_pinned_than_there_are_buffers_for(void)
{
	struct ledger_job j;

	begin_lost(&j);
	for (uint64_t outrun = 1; outrun <= 5; outrun++) {
		uint64_t number = transfer_case_asked(&j)->state.number, version = job_version(&j);
		uint32_t donor = transfer_case_asked(&j)->who.rank;
		transfer_case_given(&j, donor, number, version);
		transfer_case_versions(&j, 2, 6); /* 5 are kept */
		transfer_case_taken(&j, 2, number, version);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1 + outrun);
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_BEHIND, 2)->state.number, outrun);
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_BEHIND, 2)->state.version, job_version(&j));
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 1 + outrun);
		CU_ASSERT_EQUAL(transfer_case_asked(&j)->who.rank, 1 - donor);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 1); /* of the session that was lost */
	uint64_t number = transfer_case_asked(&j)->state.number, version = job_version(&j);
	transfer_case_given(&j, transfer_case_asked(&j)->who.rank, number, version);
	transfer_case_taken(&j, 2, number, version);
	CU_ASSERT_FALSE(job_member(&j, 2).behind);
	job_close(&j);
}

/* There is nobody else, so the same worker is asked again. */
static void the_only_donor_is_asked_again_by_one_that_was_outrun(void)
{
	struct ledger_job j;

	begin_lost(&j);
	uint64_t number = transfer_case_asked(&j)->state.number, version = job_version(&j);
	uint32_t donor = transfer_case_asked(&j)->who.rank;
	transfer_case_given(&j, donor, number, version);
	job_leave(&j, 1 - donor, j.worker[1 - donor].seq);
	for (int i = 0; i < 6; i++) {
		job_push(&j, donor);
		job_answered(&j, donor);
	}
	transfer_case_taken(&j, 2, number, version);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, (int)donor), 2);
	job_close(&j);
}

static void rest(struct ledger_job *j, uint32_t rank)
{
	struct mst_ledger_event ev = { .kind = MST_EV_REST,
				       .who = j->worker[rank].who,
				       .rests = true };

	job_event(j, &ev);
}

static void goes(struct ledger_job *j, uint32_t rank, int how)
{
	if (how == 0)
		job_lose(j, rank, -EPIPE);
	else if (how == 1)
		job_tell(j, rank, MST_EV_EVICT);
	else if (how == 2)
		job_leave(j, rank, j->worker[rank].seq);
	else
		rest(j, rank); /* and may be in a wait until it returns */
}

static void another_is_asked_at_once_when_the_donor_goes_or_rests(void)
{
	struct ledger_job j;

	for (int how = 0; how < 4; how++) {
		begin_lost(&j);
		uint32_t donor = transfer_case_asked(&j)->who.rank;
		uint64_t number = transfer_case_asked(&j)->state.number;
		goes(&j, donor, how);
		CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, -1), 2);
		CU_ASSERT_EQUAL(transfer_case_asked(&j)->who.rank, 1 - donor);
		transfer_case_given(&j, donor, number, job_version(&j)); /* it was on its way */
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 0);
		transfer_case_given(&j, 1 - donor, transfer_case_asked(&j)->state.number,
				    job_version(&j));
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 1);
		job_close(&j);
	}
}

/* Rank 2 of four workers catches up with a state, and rank 3 waits for one: rank 0 has been asked
 * for it. */
static void begin_two_lost(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", 4);

	transfer_case_begin(j, &cfg);
	transfer_case_versions(j, 4, 5);
	job_lose(j, 2, -EPIPE);
	job_lose(j, 3, -EPIPE);
	transfer_case_versions(j, 2, 5);
	transfer_case_enter(j, 2);
	transfer_case_versions(j, 2, 1);
	uint64_t number = transfer_case_asked(j)->state.number, version = job_version(j);
	transfer_case_given(j, transfer_case_asked(j)->who.rank, number, version);
	transfer_case_enter(j, 3);
	transfer_case_versions(j, 2, 3);
	transfer_case_taken(j, 2, number, version);
}

static void catch_up(struct ledger_job *j, uint32_t rank)
{
	while (job_member(j, rank).behind) {
		job_answered(j, rank);
		job_ask(j, rank);
	}
}

static void who_is_about_to_catch_up_is_waited_for_and_asked(void)
{
	struct ledger_job j;

	begin_two_lost(&j);
	CU_ASSERT_TRUE(job_member(&j, 2).behind);
	for (int i = 0; i < 2; i++)
		transfer_case_given(&j, transfer_case_asked(&j)->who.rank,
				    transfer_case_asked(&j)->state.number, MST_VERSION_NONE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 3), 1); /* of the session that was lost */
	catch_up(&j, 2);
	CU_ASSERT_EQUAL(transfer_case_asked(&j)->who.rank, 2);
	transfer_case_given(&j, 2, transfer_case_asked(&j)->state.number, job_version(&j));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 3), 1);
	job_close(&j);
}

/* Each donor takes all of its time, and gives nothing. */
static void the_time_of_slow_donors_is_not_taken_off_that_of_who_waits(void)
{
	struct ledger_job j;

	begin_two_lost(&j);
	for (int half = 0; half < 8; half++) {
		job_wait(&j, JOB_PATIENCE_NS / 2, -1);
		transfer_case_versions(&j, 2, 1);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, 0), 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 3), 1);
	for (int half = 0; half < 4; half++) {
		CU_ASSERT_FALSE(job_evicted(&j, 3, MST_EVICT_NO_STATE));
		job_wait(&j, JOB_PATIENCE_NS / 2, -1);
		transfer_case_versions(&j, 2, 1);
	}
	CU_ASSERT_TRUE(job_evicted(&j, 3, MST_EVICT_NO_STATE));
	job_close(&j);
}

static void what_was_pinned_is_let_go_when_the_taker_is_lost(void)
{
	struct ledger_job j;

	begin_lost(&j); /* the donor gives, and nobody takes */
	uint64_t asked_at = job_version(&j);
	transfer_case_versions(&j, 2, 4);
	CU_ASSERT_PTR_NOT_NULL(mst_ledger_record_of(j.ledger, asked_at + 1));
	job_lose(&j, 2, -EPIPE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 1);
	CU_ASSERT_PTR_NULL(mst_ledger_record_of(j.ledger, asked_at + 1));
	job_close(&j);

	begin_lost(&j);
	uint64_t version = job_version(&j);
	transfer_case_given(&j, transfer_case_asked(&j)->who.rank,
			    transfer_case_asked(&j)->state.number, version);
	transfer_case_versions(&j, 2, 4);
	CU_ASSERT_PTR_NOT_NULL(mst_ledger_record_of(j.ledger, version + 1));
	job_lose(&j, 2, -EPIPE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 1);
	CU_ASSERT_PTR_NULL(mst_ledger_record_of(j.ledger, version + 1));
	transfer_case_versions(&j, 2, 5);
	CU_ASSERT_EQUAL(job_version(&j), version + 9);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 1);
	job_close(&j);
}

static void another_is_asked_when_the_donor_has_nothing_or_is_slow(void)
{
	struct ledger_job j;

	begin_lost(&j);
	uint32_t donor = transfer_case_asked(&j)->who.rank;
	for (int half = 0; half < 4; half++) { /* two patiences, in which the job goes on */
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 1);
		job_wait(&j, JOB_PATIENCE_NS / 2, -1);
		transfer_case_versions(&j, 2, 1);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 2);
	CU_ASSERT_EQUAL(transfer_case_asked(&j)->who.rank, 1 - donor);
	transfer_case_given(&j, 1 - donor, transfer_case_asked(&j)->state.number, job_version(&j));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 1);
	job_close(&j);

	begin_lost(&j);
	donor = transfer_case_asked(&j)->who.rank;
	transfer_case_given(&j, donor, transfer_case_asked(&j)->state.number, MST_VERSION_NONE);
	CU_ASSERT_EQUAL(transfer_case_asked(&j)->who.rank, 1 - donor);
	transfer_case_given(&j, 1 - donor, transfer_case_asked(&j)->state.number, MST_VERSION_NONE);
	CU_ASSERT_TRUE(job_evicted(&j, 2, MST_EVICT_NO_STATE));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 0) + job_count(&j, MST_DO_EVICT, 1), 0);
	job_close(&j);
}

static void a_donor_that_lies_about_its_version_ends_and_another_is_asked(void)
{
	struct ledger_job j;

	begin_lost(&j);
	uint32_t donor = transfer_case_asked(&j)->who.rank;
	transfer_case_given(&j, donor, transfer_case_asked(&j)->state.number, job_version(&j) + 1);
	CU_ASSERT_TRUE(job_evicted(&j, donor, MST_EVICT_INVALID));
	CU_ASSERT_EQUAL(transfer_case_asked(&j)->who.rank, 1 - donor);
	transfer_case_given(&j, 1 - donor, transfer_case_asked(&j)->state.number, 1);
	CU_ASSERT_TRUE(job_evicted(&j, 1 - donor, MST_EVICT_INVALID));
	job_close(&j);
}

static void what_is_given_too_late_or_unasked_changes_nothing(void)
{
	struct ledger_job j;

	begin_lost(&j);
	uint32_t donor = transfer_case_asked(&j)->who.rank;
	uint64_t number = transfer_case_asked(&j)->state.number;
	transfer_case_given(&j, 1 - donor, number, job_version(&j));
	transfer_case_given(&j, donor, number + 1, job_version(&j));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, -1), 0);
	transfer_case_given(&j, donor, number, MST_VERSION_NONE);
	transfer_case_given(&j, donor, number, job_version(&j));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, -1), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 1); /* of the session that was lost */
	job_close(&j);
}

static void one_that_takes_what_it_was_not_given_ends(void)
{
	struct ledger_job j;

	begin_lost(&j);
	transfer_case_taken(&j, 2, transfer_case_asked(&j)->state.number, 0);
	CU_ASSERT_TRUE(job_evicted(&j, 2, MST_EVICT_INVALID));
	transfer_case_taken(&j, 0, transfer_case_asked(&j)->state.number, 0);
	CU_ASSERT_TRUE(job_evicted(&j, 0, MST_EVICT_INVALID));
	job_close(&j);
}

static void one_state_is_for_all_that_wait(void)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", 4);
	struct ledger_job j;

	transfer_case_begin(&j, &cfg);
	transfer_case_versions(&j, 4, 5);
	job_lose(&j, 2, -EPIPE);
	job_lose(&j, 3, -EPIPE);
	transfer_case_versions(&j, 2, 5);
	transfer_case_enter(&j, 2);
	transfer_case_enter(&j, 3);
	transfer_case_versions(&j, 2, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 1);
	uint64_t number = transfer_case_asked(&j)->state.number, version = job_version(&j);
	transfer_case_given(&j, transfer_case_asked(&j)->who.rank, number, version);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, -1), 2);
	transfer_case_taken(&j, 3, number, version);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 0);
	job_lose(&j, 2, -EPIPE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 1);
	job_close(&j);
}

static void one_that_cannot_take_states_is_refused_as_ever(void)
{
	struct ledger_job j;

	begin_lost(&j);
	job_lose(&j, 2, -EPIPE);
	job_join(&j, 2);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_REFUSE, -1)->join.error, -ESTALE);
	job_close(&j);
}

/* The last workers that are up to date leave. */
static void with_nobody_left_to_give_the_job_ends(void)
{
	struct ledger_job j;

	begin_lost(&j);
	job_leave(&j, 0, j.worker[0].seq);
	job_leave(&j, 1, j.worker[1].seq);
	CU_ASSERT_TRUE(job_evicted(&j, 2, MST_EVICT_NO_STATE));
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_LEFT));
	job_close(&j);
}

/* It has joined, and has nothing. */
static void who_has_no_version_when_the_job_ends_is_refused(void)
{
	struct ledger_job j;

	begin_lost(&j);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_TRUE(job_evicted(&j, 2, MST_EVICT_TOO_LATE));
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_ASKED));
	job_close(&j);
}

/* Rank 2 of three workers is still at version 0 when the others have made eight. */
static void begin_slow(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("backup:1", 3);

	transfer_case_begin(j, &cfg);
	transfer_case_versions(j, 2, 8);
}

/* Rank 2 keeps version 0, and hears of the newest. No session has ended. */
static void check_ends_in_order(const struct ledger_job *j)
{
	const struct mst_decision *d = job_last(j, MST_DO_RELEASE, 2);

	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	CU_ASSERT_EQUAL(d->answer.where, MST_WHERE_KEEP);
	CU_ASSERT_EQUAL(d->answer.version, 0);
	CU_ASSERT_EQUAL(d->answer.newest, job_version(j));
	CU_ASSERT_EQUAL(d->answer.number, j->worker[2].asks);
	CU_ASSERT_FALSE(job_member(j, 2).behind);
	CU_ASSERT_EQUAL(job_count(j, MST_DO_EVICT, -1), 0);
}

static void who_waits_for_a_state_when_the_job_ends_keeps_what_it_has(void)
{
	struct ledger_job j;

	begin_slow(&j);
	job_ask(&j, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_ASKED));
	check_ends_in_order(&j);
	job_close(&j);
}

static void who_is_behind_after_the_end_keeps_what_it_has(void)
{
	struct ledger_job j;

	begin_slow(&j);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	job_ask(&j, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 0);
	check_ends_in_order(&j);
	job_close(&j);
}

/* Nobody would give a state any more, and the last version is still being made. */
static void who_is_behind_while_the_job_ends_waits_for_the_end(void)
{
	struct ledger_job j;

	begin_slow(&j);
	j.unsettled = true;
	job_tell(&j, 0, MST_EV_FINISH);
	job_ask(&j, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	job_settled(&j, 0);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_ASKED));
	check_ends_in_order(&j);
	job_close(&j);
}

static void who_cannot_take_states_keeps_what_it_has_too(void)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("backup:1", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	transfer_case_versions(&j, 2, 8);
	job_forget(&j);
	job_tell(&j, 0, MST_EV_FINISH);
	job_ask(&j, 2);
	check_ends_in_order(&j);
	job_close(&j);
}

/* The state is in the leader's memory, and what comes after it is kept. */
static void who_is_sent_a_state_when_the_job_ends_gets_all_that_follows(void)
{
	struct ledger_job j;

	begin_slow(&j);
	job_ask(&j, 2);
	uint64_t number = transfer_case_asked(&j)->state.number, version = job_version(&j);
	transfer_case_given(&j, transfer_case_asked(&j)->who.rank, number, version);
	transfer_case_versions(&j, 2, 3);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_ASKED));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 0); /* its memory stays */
	transfer_case_taken(&j, 2, number, version);
	for (uint64_t v = version + 1; v <= version + 3; v++) {
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, v);
		CU_ASSERT_NOT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.where, MST_WHERE_KEEP);
		job_answered(&j, 2);
		job_ask(&j, 2);
	}
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, job_version(&j));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_close(&j);
}

/* Its library has neither the bytes nor the record of that version, as KEEP would say. */
static void who_has_the_newest_version_by_a_state_is_not_told_to_keep_it(void)
{
	struct ledger_job j;

	begin_lost(&j);
	uint64_t version = job_version(&j);
	transfer_case_given(&j, transfer_case_asked(&j)->who.rank,
			    transfer_case_asked(&j)->state.number, version);
	transfer_case_taken(&j, 2, transfer_case_asked(&j)->state.number, version);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, version);
	CU_ASSERT_NOT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.where, MST_WHERE_KEEP);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "one that joins late gets a state, and the versions after it",
	  one_that_joins_late_gets_a_state_and_what_follows },
	{ "one that joins late takes a state though no version is gone",
	  one_that_joins_late_takes_a_state_though_no_version_is_gone },
	{ "one that joins late where nobody can give gets the versions",
	  one_that_joins_late_where_nobody_can_give_gets_the_versions },
	{ "no more versions are pinned than there are buffers for; who is outrun gets the state "
	  "of another, again and again",
	  no_more_versions_are_pinned_than_there_are_buffers_for },
	{ "the only donor is asked again by one that was outrun",
	  the_only_donor_is_asked_again_by_one_that_was_outrun },
	{ "another is asked at once when the donor is lost, evicted, leaves or rests",
	  another_is_asked_at_once_when_the_donor_goes_or_rests },
	{ "who is about to catch up is waited for, and asked",
	  who_is_about_to_catch_up_is_waited_for_and_asked },
	{ "the time of slow donors is not taken off that of who waits",
	  the_time_of_slow_donors_is_not_taken_off_that_of_who_waits },
	{ "what was pinned is let go when the taker is lost",
	  what_was_pinned_is_let_go_when_the_taker_is_lost },
	{ "another is asked when the donor has nothing, or is slow",
	  another_is_asked_when_the_donor_has_nothing_or_is_slow },
	{ "a donor that lies about its version ends, and another is asked",
	  a_donor_that_lies_about_its_version_ends_and_another_is_asked },
	{ "what is given too late, or unasked, changes nothing",
	  what_is_given_too_late_or_unasked_changes_nothing },
	{ "one that takes what it was not given ends", one_that_takes_what_it_was_not_given_ends },
	{ "one state is for all that wait", one_state_is_for_all_that_wait },
	{ "one that cannot take states is refused as ever",
	  one_that_cannot_take_states_is_refused_as_ever },
	{ "with nobody left to give, the job ends", with_nobody_left_to_give_the_job_ends },
	{ "who has no version when the job ends is refused",
	  who_has_no_version_when_the_job_ends_is_refused },
	{ "who waits for a state when the job ends keeps what it has",
	  who_waits_for_a_state_when_the_job_ends_keeps_what_it_has },
	{ "who is behind after the end keeps what it has",
	  who_is_behind_after_the_end_keeps_what_it_has },
	{ "who is behind while the job ends waits for the end",
	  who_is_behind_while_the_job_ends_waits_for_the_end },
	{ "who cannot take states keeps what it has, too",
	  who_cannot_take_states_keeps_what_it_has_too },
	{ "who is sent a state when the job ends gets all that follows",
	  who_is_sent_a_state_when_the_job_ends_gets_all_that_follows },
	{ "who has the newest version by a state is not told to keep it",
	  who_has_the_newest_version_by_a_state_is_not_told_to_keep_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_transfer", cases);
}
