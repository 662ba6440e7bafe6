/* SPDX-License-Identifier: MIT */
/* How far what is reported lags behind what arrives. */
#include "server/data/lag.h"
#include "tests/ut.h"

static uint64_t look(struct mst_lag *l, uint64_t arrived, uint64_t reported, uint64_t now_ns)
{
	struct mst_reports r = { arrived, reported };

	return mst_lag_look(l, &r, now_ns);
}

static void nothing_lags_where_nothing_waits(void)
{
	struct mst_lag l = { 0 };

	CU_ASSERT_EQUAL(look(&l, 0, 0, 1000), 0);
	CU_ASSERT_EQUAL(look(&l, 3, 3, 2000), 0);
	CU_ASSERT_EQUAL(look(&l, 4, 3, 3000), 1000);
	CU_ASSERT_EQUAL(look(&l, 4, 4, 4000), 0);
}

static void it_lags_back_to_before_what_waits_had_arrived(void)
{
	struct mst_lag l = { 0 };

	(void)look(&l, 0, 0, 1000);
	CU_ASSERT(look(&l, 1, 0, 2000) >= 1000);
	CU_ASSERT(look(&l, 2, 0, 3000) >= 2000);
	CU_ASSERT(look(&l, 3, 1, 4000) >= 1000); /* the second came at 3000 */
	CU_ASSERT(look(&l, 3, 2, 5000) >= 1000); /* the third came at 4000 */
	CU_ASSERT_EQUAL(look(&l, 3, 3, 6000), 0);
}

/* Something always waits, as with many workers. Else no timer would ever be judged. */
static void it_lags_no_more_than_twice_as_long_as_one_waits(void)
{
	struct mst_lag l = { 0 };

	for (uint64_t i = 1; i < 100; i++)
		CU_ASSERT(look(&l, i + 5, i, 1000 * i) <= 2 * 6000);
}

static CU_TestInfo cases[] = {
	{ "nothing lags where nothing waits", nothing_lags_where_nothing_waits },
	{ "it lags back to before what waits had arrived",
	  it_lags_back_to_before_what_waits_had_arrived },
	{ "it lags no more than twice as long as one waits",
	  it_lags_no_more_than_twice_as_long_as_one_waits },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("lag", cases);
}
