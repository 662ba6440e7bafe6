/* SPDX-License-Identifier: MIT */
/*
 * What it brings to wait for N of P gradients, by the times of a trace. Pure.
 *
 * Where late workers are told at once, and begin the next step with the others, a step takes as
 * long as the N-th arrival (Dutta et al. 2018, K-sync), and N gradients count. Where they first
 * finish their gradient (Chen et al. 2016, backup workers), they begin late and the step takes
 * longer; that is computed by going through the steps in their order.
 */
#ifndef MST_TOOLS_PLAN_QUORUM_H
#define MST_TOOLS_PLAN_QUORUM_H

#include "tools/plan/arrivals.h"

/* The times of the k-th arrival over all steps. */
struct mst_arrival_figures {
	double mean_us, p50_us, p90_us;
	double at_least; /* the share of steps in which it is only known to be later */
};
/* @scratch: room for a->steps numbers. */
void mst_arrival_figures_of(const struct mst_arrivals *a, uint32_t k, double *scratch,
			    struct mst_arrival_figures *out);

/* The quantile @share of @count numbers, which are in order, interpolated as NumPy does by
 * default. */
double mst_quantile(const double *sorted, uint32_t count, double share);

/* A run of a policy over the times of a trace. */
struct mst_replay {
	double us;            /* in all */
	double counted, late; /* gradients that were begun, and in time or not */
};

/* Room that a replay needs. */
struct mst_replay_scratch {
	double *busy, *arrival, *order; /* by rank */
};
/* Return: 0 or -ENOMEM. */
int mst_replay_scratch_init(struct mst_replay_scratch *s, uint32_t ranks);
void mst_replay_scratch_fini(struct mst_replay_scratch *s); /* accepts zeroed memory */

/* Replays backup:@quorum: a worker that is late finishes its gradient, which is dropped, and then
 * gets the newest version.
 * @step: which steps, in which order; NULL: those of the trace. */
void mst_replay_backup(const struct mst_arrivals *a, uint32_t quorum, const uint32_t *step,
		       struct mst_replay_scratch *s, struct mst_replay *out);

#endif
