/* SPDX-License-Identifier: MIT */
/* How often a rank may be admitted. */
#include "server/control/members/rejoins.h"
#include "tests/ut.h"

#define WORKERS 4u
#define BEGIN_NS (1000 * MST_SECOND)
#define HOUR_S 3600u

static struct mst_rejoins rejoins;

static void begin(void)
{
	mst_rejoins_fini(&rejoins);
	CU_ASSERT_EQUAL_FATAL(mst_rejoins_init(&rejoins, WORKERS), 0);
}

/* Return: how many of these tries are admitted, one each @pause_ns. */
static uint32_t join_often(int32_t rank, uint32_t tries, uint64_t pause_ns)
{
	uint32_t admitted = 0;

	for (uint64_t i = 0; i < tries; i++) {
		uint64_t now_ns = BEGIN_NS + i * pause_ns;
		if (mst_rejoins_wait(&rejoins, rank, now_ns) > 0)
			continue;
		mst_rejoins_count(&rejoins, rank, now_ns);
		admitted++;
	}
	return admitted;
}

static void a_worker_may_come_back_some_times_at_once(void)
{
	begin();
	CU_ASSERT_EQUAL(join_often(2, MST_REJOINS_AT_ONCE, 0), MST_REJOINS_AT_ONCE);
	CU_ASSERT_EQUAL(mst_rejoins_wait(&rejoins, 2, BEGIN_NS), MST_REJOINS_PERIOD_NS);
}

static void a_restart_loop_of_a_second_never_waits(void)
{
	begin();
	CU_ASSERT_EQUAL(join_often(0, HOUR_S, MST_SECOND), HOUR_S);
}

static void who_joins_without_end_is_admitted_once_a_period(void)
{
	begin();
	CU_ASSERT_EQUAL(join_often(1, HOUR_S * 1000, MST_MS), MST_REJOINS_AT_ONCE + HOUR_S - 1);
}

static void who_waits_as_it_was_told_is_admitted(void)
{
	begin();
	(void)join_often(3, MST_REJOINS_AT_ONCE, 0);
	for (uint64_t now_ns = BEGIN_NS, i = 0; i < 100; i++) {
		uint64_t wait_ns = mst_rejoins_wait(&rejoins, 3, now_ns);
		CU_ASSERT(wait_ns > 0 && wait_ns <= MST_REJOINS_PERIOD_NS);
		CU_ASSERT(mst_rejoins_wait(&rejoins, 3, now_ns + wait_ns - 1) > 0);
		now_ns += wait_ns;
		CU_ASSERT_EQUAL(mst_rejoins_wait(&rejoins, 3, now_ns), 0);
		mst_rejoins_count(&rejoins, 3, now_ns);
	}
}

static void a_pause_gives_all_of_it_back_and_not_more(void)
{
	uint64_t later_ns = BEGIN_NS + 1000 * MST_REJOINS_PERIOD_NS;

	begin();
	(void)join_often(0, 1000, 0);
	for (uint32_t i = 0; i < MST_REJOINS_AT_ONCE; i++) {
		CU_ASSERT_EQUAL(mst_rejoins_wait(&rejoins, 0, later_ns), 0);
		mst_rejoins_count(&rejoins, 0, later_ns);
	}
	CU_ASSERT(mst_rejoins_wait(&rejoins, 0, later_ns) > 0);
}

static void a_rank_takes_nothing_from_another(void)
{
	begin();
	(void)join_often(1, 1000, 0);
	(void)join_often(-1, 1000, 0);
	CU_ASSERT(mst_rejoins_wait(&rejoins, 1, BEGIN_NS) > 0);
	CU_ASSERT(mst_rejoins_wait(&rejoins, -1, BEGIN_NS) > 0);
	CU_ASSERT_EQUAL(mst_rejoins_wait(&rejoins, 0, BEGIN_NS), 0);
	CU_ASSERT_EQUAL(mst_rejoins_wait(&rejoins, 3, BEGIN_NS), 0);
}

static void hellos_without_a_rank_may_as_often_as_all_ranks_together(void)
{
	begin();
	CU_ASSERT_EQUAL(join_often(-1, 1000, 0), WORKERS * MST_REJOINS_AT_ONCE);
	begin();
	CU_ASSERT_EQUAL(join_often(-1, 100 * 1000, MST_MS),
			WORKERS * (MST_REJOINS_AT_ONCE + 100) - 1);
	mst_rejoins_fini(&rejoins);
}

static CU_TestInfo cases[] = {
	{ "a worker may come back some times at once", a_worker_may_come_back_some_times_at_once },
	{ "a restart loop of a second never waits", a_restart_loop_of_a_second_never_waits },
	{ "who joins without end is admitted once a period",
	  who_joins_without_end_is_admitted_once_a_period },
	{ "who waits as it was told is admitted", who_waits_as_it_was_told_is_admitted },
	{ "a pause gives all of it back, and not more", a_pause_gives_all_of_it_back_and_not_more },
	{ "a rank takes nothing from another", a_rank_takes_nothing_from_another },
	{ "hellos without a rank may as often as all ranks together",
	  hellos_without_a_rank_may_as_often_as_all_ranks_together },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("rejoins", cases);
}
