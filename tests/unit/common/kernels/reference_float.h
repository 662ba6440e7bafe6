/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of the sum once more, apart from common/kernels and slower: 16-bit formats are
 * taken to pieces as integers, and f32 is computed in double. There a product of two floats is
 * exact, and a sum or a quotient has more than twice the digits plus one, so that the one rounding
 * to float gives what a single rounding of the exact value would.
 */
#ifndef MST_TESTS_UNIT_COMMON_KERNELS_REFERENCE_FLOAT_H
#define MST_TESTS_UNIT_COMMON_KERNELS_REFERENCE_FLOAT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "muster/muster.h"

/* A 16-bit format: a sign, an exponent of so many bits, and the fraction. */
struct format {
	enum muster_type type;
	unsigned fraction_bits;
	int bias;
	uint16_t infinity, nan;
};

static const struct format bf16 = { MUSTER_BF16, 7, 127, 0x7f80, 0x7fc0 };
static const struct format f16 = { MUSTER_F16, 10, 15, 0x7c00, 0x7e00 };

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

/* What a pattern would be if the format had no infinities: so the pattern of infinity is the power
 * of two above the largest number, which is where rounding to nearest thinks it is. */
static inline double unbounded_value(const struct format *f, uint16_t pattern)
{
	unsigned fraction = pattern & ((1u << f->fraction_bits) - 1);
	unsigned exponent = (pattern & 0x7fffu) >> f->fraction_bits;
	int unit = (exponent == 0 ? 1 : (int)exponent) - f->bias - (int)f->fraction_bits;
	double magnitude = ldexp(fraction + (exponent == 0 ? 0 : ldexp(1, (int)f->fraction_bits)),
				 unit);

	return (pattern & 0x8000u) != 0 ? -magnitude : magnitude;
}

static inline bool is_nan(const struct format *f, uint16_t pattern)
{
	return (pattern & 0x7fffu) > f->infinity;
}

static inline float value_of(const struct format *f, uint16_t pattern)
{
	if (is_nan(f, pattern))
		return NAN;
	if ((pattern & 0x7fffu) == f->infinity)
		return (pattern & 0x8000u) != 0 ? -INFINITY : INFINITY;
	return (float)unbounded_value(f, pattern);
}

/* Finds the two neighbours of the value among the format's numbers, then takes the nearer one. */
static inline uint16_t pattern_of(const struct format *f, float value)
{
	double magnitude = fabs((double)value);
	uint16_t sign = signbit(value) ? 0x8000u : 0, below = 0, above = f->infinity;

	if (isnan(value))
		return f->nan;
	if (magnitude >= unbounded_value(f, above))
		return sign | above;
	while (above - below > 1) {
		uint16_t middle = (uint16_t)((above + below) / 2);

		if (unbounded_value(f, middle) <= magnitude)
			below = middle;
		else
			above = middle;
	}
	double down = magnitude - unbounded_value(f, below);
	double up = unbounded_value(f, above) - magnitude;

	if (down == up)
		return sign | ((below & 1) == 0 ? below : above);
	return sign | (down < up ? below : above);
}

static inline float rounded_product(float a, float b)
{
	volatile float product = (float)((double)a * (double)b);

	return product;
}

static inline float rounded_sum(float a, float b)
{
	volatile float sum = (float)((double)a + (double)b);

	return sum;
}

static inline float rounded_quotient(float a, float b)
{
	volatile float quotient = (float)((double)a / (double)b);

	return quotient;
}

/* To the bit; any NaN is as good as another, for only stores make them canonical. */
static inline bool same(float a, float b)
{
	return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

#endif
