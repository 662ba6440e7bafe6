/* SPDX-License-Identifier: MIT */
/* How long a step takes with each quorum, from samples that are made up; and arrivals. */
#include <math.h>

#include "server/core/policy/adaptive/quorum_time.h"
#include "tests/ut.h"

static struct mst_quorum_time times;
static struct mst_quorum_waits row;

static void begin(void)
{
	times = (struct mst_quorum_time){ .cell[0][0] = { 0 } };
}

static void sample(uint32_t workers, uint32_t before, uint32_t number, double after_s)
{
	mst_quorum_time_add(&times, workers, &(struct mst_arrival){ before, number, after_s });
}

static bool estimate(uint32_t workers, uint32_t before)
{
	return mst_quorum_time_estimate(&times, workers, before, &row);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-3 * (1 + fabs(b));
}

static void every_quorum_up_to_sixteen_has_a_class(void)
{
	for (uint32_t workers = 1; workers <= MST_QUORUM_CLASSES; workers++) {
		CU_ASSERT_EQUAL(mst_quorum_classes(workers), workers);
		for (uint32_t k = 1; k <= workers; k++)
			CU_ASSERT_EQUAL(mst_quorum_of_class(workers, mst_quorum_class(workers, k)),
					k);
	}
}

static void of_many_workers_sixteen_quorums_are_kept(void)
{
	static const uint32_t counts[] = { 17, 100, 4096, 65536 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint32_t n = counts[i];
		CU_ASSERT_EQUAL(mst_quorum_classes(n), MST_QUORUM_CLASSES);
		CU_ASSERT_EQUAL(mst_quorum_of_class(n, MST_QUORUM_CLASSES - 1), n);
		for (uint32_t at = 0; at < MST_QUORUM_CLASSES; at++) {
			uint32_t k = mst_quorum_of_class(n, at);
			CU_ASSERT(k >= 1 && (at == 0 || k > mst_quorum_of_class(n, at - 1)));
			CU_ASSERT_EQUAL(mst_quorum_class(n, k), at);
			CU_ASSERT(at + 1 == MST_QUORUM_CLASSES ||
				  mst_quorum_class(n, k + 1) == at + 1);
		}
	}
}

static void without_samples_there_is_no_estimate(void)
{
	begin();
	CU_ASSERT_FALSE(estimate(4, 4));
	sample(100, 100, 99, 1); /* no quorum that is kept */
	CU_ASSERT_FALSE(estimate(100, 100));
}

static void samples_that_agree_are_the_estimate(void)
{
	begin();
	for (uint32_t k = 1; k <= 4; k++)
		sample(4, 4, k, k);
	CU_ASSERT_TRUE_FATAL(estimate(4, 4));
	for (uint32_t k = 0; k < 4; k++)
		CU_ASSERT(near(row.after_s[k], k + 1));
}

/* A fourth gradient cannot come before the third: both have the mean. */
static void samples_that_cannot_be_share_their_mean(void)
{
	begin();
	sample(4, 4, 1, 1);
	sample(4, 4, 2, 2);
	sample(4, 4, 3, 5);
	sample(4, 4, 4, 3);
	CU_ASSERT_TRUE_FATAL(estimate(4, 4));
	CU_ASSERT(near(row.after_s[0], 1) && near(row.after_s[1], 2));
	CU_ASSERT(near(row.after_s[2], 4) && near(row.after_s[3], 4));
}

/* The more were waited for, the sooner the next come. One sample against three. */
static void a_longer_wait_before_makes_no_step_longer(void)
{
	begin();
	sample(2, 2, 2, 8);
	for (int i = 0; i < 3; i++)
		sample(2, 1, 2, 4);
	CU_ASSERT_TRUE_FATAL(estimate(2, 1));
	CU_ASSERT(near(row.after_s[1], 5));
	CU_ASSERT_TRUE_FATAL(estimate(2, 2));
	CU_ASSERT(near(row.after_s[1], 5));
}

static void what_was_never_sampled_is_as_low_as_may_be(void)
{
	begin();
	sample(4, 3, 1, 1);
	sample(4, 3, 2, 2);
	sample(4, 3, 3, 3);
	CU_ASSERT_TRUE_FATAL(estimate(4, 3));
	CU_ASSERT(near(row.after_s[3], 3)); /* so that it is tried */
	CU_ASSERT_TRUE_FATAL(estimate(4, 1));
	CU_ASSERT(near(row.after_s[2], 3)); /* never less than after more */
}

static void older_samples_fade(void)
{
	begin();
	for (int i = 0; i < 1000; i++)
		sample(1, 1, 1, 10);
	for (int i = 0; i < 100; i++)
		sample(1, 1, 1, 1);
	CU_ASSERT_TRUE_FATAL(estimate(1, 1));
	CU_ASSERT(row.after_s[0] < 1.1);
}

/* Nobody waits for both workers any more, so nobody sees that the second is slow no longer. */
static void what_is_not_sampled_any_more_is_forgotten(void)
{
	begin();
	sample(2, 2, 1, 1);
	for (int i = 0; i < 10; i++)
		sample(2, 2, 2, 10);
	for (int i = 0; i < 300; i++) {
		sample(2, 1, 1, 1);
		mst_quorum_time_age(&times);
	}
	CU_ASSERT_TRUE_FATAL(estimate(2, 1));
	CU_ASSERT(near(row.after_s[1], 1));
}

static void every_estimate_is_monotone(void)
{
	uint32_t random = 1;

	begin();
	for (int i = 0; i < 2000; i++) {
		random = random * 1664525 + 1013904223;
		sample(16, 1 + (random >> 8) % 16, 1 + (random >> 16) % 16,
		       1 + (double)(random >> 24) / 64);
	}
	double before[MST_QUORUM_CLASSES] = { 0 };
	for (uint32_t h = 16; h >= 1; h--) {
		CU_ASSERT_TRUE_FATAL(estimate(16, h));
		for (uint32_t k = 0; k < 16; k++) {
			CU_ASSERT(k == 0 || row.after_s[k] > row.after_s[k - 1] - 0.01);
			CU_ASSERT(row.after_s[k] > before[k] - 0.01);
			before[k] = row.after_s[k];
		}
	}
}

static void arrivals_are_counted_for_the_step_that_they_began_with(void)
{
	struct mst_starts a = { .step[0] = { 0 } };
	struct mst_arrival is;

	CU_ASSERT_FALSE(mst_starts_add(&a, 0, 5, &is));
	mst_starts_open(&a, 0, 4, 1000000000);
	CU_ASSERT_TRUE(mst_starts_add(&a, 0, 1500000000, &is));
	CU_ASSERT(is.before == 4 && is.number == 1 && near(is.after_s, 0.5));
	mst_starts_open(&a, 1, 1, 1500000000);
	CU_ASSERT_TRUE(mst_starts_add(&a, 1, 2000000000, &is));
	CU_ASSERT(is.before == 1 && is.number == 1 && near(is.after_s, 0.5));
	CU_ASSERT_TRUE(mst_starts_add(&a, 0, 4000000000, &is)); /* a late one */
	CU_ASSERT(is.before == 4 && is.number == 2 && near(is.after_s, 3));
	mst_starts_open(&a, MST_STARTS_KEPT, 1, 5000000000);
	CU_ASSERT_FALSE(mst_starts_add(&a, 0, 6000000000, &is));
}

static CU_TestInfo cases[] = {
	{ "every quorum up to sixteen has a class", every_quorum_up_to_sixteen_has_a_class },
	{ "of many workers sixteen quorums are kept", of_many_workers_sixteen_quorums_are_kept },
	{ "without samples there is no estimate", without_samples_there_is_no_estimate },
	{ "samples that agree are the estimate", samples_that_agree_are_the_estimate },
	{ "samples that cannot be share their mean", samples_that_cannot_be_share_their_mean },
	{ "a longer wait before makes no step longer", a_longer_wait_before_makes_no_step_longer },
	{ "what was never sampled is as low as may be",
	  what_was_never_sampled_is_as_low_as_may_be },
	{ "older samples fade", older_samples_fade },
	{ "what is not sampled any more is forgotten", what_is_not_sampled_any_more_is_forgotten },
	{ "every estimate is monotone", every_estimate_is_monotone },
	{ "arrivals are counted for the step that they began with",
	  arrivals_are_counted_for_the_step_that_they_began_with },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("quorum_time", cases);
}
