/* SPDX-License-Identifier: MIT */
/* The promises of common/base/log.h. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/ut.h"

static struct mst_ratelimit fresh(void)
{
	return (struct mst_ratelimit){ .window_ns = 10 * MST_SECOND, .burst = 3 };
}

static unsigned passed(struct mst_ratelimit *r, unsigned times, uint64_t now_ns)
{
	unsigned count = 0;

	for (unsigned i = 0; i < times; i++)
		count += mst_ratelimit_pass(r, now_ns);
	return count;
}

static void first_few_pass(void)
{
	struct mst_ratelimit r = fresh();

	CU_ASSERT_EQUAL(passed(&r, 2, 0), 2);
	CU_ASSERT_EQUAL(passed(&r, 1000, 9 * MST_SECOND), 1);
	CU_ASSERT_EQUAL(passed(&r, 1000, 10 * MST_SECOND - 1), 0);
	CU_ASSERT_EQUAL(passed(&r, 2, 10 * MST_SECOND), 2);
}

static void rest_is_counted_once(void)
{
	struct mst_ratelimit r = fresh();

	(void)passed(&r, 1003, MST_SECOND);
	CU_ASSERT_EQUAL(mst_ratelimit_take(&r, 11 * MST_SECOND - 1), 0);
	CU_ASSERT_EQUAL(mst_ratelimit_take(&r, 11 * MST_SECOND), 1000);
	CU_ASSERT_EQUAL(mst_ratelimit_take(&r, 11 * MST_SECOND), 0);
	CU_ASSERT_EQUAL(passed(&r, 4, 11 * MST_SECOND), 3);
	CU_ASSERT_EQUAL(mst_ratelimit_take(&r, 30 * MST_SECOND), 1);
}

static void who_stays_below_is_never_held_back(void)
{
	struct mst_ratelimit r = fresh();

	for (uint64_t now = 0; now < 1000 * MST_SECOND; now += 5 * MST_SECOND)
		CU_ASSERT_TRUE(mst_ratelimit_pass(&r, now));
	CU_ASSERT_EQUAL(mst_ratelimit_take(&r, MST_NEVER), 0);
}

static void all_is_taken_at_the_end(void)
{
	struct mst_ratelimit r = fresh();

	(void)passed(&r, 10, 5 * MST_SECOND);
	CU_ASSERT_EQUAL(mst_ratelimit_take(&r, MST_NEVER), 7);
}

static CU_TestInfo cases[] = {
	{ "the first few in a window pass", first_few_pass },
	{ "the rest is counted, and told once, when the window is over", rest_is_counted_once },
	{ "who stays below the limit is never held back", who_stays_below_is_never_held_back },
	{ "at the end all of it can be taken", all_is_taken_at_the_end },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ratelimit", cases);
}
