/* SPDX-License-Identifier: MIT */
/* The ledger and workers that come back with the state of another (PROTOCOL 7). */
#include <errno.h>

#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

/* History 2, and 3 more while somebody comes back. */
static struct mst_ledger_cfg owns(const char *policy, uint32_t workers)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.optimizer.row = NULL;
	cfg.history = 2;
	cfg.catch_up = 3;
	return cfg;
}

static void join(struct ledger_job *j, int32_t rank)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };

	ev.join.rank = rank;
	ev.join.comes_back = true;
	job_event(j, &ev);
}

static void enter(struct ledger_job *j, uint32_t rank)
{
	join(j, (int32_t)rank);
	job_link(j, rank, 0);
	job_start(j, rank, false);
}

/* All have version 0, and come back if need be. */
static void begin(struct ledger_job *j, const struct mst_ledger_cfg *cfg)
{
	job_open(j, cfg);
	for (uint32_t rank = 0; rank < cfg->workers; rank++)
		enter(j, rank);
	job_forget(j);
}

static void versions(struct ledger_job *j, uint32_t workers, int count)
{
	for (int i = 0; i < count; i++) {
		for (uint32_t rank = 0; rank < workers; rank++)
			job_push(j, rank);
		for (uint32_t rank = 0; rank < workers; rank++)
			job_answered(j, rank);
	}
}

static void given(struct ledger_job *j, uint32_t rank, uint64_t number, uint64_t version)
{
	struct mst_ledger_event ev = { .kind = MST_EV_GIVEN, .who = j->worker[rank].who };

	ev.given.number = number;
	ev.given.version = version;
	job_event(j, &ev);
}

static void taken(struct ledger_job *j, uint32_t rank, uint64_t number, uint64_t version)
{
	struct mst_ledger_event ev = { .kind = MST_EV_TAKEN, .who = j->worker[rank].who };

	j->worker[rank].have = version;
	ev.given.number = number;
	job_event(j, &ev);
}

/* Rank 2 of three workers under bsp is lost at version 5, and joins again at version 10. */
static void begin_lost(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = owns("bsp", 3);

	begin(j, &cfg);
	versions(j, 3, 5);
	job_lose(j, 2, -EPIPE);
	versions(j, 2, 5);
	enter(j, 2);
	/* it takes part from the next step on, and is found to lack versions then */
	versions(j, 2, 1);
}

static const struct mst_decision *asked(const struct ledger_job *j)
{
	return job_last(j, MST_DO_WANT, -1);
}

static void one_that_joins_late_gets_a_state_and_what_follows(void)
{
	struct ledger_job j;

	begin_lost(&j);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, -1), 1);
	uint32_t donor = asked(&j)->who.rank;
	uint64_t number = asked(&j)->state.number, version = job_version(&j);
	versions(&j, 2, 2); /* nobody waits for it */
	CU_ASSERT_EQUAL(job_version(&j), version + 2);
	given(&j, donor, number, version);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 1);
	versions(&j, 2, 1);
	taken(&j, 2, number, version);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, version + 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 1);
	CU_ASSERT_TRUE(job_member(&j, 2).behind);
	for (uint64_t v = version + 2; v <= version + 3; v++) {
		job_answered(&j, 2);
		job_ask(&j, 2);
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, v);
	}
	CU_ASSERT_FALSE(job_member(&j, 2).behind);
	versions(&j, 2, 1);
	CU_ASSERT_TRUE(job_member(&j, 2).awaited);
	job_close(&j);
}

/* The versions are there, but not the moments that an optimiser may have begun with. */
static void one_that_joins_late_takes_a_state_though_no_version_is_gone(void)
{
	struct mst_ledger_cfg cfg = owns("backup:1", 2);
	struct ledger_job j;

	begin(&j, &cfg);
	job_lose(&j, 1, -EPIPE);
	enter(&j, 1);
	versions(&j, 1, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, 0), 1);
	job_close(&j);
}

static void one_that_joins_late_where_nobody_can_give_gets_the_versions(void)
{
	struct mst_ledger_cfg cfg = owns("backup:1", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_enter(&j, 0);
	enter(&j, 1);
	job_lose(&j, 1, -EPIPE);
	enter(&j, 1);
	versions(&j, 1, 1);
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
		uint64_t number = asked(&j)->state.number, version = job_version(&j);
		uint32_t donor = asked(&j)->who.rank;
		given(&j, donor, number, version);
		versions(&j, 2, 6); /* 5 are kept */
		taken(&j, 2, number, version);
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1 + outrun);
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_BEHIND, 2)->state.number, outrun);
		CU_ASSERT_EQUAL(job_last(&j, MST_DO_BEHIND, 2)->state.version, job_version(&j));
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 1 + outrun);
		CU_ASSERT_EQUAL(asked(&j)->who.rank, 1 - donor);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 1); /* of the session that was lost */
	uint64_t number = asked(&j)->state.number, version = job_version(&j);
	given(&j, asked(&j)->who.rank, number, version);
	taken(&j, 2, number, version);
	CU_ASSERT_FALSE(job_member(&j, 2).behind);
	job_close(&j);
}

/* There is nobody else, so the same worker is asked again. */
static void the_only_donor_is_asked_again_by_one_that_was_outrun(void)
{
	struct ledger_job j;

	begin_lost(&j);
	uint64_t number = asked(&j)->state.number, version = job_version(&j);
	uint32_t donor = asked(&j)->who.rank;
	given(&j, donor, number, version);
	job_leave(&j, 1 - donor, j.worker[1 - donor].seq);
	for (int i = 0; i < 6; i++) {
		job_push(&j, donor);
		job_answered(&j, donor);
	}
	taken(&j, 2, number, version);
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
		uint32_t donor = asked(&j)->who.rank;
		uint64_t number = asked(&j)->state.number;
		goes(&j, donor, how);
		CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, -1), 2);
		CU_ASSERT_EQUAL(asked(&j)->who.rank, 1 - donor);
		given(&j, donor, number, job_version(&j)); /* it was on its way */
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 0);
		given(&j, 1 - donor, asked(&j)->state.number, job_version(&j));
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 1);
		job_close(&j);
	}
}

/* Rank 2 of four workers catches up with a state, and rank 3 waits for one: rank 0 has been asked
 * for it. */
static void begin_two_lost(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = owns("bsp", 4);

	begin(j, &cfg);
	versions(j, 4, 5);
	job_lose(j, 2, -EPIPE);
	job_lose(j, 3, -EPIPE);
	versions(j, 2, 5);
	enter(j, 2);
	versions(j, 2, 1);
	uint64_t number = asked(j)->state.number, version = job_version(j);
	given(j, asked(j)->who.rank, number, version);
	enter(j, 3);
	versions(j, 2, 3);
	taken(j, 2, number, version);
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
		given(&j, asked(&j)->who.rank, asked(&j)->state.number, MST_VERSION_NONE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 3), 1); /* of the session that was lost */
	catch_up(&j, 2);
	CU_ASSERT_EQUAL(asked(&j)->who.rank, 2);
	given(&j, 2, asked(&j)->state.number, job_version(&j));
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
		versions(&j, 2, 1);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, 0), 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 3), 1);
	for (int half = 0; half < 4; half++) {
		CU_ASSERT_FALSE(job_evicted(&j, 3, MST_EVICT_NO_STATE));
		job_wait(&j, JOB_PATIENCE_NS / 2, -1);
		versions(&j, 2, 1);
	}
	CU_ASSERT_TRUE(job_evicted(&j, 3, MST_EVICT_NO_STATE));
	job_close(&j);
}

static void what_was_pinned_is_let_go_when_the_taker_is_lost(void)
{
	struct ledger_job j;

	begin_lost(&j); /* the donor gives, and nobody takes */
	uint64_t asked_at = job_version(&j);
	versions(&j, 2, 4);
	CU_ASSERT_PTR_NOT_NULL(mst_ledger_record_of(j.ledger, asked_at + 1));
	job_lose(&j, 2, -EPIPE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 1);
	CU_ASSERT_PTR_NULL(mst_ledger_record_of(j.ledger, asked_at + 1));
	job_close(&j);

	begin_lost(&j);
	uint64_t version = job_version(&j);
	given(&j, asked(&j)->who.rank, asked(&j)->state.number, version);
	versions(&j, 2, 4);
	CU_ASSERT_PTR_NOT_NULL(mst_ledger_record_of(j.ledger, version + 1));
	job_lose(&j, 2, -EPIPE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 1);
	CU_ASSERT_PTR_NULL(mst_ledger_record_of(j.ledger, version + 1));
	versions(&j, 2, 5);
	CU_ASSERT_EQUAL(job_version(&j), version + 9);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 1);
	job_close(&j);
}

static void another_is_asked_when_the_donor_has_nothing_or_is_slow(void)
{
	struct ledger_job j;

	begin_lost(&j);
	uint32_t donor = asked(&j)->who.rank;
	for (int half = 0; half < 4; half++) { /* two patiences, in which the job goes on */
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 1);
		job_wait(&j, JOB_PATIENCE_NS / 2, -1);
		versions(&j, 2, 1);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 2);
	CU_ASSERT_EQUAL(asked(&j)->who.rank, 1 - donor);
	given(&j, 1 - donor, asked(&j)->state.number, job_version(&j));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 1);
	job_close(&j);

	begin_lost(&j);
	donor = asked(&j)->who.rank;
	given(&j, donor, asked(&j)->state.number, MST_VERSION_NONE);
	CU_ASSERT_EQUAL(asked(&j)->who.rank, 1 - donor);
	given(&j, 1 - donor, asked(&j)->state.number, MST_VERSION_NONE);
	CU_ASSERT_TRUE(job_evicted(&j, 2, MST_EVICT_NO_STATE));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 0) + job_count(&j, MST_DO_EVICT, 1), 0);
	job_close(&j);
}

static void a_donor_that_lies_about_its_version_ends_and_another_is_asked(void)
{
	struct ledger_job j;

	begin_lost(&j);
	uint32_t donor = asked(&j)->who.rank;
	given(&j, donor, asked(&j)->state.number, job_version(&j) + 1);
	CU_ASSERT_TRUE(job_evicted(&j, donor, MST_EVICT_INVALID));
	CU_ASSERT_EQUAL(asked(&j)->who.rank, 1 - donor);
	given(&j, 1 - donor, asked(&j)->state.number, 1);
	CU_ASSERT_TRUE(job_evicted(&j, 1 - donor, MST_EVICT_INVALID));
	job_close(&j);
}

static void what_is_given_too_late_or_unasked_changes_nothing(void)
{
	struct ledger_job j;

	begin_lost(&j);
	uint32_t donor = asked(&j)->who.rank;
	uint64_t number = asked(&j)->state.number;
	given(&j, 1 - donor, number, job_version(&j));
	given(&j, donor, number + 1, job_version(&j));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, -1), 0);
	given(&j, donor, number, MST_VERSION_NONE);
	given(&j, donor, number, job_version(&j));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, -1), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 1); /* of the session that was lost */
	job_close(&j);
}

static void one_that_takes_what_it_was_not_given_ends(void)
{
	struct ledger_job j;

	begin_lost(&j);
	taken(&j, 2, asked(&j)->state.number, 0);
	CU_ASSERT_TRUE(job_evicted(&j, 2, MST_EVICT_INVALID));
	taken(&j, 0, asked(&j)->state.number, 0);
	CU_ASSERT_TRUE(job_evicted(&j, 0, MST_EVICT_INVALID));
	job_close(&j);
}

static void one_state_is_for_all_that_wait(void)
{
	struct mst_ledger_cfg cfg = owns("bsp", 4);
	struct ledger_job j;

	begin(&j, &cfg);
	versions(&j, 4, 5);
	job_lose(&j, 2, -EPIPE);
	job_lose(&j, 3, -EPIPE);
	versions(&j, 2, 5);
	enter(&j, 2);
	enter(&j, 3);
	versions(&j, 2, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 1);
	uint64_t number = asked(&j)->state.number, version = job_version(&j);
	given(&j, asked(&j)->who.rank, number, version);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, -1), 2);
	taken(&j, 3, number, version);
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
	struct mst_ledger_cfg cfg = owns("backup:1", 3);

	begin(j, &cfg);
	versions(j, 2, 8);
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
	struct mst_ledger_cfg cfg = owns("backup:1", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	versions(&j, 2, 8);
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
	uint64_t number = asked(&j)->state.number, version = job_version(&j);
	given(&j, asked(&j)->who.rank, number, version);
	versions(&j, 2, 3);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_ASKED));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HANDED, -1), 0); /* its memory stays */
	taken(&j, 2, number, version);
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
	given(&j, asked(&j)->who.rank, asked(&j)->state.number, version);
	taken(&j, 2, asked(&j)->state.number, version);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, version);
	CU_ASSERT_NOT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.where, MST_WHERE_KEEP);
	job_close(&j);
}

/* Rank 2 of three under bsp is found to have another state, at version 5. */
static void begin_strays(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = owns("bsp", 3);

	begin(j, &cfg);
	versions(j, 3, 5);
	job_tell(j, 2, MST_EV_STRAYS);
}

static void one_that_has_another_state_takes_that_of_another(void)
{
	struct ledger_job j;

	begin_strays(&j);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 0); /* not before it asks */
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank); /* and asks, which a push does too */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 5);
	uint64_t version = job_version(&j);
	job_answered(&j, 0);
	job_answered(&j, 1);
	versions(&j, 2, 1); /* nobody waits for it */
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, -1), 1);
	CU_ASSERT(asked(&j)->who.rank < 2);
	given(&j, asked(&j)->who.rank, asked(&j)->state.number, version);
	taken(&j, 2, asked(&j)->state.number, version);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, version + 1);
	job_answered(&j, 2);
	job_ask(&j, 2);
	CU_ASSERT_FALSE(job_member(&j, 2).behind);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1); /* the state that it has is right */
	job_close(&j);
}

/* Else the fault would spread. */
static void one_that_has_another_state_is_not_asked_for_it(void)
{
	struct mst_ledger_cfg cfg = owns("backup:1", 3);
	struct ledger_job j;

	begin(&j, &cfg);
	job_tell(&j, 1, MST_EV_STRAYS);
	job_lose(&j, 0, -EPIPE);
	enter(&j, 0);
	job_push(&j, 2);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, 2), 1);
	given(&j, 2, asked(&j)->state.number, MST_VERSION_NONE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, 1), 0);
	job_close(&j);
}

/* The state was given before this worker was found to have another. */
static void one_that_is_further_than_a_state_waits_for_the_next(void)
{
	struct mst_ledger_cfg cfg = owns("backup:1", 3);
	struct ledger_job j;

	begin(&j, &cfg);
	job_lose(&j, 1, -EPIPE);
	enter(&j, 1);
	for (int i = 0; i < 2; i++) {
		job_push(&j, 0);
		if (i == 0)
			job_answered(&j, 0); /* the second answer may be on its way */
	}
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, 0), 1);
	for (int i = 0; i < 2; i++) {
		job_ask(&j, 2);
		job_answered(&j, 2);
	}
	job_tell(&j, 2, MST_EV_STRAYS);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1);
	given(&j, 0, asked(&j)->state.number, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 0);
	job_close(&j);
}

/* A worker never goes back. */
static void no_state_is_taken_that_is_older_than_the_own(void)
{
	struct mst_ledger_cfg cfg = owns("backup:1", 3);
	struct ledger_job j;

	begin(&j, &cfg);
	job_push(&j, 2); /* it alone makes a version, and the others have none */
	job_answered(&j, 2);
	job_tell(&j, 2, MST_EV_STRAYS);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 0);
	job_ask(&j, 0);
	job_answered(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, -1), 0); /* it may not have heard of it yet */
	job_ask(&j, 0);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, 0), 1);
	given(&j, 0, asked(&j)->state.number, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 1);
	job_close(&j);
}

static void one_that_has_another_state_goes_on_where_nobody_can_give(void)
{
	struct mst_ledger_cfg cfg = owns("backup:1", 2);
	struct ledger_job j;

	begin(&j, &cfg);
	job_leave(&j, 0, 0);
	job_tell(&j, 1, MST_EV_STRAYS);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 1), 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 1);
	enter(&j, 0); /* and its state is that of the job from now on */
	job_answered(&j, 1);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, 1), 1);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "one that has another state takes that of another",
	  one_that_has_another_state_takes_that_of_another },
	{ "one that has another state is not asked for it",
	  one_that_has_another_state_is_not_asked_for_it },
	{ "one that is further than a state waits for the next",
	  one_that_is_further_than_a_state_waits_for_the_next },
	{ "no state is taken that is older than the own",
	  no_state_is_taken_that_is_older_than_the_own },
	{ "one that has another state goes on where nobody can give",
	  one_that_has_another_state_goes_on_where_nobody_can_give },
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
