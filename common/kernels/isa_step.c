/* SPDX-License-Identifier: MIT */
/* From a sum to the mean, and from one version of an average to the next. */
#include "common/kernels/element.h"
#include "common/kernels/isa_parts.h"

/* Is 1 / divisor a number of f32, and a normal one? Then the product with it is the quotient. Any
 * other reciprocal is rounded, and so the product would be rounded twice. */
static bool has_exact_reciprocal(float divisor)
{
	uint32_t bits = mst_element_bits(divisor);
	uint32_t exponent = bits >> F32_FRACTION_BITS & 0xff;

	return bits << (32 - F32_FRACTION_BITS) == 0 && exponent >= 1 && exponent <= 253;
}

/* Dividing is slow. The number of workers is often a power of two, whose reciprocal is exact. */
void MST_ISA_NAME(mst_divide)(float *acc, float divisor, size_t count)
{
	float reciprocal = 1.0f / divisor;

	if (has_exact_reciprocal(divisor)) {
		for (size_t i = 0; i < count; i++)
			acc[i] *= reciprocal;
	} else {
		for (size_t i = 0; i < count; i++)
			acc[i] /= divisor;
	}
}

void MST_ISA_NAME(mst_blend)(float *restrict average, const float *restrict value, float rest,
			     size_t count)
{
	float share = 1.0f - rest;

	for (size_t i = 0; i < count; i++) {
		float left = rest * average[i];
		float added = share * value[i];

		average[i] = left + added;
	}
}
