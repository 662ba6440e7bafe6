/* SPDX-License-Identifier: MIT */
/*
 * How long a step takes with each quorum: T(h, k), the time from a commit of h gradients to the
 * k-th gradient on the version that it made (Xu, Neglia, Sebastianelli, arXiv 2004.14696). A sample
 * of one pair tells of others, too: more gradients take longer, so T grows with k; and the more
 * gradients the commit before has waited for, the fewer workers are still busy with an older
 * version, so T falls with h. The estimate is the nearest table, by least squares, that is so.
 *
 * Memory is fixed. Up to 16 workers each quorum has a row and a column. With more workers there are
 * 16 quorums to choose from, the last of which is all workers. Pure.
 */
#ifndef MST_SERVER_CORE_POLICY_ADAPTIVE_QUORUM_TIME_H
#define MST_SERVER_CORE_POLICY_ADAPTIVE_QUORUM_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/policy/starts.h"

#define MST_QUORUM_CLASSES 16u

/* All zero: nothing is known. */
struct mst_quorum_time {
	struct mst_quorum_cell {
		double mean_s, weight; /* of the samples, in which older ones fade */
	} cell[MST_QUORUM_CLASSES][MST_QUORUM_CLASSES]; /* [h][k] */
};

/* The estimate, for each quorum k after a commit of the h at hand. */
struct mst_quorum_waits {
	double after_s[MST_QUORUM_CLASSES];
};

/* How many quorums so many workers have to choose from, and which these are, from the least. */
uint32_t mst_quorum_classes(uint32_t workers);
uint32_t mst_quorum_of_class(uint32_t workers, uint32_t at);
/* The class of the least of these quorums that is not below @quorum. */
uint32_t mst_quorum_class(uint32_t workers, uint32_t quorum);

/* Takes a sample, if it is of one of the quorums. */
void mst_quorum_time_add(struct mst_quorum_time *t, uint32_t workers,
			 const struct mst_arrival *arrival);
/* A commit: what has been sampled fades. */
void mst_quorum_time_age(struct mst_quorum_time *t);
/* After a commit of @before gradients. What was never sampled is as low as the samples allow, so
 * that it is tried. Return: false: there are no samples. */
bool mst_quorum_time_estimate(const struct mst_quorum_time *t, uint32_t workers, uint32_t before,
			      struct mst_quorum_waits *out);

#endif
