/* SPDX-License-Identifier: MIT */
#include "server/core/policy/factor.h"

#include <math.h>

#include "common/base/assert.h"
#include "common/wire/lane.h"
#include "server/core/policy/rule.h"

/* Do base weights matter? Not for a set of one, where the divisor cancels the weight, nor for
 * deltas, which are added as they are. */
static bool weighs(const struct mst_rule *rule, uint32_t workers)
{
	return rule->weigh == MST_WEIGH_SAMPLES && rule->divide &&
	       !mst_rule_commits_each(rule, workers);
}

struct mst_factor mst_factor(const struct mst_factor_of *v)
{
	bool by_samples = weighs(v->rule, v->workers);
	double base = by_samples ? v->samples : 1.0;
	double factor = v->rule->compensate && v->staleness > 1 ? 1.0 / (double)v->staleness : 1.0;
	double coefficient = base * factor * v->clip;

	MST_ASSERT(v->samples >= MST_WEIGHT_MIN && v->samples <= MST_WEIGHT_MAX);
	MST_ASSERT(v->clip > 0 && v->clip <= 1);

	/* If the data are a sum, the base weight belongs to their mean: weight x sum / samples.
	 * Where the weight is the number of samples the two cancel exactly, so no division is done
	 * and nothing is rounded. */
	if (v->is_sum)
		coefficient = (by_samples ? factor : factor / v->samples) * v->clip;
	return (struct mst_factor){ .base = base, .coefficient = (float)coefficient };
}

float mst_divisor(const struct mst_rule *rule, double base)
{
	MST_ASSERT(base > 0);
	return rule->divide ? (float)base : 1.0f;
}

/* What of a whole version it is: all workers' contributions, or their samples. */
static double share_of(const struct mst_lr_scale_of *v)
{
	if (v->batch > 0)
		return v->counted / (v->batch * v->workers);
	return v->linear ? (double)v->contributions / v->workers : 1.0;
}

double mst_lr_scale(const struct mst_lr_scale_of *v)
{
	double scale = share_of(v) * mst_schedule_factor(v->schedule, v->samples);

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
