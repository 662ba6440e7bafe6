/* SPDX-License-Identifier: MIT */
/*
 * One element between f32 and the element types. Widening is exact. Narrowing rounds once, to
 * nearest even: into the subnormals, up to infinity, and every NaN becomes the one canonical quiet
 * NaN, so that the payload, which differs between processors and compilers, never reaches a result.
 *
 * The cases are selected, not branched to, so that loops over these vectorise: each computes all of
 * its cases and keeps one.
 */
#ifndef MST_KERNELS_ELEMENT_H
#define MST_KERNELS_ELEMENT_H

#include <stdint.h>
#include <string.h>

#include "common/kernels/exact.h"
#include "muster/muster.h"

/* bf16 is the upper half of an f32. f16 has 13 fraction bits fewer than f32, and its exponent is
 * biased by 15 instead of 127. */
#define BF16_SHIFT 16
#define F16_SHIFT 13
#define F16_REBIAS (UINT32_C(112) << 23) /* the biases' difference, in f32's exponent */
#define F16_SUBNORMAL_UNIT 0x1p-24f

/* Bit patterns; those of numbers order as the numbers do, sign apart. */
#define F32_SIGN UINT32_C(0x80000000)
#define F32_FRACTION_BITS 23
#define F32_INF UINT32_C(0x7f800000)
#define F32_NAN UINT32_C(0x7fc00000)
#define F32_2_TO_MINUS_14 UINT32_C(0x38800000) /* the least normal f16 */
#define F32_2_TO_16 UINT32_C(0x47800000) /* infinity in f16; what is just below rounds to it */
#define BF16_INF UINT32_C(0x7f80)
#define BF16_NAN UINT32_C(0x7fc0)
#define BF16_OVERFLOW UINT32_C(0x7f7f8000) /* of f32: the least that rounds to infinity */
#define F16_OVERFLOW UINT32_C(0x477ff000)
#define F16_SIGN UINT32_C(0x8000)
#define F16_INF UINT32_C(0x7c00)
#define F16_NAN UINT32_C(0x7e00)
#define F16_2_TO_MINUS_14 UINT32_C(0x0400)

static inline uint32_t mst_element_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline float mst_element_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Drops the lower bits, to nearest even. The carry may run into the exponent: that is the next
 * power of two, and beyond the last one infinity. */
static inline uint32_t mst_element_round(uint32_t bits, unsigned shift)
{
	uint32_t below_half = (UINT32_C(1) << (shift - 1)) - 1;
	uint32_t odd = (bits >> shift) & 1;

	return (bits + below_half + odd) >> shift;
}

static inline float mst_element_canonical(float value)
{
	uint32_t bits = mst_element_bits(value);

	return mst_element_of((bits & ~F32_SIGN) > F32_INF ? F32_NAN : bits);
}

/* The bits of the least f32 that becomes infinite in the type: half a last place above the type's
 * largest number. */
static inline uint32_t mst_element_overflow(enum muster_type type)
{
	return type == MUSTER_F32 ? F32_INF : type == MUSTER_BF16 ? BF16_OVERFLOW : F16_OVERFLOW;
}

static inline uint16_t mst_element_to_bf16(float value)
{
	uint32_t bits = mst_element_bits(value);
	uint32_t rounded = mst_element_round(bits, BF16_SHIFT);

	return (uint16_t)((bits & ~F32_SIGN) > F32_INF ? BF16_NAN : rounded);
}

/* An f16 subnormal is a multiple of 2^-24, which is also the unit in the last place at 1/2. So the
 * addition of 1/2 rounds as the processor does, to nearest even. */
static inline uint32_t mst_element_to_f16_subnormal(uint32_t magnitude)
{
	return mst_element_bits(mst_element_of(magnitude) + 0.5f) - mst_element_bits(0.5f);
}

static inline uint16_t mst_element_to_f16(float value)
{
	uint32_t bits = mst_element_bits(value);
	uint32_t magnitude = bits & ~F32_SIGN;
	uint32_t sign = (bits & F32_SIGN) >> 16;
	uint32_t normal = mst_element_round(magnitude - F16_REBIAS, F16_SHIFT);
	uint32_t subnormal = mst_element_to_f16_subnormal(magnitude);
	uint32_t finite = magnitude < F32_2_TO_MINUS_14 ? subnormal : normal;
	uint32_t number = magnitude < F32_2_TO_16 ? finite : F16_INF;

	return (uint16_t)(magnitude > F32_INF ? F16_NAN : number | sign);
}

static inline float mst_element_of_bf16(uint16_t half)
{
	return mst_element_of((uint32_t)half << BF16_SHIFT);
}

static inline float mst_element_of_f16(uint16_t half)
{
	uint32_t magnitude = half & ~F16_SIGN;
	uint32_t sign = (half & F16_SIGN) << 16;
	uint32_t normal = (magnitude << F16_SHIFT) + F16_REBIAS;
	float unit = F16_SUBNORMAL_UNIT;
	uint32_t subnormal = mst_element_bits((float)(int32_t)magnitude * unit);
	uint32_t finite = magnitude < F16_2_TO_MINUS_14 ? subnormal : normal;

	/* Infinity and NaN keep their fraction and have the highest exponent in f32 too. */
	return mst_element_of((magnitude < F16_INF ? finite : normal + F16_REBIAS) | sign);
}

#endif
