/* SPDX-License-Identifier: MIT */
/* From a sum to the parameters: the division, and the servers' optimisers. */
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

/* Numbers of workers are often powers of two, and dividing is slow. */
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

void MST_ISA_NAME(mst_accumulate)(float *restrict m, const float *restrict g, float mu,
				  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float kept = mu * m[i];

		m[i] = kept + g[i];
	}
}

void MST_ISA_NAME(mst_descend)(float *restrict next, const float *restrict theta,
			       const float *restrict slope, float eta, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float step = eta * slope[i];

		next[i] = theta[i] - step;
	}
}

void MST_ISA_NAME(mst_ascend)(float *restrict next, const float *restrict theta,
			      const float *restrict total, size_t count)
{
	for (size_t i = 0; i < count; i++)
		next[i] = theta[i] + total[i];
}
