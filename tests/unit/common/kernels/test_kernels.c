/* SPDX-License-Identifier: MIT */
/* The promises of common/kernels/sum.h, and of the kernels of optimisers, about arithmetic, to the
 * bit (PROTOCOL 5). */
#include <CUnit/CUnit.h>
#include <float.h>
#include <stdlib.h>

#include "common/base/rand.h"
#include "common/kernels/sum.h"
#include "tests/unit/common/kernels/reference_float.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"

#define ROOM 2048 /* more than sums of 16-bit types widen at once */
#define ROUNDS 300

static const enum muster_type types[] = { MUSTER_F32, MUSTER_BF16, MUSTER_F16 };

/* Numbers of all sizes: ordinary ones that round when added, subnormals, zeros, infinities, NaN. */
static float any_float(struct mst_rand *rand)
{
	uint32_t bits = (uint32_t)mst_rand_next(rand);

	switch (mst_rand_below(rand, 16)) {
	case 0:
		return float_of(bits);
	case 1:
		return float_of(bits & 0x807fffffu);
	case 2:
		return float_of(bits & 0x80000000u);
	default:
		return float_of((bits & 0x83ffffffu) | 0x3c000000u);
	}
}

static void fill(struct mst_rand *rand, float *value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		value[i] = any_float(rand);
}

/* Random elements of a type, and the same ones as the reference widens them. */
static void fill_gradient(struct mst_rand *rand, enum muster_type type, void *g, float *wide)
{
	const struct format *f = type == MUSTER_BF16 ? &bf16 : &f16;

	fill(rand, wide, ROOM);
	if (type == MUSTER_F32) {
		memcpy(g, wide, ROOM * sizeof(float));
		return;
	}
	for (size_t i = 0; i < ROOM; i++) {
		((uint16_t *)g)[i] = pattern_of(f, wide[i]);
		wide[i] = value_of(f, ((uint16_t *)g)[i]);
	}
}

static float coefficient(struct mst_rand *rand)
{
	return mst_rand_below(rand, 2) == 0 ? 1.0f : (float)mst_rand_unit(rand) * 3;
}

static float leaf(float c, float g)
{
	return c == 1.0f ? g : rounded_product(c, g);
}

/* One random call of each kind; its range starts and ends anywhere. @return: wrong elements. */
static unsigned sum_wrong(struct mst_rand *rand, enum muster_type type)
{
	static float g[ROOM], wide[ROOM], acc[ROOM], start[ROOM], out[ROOM];
	size_t first = mst_rand_below(rand, 40), count = mst_rand_below(rand, ROOM - 40);
	const char *at = (const char *)g + first * mst_type_bytes(type);
	float c = coefficient(rand);
	unsigned wrong = 0;

	fill_gradient(rand, type, g, wide);
	fill(rand, start, ROOM);
	memcpy(acc, start, sizeof(acc));
	memcpy(out, start, sizeof(out));
	mst_sum_first(out + first / 2, at, type, c, count);
	mst_sum_add(acc + first / 2, at, type, c, count);
	for (size_t i = 0; i < ROOM; i++) {
		bool inside = i >= first / 2 && i < first / 2 + count;
		float addend = inside ? leaf(c, wide[first + i - first / 2]) : 0;

		wrong += !same(out[i], inside ? addend : start[i]);
		wrong += !same(acc[i], inside ? rounded_sum(start[i], addend) : start[i]);
	}
	return wrong;
}

static void leaves_are_scaled_then_added_element_by_element(void)
{
	struct mst_rand rand;

	mst_rand_seed(&rand, 3);
	for (unsigned round = 0; round < ROUNDS; round++)
		CU_ASSERT_EQUAL(sum_wrong(&rand, types[round % 3]), 0);
}

static void partial_sums_join_and_divide(void)
{
	static float acc[ROOM], part[ROOM], start[ROOM];
	struct mst_rand rand;
	unsigned wrong = 0;

	mst_rand_seed(&rand, 4);
	for (unsigned round = 0; round < ROUNDS; round++) {
		size_t count = mst_rand_below(&rand, ROOM);
		float divisor = (float)(1 + mst_rand_below(&rand, 4096));

		fill(&rand, start, ROOM);
		fill(&rand, part, ROOM);
		memcpy(acc, start, sizeof(acc));
		mst_sum_join(acc, part, count);
		mst_sum_divide(acc, divisor, count);
		for (size_t i = 0; i < ROOM; i++) {
			float mean = rounded_quotient(rounded_sum(start[i], part[i]), divisor);

			wrong += !same(acc[i], i < count ? mean : start[i]);
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

/* (1 + 2^-12)^2 has a last digit that f32 has no room for; fused, it would survive. */
static void a_product_is_rounded_before_it_is_added(void)
{
	enum { COUNT = 37 };
	float near_one = 0x1.001p0f, rounded = 0x1.002p0f;
	float g[COUNT], acc[COUNT], next[COUNT], m[COUNT];

	CU_ASSERT_EQUAL(fmaf(near_one, near_one, -rounded), 0x1p-24f);
	for (int i = 0; i < COUNT; i++) {
		g[i] = near_one;
		acc[i] = -rounded;
		next[i] = rounded;
		m[i] = near_one;
	}
	mst_sum_add(acc, g, MUSTER_F32, near_one, COUNT);
	optim_case_step_sgd(next, next, g, NULL, 0, near_one, COUNT);
	for (int i = 0; i < COUNT; i++) {
		CU_ASSERT_EQUAL(acc[i], 0);
		CU_ASSERT_EQUAL(next[i], 0);
		g[i] = -rounded;
	}
	optim_case_step_sgd(next, next, g, m, near_one, 1, COUNT);
	for (int i = 0; i < COUNT; i++)
		CU_ASSERT_EQUAL(m[i], 0);
}

/* Sums of integers that divide without remainder: their means must be these integers. */
static void means_of_integers_are_exact(void)
{
	unsigned wrong = 0, reciprocal_wrong = 0;

	for (unsigned divisor = 1; divisor <= 64; divisor++) {
		volatile float reciprocal = 1.0f / (float)divisor;
		float acc[256];

		for (unsigned i = 0; i < 256; i++)
			acc[i] = (float)(i * divisor);
		mst_sum_divide(acc, (float)divisor, 256);
		for (unsigned i = 0; i < 256; i++) {
			volatile float product = (float)(i * divisor) * reciprocal;

			wrong += acc[i] != (float)i;
			reciprocal_wrong += product != (float)i;
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(reciprocal_wrong > 0);
}

static void a_sum_starts_from_its_first_member(void)
{
	for (size_t t = 0; t < 3; t++) {
		uint32_t minus_zero[1] = { types[t] == MUSTER_F32 ? 0x80000000u : 0x8000u };
		float acc[1] = { 7 };

		mst_sum_first(acc, minus_zero, types[t], 1, 1);
		CU_ASSERT_EQUAL(bits_of(acc[0]), 0x80000000u);
		mst_sum_add(acc, minus_zero, types[t], 1, 1);
		CU_ASSERT_EQUAL(bits_of(acc[0]), 0x80000000u);
		mst_sum_divide(acc, 3, 1);
		CU_ASSERT_EQUAL(bits_of(acc[0]), 0x80000000u);
	}
}

/* As bits: a processor that flushes subnormals also compares them as zeros. */
static void subnormals_are_summed_not_flushed(void)
{
	enum { COUNT = 19 };
	float g[COUNT], acc[COUNT], next[COUNT];

	for (int i = 0; i < COUNT; i++) {
		g[i] = FLT_MIN;
		next[i] = 0x1p-149f;
	}
	mst_sum_first(acc, g, MUSTER_F32, 0.5f, COUNT);
	mst_sum_add(acc, g, MUSTER_F32, 0.125f, COUNT);
	mst_sum_join(acc, next, COUNT);
	mst_sum_divide(acc, 5, COUNT);
	optim_case_step_sgd(next, next, g, NULL, 0, -0.25f, COUNT);
	optim_case_step_add(next, next, acc, COUNT);
	mst_sum_store(next, MUSTER_F32, next, COUNT);
	for (int i = 0; i < COUNT; i++) {
		CU_ASSERT_EQUAL(bits_of(acc[i]), 0x00100000);  /* 2^-129 */
		CU_ASSERT_EQUAL(bits_of(next[i]), 0x00300001); /* 2^-128 + 2^-129 + 2^-149 */
	}
}

static void nothing_happens_to_no_elements(void)
{
	float one = 1;

	for (size_t t = 0; t < 3; t++) {
		mst_sum_first(&one, NULL, types[t], 2, 0);
		mst_sum_add(&one, NULL, types[t], 2, 0);
		mst_sum_store(&one, types[t], NULL, 0);
	}
	mst_sum_join(&one, NULL, 0);
	mst_sum_divide(&one, 2, 0);
	optim_case_step_sgd(&one, NULL, NULL, NULL, 0.5f, 2, 0);
	optim_case_step_add(&one, NULL, NULL, 0);
	CU_ASSERT_EQUAL(one, 1);
}

/* One step of a random vector against the reference, in place or apart. @return: wrong elements. */
static unsigned sgd_wrong(struct mst_rand *rand, float mu, bool in_place)
{
	static float theta[ROOM], next[ROOM], g[ROOM], m[ROOM], m_before[ROOM];
	float *momentum = mu == 0 ? NULL : m, eta = (float)mst_rand_unit(rand);
	size_t count = mst_rand_below(rand, ROOM);
	unsigned wrong = 0;

	fill(rand, theta, ROOM);
	fill(rand, g, ROOM);
	fill(rand, m, ROOM);
	memcpy(m_before, m, sizeof(m));
	memcpy(next, theta, sizeof(next));
	optim_case_step_sgd(next, in_place ? next : theta, g, momentum, mu, eta, count);
	for (size_t i = 0; i < ROOM; i++) {
		float slope = mu == 0 ? g[i] : rounded_sum(rounded_product(mu, m_before[i]), g[i]);
		float step = rounded_product(eta, slope);

		wrong += !same(next[i], i < count ? rounded_sum(theta[i], -step) : theta[i]);
		wrong += !same(m[i], mu != 0 && i < count ? slope : m_before[i]);
	}
	return wrong;
}

static void sgd_steps_down_with_and_without_momentum(void)
{
	struct mst_rand rand;

	mst_rand_seed(&rand, 5);
	for (unsigned round = 0; round < ROUNDS; round++) {
		CU_ASSERT_EQUAL(sgd_wrong(&rand, 0, round % 2 == 0), 0);
		CU_ASSERT_EQUAL(sgd_wrong(&rand, 0.9f, round % 2 == 0), 0);
	}
}

static void add_adds_the_total_in_place_and_apart(void)
{
	static float theta[ROOM], next[ROOM], total[ROOM];
	struct mst_rand rand;
	unsigned wrong = 0;

	mst_rand_seed(&rand, 6);
	for (unsigned round = 0; round < ROUNDS; round++) {
		size_t count = mst_rand_below(&rand, ROOM);

		fill(&rand, theta, ROOM);
		fill(&rand, total, ROOM);
		memcpy(next, theta, sizeof(next));
		optim_case_step_add(next, round % 2 == 0 ? next : theta, total, count);
		for (size_t i = 0; i < ROOM; i++)
			wrong += !same(next[i],
				       i < count ? rounded_sum(theta[i], total[i]) : theta[i]);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static CU_TestInfo cases[] = {
	{ "leaves are scaled, rounded, then added, element by element",
	  leaves_are_scaled_then_added_element_by_element },
	{ "partial sums join and divide", partial_sums_join_and_divide },
	{ "a product is rounded before it is added", a_product_is_rounded_before_it_is_added },
	{ "means of integers are exact, which a reciprocal would miss",
	  means_of_integers_are_exact },
	{ "a sum starts from its first member, not from +0.0", a_sum_starts_from_its_first_member },
	{ "subnormals are summed, not flushed to zero", subnormals_are_summed_not_flushed },
	{ "nothing happens to no elements", nothing_happens_to_no_elements },
	{ "sgd steps down the slope, with and without momentum",
	  sgd_steps_down_with_and_without_momentum },
	{ "add adds the total, in place and apart", add_adds_the_total_in_place_and_apart },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("kernels", cases);
}
