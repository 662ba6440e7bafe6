/* SPDX-License-Identifier: MIT */
#include "tools/plan/blocks.h"

#include <math.h>
#include <stdlib.h>

/* So many lags in a row have to be insignificant, at the least. */
#define QUIET_MIN 5
/* In a trace with many times some lags are not looked at. */
#define LOOKS_MAX 2e8

/* Than the length with the least error of the variance. */
#define LONGER 2

/* Autocovariances by lag. */
struct lags {
	double *r;      /* [lag] */
	uint32_t count; /* lags, with lag 0 */
	uint32_t quiet, steps;
};

static void count_lags(const struct mst_arrivals *a, struct lags *l)
{
	double n = a->steps;
	uint32_t quiet = (uint32_t)ceil(sqrt(log10(n)));

	l->steps = a->steps;
	l->quiet = quiet > QUIET_MIN ? quiet : QUIET_MIN;
	double count = ceil(sqrt(n)) + l->quiet;
	double most = fmax(LOOKS_MAX / (n * a->ranks), l->quiet + 1);
	l->count = 1 + (uint32_t)fmin(fmin(count, most), n - 1);
}

/* Adds the autocovariances of a series, whose values are @stride apart. */
static void add_series(struct lags *l, const double *v, uint32_t stride)
{
	double mean = 0;

	for (uint32_t i = 0; i < l->steps; i++)
		mean += v[(size_t)i * stride] / l->steps;
	for (uint32_t lag = 0; lag < l->count; lag++) {
		double sum = 0;
		for (uint32_t i = 0; i + lag < l->steps; i++)
			sum += (v[(size_t)i * stride] - mean) *
			       (v[(size_t)(i + lag) * stride] - mean);
		l->r[lag] += sum / l->steps;
	}
}

/* The lag from which on so many are insignificant in a row; without one the last lag. */
static uint32_t last_significant(const struct lags *l)
{
	double limit = 2 * sqrt(log10(l->steps) / l->steps) * l->r[0];
	uint32_t last = 0;

	for (uint32_t lag = 1; lag < l->count && lag <= last + l->quiet; lag++)
		if (fabs(l->r[lag]) > limit)
			last = lag;
	return last;
}

/* 1 up to a half, and then straight down to 0 at 1. */
static double flat_top(double share)
{
	return share <= 0.5 ? 1 : 2 * (1 - share);
}

static double length_of(const struct lags *l)
{
	uint32_t window = 2 * last_significant(l);
	double g = 0, spectrum = l->r[0];

	if (window > l->count - 1)
		window = l->count - 1;
	for (uint32_t lag = 1; lag <= window; lag++) {
		double part = 2 * flat_top((double)lag / window) * l->r[lag];
		g += part * lag;
		spectrum += part;
	}
	if (spectrum <= l->r[0])
		return 1;
	return LONGER * cbrt(2 * g * g / (4.0 / 3 * spectrum * spectrum) * l->steps);
}

/* Lag by lag to 0, and again for another set of series. */
static void clear(struct lags *l)
{
	for (uint32_t lag = 0; lag < l->count; lag++)
		l->r[lag] = 0;
}

uint32_t mst_blocks_length(const struct mst_arrivals *a)
{
	struct lags l;
	double most = fmin(LONGER * 3 * sqrt(a->steps), a->steps / 4.0);

	count_lags(a, &l);
	l.r = calloc(l.count, sizeof(*l.r));
	if (l.r == NULL)
		return 0;
	for (uint32_t rank = 0; rank < a->ranks; rank++)
		add_series(&l, &a->us[rank], a->ranks);
	double length = length_of(&l);
	clear(&l);
	add_series(&l, &a->sorted[a->ranks - 1], a->ranks);
	length = fmax(length, length_of(&l));
	free(l.r);
	return (uint32_t)fmax(1, fmin(ceil(length), most));
}
