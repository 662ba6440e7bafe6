/* SPDX-License-Identifier: MIT */
#include "tools/tune/bisection.h"

#include <math.h>

struct mst_spread mst_spread_of(const double *value, uint32_t count)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += value[i];
	double mean = sum / count;
	for (uint32_t i = 0; i < count; i++)
		squares += (value[i] - mean) * (value[i] - mean);
	return (struct mst_spread){ mean, count > 1 ? sqrt(squares / (count - 1)) : 0 };
}

struct mst_bisection mst_bisection_begin(double bsp, double tolerance, bool lower)
{
	return (struct mst_bisection){
		.low = 0,
		.high = 1,
		.wanted = lower ? bsp + tolerance : bsp - tolerance,
		.lower = lower,
	};
}

double mst_bisection_next(const struct mst_bisection *b)
{
	return (b->low + b->high) / 2;
}

bool mst_bisection_take(struct mst_bisection *b, double mean)
{
	bool kept = b->lower ? mean <= b->wanted : mean >= b->wanted;

	*(kept ? &b->high : &b->low) = mst_bisection_next(b);
	return kept;
}
