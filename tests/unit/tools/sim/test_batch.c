/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "tests/ut.h"
#include "tools/sim/worker.h"

static void a_batch_is_taken_in_parts(void)
{
	struct mst_sim_batch b = { .micro = 4 };
	uint64_t spent_ns = 7;

	mst_sim_batch_begin(&b, 100, 1000);
	CU_ASSERT_EQUAL(mst_sim_batch_end_ns(&b), 1100);
	CU_ASSERT_EQUAL(mst_sim_batch_spent_ns(&b, 1060), 60);
	CU_ASSERT_EQUAL(mst_sim_batch_take(&b, 1060, &spent_ns), 2);
	CU_ASSERT(spent_ns == 57 && b.open && b.taken == 2);
	mst_sim_batch_begin(&b, 0, 2000); /* goes on: the length given is of a new one only */
	CU_ASSERT_EQUAL(mst_sim_batch_end_ns(&b), 2050);
	CU_ASSERT_EQUAL(mst_sim_batch_spent_ns(&b, 2010), 10);
	CU_ASSERT_EQUAL(mst_sim_batch_take(&b, 2010, &spent_ns), 0);
	CU_ASSERT_EQUAL(mst_sim_batch_take(&b, 2050, &spent_ns), 2);
	CU_ASSERT(spent_ns == 107 && !b.open);
	CU_ASSERT_EQUAL(mst_sim_batch_spent_ns(&b, 2060), 0);
	mst_sim_batch_begin(&b, 40, 3000);
	CU_ASSERT(b.taken == 0 && mst_sim_batch_end_ns(&b) == 3040);
}

static void a_bound_is_where_no_micro_batch_is_half_done(void)
{
	struct mst_sim_batch b = { .micro = 4 };

	mst_sim_batch_begin(&b, 100, 1000);
	CU_ASSERT_EQUAL(mst_sim_batch_bound_ns(&b, 1000), 1000);
	CU_ASSERT_EQUAL(mst_sim_batch_bound_ns(&b, 1001), 1025);
	CU_ASSERT_EQUAL(mst_sim_batch_bound_ns(&b, 1025), 1025);
	CU_ASSERT_EQUAL(mst_sim_batch_bound_ns(&b, 1026), 1050);
	CU_ASSERT_EQUAL(mst_sim_batch_bound_ns(&b, 1099), 1100);
	CU_ASSERT_EQUAL(mst_sim_batch_bound_ns(&b, 1100), 1100);
}

/* Lengths that no number of micro-batches divides, and that are too long for a product in 64 bits:
 * at each bound exactly one more is finished, and all of them take the whole length. */
static void nothing_is_lost_in_rounding(void)
{
	static const uint64_t lengths[] = { 1, 7, 20000003, 3600 * MST_SECOND + 1, UINT64_MAX / 8 };
	static const uint32_t micro[] = { 1, 3, 8, 1000 };

	for (unsigned i = 0; i < 5 * 4; i++) {
		struct mst_sim_batch b = { .micro = micro[i % 4] };
		uint64_t now_ns = MST_SECOND, spent_ns = 0, taken = 0;
		mst_sim_batch_begin(&b, lengths[i / 4], now_ns);
		while (b.open) {
			now_ns = mst_sim_batch_bound_ns(&b, now_ns + 1);
			taken += mst_sim_batch_take(&b, now_ns, &spent_ns);
			mst_sim_batch_begin(&b, 0, now_ns);
			b.open = taken < b.micro;
		}
		CU_ASSERT(taken == micro[i % 4] && spent_ns == lengths[i / 4]);
		CU_ASSERT_EQUAL(now_ns, MST_SECOND + lengths[i / 4]);
	}
}

static void without_time_all_of_it_is_finished(void)
{
	struct mst_sim_batch b = { .micro = 4 };
	uint64_t spent_ns = 0;

	mst_sim_batch_begin(&b, 0, 1000);
	CU_ASSERT_EQUAL(mst_sim_batch_bound_ns(&b, 1000), 1000);
	CU_ASSERT(mst_sim_batch_take(&b, 1000, &spent_ns) == 4 && spent_ns == 0 && !b.open);
}

static void a_batch_without_end_ends_never(void)
{
	struct mst_sim_batch b = { .micro = 4 };

	mst_sim_batch_begin(&b, UINT64_MAX - 5, MST_SECOND);
	CU_ASSERT_EQUAL(mst_sim_batch_end_ns(&b), MST_NEVER);
}

static CU_TestInfo cases[] = {
	{ "a batch is taken in parts", a_batch_is_taken_in_parts },
	{ "a bound is where no micro-batch is half done",
	  a_bound_is_where_no_micro_batch_is_half_done },
	{ "nothing is lost in rounding", nothing_is_lost_in_rounding },
	{ "without time all of it is finished", without_time_all_of_it_is_finished },
	{ "a batch without end ends never", a_batch_without_end_ends_never },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim_batch", cases);
}
