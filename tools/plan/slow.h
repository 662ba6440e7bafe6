/* SPDX-License-Identifier: MIT */
/*
 * Which ranks are slow in most steps, and which only happen to be the slowest now and then. Pure.
 *
 * A rank is slow in a step if it is among the slowest quarter of the ranks (at least one). If ranks
 * did not differ, each would be slow in any step with the same probability. A rank is a persistent
 * straggler if all of this is so:
 *
 *   - it is slow in more than half of the steps;
 *   - so many would be chance with a probability below 0.01 for all ranks together: the one-sided
 *     binomial test, with Bonferroni's correction (0.01 / ranks);
 *   - it takes at least 1.1 times the median of the step on average, for less holds nobody up; or
 *     in more than half of the steps its time is only known to be longer than the step.
 */
#ifndef MST_TOOLS_PLAN_SLOW_H
#define MST_TOOLS_PLAN_SLOW_H

#include "tools/plan/arrivals.h"

#define MST_SLOW_SHARE 4u /* the slowest 1/4 */
#define MST_SLOW_LEVEL 0.01
#define MST_SLOW_RATIO 1.1

struct mst_slow_rank {
	uint32_t rank;
	uint32_t slow;    /* steps in which it is */
	uint32_t slowest; /* steps in which it is the slowest of all */
	double ratio;     /* its time / the median of the step, on average */
	double chance;    /* of being slow so often, if ranks did not differ */
	bool at_least; /* its times are mostly known to be longer, so the ratio is at least this */
	bool persistent;
};

/* Judges all ranks; @out: one for each, by rank. */
void mst_slow_judge(const struct mst_arrivals *a, struct mst_slow_rank *out);

/* The probability that of @count trials, which succeed with probability @p, at least @least do. */
double mst_binomial_tail(uint32_t count, double p, uint32_t least);

/* The mean time of a step that waits for all but the persistent stragglers. */
double mst_slow_without(const struct mst_arrivals *a, const struct mst_slow_rank *rank);

#endif
