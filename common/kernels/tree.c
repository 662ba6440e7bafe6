/* SPDX-License-Identifier: MIT */
/* The tree's sum alone, tile by tile. */
#include "common/kernels/tree.h"

#include "common/kernels/plan.h"

void mst_tree_sum(const struct mst_tree *tree, size_t first, size_t count, float *total,
		  float *scratch)
{
	struct mst_sum_plan plan;
	struct mst_tile tile;

	mst_plan_make(&plan, tree);
	for (size_t done = 0; done < count; done += tile.count) {
		tile.first = first + done;
		tile.count = count - done < plan.how->tile ? count - done : plan.how->tile;
		tile.sum[MST_SUM_TOTAL] = total + done;
		tile.sum[MST_SUM_GROUP] = scratch;
		tile.sum[MST_SUM_RANK] = scratch + tile.count;
		mst_plan_sum(&plan, &tile);
	}
}
