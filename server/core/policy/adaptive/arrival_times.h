/* SPDX-License-Identifier: MIT */
/*
 * How long after the start of a step its k-th gradient arrives, as it was measured, and the quorum
 * that these times give AdaSync. Where the paper has a formula, which holds for exponential times,
 * this is for whatever times there are. Memory is fixed: with more than 16 workers there are 16
 * quorums, those of quorum_time.h, and in between times lie on straight lines. Pure.
 */
#ifndef MST_SERVER_CORE_POLICY_ADAPTIVE_ARRIVAL_TIMES_H
#define MST_SERVER_CORE_POLICY_ADAPTIVE_ARRIVAL_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/policy/adaptive/quorum_time.h"

/* All zero: nothing is known. */
struct mst_arrival_times {
	struct mst_quorum_cell at[MST_QUORUM_CLASSES];
};

void mst_arrival_times_add(struct mst_arrival_times *t, uint32_t workers,
			   const struct mst_arrival *arrival);
/* Has a gradient of every quorum up to so many workers been measured? */
bool mst_arrival_times_known(const struct mst_arrival_times *t, uint32_t workers, uint32_t live);
/* The time of a step of @k gradients, which is from 1 to @workers and need not be whole. */
double mst_arrival_times_of(const struct mst_arrival_times *t, uint32_t workers, double k);
/* The quorum that has the most gradients a second, of equals the largest. */
uint32_t mst_arrival_times_start(const struct mst_arrival_times *t, uint32_t workers,
				 uint32_t live);
/* The quorum of AdaSync, before it is rounded, when the loss is 1 / @ratio of what it was at
 * @start. */
double mst_arrival_times_k(const struct mst_arrival_times *t, uint32_t workers, uint32_t live,
			   uint32_t start, double ratio);

#endif
