/* SPDX-License-Identifier: MIT */
/* The ledger and birth: who joins, where version 0 comes from, and when the job starts (PROTOCOL
 * 2). */
#include <errno.h>

#include "common/base/clock.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

static void job_waits_for_every_worker_link_and_start(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.shards = 2;
	job_open(&j, &cfg);
	job_enter(&j, 1);
	job_join(&j, 0);
	job_start(&j, 0, true);
	job_link(&j, 0, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 0);
	job_link(&j, 0, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 0), 1);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	job_tell(&j, 0, MST_EV_STATE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_START, -1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 2);
	CU_ASSERT_EQUAL(j.worker[1].have, 0);
	job_close(&j);
}

static void lowest_rank_that_offers_sends_the_state(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_open(&j, &cfg);
	for (int32_t rank = 2; rank >= 0; rank--) {
		job_join(&j, rank);
		job_link(&j, (uint32_t)rank, 0);
		job_start(&j, (uint32_t)rank, rank != 0);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 1), 1);
	job_close(&j);
}

/* As where each has a file of its own, or is of a job that has lost its server. */
static void newest_state_that_is_offered_is_sent(void)
{
	static const uint64_t offered[] = { 41, 42, 42 };
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_open(&j, &cfg);
	for (uint32_t rank = 0; rank < 3; rank++) {
		struct mst_ledger_event ev = { .kind = MST_EV_START, .offers = true };
		job_join(&j, (int32_t)rank);
		job_link(&j, rank, 0);
		ev.who = j.worker[rank].who;
		ev.offered = offered[rank];
		job_event(&j, &ev);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 1), 1);
	job_close(&j);
}

static void sender_that_dies_is_replaced(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_enter(&j, 0);
	job_enter(&j, 1);
	job_tell(&j, 0, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_forget(&j);
	job_enter(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 0), 1);
	job_tell(&j, 0, MST_EV_STATE);
	CU_ASSERT(mst_ledger_started(j.ledger));
	job_close(&j);
}

static void enter(struct ledger_job *j, uint32_t rank, bool offers)
{
	job_join(j, (int32_t)rank);
	job_link(j, rank, 0);
	job_start(j, rank, offers);
}

static void next_that_offers_is_asked_when_all_have_started_again(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_open(&j, &cfg);
	enter(&j, 0, true);
	enter(&j, 1, false);
	enter(&j, 2, true);
	job_tell(&j, 0, MST_EV_LOST);
	job_forget(&j);
	enter(&j, 0, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 2), 1);
	job_tell(&j, 0, MST_EV_STATE); /* nobody asked it */
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	job_tell(&j, 2, MST_EV_STATE);
	CU_ASSERT(mst_ledger_started(j.ledger));
	job_close(&j);
}

/* Else both states fall into one buffer, and version 0 is neither. */
static void only_one_at_a_time_sends_its_state(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	enter(&j, 0, false);
	enter(&j, 1, true);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 1), 1);
	job_tell(&j, 0, MST_EV_LOST);
	enter(&j, 0, true);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 0), 0);
	job_tell(&j, 1, MST_EV_STATE);
	CU_ASSERT(mst_ledger_started(j.ledger));
	job_close(&j);
}

static void state_comes_while_others_are_gone(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);

	job_open(j, &cfg);
	enter(j, 0, true);
	enter(j, 1, true);
	job_tell(j, 1, MST_EV_LOST);
	job_tell(j, 0, MST_EV_STATE);
	CU_ASSERT_EQUAL(job_count(j, MST_DO_SEND_STATE, -1), 1);
	job_forget(j);
	CU_ASSERT_FALSE(mst_ledger_started(j->ledger));
}

/* Else the job starts without one that is gone. */
static void state_that_is_there_waits_until_all_have_started_again(void)
{
	struct ledger_job j;

	state_comes_while_others_are_gone(&j);
	enter(&j, 1, true);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_START, -1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.where, MST_WHERE_COPIED);
	job_close(&j);
}

static void state_outlives_its_sender(void)
{
	struct ledger_job j;

	state_comes_while_others_are_gone(&j);
	job_tell(&j, 0, MST_EV_LOST);
	enter(&j, 1, true);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	enter(&j, 0, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_START, -1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 2);
	job_close(&j);
}

static void nobody_offers(enum muster_owner owner, struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 1);

	cfg.owner = owner;
	cfg.history = owner == MUSTER_WORKERS_OWN ? 4 : 0;
	cfg.optimizer = optim_case_of(owner);
	job_open(j, &cfg);
	job_join(j, 0);
	job_link(j, 0, 0);
	job_start(j, 0, false);
}

static void servers_that_own_need_a_start_state(void)
{
	struct ledger_job j;

	nobody_offers(MUSTER_SERVERS_OWN, &j);
	CU_ASSERT(job_finished(&j, MST_FINISH_NO_START));
	job_close(&j);
}

static void workers_that_own_may_start_from_nothing(void)
{
	struct ledger_job j;

	nobody_offers(MUSTER_WORKERS_OWN, &j);
	CU_ASSERT(mst_ledger_started(j.ledger));
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 0)->answer.where, MST_WHERE_NOWHERE);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 0)->answer.version, 0);
	job_close(&j);
}

/* Driven as a server drives it: a tick when one is due, and never without need. */
static uint64_t tick_until_the_end(struct ledger_job *j)
{
	struct mst_decision d = { .kind = MST_DO_START };
	uint64_t heard_ns = j->now_ns;

	for (int i = 0; i < 1000 && d.kind != MST_DO_FINISH; i++) {
		j->now_ns = mst_ledger_deadline(j->ledger);
		if (j->now_ns > heard_ns + JOB_LEASE_NS / 8) {
			j->now_ns = heard_ns += JOB_LEASE_NS / 8;
			job_heard(j, heard_ns);
		}
		mst_ledger_tick(j->ledger, j->now_ns);
		while (mst_ledger_next(j->ledger, &d) && d.kind != MST_DO_FINISH)
			;
	}
	return j->now_ns;
}

/* Nobody is there to be heard, but the server listens. */
static void job_that_loses_all_before_it_starts_fails_in_time(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_enter(&j, 0);
	job_tell(&j, 0, MST_EV_LOST);
	CU_ASSERT_EQUAL(tick_until_the_end(&j), cfg.join_until_ns);
	job_close(&j);
}

static void job_that_nobody_joins_fails_in_time(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	CU_ASSERT_EQUAL(tick_until_the_end(&j), cfg.join_until_ns);
	job_close(&j);
}

/* Workers that come late get no more time than is left. */
static void job_fails_in_time_whenever_the_first_worker_joins(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_wait(&j, cfg.join_until_ns - MST_SECOND, -1);
	job_enter(&j, 0);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT(job_finished(&j, MST_FINISH_JOIN_TIMEOUT));
	job_close(&j);
}

/* A data side that takes long to make takes that time from nobody. */
static void job_gathers_for_as_long_as_it_is_told_later(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	for (uint64_t more_ns = 0; more_ns <= 100 * MST_SECOND; more_ns += 100 * MST_SECOND) {
		uint64_t until_ns = cfg.join_until_ns + more_ns - 10 * MST_SECOND;
		job_open(&j, &cfg);
		mst_ledger_gather(j.ledger, until_ns);
		CU_ASSERT_EQUAL(tick_until_the_end(&j), until_ns);
		job_close(&j);
	}
}

static void first_to_join_after_a_while_gets_no_longer_lease(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.join_until_ns = MST_NEVER;
	job_open(&j, &cfg);
	CU_ASSERT_EQUAL(mst_ledger_deadline(j.ledger), MST_NEVER);
	job_wait(&j, 1000 * MST_SECOND, -1);
	job_join(&j, 0);
	CU_ASSERT(mst_ledger_deadline(j.ledger) > j.now_ns);
	job_wait(&j, JOB_LEASE_NS - MST_SECOND, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, MST_SECOND, 0);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_LEASE));
	job_close(&j);
}

static void job_that_does_not_gather_fails(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_enter(&j, 0);
	job_wait(&j, cfg.join_until_ns - MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT(job_finished(&j, MST_FINISH_JOIN_TIMEOUT));
	job_close(&j);
}

static int refusal(struct ledger_job *j, int32_t rank)
{
	job_forget(j);
	job_join(j, rank);
	return job_count(j, MST_DO_REFUSE, -1) == 1 ? j->seen[0].join.error : 0;
}

static void join_is_refused_with_its_reason(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	CU_ASSERT_EQUAL(refusal(&j, 2), -ERANGE);
	job_enter(&j, 1);
	CU_ASSERT_EQUAL(refusal(&j, 1), -EEXIST);
	CU_ASSERT_EQUAL(refusal(&j, -1), 0);
	CU_ASSERT_EQUAL(refusal(&j, -1), -ENOSPC);
	job_link(&j, 0, 0);
	job_start(&j, 0, true);
	job_tell(&j, 0, MST_EV_STATE);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT_EQUAL(refusal(&j, -1), -ESHUTDOWN);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "the job waits for every worker, link and start",
	  job_waits_for_every_worker_link_and_start },
	{ "the lowest rank that offers sends the state", lowest_rank_that_offers_sends_the_state },
	{ "the newest state that is offered is sent", newest_state_that_is_offered_is_sent },
	{ "a sender that dies is replaced", sender_that_dies_is_replaced },
	{ "the next that offers is asked when all have started again",
	  next_that_offers_is_asked_when_all_have_started_again },
	{ "only one at a time sends its state", only_one_at_a_time_sends_its_state },
	{ "a state that is there waits until all have started again",
	  state_that_is_there_waits_until_all_have_started_again },
	{ "a state outlives its sender", state_outlives_its_sender },
	{ "servers that own need a start state", servers_that_own_need_a_start_state },
	{ "workers that own may start from nothing", workers_that_own_may_start_from_nothing },
	{ "a job that does not gather fails", job_that_does_not_gather_fails },
	{ "a job that loses all before it starts fails in time",
	  job_that_loses_all_before_it_starts_fails_in_time },
	{ "a job that nobody joins fails in time", job_that_nobody_joins_fails_in_time },
	{ "the job fails in time whenever the first worker joins",
	  job_fails_in_time_whenever_the_first_worker_joins },
	{ "a job gathers for as long as it is told later",
	  job_gathers_for_as_long_as_it_is_told_later },
	{ "the first to join after a while gets no longer lease",
	  first_to_join_after_a_while_gets_no_longer_lease },
	{ "a join is refused with its reason", join_is_refused_with_its_reason },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, birth", cases);
}
