/* SPDX-License-Identifier: MIT */
/*
 * The sum of the squares of a block, in double. A square of an f32 is exact in double, so that a
 * fused multiplication changes nothing; the additions are in an order that is the same whatever a
 * vector's width: element i goes to lane i modulo 16, and the lanes are added in halves.
 */
#include "common/kernels/exact.h"
#include "common/kernels/isa_parts.h"

#define LANES 16

double MST_ISA_NAME(mst_squares)(const float *from, size_t count)
{
	double lane[LANES] = { 0 };
	size_t whole = count / LANES * LANES;

	for (size_t i = 0; i < whole; i += LANES) {
		for (size_t k = 0; k < LANES; k++) {
			double x = (double)from[i + k];

			lane[k] += x * x;
		}
	}
	for (size_t k = 0; k < count - whole; k++) {
		double x = (double)from[whole + k];

		lane[k] += x * x;
	}
	for (size_t width = LANES / 2; width > 0; width /= 2)
		for (size_t k = 0; k < width; k++)
			lane[k] += lane[k + width];
	return lane[0];
}
