/* SPDX-License-Identifier: MIT */
#include "server/core/policy/factor.h"

#include <math.h>

#include "common/base/assert.h"
#include "common/wire/lane.h"

/* Do base weights matter? Not for a set of one, where the divisor cancels the weight, nor for
 * deltas, which are added as they are. */
static bool weighs(const struct mst_rule *rule)
{
	return rule->weigh == MST_WEIGH_SAMPLES && rule->divide && rule->quorum != 1;
}

struct mst_factor mst_factor(const struct mst_rule *rule, uint64_t staleness, double samples,
			     bool is_sum, double clip)
{
	double base = weighs(rule) ? samples : 1.0;
	double factor = rule->compensate && staleness > 1 ? 1.0 / (double)staleness : 1.0;
	double coefficient = base * factor * clip;

	MST_ASSERT(samples >= MST_WEIGHT_MIN && samples <= MST_WEIGHT_MAX);
	MST_ASSERT(clip > 0 && clip <= 1);

	/* If the data are a sum, the base weight belongs to their mean: weight x sum / samples.
	 * Where the weight is the number of samples the two cancel exactly, so no division is done
	 * and nothing is rounded. */
	if (is_sum)
		coefficient = (weighs(rule) ? factor : factor / samples) * clip;
	return (struct mst_factor){ .base = base, .coefficient = (float)coefficient };
}

float mst_divisor(const struct mst_rule *rule, double base)
{
	MST_ASSERT(base > 0);
	return rule->divide ? (float)base : 1.0f;
}

double mst_lr_scale(const struct mst_lr_scale_of *v)
{
	double share = v->linear ? (double)v->contributions / v->workers : 1.0;
	double scale = share * mst_schedule_factor(v->schedule, v->samples);

	MST_ASSERT(v->contributions > 0 && v->samples > 0);
	/* If the square is not finite, parameters are spoilt, and that is found where they are. */
	if (!(v->distance > 0) || !(v->square > 0) || !isfinite(v->square))
		return scale;
	double most = v->distance / v->square / v->lr;
	return most < scale ? most : scale;
}

/* As TensorFlow's ExponentialMovingAverage with num_updates, the number of steps so far
 * (tensorflow/python/training/moving_averages.py): the rate of the average is higher at first. */
float mst_average_rest(double decay, uint64_t version)
{
	double young = (1.0 + (double)version) / (10.0 + (double)version);

	return (float)(decay < young ? decay : young);
}
