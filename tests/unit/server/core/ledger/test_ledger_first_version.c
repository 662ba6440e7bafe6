/* SPDX-License-Identifier: MIT */
/* The loss of a server before all workers have had the first version of the run (PROTOCOL 11). */
#include <errno.h>

#include "tests/unit/server/core/ledger/transfer_case.h"
#include "tests/ut.h"

#define OWN 7u

static const struct mst_claimed nothing, first = { .number = 1 };

/* It comes, and says START. */
static void enter_as(struct ledger_job *j, uint32_t rank, const struct mst_claimed *claimed,
		     struct mst_ledger_event start, bool comes_back)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };

	ev.join.rank = (int32_t)rank;
	ev.join.comes_back = comes_back;
	ev.join.claimed = *claimed;
	ev.join.incarnation = 1;
	job_event(j, &ev);
	job_link(j, rank, 0);
	start.kind = MST_EV_START;
	start.who = j->worker[rank].who;
	j->worker[rank].asks = 1;
	job_event(j, &start);
}

/* Two have the first version of the run, and rank 2 has had no outcome. */
static void begin_with(struct ledger_job *j, struct mst_ledger_event start, bool comes_back)
{
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", 3);
	struct mst_ledger_event brought = { .kind = MST_EV_STATE };

	cfg.generation_id = OWN;
	job_open(j, &cfg);
	enter_as(j, 0, &first, start, false);
	enter_as(j, 1, &first, start, false);
	enter_as(j, 2, &nothing, (struct mst_ledger_event){ .offers = true }, comes_back);
	brought.who = j->worker[0].who;
	brought.brought = (struct mst_brought){ .bare = !start.offers, .lr_scale = 1 };
	if (!mst_ledger_started(j->ledger))
		job_event(j, &brought);
	CU_ASSERT_TRUE(mst_ledger_started(j->ledger));
	CU_ASSERT_EQUAL(mst_ledger_generation(j->ledger).number, 2);
	CU_ASSERT_EQUAL(job_version(j), 0);
}

static bool is_answered(const struct ledger_job *j, uint32_t rank, enum mst_where where)
{
	const struct mst_decision *d = job_last(j, MST_DO_RELEASE, (int)rank);

	return d != NULL && d->answer.version == 0 && d->answer.where == where;
}

static void who_has_no_version_yet_begins_with_the_first_of_the_run(void)
{
	const struct mst_ledger_event whole = { .offers = true }, torn = { .offers = false };
	struct ledger_job j;

	begin_with(&j, whole, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, 0), 1);
	CU_ASSERT(is_answered(&j, 1, MST_WHERE_KEEP));
	CU_ASSERT(is_answered(&j, 2, MST_WHERE_COPIED));
	job_close(&j);
	/* It was written over, and nobody can bring it. */
	begin_with(&j, torn, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 2), 1);
	job_close(&j);
	/* What it has is more than a version. */
	begin_with(&j, whole, true);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_BEHIND, 2), 1);
	job_close(&j);
}

static void with_a_first_version_without_a_state_nothing_is_brought(void)
{
	const struct mst_ledger_event stateless = { .stateless = true };
	struct ledger_job j;

	begin_with(&j, stateless, false);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_SEND_STATE, -1), 0);
	CU_ASSERT(is_answered(&j, 0, MST_WHERE_KEEP));
	CU_ASSERT(is_answered(&j, 2, MST_WHERE_NOWHERE));
	job_close(&j);
}

/* A state of its own generation has all, also if the first version was never given to it. */
static void who_has_the_first_version_goes_on_in_the_first_generation(void)
{
	const struct mst_ledger_event offers_nothing = { .offers = false };
	struct mst_ledger_cfg cfg = transfer_case_cfg("bsp", 2);
	struct ledger_job j;

	cfg.generation_id = OWN;
	job_open(&j, &cfg);
	enter_as(&j, 0, &nothing, offers_nothing, false);
	enter_as(&j, 1, &nothing, offers_nothing, false);
	transfer_case_versions(&j, 2, 0);
	job_lose(&j, 1, -EPIPE);
	transfer_case_versions(&j, 1, 1);
	enter_as(&j, 1, &first, (struct mst_ledger_event){ .offers = true }, false);
	transfer_case_versions(&j, 1, 1);
	const struct mst_decision *d = job_last(&j, MST_DO_RELEASE, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	CU_ASSERT(d->answer.version == 1 && d->answer.where == MST_WHERE_COPIED);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "who has no version yet begins with the first of the run",
	  who_has_no_version_yet_begins_with_the_first_of_the_run },
	{ "with a first version without a state nothing is brought",
	  with_a_first_version_without_a_state_nothing_is_brought },
	{ "who has the first version goes on in the first generation",
	  who_has_the_first_version_goes_on_in_the_first_generation },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, first version", cases);
}
