/* SPDX-License-Identifier: MIT */
/*
 * The fixed tree as a list of steps, each of them one call of mst_isa.accumulate: which sources are
 * added to which sum, in order. The list is made once for a range, and worked off for each tile of
 * the range. A tree that is too large for one list is walked again for each tile, one list at a
 * time.
 */
#ifndef MST_KERNELS_PLAN_H
#define MST_KERNELS_PLAN_H

#include "common/kernels/isa.h"
#include "common/kernels/tree.h"

#define MST_PLAN_STEPS 32

/* Sums in progress: a group's while it is apart from the total, a rank's while from both. */
enum mst_sum { MST_SUM_TOTAL, MST_SUM_GROUP, MST_SUM_RANK, MST_SUMS };

struct mst_plan_step {
	enum mst_sum into;
	enum mst_sum joins; /* the one source is this sum; MST_SUMS: the sources are leaves */
	struct mst_sum_step sum;
};

struct mst_sum_plan {
	const struct mst_tree *tree;
	const struct mst_isa *isa;
	const struct mst_variant *how;
	bool fits; /* the list holds the whole tree */
	size_t count;
	struct mst_plan_step step[MST_PLAN_STEPS];
};

/* Elements [first, first + count) of the leaves; up to the variant's tile. */
struct mst_tile {
	size_t first, count;
	float *sum[MST_SUMS]; /* count floats each */
};

/* The tree and its leaves have to stay. */
void mst_plan_make(struct mst_sum_plan *plan, const struct mst_tree *tree);

/* The tree's sum of one tile into its total. */
void mst_plan_sum(struct mst_sum_plan *plan, const struct mst_tile *tile);

#endif
