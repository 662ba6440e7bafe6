/* SPDX-License-Identifier: MIT */
/* The ledger and the life of the job: roster, leaving, loss and end (PROTOCOL 2). */
#include <errno.h>

#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

/* ---- Roster ---- */

/* Else: bsp, one worker dies, the roster may change only at a boundary, and the boundary is the
 * commit that cannot happen. */
static void death_lets_the_others_commit_at_once(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_tell(&j, 2, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 2);
	job_close(&j);
}

static void distinct_quorum_shrinks_with_those_who_can_meet_it(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:3", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_tell(&j, 2, MST_EV_LOST);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void quorum_of_contributions_is_met_by_anybody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kbatchsync:3", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_tell(&j, 2, MST_EV_LOST);
	job_tell(&j, 1, MST_EV_LOST);
	job_push(&j, 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void joiner_is_waited_for_from_the_next_version(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_tell(&j, 1, MST_EV_LOST);
	job_enter(&j, 1);
	CU_ASSERT_FALSE(job_member(&j, 1).awaited);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 1);
	CU_ASSERT(job_member(&j, 1).awaited);
	job_close(&j);
}

static void joiner_is_not_answered_before_its_links_are_up(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct ledger_job j;

	cfg.shards = 2;
	job_born(&j, &cfg);
	job_tell(&j, 1, MST_EV_LOST);
	job_join(&j, 1);
	job_link(&j, 1, 0);
	job_start(&j, 1, false);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 0);
	job_link(&j, 1, 1);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 1);
	job_close(&j);
}

static void joiner_without_links_is_not_answered_at_the_end(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct ledger_job j;

	cfg.shards = 2;
	job_born(&j, &cfg);
	job_tell(&j, 1, MST_EV_LOST);
	job_join(&j, 1);
	job_link(&j, 1, 0);
	job_start(&j, 1, false);
	job_tell(&j, 0, MST_EV_FINISH);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 0);
	job_link(&j, 1, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 1);
	job_close(&j);
}

/* With nobody else left, the version a joiner waits for would never come. */
static void joiner_takes_over_from_the_last_one(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_tell(&j, 1, MST_EV_LOST);
	job_enter(&j, 1);
	job_tell(&j, 0, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 1);
	CU_ASSERT_EQUAL(j.worker[1].have, 0);
	CU_ASSERT(job_member(&j, 1).awaited);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* What is counted is enough for a version of its own. */
static void joiner_starts_with_what_the_last_ones_have_made(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_tell(&j, 2, MST_EV_LOST);
	job_enter(&j, 2);
	job_tell(&j, 0, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_tell(&j, 1, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 1);
	CU_ASSERT_EQUAL(j.worker[2].have, 1);
	CU_ASSERT(job_member(&j, 2).awaited);
	job_close(&j);
}

/* Patience with those before it must not end with it in the same breath. */
static void joiner_that_takes_over_gets_patience_of_its_own(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:3", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_tell(&j, 0, MST_EV_LOST);
	job_tell(&j, 2, MST_EV_LOST);
	job_wait(&j, JOB_PATIENCE_NS - MST_SECOND, -1);
	job_enter(&j, 2);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	CU_ASSERT(job_member(&j, 2).live);
	CU_ASSERT_EQUAL(j.worker[2].have, 1); /* of what was counted before */
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_close(&j);
}

static void joiner_under_ssp_starts_at_the_least_clock(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:9", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_tell(&j, 2, MST_EV_LOST);
	for (int i = 0; i < 5; i++)
		job_push(&j, 0);
	for (int i = 0; i < 3; i++)
		job_push(&j, 1);
	job_enter(&j, 2);
	CU_ASSERT_EQUAL(job_member(&j, 2).clock, 3);
	job_close(&j);
}

/* ---- Leaving, loss, end ---- */

/* Else: workers reach their last step one by one, and the straggler gets "too few workers". */
static void workers_may_leave_one_by_one(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.rule.min_workers = 2;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_leave(&j, 0, 1);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_LEFT));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_leave(&j, 1, 1);
	CU_ASSERT(job_finished(&j, MST_FINISH_LEFT));
	job_close(&j);
}

static void leave_overtakes_what_was_pushed_before(bool closes)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.shards = 2;
	job_born(&j, &cfg);
	job_push(&j, 0);
	struct mst_lane_header h = job_header(&j, 1);
	job_full(&j, 1, 1, &h);
	job_leave(&j, 1, 1);
	if (closes)
		job_tell(&j, 1, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_full(&j, 1, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_LEFT));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void pushed_work_counts_though_the_leave_is_faster(void)
{
	leave_overtakes_what_was_pushed_before(false);
}

static void pushed_work_counts_though_the_connection_closes(void)
{
	leave_overtakes_what_was_pushed_before(true);
}

/* A worker that has said leave is not missed, whatever becomes of its session. */
static void leaves_with_a_header_to_come(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);

	cfg.shards = 2;
	cfg.rule.on_loss = MST_LOSS_FAIL;
	cfg.rule.min_workers = 2;
	job_born(j, &cfg);
	job_push(j, 0);
	struct mst_lane_header h = job_header(j, 1);
	job_full(j, 1, 1, &h);
	job_leave(j, 1, 1);
	CU_ASSERT_EQUAL(job_count(j, MST_DO_EVICT, -1), 0);
}

static void lease_of_one_that_leaves_ends_in_peace(void)
{
	struct ledger_job j;

	leaves_with_a_header_to_come(&j);
	job_wait(&j, JOB_LEASE_NS, 1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_LEASE));
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void breach_of_one_that_leaves_ends_in_peace(void)
{
	struct ledger_job j;

	leaves_with_a_header_to_come(&j);
	job_lose(&j, 1, -EPROTO);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_INVALID));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void breach_that_a_shell_has_seen_is_a_loss(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.rule.on_loss = MST_LOSS_FAIL;
	job_born(&j, &cfg);
	job_lose(&j, 1, -EPROTO);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_INVALID));
	CU_ASSERT(job_finished(&j, MST_FINISH_LOSS));
	job_close(&j);
}

static void death_may_fail_the_job(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	cfg.rule.on_loss = MST_LOSS_FAIL;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	job_tell(&j, 2, MST_EV_LOST);
	CU_ASSERT(job_finished(&j, MST_FINISH_LOSS));
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_close(&j);
}

static void too_few_workers_fail_the_job(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	cfg.rule.min_workers = 2;
	job_born(&j, &cfg);
	job_tell(&j, 0, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_tell(&j, 1, MST_EV_LOST);
	CU_ASSERT(job_finished(&j, MST_FINISH_TOO_FEW));
	job_close(&j);
}

/* What was counted when the job failed is in no version; the timers must not wait for it. */
static void failed_job_leaves_no_timer_behind(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.rule.on_loss = MST_LOSS_FAIL;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_tell(&j, 1, MST_EV_LOST);
	job_wait(&j, JOB_PATIENCE_NS + MST_SECOND, -1);
	CU_ASSERT(mst_ledger_deadline(j.ledger) > j.now_ns);
	job_close(&j);
}

static void finish_commits_what_is_counted(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_tell(&j, 1, MST_EV_FINISH);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 0)->answer.version, 1);
	job_forget(&j);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_COMMIT, -1), 0);
	job_close(&j);
}

static void job_ends_at_its_commits_and_samples(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 1);
	struct ledger_job j;

	cfg.commits_max = 2;
	job_born(&j, &cfg);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_push(&j, 0);
	CU_ASSERT(job_finished(&j, MST_FINISH_COMMITS));
	job_close(&j);

	cfg.commits_max = 0;
	cfg.samples_max = 2;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 0);
	CU_ASSERT(job_finished(&j, MST_FINISH_SAMPLES));
	job_close(&j);
}

static const struct mst_decision *goal(struct ledger_job *j, uint32_t rank, uint64_t version)
{
	struct mst_ledger_event ev = { .kind = MST_EV_GOAL,
				       .who = j->worker[rank].who,
				       .goal = version };

	job_event(j, &ev);
	const struct mst_decision *d = job_last(j, MST_DO_GOAL, (int)rank);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	CU_ASSERT_EQUAL(d->goal.asked, version);
	return d;
}

/* Each is answered with what is in force then. */
static void the_least_that_anybody_has_given_ends_the_job(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 3);
	struct ledger_job j;

	cfg.commits_max = 5;
	job_born(&j, &cfg);
	CU_ASSERT_EQUAL(goal(&j, 0, 7)->goal.of_job.version, 5);
	CU_ASSERT_EQUAL(goal(&j, 0, 7)->goal.of_job.rank, MST_RANK_NONE);
	CU_ASSERT_EQUAL(goal(&j, 1, 3)->goal.of_job.version, 3);
	CU_ASSERT_EQUAL(goal(&j, 2, 3)->goal.of_job.rank, 1);
	CU_ASSERT_EQUAL(goal(&j, 2, 4)->goal.of_job.version, 3);
	for (uint32_t rank = 0; rank < 3; rank++) {
		CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
		job_push(&j, rank);
	}
	CU_ASSERT(job_finished(&j, MST_FINISH_COMMITS));
	CU_ASSERT_EQUAL(job_version(&j), 3);
	CU_ASSERT_EQUAL(goal(&j, 2, 1)->goal.of_job.version, 3); /* too late */
	job_close(&j);

	cfg.commits_max = 0;
	job_born(&j, &cfg);
	CU_ASSERT_EQUAL(goal(&j, 0, 1)->goal.of_job.version, 1);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT(job_finished(&j, MST_FINISH_COMMITS));
	job_close(&j);
}

/* With what is counted, of which workers have been told. */
static void a_version_to_end_with_that_is_made_already_ends_the_job_now(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	for (int i = 0; i < 4; i++)
		job_push(&j, (uint32_t)i % 2);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(goal(&j, 1, 1)->goal.of_job.version, 1);
	CU_ASSERT(job_finished(&j, MST_FINISH_COMMITS));
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_close(&j);
}

static void a_version_to_end_with_may_be_given_before_the_start(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_enter(&j, 0);
	CU_ASSERT_EQUAL(goal(&j, 0, 1)->goal.of_job.version, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_close(&j);
}

static void ends_have_an_error_where_something_is_wrong(void)
{
	CU_ASSERT_EQUAL(mst_evict_error(MST_EVICT_LEFT), 0);
	CU_ASSERT_EQUAL(mst_evict_error(MST_EVICT_LOST), -ENOTCONN);
	CU_ASSERT_EQUAL(mst_evict_error(MST_EVICT_LEASE), -ENOTCONN);
	CU_ASSERT_EQUAL(mst_evict_error(MST_EVICT_PATIENCE), -ENOTCONN);
	CU_ASSERT_EQUAL(mst_evict_error(MST_EVICT_INVALID), -EPROTO);
	CU_ASSERT_EQUAL(mst_evict_error(MST_EVICT_STALE), -ESTALE);
	CU_ASSERT_EQUAL(mst_finish_error(MST_FINISH_JOIN_TIMEOUT), -EHOSTDOWN);
	CU_ASSERT_EQUAL(mst_finish_error(MST_FINISH_NO_START), -EINVAL);
	CU_ASSERT_EQUAL(mst_finish_error(MST_FINISH_TOO_FEW), -EHOSTDOWN);
	CU_ASSERT_EQUAL(mst_finish_error(MST_FINISH_LOSS), -EHOSTDOWN);
	for (int why = MST_FINISH_COMMITS; why <= MST_FINISH_SUPERSEDED; why++)
		CU_ASSERT_EQUAL(mst_finish_error((enum mst_finish_why)why) != 0,
				mst_finish_failed((enum mst_finish_why)why));
}

/* Else a worker gives up for good what goes on without any fault of its own, or comes back for ever
 * to where it is not wanted. */
static void workers_may_come_back_from_what_is_no_fault_of_theirs(void)
{
	for (int why = MST_EVICT_LEFT; why <= MST_EVICT_OUTNUMBERED; why++) {
		enum mst_evict_why e = (enum mst_evict_why)why;
		bool lost = e == MST_EVICT_LOST || e == MST_EVICT_LEASE ||
			    e == MST_EVICT_PATIENCE || e == MST_EVICT_OUTNUMBERED;
		CU_ASSERT_EQUAL(mst_evict_word(e, true), lost ? MST_AGAIN : mst_evict_error(e));
		CU_ASSERT_EQUAL(mst_evict_word(e, false), mst_evict_error(e));
	}
	for (int why = MST_FINISH_COMMITS; why <= MST_FINISH_SUPERSEDED; why++) {
		enum mst_finish_why f = (enum mst_finish_why)why;
		bool again = f == MST_FINISH_SERVER || f == MST_FINISH_STOPPED ||
			     f == MST_FINISH_STOOD || f == MST_FINISH_NOT_BEGUN ||
			     f == MST_FINISH_SUPERSEDED || f == MST_FINISH_TOO_FEW;
		CU_ASSERT_EQUAL(mst_finish_word(f, true), again ? MST_AGAIN : mst_finish_error(f));
		CU_ASSERT_EQUAL(mst_finish_word(f, false), mst_finish_error(f));
	}
}

/* Else: the last version is not finite, and everybody has been told that all is well. */
static void nobody_hears_of_a_good_end_before_the_last_version_stands(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.shards = 2;
	cfg.commits_max = 1;
	job_born(&j, &cfg);
	j.unsettled = true;
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SETTLE, -1), 1);
	job_settled(&j, 1);
	job_settled(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 0);
	job_settled(&j, 0);
	CU_ASSERT(job_finished(&j, MST_FINISH_COMMITS));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 2);
	job_close(&j);
}

static void nothing_counts_while_the_job_ends(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct ledger_job j;

	cfg.commits_max = 1;
	job_born(&j, &cfg);
	j.unsettled = true;
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_join(&j, -1);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_REFUSE, -1)->join.error, -ESHUTDOWN);
	job_settled(&j, 0);
	CU_ASSERT(job_finished(&j, MST_FINISH_COMMITS));
	job_close(&j);
}

static void a_version_that_is_not_finite_fails_the_job(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_spoilt(&j, 1);
	CU_ASSERT(job_finished(&j, MST_FINISH_SPOILT));
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_spoilt(&j, 1); /* as another server has found */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 1);
	job_close(&j);
}

static void a_last_version_that_is_not_finite_fails_the_job(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.shards = 2;
	cfg.commits_max = 1;
	job_born(&j, &cfg);
	j.unsettled = true;
	job_push(&j, 0);
	job_push(&j, 1);
	job_settled(&j, 0);
	job_spoilt(&j, 1);
	CU_ASSERT(job_finished(&j, MST_FINISH_SPOILT));
	job_settled(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 1);
	job_close(&j);
}

/* ---- what an operator ends ---- */

static void who_is_evicted_is_lost_with_one_verdict_for_each_contribution(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 2);
	job_forget(&j);
	job_tell(&j, 2, MST_EV_EVICT);
	CU_ASSERT(job_evicted(&j, 2, MST_EVICT_ASKED));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 2),
			0); /* it was counted, and has been told */
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_enter(&j, 2);
	CU_ASSERT_EQUAL(j.worker[2].who.incarnation, 2);
	job_close(&j);
}

static void no_eviction_leaves_fewer_than_min_workers(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	cfg.rule.min_workers = 2;
	job_born(&j, &cfg);
	job_tell(&j, 1, MST_EV_EVICT);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_ASKED));
	job_tell(&j, 0, MST_EV_EVICT);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 0), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_push(&j, 0);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* Before the start another may have the rank; from then on the loss would fail the job. */
static void where_a_loss_fails_the_job_an_operator_evicts_nobody_who_takes_part(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.rule.on_loss = MST_LOSS_FAIL;
	job_open(&j, &cfg);
	job_enter(&j, 0);
	job_tell(&j, 0, MST_EV_EVICT);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_ASKED));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_close(&j);

	job_born(&j, &cfg);
	job_forget(&j);
	job_tell(&j, 0, MST_EV_EVICT);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 0), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "nobody hears of a good end before the last version stands",
	  nobody_hears_of_a_good_end_before_the_last_version_stands },
	{ "nothing counts while the job ends", nothing_counts_while_the_job_ends },
	{ "a version that is not finite fails the job",
	  a_version_that_is_not_finite_fails_the_job },
	{ "a last version that is not finite fails the job",
	  a_last_version_that_is_not_finite_fails_the_job },
	{ "a death lets the others commit at once", death_lets_the_others_commit_at_once },
	{ "a distinct quorum shrinks with those who can meet it",
	  distinct_quorum_shrinks_with_those_who_can_meet_it },
	{ "a quorum of contributions is met by anybody",
	  quorum_of_contributions_is_met_by_anybody },
	{ "a joiner is waited for from the next version",
	  joiner_is_waited_for_from_the_next_version },
	{ "a joiner is not answered before its links are up",
	  joiner_is_not_answered_before_its_links_are_up },
	{ "a joiner without links is not answered at the end either",
	  joiner_without_links_is_not_answered_at_the_end },
	{ "a joiner takes over from the last one", joiner_takes_over_from_the_last_one },
	{ "a joiner starts with what the last ones have made",
	  joiner_starts_with_what_the_last_ones_have_made },
	{ "a joiner that takes over gets patience of its own",
	  joiner_that_takes_over_gets_patience_of_its_own },
	{ "a joiner under ssp starts at the least clock",
	  joiner_under_ssp_starts_at_the_least_clock },
	{ "workers may leave one by one", workers_may_leave_one_by_one },
	{ "pushed work counts though the leave is faster",
	  pushed_work_counts_though_the_leave_is_faster },
	{ "pushed work counts though the connection closes",
	  pushed_work_counts_though_the_connection_closes },
	{ "the lease of one that leaves ends in peace", lease_of_one_that_leaves_ends_in_peace },
	{ "a breach of one that leaves ends in peace", breach_of_one_that_leaves_ends_in_peace },
	{ "a breach that a shell has seen is a loss", breach_that_a_shell_has_seen_is_a_loss },
	{ "a death may fail the job", death_may_fail_the_job },
	{ "too few workers fail the job", too_few_workers_fail_the_job },
	{ "a failed job leaves no timer behind", failed_job_leaves_no_timer_behind },
	{ "finish commits what is counted", finish_commits_what_is_counted },
	{ "the job ends at its commits and samples", job_ends_at_its_commits_and_samples },
	{ "the least version that anybody has given to end with ends the job",
	  the_least_that_anybody_has_given_ends_the_job },
	{ "a version to end with that is made already ends the job now",
	  a_version_to_end_with_that_is_made_already_ends_the_job_now },
	{ "a version to end with may be given before the start",
	  a_version_to_end_with_may_be_given_before_the_start },
	{ "ends have an error where something is wrong",
	  ends_have_an_error_where_something_is_wrong },
	{ "workers may come back from what is no fault of theirs",
	  workers_may_come_back_from_what_is_no_fault_of_theirs },
	{ "who is evicted is lost with one verdict for each contribution",
	  who_is_evicted_is_lost_with_one_verdict_for_each_contribution },
	{ "no eviction leaves fewer than min_workers", no_eviction_leaves_fewer_than_min_workers },
	{ "where a loss fails the job, an operator evicts nobody who takes part",
	  where_a_loss_fails_the_job_an_operator_evicts_nobody_who_takes_part },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, life", cases);
}
