/* SPDX-License-Identifier: MIT */
/*
 * Computes the figures of a benchmark from the records of its workers. Pure.
 *
 * A step takes, for a worker, from its call of push until the new result is readable there; the
 * step's sample is that of the slowest worker that was counted in it. A stall of a worker between
 * the barrier and its call is not in its own time but in that of all who wait for it; where all
 * stall it is in nobody's: so the same is also measured from the moment the barrier opened
 * (`opened`).
 *
 * Parts of a step, from the first call of push to the last result:
 *	wait	until the last of the counted has handed in: copies in, and who came later
 *	sum	from then until the first has its result: waking, summing, answering
 *	answer	from then until the last has: waking on too few cores, copies out
 *
 * With plan->last_alone a sample runs from the last worker's call of push until the result is
 * readable at the slowest; `own` is the same at that last worker, `first` at the fastest.
 */
#ifndef MST_TOOLS_BENCH_FIGURES_H
#define MST_TOOLS_BENCH_FIGURES_H

#include "tools/bench/plan.h"

/* Figures of samples in ns. All are exact: nothing is put into cells. */
struct mst_bench_spread {
	uint64_t min, mean, p50, p90, p99, p999, max;
};

struct mst_bench_figures {
	uint64_t samples; /* the rest is 0 where there are none */
	struct mst_bench_spread step, opened;
	uint64_t wait_ns, sum_ns, answer_ns; /* medians */
	uint64_t own_ns, first_ns;           /* medians; last_alone */
	uint64_t counted, late;              /* contributions, in timed steps */
	uint64_t wrong;                      /* elements, the warm-up included */
	uint64_t checked;                    /* results of workers, whole, the warm-up included */
	uint64_t first_commit_ns;            /* from the start of musterd to the first result */
	uint64_t commits;
};

/* @p: all workers have exited. Return: 0 or -ENOMEM. */
int mst_bench_figures_make(struct mst_bench_plan *p, struct mst_bench_figures *out);

#endif
