/* SPDX-License-Identifier: MIT */
/*
 * What it brings to wait for N of P gradients, by the times of a trace. Pure.
 *
 * Where late workers are told at once, and begin the next step with the others, a step takes as
 * long as the N-th arrival (Dutta et al. 2018, K-sync), and N gradients count. Where they first
 * finish their gradient they begin late, and steps take longer: replay.h.
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

#endif
