/* SPDX-License-Identifier: MIT */
/* The promises of common/base: ring, histogram, random numbers, bit set, clock. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bitset.h"
#include "common/base/clock.h"
#include "common/base/hist.h"
#include "common/base/rand.h"
#include "common/base/spsc.h"
#include "tests/ut.h"

struct fd_message {
	uint64_t number, inverse;
	unsigned char filler[13]; /* an odd size, so that elements lie unaligned */
};

#define FD_MESSAGES 200000u

static void *produce(void *arg)
{
	struct mst_spsc *ring = arg;

	for (uint64_t n = 0; n < FD_MESSAGES; n++) {
		struct fd_message p = { .number = n, .inverse = ~n };

		memset(p.filler, (int)(n & 0xff), sizeof(p.filler));
		while (!mst_spsc_push(ring, &p))
			sched_yield();
	}
	return NULL;
}

static bool fd_message_is(const struct fd_message *p, uint64_t n)
{
	return p->number == n && p->inverse == ~n && p->filler[0] == (n & 0xff) &&
	       p->filler[12] == (n & 0xff);
}

static void ring_carries_everything_in_order(void)
{
	struct mst_spsc *ring = mst_spsc_new(64, sizeof(struct fd_message));
	uint64_t wrong = 0;
	pthread_t producer;

	CU_ASSERT_FATAL(ring != NULL);
	CU_ASSERT_FATAL(pthread_create(&producer, NULL, produce, ring) == 0);
	for (uint64_t n = 0; n < FD_MESSAGES; n++) {
		struct fd_message p;

		while (!mst_spsc_pop(ring, &p))
			sched_yield();
		wrong += !fd_message_is(&p, n);
	}
	pthread_join(producer, NULL);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_FALSE(mst_spsc_pop(ring, &(struct fd_message){ 0 }));
	mst_spsc_free(ring);
}

static void ring_is_full_after_its_slots(void)
{
	struct mst_spsc *ring = mst_spsc_new(4, sizeof(int));
	int out = -1;

	CU_ASSERT_FATAL(ring != NULL);
	CU_ASSERT_FALSE(mst_spsc_pop(ring, &out));
	for (int i = 0; i < 4; i++)
		CU_ASSERT_TRUE(mst_spsc_push(ring, &i));
	CU_ASSERT_FALSE(mst_spsc_push(ring, &(int){ 4 }));
	CU_ASSERT_EQUAL(mst_spsc_room(ring), 0);
	CU_ASSERT_TRUE(mst_spsc_pop(ring, &out));
	CU_ASSERT_EQUAL(mst_spsc_room(ring), 1);
	CU_ASSERT_EQUAL(out, 0);
	CU_ASSERT_TRUE(mst_spsc_push(ring, &(int){ 4 }));
	for (int i = 1; i <= 4; i++) {
		CU_ASSERT_TRUE(mst_spsc_pop(ring, &out));
		CU_ASSERT_EQUAL(out, i);
	}
	CU_ASSERT_FALSE(mst_spsc_pop(ring, &out));
	mst_spsc_free(ring);
}

static void ring_too_large_is_null(void)
{
	mst_spsc_free(NULL);
	CU_ASSERT_PTR_NULL(mst_spsc_new((size_t)1 << 62, 64));
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Spreads over many powers of two, as step times with stragglers do. */
static uint64_t draw_duration(struct mst_rand *r)
{
	return (uint64_t)(1e6 * exp(3.0 * mst_rand_normal(r)));
}

static void quantiles_are_within_one_cell_of_exact(void)
{
	enum { COUNT = 10000 };
	static uint64_t value[COUNT];
	static struct mst_hist h;
	struct mst_rand r;

	mst_rand_seed(&r, 7);
	mst_hist_init(&h);
	for (unsigned i = 0; i < COUNT; i++) {
		value[i] = draw_duration(&r);
		mst_hist_add(&h, value[i]);
	}
	qsort(value, COUNT, sizeof(value[0]), compare_u64);
	for (unsigned permille = 1; permille <= 1000; permille++) {
		uint64_t exact = value[COUNT / 1000 * permille - 1];
		uint64_t told = mst_hist_quantile(&h, permille / 1000.0);

		CU_ASSERT(told >= exact && told - exact <= exact / 32);
	}
	CU_ASSERT_EQUAL(mst_hist_quantile(&h, 1.0), value[COUNT - 1]);
	CU_ASSERT_EQUAL(h.min, value[0]);
}

static void small_values_are_exact(void)
{
	static struct mst_hist h;

	mst_hist_init(&h);
	for (uint64_t v = 1; v <= 25; v++)
		mst_hist_add(&h, v);
	CU_ASSERT_EQUAL(mst_hist_quantile(&h, 0.0), 1);
	CU_ASSERT_EQUAL(mst_hist_quantile(&h, 0.28), 7); /* 0.28 * 25 is above 7 in binary */
	CU_ASSERT_EQUAL(mst_hist_quantile(&h, 0.5), 13);
	CU_ASSERT_EQUAL(mst_hist_quantile(&h, 1.0), 25);
	CU_ASSERT_DOUBLE_EQUAL(mst_hist_mean(&h), 13.0, 0.0);
}

static void histogram_takes_every_value(void)
{
	static struct mst_hist h;

	mst_hist_init(&h);
	CU_ASSERT_EQUAL(mst_hist_quantile(&h, 0.5), 0);
	CU_ASSERT_DOUBLE_EQUAL(mst_hist_mean(&h), 0.0, 0.0);
	mst_hist_add(&h, 0);
	for (unsigned bit = 0; bit < 64; bit++) {
		mst_hist_add(&h, UINT64_C(1) << bit);
		CU_ASSERT_EQUAL(mst_hist_quantile(&h, 1.0), UINT64_C(1) << bit);
	}
	mst_hist_add(&h, UINT64_MAX);
	CU_ASSERT_EQUAL(mst_hist_quantile(&h, 1.0), UINT64_MAX);
	CU_ASSERT_EQUAL(mst_hist_quantile(&h, 0.0), 0);
	CU_ASSERT_EQUAL(h.count, 66);
}

/* Numbers of the authors' reference code, for the state that splitmix64 makes of seed 0. */
static void seed_gives_the_published_numbers(void)
{
	static const uint64_t known[] = {
		UINT64_C(0x99ec5f36cb75f2b4),
		UINT64_C(0xbf6e1f784956452a),
		UINT64_C(0x1a5f849d4933e6e0),
		UINT64_C(0x6aa594f1262d2d2c),
	};
	struct mst_rand r;

	mst_rand_seed(&r, 0);
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(mst_rand_next(&r), known[i]);
}

static void other_seed_other_numbers(void)
{
	struct mst_rand a, b, again;
	unsigned same = 0;

	mst_rand_seed(&a, 1);
	mst_rand_seed(&b, 2);
	mst_rand_seed(&again, 1);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t x = mst_rand_next(&a);

		same += x == mst_rand_next(&b);
		CU_ASSERT_EQUAL(x, mst_rand_next(&again));
	}
	CU_ASSERT_EQUAL(same, 0);
}

/* A bound of 3/4 of 2^64: a plain remainder would give the lowest third two shares out of four. */
static void large_bounds_have_no_bias(void)
{
	enum { COUNT = 30000 };
	const uint64_t third = UINT64_C(1) << 62;
	unsigned share[3] = { 0 };
	struct mst_rand r;

	mst_rand_seed(&r, 3);
	for (unsigned i = 0; i < COUNT; i++) {
		uint64_t x = mst_rand_below(&r, 3 * third);

		CU_ASSERT_FATAL(x < 3 * third);
		share[x / third]++;
	}
	for (unsigned i = 0; i < 3; i++) /* 5 standard deviations are 408 */
		CU_ASSERT(share[i] > COUNT / 3 - 408 && share[i] < COUNT / 3 + 408);
}

static void small_bounds_reach_every_number(void)
{
	unsigned share[7] = { 0 };
	struct mst_rand r;

	mst_rand_seed(&r, 4);
	for (unsigned i = 0; i < 7000; i++)
		share[mst_rand_below(&r, 7)]++;
	for (unsigned i = 0; i < 7; i++)
		CU_ASSERT(share[i] > 850 && share[i] < 1150);
	CU_ASSERT_EQUAL(mst_rand_below(&r, 1), 0);
}

static void moments_are_those_of_the_distributions(void)
{
	enum { COUNT = 100000 };
	double unit_sum = 0, normal_sum = 0, normal_squares = 0;
	struct mst_rand r;

	mst_rand_seed(&r, 5);
	for (unsigned i = 0; i < COUNT; i++) {
		double unit = mst_rand_unit(&r), normal = mst_rand_normal(&r);

		CU_ASSERT_FATAL(unit >= 0.0 && unit < 1.0);
		unit_sum += unit;
		normal_sum += normal;
		normal_squares += normal * normal;
	}
	CU_ASSERT_DOUBLE_EQUAL(unit_sum / COUNT, 0.5, 0.005);
	CU_ASSERT_DOUBLE_EQUAL(normal_sum / COUNT, 0.0, 0.016);
	CU_ASSERT_DOUBLE_EQUAL(normal_squares / COUNT, 1.0, 0.025);
}

static void secrets_differ(void)
{
	uint64_t a[4] = { 0 }, b[4] = { 0 };

	CU_ASSERT_EQUAL(mst_rand_secret(a, sizeof(a)), 0);
	CU_ASSERT_EQUAL(mst_rand_secret(b, sizeof(b)), 0);
	CU_ASSERT(memcmp(a, b, sizeof(a)) != 0);
	CU_ASSERT(a[3] != 0); /* filled to the end */
}

static void bits_stand_alone(void)
{
	uint64_t set[3] = { 0 };

	CU_ASSERT_EQUAL(mst_bitset_words(0), 0);
	CU_ASSERT_EQUAL(mst_bitset_words(64), 1);
	CU_ASSERT_EQUAL(mst_bitset_words(65), 2);
	for (size_t i = 0; i < 192; i += 3)
		mst_bitset_add(set, i);
	mst_bitset_remove(set, 63);
	mst_bitset_remove(set, 64); /* was not in it */
	for (size_t i = 0; i < 192; i++)
		CU_ASSERT_EQUAL(mst_bitset_test(set, i), i % 3 == 0 && i != 63);
}

static void clock_runs_forward(void)
{
	uint64_t before = mst_now_ns();

	mst_sleep_ns(5 * MST_MS);
	CU_ASSERT(mst_now_ns() - before >= 5 * MST_MS);
}

static CU_TestInfo cases[] = {
	{ "a ring carries everything between two threads, in order",
	  ring_carries_everything_in_order },
	{ "a ring is full after as many elements as it has slots", ring_is_full_after_its_slots },
	{ "a ring larger than memory is refused", ring_too_large_is_null },
	{ "quantiles are within 1/32 of the exact ones", quantiles_are_within_one_cell_of_exact },
	{ "small values are exact", small_values_are_exact },
	{ "a histogram takes every 64-bit value", histogram_takes_every_value },
	{ "seed 0 gives the published numbers", seed_gives_the_published_numbers },
	{ "other seeds give other numbers, the same seed the same", other_seed_other_numbers },
	{ "large bounds have no bias", large_bounds_have_no_bias },
	{ "small bounds reach every number", small_bounds_reach_every_number },
	{ "uniform and normal numbers have their moments", moments_are_those_of_the_distributions },
	{ "secrets differ", secrets_differ },
	{ "bits are set and cleared one by one", bits_stand_alone },
	{ "the clock runs forward", clock_runs_forward },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("base", cases);
}
