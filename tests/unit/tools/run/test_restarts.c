/* SPDX-License-Identifier: MIT */
/* How often a server of a run is started again. */
#include "tests/ut.h"
#include "tools/run/restarts.h"

static void only_so_many_are_counted_in_a_span(void)
{
	struct mst_restarts r = { 0 };
	uint64_t now_ns = MST_SECOND;

	for (uint32_t i = 1; i <= MST_RESTARTS_MOST; i++, now_ns += MST_SECOND)
		CU_ASSERT_EQUAL(mst_restarts_take(&r, now_ns), i);
	CU_ASSERT_EQUAL(mst_restarts_take(&r, now_ns), 0);
	CU_ASSERT_EQUAL(mst_restarts_take(&r, MST_SECOND + MST_RESTARTS_SPAN_NS - 1), 0);
	CU_ASSERT_EQUAL(r.count, MST_RESTARTS_MOST);
}

/* Else a job of days ends at its sixth loss. */
static void those_of_long_ago_do_not_count(void)
{
	struct mst_restarts r = { 0 };
	uint64_t now_ns = MST_SECOND;

	for (uint32_t i = 0; i < 4 * MST_RESTARTS_MOST; i++, now_ns += MST_RESTARTS_SPAN_NS)
		CU_ASSERT_EQUAL(mst_restarts_take(&r, now_ns), 1);
	CU_ASSERT_EQUAL(r.count, 4 * MST_RESTARTS_MOST);
	for (uint32_t i = 2; i <= MST_RESTARTS_MOST; i++)
		CU_ASSERT_EQUAL(mst_restarts_take(&r, now_ns - MST_SECOND), i);
	CU_ASSERT_EQUAL(mst_restarts_take(&r, now_ns - MST_SECOND), 0);
	/* the oldest of them is over */
	CU_ASSERT_EQUAL(mst_restarts_take(&r, now_ns), MST_RESTARTS_MOST);
	CU_ASSERT_EQUAL(mst_restarts_take(&r, now_ns), 0);
}

static void only_one_that_ends_at_once_has_to_wait(void)
{
	CU_ASSERT_EQUAL(mst_restarts_pause(60 * MST_SECOND), 0);
	CU_ASSERT(mst_restarts_pause(10 * MST_MS) > 0);
}

static CU_TestInfo cases[] = {
	{ "only so many are counted in a span", only_so_many_are_counted_in_a_span },
	{ "those of long ago do not count", those_of_long_ago_do_not_count },
	{ "only one that ends at once has to wait", only_one_that_ends_at_once_has_to_wait },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("restarts", cases);
}
