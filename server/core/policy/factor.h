/* SPDX-License-Identifier: MIT */
/*
 * The factors that a gradient is multiplied with (PROTOCOL 5). This file is the only place that
 * states them, but for the scales of tensors, by which the optimiser multiplies the rate within
 * each tensor (server/data/tensors.c hands them to it). Where the servers own the parameters, a
 * gradient g that is counted in a version changes the parameters (without momentum) by
 *
 *     lr x lr_scale x coefficient x g / divisor
 *
 *   coefficient  of the contribution: its base weight, times the factor by which the worker
 *                limits its norm, if any. Under a rule that compensates it is multiplied by
 *                1 / max(1, staleness). If the data are a sum over samples it
 *                is divided by their number.
 *   base weight  the number of samples under --weigh samples, otherwise 1. It is also 1 where
 *                weights would only cancel (each version is made of one contribution) or must
 *                not count (deltas).
 *   divisor      of the version: the sum of its base weights; 1 where contributions are deltas
 *   lr_scale     of the version: 1; or contributions / workers under --lr-scale linear; or
 *                samples / (workers x B) under --lr-scale samples:B; times the factor of
 *                --lr-schedule; at most what --lr-distance allows. With the optimiser `add`,
 *                which has no rate, lr and lr_scale are left out
 *
 * Each factor is computed once in double and rounded once to f32. Pure.
 */
#ifndef MST_SERVER_CORE_POLICY_FACTOR_H
#define MST_SERVER_CORE_POLICY_FACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/optim/schedule.h"
#include "common/wire/rule.h"

struct mst_factor {
	double base; /* b */
	float coefficient;
};

/* What the factors of a contribution are computed from. */
struct mst_factor_of {
	const struct mst_rule *rule;
	uint32_t workers; /* of the job */
	uint64_t staleness;
	/* From MST_WEIGHT_MIN to MST_WEIGHT_MAX, so that the coefficient is a normal f32, as long
	 * as `clip` does not make it smaller. */
	double samples;
	bool is_sum; /* the data are a sum over the samples */
	double clip; /* the worker's factor, above 0 and at most 1 */
};
struct mst_factor mst_factor(const struct mst_factor_of *v);

/* The divisor of a version's sum; @base is the sum of the base weights of all its contributions. */
float mst_divisor(const struct mst_rule *rule, double base);

/* What lr_scale is computed from. */
struct mst_lr_scale_of {
	bool linear;  /* as the rule of the version says */
	double batch; /* as the rule of the version says */
	const struct mst_schedule *schedule;
	uint32_t contributions; /* in the version */
	uint32_t workers;
	double counted; /* with `batch`: samples in the version */
	double samples; /* counted in all versions up to this one, its own included */
	/* --lr-distance: the rate is at most this over the square of the distance between the
	 * parameters that the gradient was computed on and those that it moves; 0: no bound */
	double distance;
	double lr;     /* with `distance`: the optimiser's rate */
	double square; /* with `distance`: that square; 0 until it is known */
};
double mst_lr_scale(const struct mst_lr_scale_of *v);

/* What is left in @version of the moving average of the parameters, the rest being the version
 * itself: @decay, or less in the first versions, which would otherwise hardly be in it. */
float mst_average_rest(double decay, uint64_t version);

#endif
