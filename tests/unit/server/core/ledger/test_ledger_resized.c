/* SPDX-License-Identifier: MIT */
/* The ledger of a generation that has another number of workers than the one before
 * (PROTOCOL 11). */
#include <errno.h>

#include "common/base/clock.h"
#include "common/wire/message.h"
#include "tests/unit/server/core/ledger/transfer_case.h"
#include "tests/ut.h"

#define OWN 7u
#define X 11u
#define VERSION 40u

static const struct mst_claimed nothing;

/* A claim of generation 3, which had so many workers. */
static struct mst_claimed claim(uint32_t workers, uint64_t version)
{
	return (struct mst_claimed){ .number = 3,
				     .workers = workers,
				     .version = version,
				     .made = X,
				     .made_before = X,
				     .samples = 100 * (double)version };
}

/* The generation has so many workers, and the one before had @before. */
static void begin(struct ledger_job *j, uint32_t workers, uint32_t before)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", workers);

	cfg.generation_id = OWN;
	cfg.record_ranks = before;
	job_open(j, &cfg);
}

static void come(struct ledger_job *j, uint32_t rank, const struct mst_claimed *claimed)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };

	ev.join.rank = (int32_t)rank;
	ev.join.comes_back = true;
	ev.join.claimed = *claimed;
	ev.join.incarnation = 1;
	job_event(j, &ev);
}

static void enter(struct ledger_job *j, uint32_t rank, const struct mst_claimed *claimed)
{
	come(j, rank, claimed);
	job_link(j, rank, 0);
	job_start(j, rank, claimed->number > 0);
}

static int refused_with(const struct ledger_job *j)
{
	const struct mst_decision *d = job_last(j, MST_DO_REFUSE, -1);

	return d != NULL ? d->join.error : 0;
}

static bool began_at(const struct ledger_job *j, uint64_t number)
{
	struct mst_generation_view view = mst_ledger_generation(j->ledger);

	return mst_ledger_started(j->ledger) && view.number == number && view.began == VERSION &&
	       job_version(j) == VERSION;
}

static void ranks_that_are_new_wait_for_a_state_and_the_others_keep_theirs(void)
{
	struct mst_claimed had = claim(2, VERSION);
	struct ledger_job j;

	begin(&j, 4, 2);
	for (uint32_t rank = 0; rank < 4; rank++)
		enter(&j, rank, rank < 2 ? &had : &nothing);
	CU_ASSERT_TRUE(began_at(&j, 4));
	for (int rank = 0; rank < 2; rank++) {
		const struct mst_decision *d = job_last(&j, MST_DO_RELEASE, rank);
		CU_ASSERT_PTR_NOT_NULL_FATAL(d);
		CU_ASSERT_EQUAL(d->answer.where, MST_WHERE_KEEP);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	job_close(&j);
}

static void start_of_fewer_waits_for_more_than_half_of_those_before(void)
{
	struct mst_claimed had = claim(8, VERSION);
	struct ledger_job j;

	begin(&j, 3, 8);
	for (uint32_t rank = 0; rank < 3; rank++)
		enter(&j, rank, &had);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger)); /* 3 of 8 */
	come(&j, 7, &had);
	CU_ASSERT_EQUAL(refused_with(&j), MST_AGAIN);
	come(&j, 7, &had);                             /* again: it is the same one */
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger)); /* 4 of 8 are not more than half */
	come(&j, 4, &had);
	CU_ASSERT_TRUE(began_at(&j, 4)); /* 5 of 8 */
	job_close(&j);
}

static void half_of_them_and_more_that_are_new_do_not_suffice(void)
{
	struct mst_claimed had = claim(4, VERSION);
	struct ledger_job j;

	begin(&j, 6, 4);
	for (uint32_t rank = 0; rank < 6; rank++)
		if (rank != 3)
			enter(&j, rank, rank < 2 ? &had : &nothing);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	enter(&j, 3, &nothing); /* with it no rank is left to anybody else */
	CU_ASSERT_TRUE(began_at(&j, 4));
	job_close(&j);
}

static void job_does_not_begin_anew_while_a_rank_that_is_left_out_has_a_version(void)
{
	struct mst_claimed had = claim(3, VERSION);
	struct ledger_job j;

	begin(&j, 2, 3);
	come(&j, 2, &had);
	enter(&j, 0, &nothing);
	enter(&j, 1, &nothing);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger));
	job_close(&j);
}

static void rank_that_is_left_out_is_told_once_the_generation_has_begun(void)
{
	struct mst_claimed had = claim(3, VERSION);
	struct ledger_job j;

	begin(&j, 2, 3);
	come(&j, 2, &had);
	CU_ASSERT_EQUAL(refused_with(&j), MST_AGAIN);
	enter(&j, 0, &had);
	enter(&j, 1, &had);
	CU_ASSERT_TRUE(began_at(&j, 4));
	come(&j, 2, &had);
	CU_ASSERT_EQUAL(refused_with(&j), -EIDRM);
	come(&j, 2, &nothing); /* a new process there was never one of this job */
	CU_ASSERT_EQUAL(refused_with(&j), -ERANGE);
	job_close(&j);
}

static void number_comes_after_all_that_those_outside_claim(void)
{
	struct mst_claimed had = claim(4, VERSION), later = claim(4, VERSION + 3);
	struct ledger_job j;

	later.number = 9;
	begin(&j, 2, 4);
	enter(&j, 0, &had);
	enter(&j, 1, &had);
	come(&j, 3, &later);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger)); /* who was told of 4 says hello again */
	enter(&j, 0, &had);
	enter(&j, 1, &had);
	CU_ASSERT_TRUE(began_at(&j, 10));
	job_close(&j);
}

/* Three of eight, of whom four have moved on to a generation that the three do not know. */
static void more_than_half_is_of_the_newest_generation_that_is_claimed(void)
{
	struct mst_claimed had = claim(3, VERSION), later = claim(8, VERSION);
	struct ledger_job j;

	later.number = 4;
	begin(&j, 2, 8);
	come(&j, 7, &later);
	enter(&j, 0, &had);
	enter(&j, 1, &had);
	CU_ASSERT_FALSE(mst_ledger_started(j.ledger)); /* 3 of 8 */
	come(&j, 6, &later);
	come(&j, 5, &later);
	CU_ASSERT_TRUE(began_at(&j, 5));
	job_close(&j);
}

static void record_of_the_first_version_names_ranks_that_are_left_out(void)
{
	static const struct mst_lane_share share[] = { { 0, 1, 1 }, { 4, 1, 1 }, { 7, 1, 1 } };
	struct mst_ledger_event ev = { .kind = MST_EV_STATE };
	struct mst_claimed had = claim(8, VERSION), before = claim(8, VERSION - 1);
	struct ledger_job j;

	begin(&j, 2, 8);
	for (uint32_t rank = 4; rank < 8; rank++)
		come(&j, rank, &had);
	enter(&j, 0, &had);
	enter(&j, 1, &before);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 0), 1);
	ev.who = j.worker[0].who;
	ev.brought = (struct mst_brought){
		.samples = 3, .lr_scale = 1, .share_count = 3, .share = share
	};
	job_event(&j, &ev);
	CU_ASSERT_TRUE(began_at(&j, 4));
	const struct mst_decision *d = job_last(&j, MST_DO_RELEASE, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	const struct mst_record *r = mst_ledger_record(j.ledger, d->answer.buffer);
	CU_ASSERT_EQUAL(r->share_count, 3);
	CU_ASSERT_EQUAL(r->share[2].rank, 7);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a job does not begin anew while a rank that is left out has a version",
	  job_does_not_begin_anew_while_a_rank_that_is_left_out_has_a_version },
	{ "ranks that are new wait for a state, and the others keep theirs",
	  ranks_that_are_new_wait_for_a_state_and_the_others_keep_theirs },
	{ "a start of fewer waits for more than half of those before",
	  start_of_fewer_waits_for_more_than_half_of_those_before },
	{ "half of them, and more that are new, do not suffice",
	  half_of_them_and_more_that_are_new_do_not_suffice },
	{ "a rank that is left out is told once the generation has begun",
	  rank_that_is_left_out_is_told_once_the_generation_has_begun },
	{ "the number comes after all that those outside claim",
	  number_comes_after_all_that_those_outside_claim },
	{ "more than half is of the newest generation that is claimed",
	  more_than_half_is_of_the_newest_generation_that_is_claimed },
	{ "the record of the first version names ranks that are left out",
	  record_of_the_first_version_names_ranks_that_are_left_out },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, another number of workers", cases);
}
