/* SPDX-License-Identifier: MIT */
/*
 * The ranges of the figures that a job counts: one place for what the API takes, what the ledger
 * counts, what a checkpoint is written with, and what a job goes on from.
 */
#ifndef MST_WIRE_RANGE_H
#define MST_WIRE_RANGE_H

#include <float.h>
#include <stdint.h>

/* The most samples of a contribution: above 2^53 a double cannot count them one by one. */
#define MST_WEIGHT_MAX 9007199254740992.0
/* The inverse of a smaller weight would be above the maximum. Between the two, no coefficient and
 * no divisor that is made of weights overflows or vanishes in f32. */
#define MST_WEIGHT_MIN (1 / MST_WEIGHT_MAX)

/* The most samples that a job counts, 2^63: as a whole number they fit 64 bits. The count of a job
 * that makes more stays there. */
#define MST_SAMPLES_MAX (1024 * MST_WEIGHT_MAX)
/* Versions and clocks, and sessions of a rank. No job comes as far; what is more would overflow
 * when the job goes on. */
#define MST_COUNT_MAX (UINT64_C(1) << 62)
#define MST_INCARNATION_MAX (UINT32_MAX / 2)

/* Sums of losses times samples have this unit. So they are finite whatever finite losses are in
 * them, and have the bits that they would have without it. */
#define MST_LOSS_UNIT 0x1p-90

/* What the loss of so many samples adds to such a sum. */
static inline double mst_loss_share(double loss, double samples)
{
	return loss * (samples * MST_LOSS_UNIT);
}

/* The mean over so many samples of a sum of shares. Only its last rounding can go beyond the range
 * of a double; NaN: over none. */
static inline double mst_mean_loss(double sum, double samples)
{
	double mean = sum / (samples * MST_LOSS_UNIT);

	if (mean > DBL_MAX)
		return DBL_MAX;
	return mean < -DBL_MAX ? -DBL_MAX : mean;
}

/* The samples of a job, with those of one version more. */
static inline double mst_samples_add(double all, double more)
{
	return all + more < MST_SAMPLES_MAX ? all + more : MST_SAMPLES_MAX;
}

#endif
