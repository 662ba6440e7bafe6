/* SPDX-License-Identifier: MIT */
/* The ledger and workers that have another state than the others (PROTOCOL 8, comparing). */
#include <errno.h>

#include "tests/unit/server/core/ledger/transfer_case.h"
#include "tests/ut.h"

/* Rank 2 of three under bsp is found to have another state, at version 5. */
static void begin_strays(struct ledger_job *j)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", 3);

	transfer_case_begin(j, &cfg);
	transfer_case_versions(j, 3, 5);
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
	transfer_case_versions(&j, 2, 1); /* nobody waits for it */
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, -1), 1);
	CU_ASSERT(transfer_case_asked(&j)->who.rank < 2);
	transfer_case_given(&j, transfer_case_asked(&j)->who.rank,
			    transfer_case_asked(&j)->state.number, version);
	transfer_case_taken(&j, 2, transfer_case_asked(&j)->state.number, version);
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
	struct mst_ledger_cfg cfg = transfer_case_cfg("backup:1", 3);
	struct ledger_job j;

	transfer_case_begin(&j, &cfg);
	job_tell(&j, 1, MST_EV_STRAYS);
	job_lose(&j, 0, -EPIPE);
	transfer_case_enter(&j, 0);
	job_push(&j, 2);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_WANT, 2), 1);
	transfer_case_given(&j, 2, transfer_case_asked(&j)->state.number, MST_VERSION_NONE);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_WANT, 1), 0);
	job_close(&j);
}

/* The state was given before this worker was found to have another. */
static void one_that_is_further_than_a_state_waits_for_the_next(void)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("backup:1", 3);
	struct ledger_job j;

	transfer_case_begin(&j, &cfg);
	job_lose(&j, 1, -EPIPE);
	transfer_case_enter(&j, 1);
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
	transfer_case_given(&j, 0, transfer_case_asked(&j)->state.number, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 0);
	job_close(&j);
}

/* A worker never goes back. */
static void no_state_is_taken_that_is_older_than_the_own(void)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("backup:1", 3);
	struct ledger_job j;

	transfer_case_begin(&j, &cfg);
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
	transfer_case_given(&j, 0, transfer_case_asked(&j)->state.number, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_HAND, 2), 1);
	job_close(&j);
}

static void one_that_has_another_state_goes_on_where_nobody_can_give(void)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("backup:1", 2);
	struct ledger_job j;

	transfer_case_begin(&j, &cfg);
	job_leave(&j, 0, 0);
	job_tell(&j, 1, MST_EV_STRAYS);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 1), 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 1)->answer.version, 1);
	transfer_case_enter(&j, 0); /* and its state is that of the job from now on */
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
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_strays", cases);
}
