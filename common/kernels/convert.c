/* SPDX-License-Identifier: MIT */
/*
 * Between f32 and the element types. Widening is exact. Narrowing rounds once, to nearest even:
 * into the subnormals, up to infinity, and every NaN becomes the one canonical quiet NaN, so that
 * the payload, which differs between processors and compilers, never reaches a result.
 *
 * Once for each element of a gradient and of a result. The cases are selected, not branched to, so
 * that the loops vectorise: each computes all of its cases and keeps one.
 */
#include "common/kernels/sum.h"

#include <string.h>

#include "common/kernels/exact.h"

/* bf16 is the upper half of an f32. f16 has 13 fraction bits fewer than f32, and its exponent is
 * biased by 15 instead of 127. */
#define BF16_SHIFT 16
#define F16_SHIFT 13
#define F16_REBIAS (UINT32_C(112) << 23) /* the biases' difference, in f32's exponent */
#define F16_SUBNORMAL_UNIT 0x1p-24f

/* Bit patterns; those of numbers order as the numbers do, sign apart. */
#define F32_SIGN UINT32_C(0x80000000)
#define F32_INF UINT32_C(0x7f800000)
#define F32_NAN UINT32_C(0x7fc00000)
#define F32_2_TO_MINUS_14 UINT32_C(0x38800000) /* the least normal f16 */
#define F32_2_TO_16 UINT32_C(0x47800000) /* infinity in f16; what is just below rounds to it */
#define BF16_NAN UINT32_C(0x7fc0)
#define F16_SIGN UINT32_C(0x8000)
#define F16_INF UINT32_C(0x7c00)
#define F16_NAN UINT32_C(0x7e00)
#define F16_2_TO_MINUS_14 UINT32_C(0x0400)

static inline uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline float float_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Drops the lower bits, to nearest even. The carry may run into the exponent: that is the next
 * power of two, and beyond the last one infinity. */
static inline uint32_t round_shift(uint32_t bits, unsigned shift)
{
	uint32_t below_half = (UINT32_C(1) << (shift - 1)) - 1;
	uint32_t odd = (bits >> shift) & 1;

	return (bits + below_half + odd) >> shift;
}

static inline float canonical_f32(float value)
{
	uint32_t bits = bits_of(value);

	return float_of((bits & ~F32_SIGN) > F32_INF ? F32_NAN : bits);
}

static inline uint16_t narrow_bf16(float value)
{
	uint32_t bits = bits_of(value);
	uint32_t rounded = round_shift(bits, BF16_SHIFT);

	return (uint16_t)((bits & ~F32_SIGN) > F32_INF ? BF16_NAN : rounded);
}

/* An f16 subnormal is a multiple of 2^-24, which is also the unit in the last place at 1/2. So the
 * addition of 1/2 rounds as the processor does, to nearest even. */
static inline uint32_t narrow_f16_subnormal(uint32_t magnitude)
{
	return bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
}

static inline uint16_t narrow_f16(float value)
{
	uint32_t bits = bits_of(value);
	uint32_t magnitude = bits & ~F32_SIGN;
	uint32_t sign = (bits & F32_SIGN) >> 16;
	uint32_t normal = round_shift(magnitude - F16_REBIAS, F16_SHIFT);
	uint32_t subnormal = narrow_f16_subnormal(magnitude);
	uint32_t finite = magnitude < F32_2_TO_MINUS_14 ? subnormal : normal;
	uint32_t number = magnitude < F32_2_TO_16 ? finite : F16_INF;

	return (uint16_t)(magnitude > F32_INF ? F16_NAN : number | sign);
}

static inline float widen_bf16(uint16_t half)
{
	return float_of((uint32_t)half << BF16_SHIFT);
}

static inline float widen_f16(uint16_t half)
{
	uint32_t magnitude = half & ~F16_SIGN;
	uint32_t sign = (half & F16_SIGN) << 16;
	uint32_t normal = (magnitude << F16_SHIFT) + F16_REBIAS;
	uint32_t subnormal = bits_of((float)(int32_t)magnitude * F16_SUBNORMAL_UNIT);
	uint32_t finite = magnitude < F16_2_TO_MINUS_14 ? subnormal : normal;

	/* Infinity and NaN keep their fraction and have the highest exponent in f32 too. */
	return float_of((magnitude < F16_INF ? finite : normal + F16_REBIAS) | sign);
}

static void load_bf16(float *restrict out, const uint16_t *restrict in, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = widen_bf16(in[i]);
}

static void load_f16(float *restrict out, const uint16_t *restrict in, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = widen_f16(in[i]);
}

static void store_f32(float *restrict out, const float *restrict acc, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = canonical_f32(acc[i]);
}

static void store_f32_in_place(float *acc, size_t count)
{
	for (size_t i = 0; i < count; i++)
		acc[i] = canonical_f32(acc[i]);
}

static void store_bf16(uint16_t *restrict out, const float *restrict acc, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = narrow_bf16(acc[i]);
}

static void store_f16(uint16_t *restrict out, const float *restrict acc, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = narrow_f16(acc[i]);
}

size_t mst_type_bytes(enum muster_type type)
{
	return type == MUSTER_F32 ? sizeof(float) : sizeof(uint16_t);
}

void mst_sum_store(void *out, enum muster_type type, const float *acc, size_t count)
{
	switch (type) {
	case MUSTER_F32:
		if (out == acc)
			store_f32_in_place(out, count);
		else
			store_f32(out, acc, count);
		break;
	case MUSTER_BF16:
		store_bf16(out, acc, count);
		break;
	case MUSTER_F16:
		store_f16(out, acc, count);
		break;
	}
}

void mst_sum_load(float *out, const void *in, enum muster_type type, size_t count)
{
	switch (type) {
	case MUSTER_F32:
		if (count > 0)
			memcpy(out, in, count * sizeof(float));
		break;
	case MUSTER_BF16:
		load_bf16(out, in, count);
		break;
	case MUSTER_F16:
		load_f16(out, in, count);
		break;
	}
}
