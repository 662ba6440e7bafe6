/* SPDX-License-Identifier: MIT */
/* The end of a job that somebody wants to end: a signal to its server, or an operator. */
#include <errno.h>

#include "common/base/clock.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/unit/server/core/ledger/save_case.h"
#include "tests/ut.h"

/* ---- a server that is stopped ---- */

static void stop(struct ledger_job *j)
{
	struct mst_ledger_event ev = { .kind = MST_EV_STOP };

	job_event(j, &ev);
}

static void a_server_that_is_stopped_has_the_newest_version_saved(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 2);
	stop(&j);
	CU_ASSERT_EQUAL(save_case_last(&j), 2);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_STOPPED));
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_FINISH, -1)->finish.version, 2);
	stop(&j);
	CU_ASSERT_EQUAL(save_case_count(&j), 1);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_close(&j);
}

static void a_job_that_is_stopped_before_its_first_version_saves_nothing(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("bsp", 2, 0);
	struct ledger_job j;

	job_born(&j, &cfg);
	stop(&j);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_STOPPED));
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	job_close(&j);
	job_open(&j, &cfg);
	job_enter(&j, 0);
	stop(&j);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_STOPPED));
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	job_close(&j);
}

/* A worker that is told so waits for no other server. */
static void a_server_that_nobody_replaces_says_so(void)
{
	struct mst_ledger_event ev = { .kind = MST_EV_STOP, .for_good = true };
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 2);
	job_event(&j, &ev);
	CU_ASSERT_EQUAL(save_case_last(&j), 2);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_CLOSED));
	job_close(&j);
}

/* Workers hear of the end one after the other. Workers that have not heard of it yet must not go on
 * alone. */
static void a_server_that_is_stopped_makes_no_version_of_fewer_workers(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("bsp", 2, 0);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	job_answered(&j, 0);
	job_answered(&j, 1);
	job_push(&j, 0);
	stop(&j);
	job_lose(&j, 1, -EPIPE);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(save_case_last(&j), 1);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_STOPPED));
	job_close(&j);
}

static void a_server_that_is_stopped_while_it_saves_saves_the_newest_after_that(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	save_case_push(&j, 3);
	stop(&j);
	CU_ASSERT_EQUAL(save_case_last(&j), 2);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_STOPPED));
	save_case_reported(&j, 0, 2, false);
	CU_ASSERT_EQUAL(save_case_count(&j), 1);
	save_case_reported(&j, 1, 2, false);
	CU_ASSERT_TRUE(job_last(&j, MST_DO_SAVED, -1)->saved.again);
	CU_ASSERT_EQUAL(save_case_last(&j), 3);
	save_case_all_reported(&j, 3);
	CU_ASSERT_EQUAL(save_case_count(&j), 2);
	job_close(&j);
}

/* Only the servers know when it is, and whether it is finite. Nothing is counted meanwhile. */
static void a_server_that_is_stopped_waits_until_the_newest_version_is_made(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	cfg.optimizer.parameter[MST_SGD_CLIP] = 1;
	job_born(&j, &cfg);
	j.unsettled = true;
	save_case_push(&j, 1);
	stop(&j);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	for (uint32_t shard = 0; shard < 2; shard++) {
		struct mst_ledger_event ev = { .kind = MST_EV_REDUCED };
		ev.reduced.shard = shard;
		ev.reduced.version = 1;
		job_event(&j, &ev);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_APPLY, -1), 1);
	job_settled(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_settled(&j, 1);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_STOPPED));
	CU_ASSERT_EQUAL(save_case_last(&j), 1);
	job_close(&j);
}

static void a_server_that_is_stopped_saves_no_version_that_is_not_finite(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	job_born(&j, &cfg);
	j.unsettled = true;
	save_case_push(&j, 1);
	stop(&j);
	job_spoilt(&j, 1);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_SPOILT));
	CU_ASSERT_EQUAL(save_case_count(&j), 0);
	job_close(&j);
}

static void a_job_that_ends_well_is_not_stopped(void)
{
	struct mst_ledger_cfg cfg = save_case_cfg("async", 1, 0);
	struct ledger_job j;

	job_born(&j, &cfg);
	j.unsettled = true;
	save_case_push(&j, 1);
	job_tell(&j, 0, MST_EV_FINISH);
	stop(&j);
	job_settled(&j, 0);
	job_settled(&j, 1);
	CU_ASSERT_TRUE(job_finished(&j, MST_FINISH_ASKED));
	CU_ASSERT_EQUAL(save_case_last(&j), 1);
	job_close(&j);
}

/* ---- an operator ---- */

static void operator_ends(struct ledger_job *j)
{
	struct mst_ledger_event ev = { .kind = MST_EV_END };

	job_event(j, &ev);
}

static void an_operator_ends_a_job_that_runs(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	operator_ends(&j);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_close(&j);
	job_born(&j, &cfg);
	operator_ends(&j);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_close(&j);
}

/* So that the last version is made of all, as those before it. */
static void the_step_that_is_open_is_completed_when_an_operator_ends_the_job(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	operator_ends(&j);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	job_close(&j);
}

/* It may be why the job is to end. */
static void a_worker_that_hangs_does_not_hold_up_an_operator_for_long(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.rule.patience_ns = 1000 * MST_SECOND;
	job_born(&j, &cfg);
	for (int version = 0; version < 3; version++) {
		job_wait(&j, 10 * MST_SECOND, -1);
		job_push(&j, 0);
		job_push(&j, 1);
		job_answered(&j, 0);
		job_answered(&j, 1);
	}
	job_forget(&j);
	job_push(&j, 0);
	operator_ends(&j);
	job_wait(&j, 20 * MST_SECOND, -1); /* two steps, */
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_FINISH, -1), 0);
	job_wait(&j, 2 * MST_SECOND, -1); /* and a second more */
	CU_ASSERT_EQUAL(job_version(&j), 4);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	job_close(&j);
}

static void the_last_step_is_not_waited_for_when_its_worker_wants_the_end_too(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	operator_ends(&j);
	job_tell(&j, 1, MST_EV_FINISH);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	job_close(&j);
}

static void a_server_is_stopped_while_an_operator_waits_for_the_last_step(void)
{
	struct mst_ledger_event stop = { .kind = MST_EV_STOP };
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	operator_ends(&j);
	job_event(&j, &stop);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	CU_ASSERT(job_finished(&j, MST_FINISH_STOPPED));
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a server that is stopped has the newest version saved",
	  a_server_that_is_stopped_has_the_newest_version_saved },
	{ "a job that is stopped before its first version saves nothing",
	  a_job_that_is_stopped_before_its_first_version_saves_nothing },
	{ "a server that nobody replaces says so", a_server_that_nobody_replaces_says_so },
	{ "a server that is stopped makes no version of fewer workers",
	  a_server_that_is_stopped_makes_no_version_of_fewer_workers },
	{ "a server that is stopped while it saves saves the newest after that",
	  a_server_that_is_stopped_while_it_saves_saves_the_newest_after_that },
	{ "a server that is stopped waits until the newest version is made",
	  a_server_that_is_stopped_waits_until_the_newest_version_is_made },
	{ "a server that is stopped saves no version that is not finite",
	  a_server_that_is_stopped_saves_no_version_that_is_not_finite },
	{ "a job that ends well is not stopped", a_job_that_ends_well_is_not_stopped },
	{ "an operator ends a job that runs", an_operator_ends_a_job_that_runs },
	{ "the step that is open is completed when an operator ends the job",
	  the_step_that_is_open_is_completed_when_an_operator_ends_the_job },
	{ "a worker that hangs does not hold up an operator for long",
	  a_worker_that_hangs_does_not_hold_up_an_operator_for_long },
	{ "the last step is not waited for when its worker wants the end too",
	  the_last_step_is_not_waited_for_when_its_worker_wants_the_end_too },
	{ "a server is stopped while an operator waits for the last step",
	  a_server_is_stopped_while_an_operator_waits_for_the_last_step },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_stop", cases);
}
