/* SPDX-License-Identifier: MIT */
/*
 * Which ranks are slow, in how many steps, how much, and what that costs; and which only happen to
 * be the slowest now and then. Pure.
 *
 * Who is slow, and when, says the judge (judge.h). The ratio of a rank is that of its times in its
 * periods to the times of the ranks that are not slow in the same steps. A rank is a straggler if
 * steps waited for it, after all ranks that were not slow, for at least MST_SLOW_COST of the time
 * of the trace: the judge has about one false alarm in a thousand steps, and a plan is about what
 * is worth to be done. A rank that gives most of its gradients up, so that how long they would have
 * taken is not known, is a straggler, too.
 */
#ifndef MST_TOOLS_PLAN_SLOW_H
#define MST_TOOLS_PLAN_SLOW_H

#include "tools/plan/arrivals.h"

#define MST_SLOW_COST 0.02

struct mst_slow_rank {
	uint32_t rank;
	uint32_t slow;        /* steps in which it is */
	uint32_t periods;     /* rows of such steps */
	uint32_t first, last; /* of those steps */
	uint32_t slowest;     /* steps in which it is the slowest of all */
	double ratio;         /* 1: it has no period */
	double cost_us;       /* that steps waited for it, after all ranks that were not slow */
	bool at_least;        /* most of its gradients were given up: the ratio may be larger */
	bool straggler;
	bool persistent; /* it is slow in most steps, or gave most of its gradients up */
};

struct mst_slow {
	struct mst_slow_rank *rank;                /* by rank */
	uint32_t stragglers, persistent, at_least; /* ranks that are so */
	bool *mark;        /* [step * ranks + rank]: a time of a period of a straggler */
	double without_us; /* mean step that waits for all but the stragglers */
};

/* Return: 0 or -ENOMEM. */
int mst_slow_find(const struct mst_arrivals *a, struct mst_slow *out);
void mst_slow_free(struct mst_slow *slow); /* accepts zeroed memory */

#endif
