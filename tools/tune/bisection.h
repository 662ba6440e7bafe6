/* SPDX-License-Identifier: MIT */
/*
 * The search of Li et al. 2021 for the smallest share of bsp that keeps what bsp reaches: the
 * interval from no bsp to nothing else is halved again and again. It is taken for granted that a
 * share that is enough is enough for all larger ones, too. Pure.
 */
#ifndef MST_TOOLS_TUNE_BISECTION_H
#define MST_TOOLS_TUNE_BISECTION_H

#include <stdbool.h>
#include <stdint.h>

/* Mean and spread of the values of some runs. */
struct mst_spread {
	double mean;
	double deviation; /* of the sample, with n - 1; 0 of one value */
};

struct mst_spread mst_spread_of(const double *value, uint32_t count);

struct mst_bisection {
	double low;    /* a share that is not enough, or 0, which is not tried */
	double high;   /* the smallest share known to be enough: the answer so far */
	double wanted; /* what the mean of a share has to reach */
	bool lower;    /* less is better */
};

/* @bsp: the mean of bsp alone. @tolerance: how much worse a share may be. */
struct mst_bisection mst_bisection_begin(double bsp, double tolerance, bool lower);
/* The share to try next. */
double mst_bisection_next(const struct mst_bisection *b);
/* The share that was to be tried next has this mean. Return: it is enough. */
bool mst_bisection_take(struct mst_bisection *b, double mean);

#endif
