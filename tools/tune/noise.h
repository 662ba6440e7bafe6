/* SPDX-License-Identifier: MIT */
/*
 * Is a difference more than chance, and if it may be chance, how many runs would tell? Pure.
 *
 * The runs of a share differ by their seeds, and those of every share have the same seeds, so runs
 * are compared in pairs. What decides is the distance of a run from what is wanted of it: the value
 * of the run of bsp with the same seed, and the tolerance. The mean of n distances is told from
 * chance if it is more than t s / sqrt(n), with their standard deviation s, and the quantile t of
 * Student's distribution with n - 1 degrees of freedom for 95 % on both sides.
 *
 * With n runs a mean d is found with a probability of 80 % (the power) if
 *
 *   n >= (t(97.5 %) + t(80 %))^2 s^2 / d^2, with n - 1 degrees of freedom
 *
 * (Cohen 1988, Statistical Power Analysis for the Behavioral Sciences, chapter 2). What d and s are
 * is known from the same few runs, so this is a rough number.
 */
#ifndef MST_TOOLS_TUNE_NOISE_H
#define MST_TOOLS_TUNE_NOISE_H

#include <stdbool.h>
#include <stdint.h>

#define MST_NOISE_LEVEL 0.05
#define MST_NOISE_POWER 0.8
#define MST_NOISE_RUNS_MAX 1000000u /* as many, or more */

/* Mean and spread of the values of some runs. */
struct mst_spread {
	double mean;
	double deviation; /* of the sample, with n - 1; 0 of one value */
	uint32_t count;
};

struct mst_spread mst_spread_of(const double *value, uint32_t count);

struct mst_noise {
	bool sure;     /* the mean is more than chance */
	double error;  /* its standard error; that of one run is not known, and 0 */
	uint32_t runs; /* that would tell; 0: it is sure; or one run says nothing */
};

/* @distance: of the runs of a share from what is wanted of them. */
struct mst_noise mst_noise_of(const struct mst_spread *distance);

#endif
