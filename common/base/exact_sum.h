/* SPDX-License-Identifier: MIT */
/*
 * Sums of squares of f32 without rounding: the bits of such a sum do not depend on the order in
 * which it is added up, nor on who adds which part. So threads and servers may share the work as
 * they like. A fixed-point number: of the whole range that sums of up to 2^40 squares of f32 can
 * have.
 */
#ifndef MST_BASE_EXACT_SUM_H
#define MST_BASE_EXACT_SUM_H

#include <stdint.h>

#define MST_EXACT_WORDS 10u

/* In units of 2^-298, the square of the least f32; the lowest word first. All zeroes: 0. */
struct mst_exact_sum {
	uint64_t word[MST_EXACT_WORDS];
};

/* @value: a rounded sum of squares of f32, which is a whole number of that unit. One that is
 * infinite or NaN makes the sum one that is not finite, for good. */
void mst_exact_add(struct mst_exact_sum *sum, double value);
void mst_exact_join(struct mst_exact_sum *sum, const struct mst_exact_sum *other);
/* Rounded once, to nearest even; infinite where the sum is not finite. */
double mst_exact_value(const struct mst_exact_sum *sum);

#endif
