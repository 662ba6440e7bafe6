/* SPDX-License-Identifier: MIT */
/* The promises of common/kernels/sum.h about types: exact widening, one rounding back. */
#include <CUnit/CUnit.h>
#include <float.h>
#include <stdlib.h>

#include "common/base/rand.h"
#include "common/kernels/sum.h"
#include "tests/unit/common/kernels/reference_float.h"
#include "tests/ut.h"

#define PATTERNS 65536u
#define RANDOM_FLOATS 400000u

static uint16_t patterns[PATTERNS], narrowed[PATTERNS];
static float widened[PATTERNS];

static void widen_all_patterns(const struct format *f)
{
	for (unsigned i = 0; i < PATTERNS; i++)
		patterns[i] = (uint16_t)i;
	mst_sum_load(widened, patterns, f->type, PATTERNS);
}

static void every_pattern_widens_exactly(const struct format *f)
{
	unsigned wrong = 0;

	widen_all_patterns(f);
	for (unsigned i = 0; i < PATTERNS; i++)
		wrong += !same(widened[i], value_of(f, (uint16_t)i));
	CU_ASSERT_EQUAL(wrong, 0);
}

static void every_bf16_widens_exactly(void)
{
	every_pattern_widens_exactly(&bf16);
}

static void every_f16_widens_exactly(void)
{
	every_pattern_widens_exactly(&f16);
}

static void every_pattern_comes_back(const struct format *f)
{
	unsigned wrong = 0;

	widen_all_patterns(f);
	mst_sum_store(narrowed, f->type, widened, PATTERNS);
	for (unsigned i = 0; i < PATTERNS; i++)
		wrong += narrowed[i] != (is_nan(f, (uint16_t)i) ? f->nan : i);
	CU_ASSERT_EQUAL(wrong, 0);
}

static void every_16_bit_number_comes_back_from_f32(void)
{
	every_pattern_comes_back(&bf16);
	every_pattern_comes_back(&f16);
}

/* Narrows them all and counts those that the reference narrows otherwise. */
static unsigned count_wrong(const struct format *f, const float *value, size_t count)
{
	uint16_t *out = malloc(count * sizeof(*out));
	unsigned wrong = 0;

	CU_ASSERT_FATAL(out != NULL);
	mst_sum_store(out, f->type, value, count);
	for (size_t i = 0; i < count; i++)
		wrong += out[i] != pattern_of(f, value[i]);
	free(out);
	return wrong;
}

/* Around each number of the format, and around the middle between it and the next one. Above the
 * largest number the next one is where infinity begins. */
static void numbers_and_middles_narrow_to_nearest_even(const struct format *f)
{
	unsigned wrong = 0;

	for (uint16_t i = 0; i < f->infinity; i++) {
		double low = unbounded_value(f, i), high = unbounded_value(f, (uint16_t)(i + 1));
		float number = (float)low, middle = (float)((low + high) / 2);
		float around[] = {
			number,
			nextafterf(number, -INFINITY),
			nextafterf(number, INFINITY),
			-number,
			middle,
			nextafterf(middle, 0),
			-middle,
			nextafterf(middle, INFINITY),
			-nextafterf(middle, INFINITY),
		};

		wrong += count_wrong(f, around, sizeof(around) / sizeof(around[0]));
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void bf16_middles_round_to_even(void)
{
	numbers_and_middles_narrow_to_nearest_even(&bf16);
}

static void f16_middles_round_to_even(void)
{
	numbers_and_middles_narrow_to_nearest_even(&f16);
}

/* Half of them any bits at all, half of them near the range that f16 has. */
static void random_floats_narrow_to_nearest(void)
{
	float *value = malloc(RANDOM_FLOATS * sizeof(*value));
	struct mst_rand rand;

	CU_ASSERT_FATAL(value != NULL);
	mst_rand_seed(&rand, 1);
	for (unsigned i = 0; i < RANDOM_FLOATS; i++) {
		uint32_t bits = (uint32_t)mst_rand_next(&rand);
		uint32_t exponent = 127 - 27 + (uint32_t)mst_rand_below(&rand, 45);

		value[i] = float_of(i % 2 == 0 ? bits : (bits & 0x807fffffu) | exponent << 23);
	}
	CU_ASSERT_EQUAL(count_wrong(&bf16, value, RANDOM_FLOATS), 0);
	CU_ASSERT_EQUAL(count_wrong(&f16, value, RANDOM_FLOATS), 0);
	free(value);
}

/* Worked by hand, in case the reference errs as the kernels do. */
static void known_values_narrow_as_written_down(void)
{
	static const struct {
		float value;
		uint16_t bf16, f16;
	} known[] = {
		{ 0.0f, 0x0000, 0x0000 },
		{ -0.0f, 0x8000, 0x8000 },
		{ 1.0f, 0x3f80, 0x3c00 },
		{ -2.0f, 0xc000, 0xc000 },
		{ 0x1.01p0f, 0x3f80, 0x3c04 },  /* half a unit of bf16: down to even */
		{ 0x1.03p0f, 0x3f82, 0x3c0c },  /* and up to even */
		{ 65504.0f, 0x4780, 0x7bff },   /* the largest f16 */
		{ 65519.996f, 0x4780, 0x7bff }, /* just below the middle to what would be next */
		{ 65520.0f, 0x4780, 0x7c00 },
		{ FLT_MAX, 0x7f80, 0x7c00 },
		{ -INFINITY, 0xff80, 0xfc00 },
		{ 0x1p-24f, 0x3380, 0x0001 }, /* the smallest f16 */
		{ 0x1p-25f, 0x3300, 0x0000 },
		{ 0x1.000002p-25f, 0x3300, 0x0001 },
		{ 0x1.ff8p-15f, 0x3880, 0x03ff }, /* the largest subnormal f16 */
		{ 0x1.ffcp-15f, 0x3880, 0x0400 }, /* the middle above it */
		{ 0x1p-133f, 0x0001, 0x0000 },    /* the smallest bf16 */
		{ 0x1p-134f, 0x0000, 0x0000 },
		{ -0x1.8p-134f, 0x8001, 0x8000 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint16_t out[2];

		mst_sum_store(&out[0], MUSTER_BF16, &known[i].value, 1);
		mst_sum_store(&out[1], MUSTER_F16, &known[i].value, 1);
		CU_ASSERT_EQUAL(out[0], known[i].bf16);
		CU_ASSERT_EQUAL(out[1], known[i].f16);
	}
}

static void every_nan_is_stored_as_the_canonical_one(void)
{
	static const uint32_t payload[] = {
		0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff,
		0xffffffff, 0x7fa00000, 0x7f80ffff, 0x7fc0dead,
	};

	for (size_t i = 0; i < sizeof(payload) / sizeof(payload[0]); i++) {
		uint16_t half[2];
		uint32_t apart, in_place = payload[i];

		mst_sum_store(&half[0], MUSTER_BF16, (const float *)&payload[i], 1);
		mst_sum_store(&half[1], MUSTER_F16, (const float *)&payload[i], 1);
		mst_sum_store(&apart, MUSTER_F32, (const float *)&payload[i], 1);
		mst_sum_store(&in_place, MUSTER_F32, (const float *)&in_place, 1);
		CU_ASSERT_EQUAL(half[0], 0x7fc0);
		CU_ASSERT_EQUAL(half[1], 0x7e00);
		CU_ASSERT_EQUAL(apart, 0x7fc00000);
		CU_ASSERT_EQUAL(in_place, 0x7fc00000);
	}
}

/* -0.0, subnormals and infinities among them, in place and apart. */
static void f32_numbers_are_stored_as_they_are(void)
{
	static float value[4096], apart[4096], in_place[4096];
	struct mst_rand rand;

	mst_rand_seed(&rand, 2);
	for (unsigned i = 0; i < 4096; i++) {
		uint32_t bits = (uint32_t)mst_rand_next(&rand);

		value[i] = float_of(i % 4 == 0 ? bits & 0x807fffffu : bits);
		if (isnan(value[i]))
			value[i] = i % 2 == 0 ? -0.0f : -INFINITY;
	}
	mst_sum_load(in_place, value, MUSTER_F32, 4096);
	mst_sum_store(apart, MUSTER_F32, value, 4096);
	mst_sum_store(in_place, MUSTER_F32, in_place, 4096);
	CU_ASSERT_EQUAL(memcmp(apart, value, sizeof(value)), 0);
	CU_ASSERT_EQUAL(memcmp(in_place, value, sizeof(value)), 0);
}

/* Vector loops end in scalar ones: none may write past its end or before its start. */
static void exactly_the_given_elements_are_written(void)
{
	float value[48], wide[48];
	uint16_t half[48];

	for (unsigned i = 0; i < 48; i++)
		value[i] = 1.0f;
	for (unsigned first = 1; first < 5; first++) {
		for (unsigned count = 0; count < 40; count++) {
			memset(half, 0, sizeof(half));
			memset(wide, 0, sizeof(wide));
			mst_sum_store(half + first, MUSTER_F16, value, count);
			mst_sum_load(wide + first, half + first, MUSTER_F16, count);
			for (unsigned i = 0; i < 48; i++) {
				bool inside = i >= first && i < first + count;

				CU_ASSERT_EQUAL(half[i], inside ? 0x3c00 : 0);
				CU_ASSERT_EQUAL(wide[i], inside ? 1.0f : 0.0f);
			}
		}
	}
}

static void types_have_their_sizes(void)
{
	CU_ASSERT_EQUAL(mst_type_bytes(MUSTER_F32), 4);
	CU_ASSERT_EQUAL(mst_type_bytes(MUSTER_BF16), 2);
	CU_ASSERT_EQUAL(mst_type_bytes(MUSTER_F16), 2);
}

static CU_TestInfo cases[] = {
	{ "a type's elements have its size", types_have_their_sizes },
	{ "each of the 65536 bf16 patterns widens exactly", every_bf16_widens_exactly },
	{ "each of the 65536 f16 patterns widens exactly", every_f16_widens_exactly },
	{ "every 16-bit number comes back from f32", every_16_bit_number_comes_back_from_f32 },
	{ "known values narrow as written down", known_values_narrow_as_written_down },
	{ "bf16: numbers, middles and their neighbours round to nearest, then even",
	  bf16_middles_round_to_even },
	{ "f16: numbers, middles and their neighbours round to nearest, then even",
	  f16_middles_round_to_even },
	{ "random floats narrow to the nearest number", random_floats_narrow_to_nearest },
	{ "every NaN is stored as the canonical quiet one",
	  every_nan_is_stored_as_the_canonical_one },
	{ "f32 numbers are stored as they are", f32_numbers_are_stored_as_they_are },
	{ "exactly the given elements are written", exactly_the_given_elements_are_written },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("convert", cases);
}
