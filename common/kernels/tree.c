/* SPDX-License-Identifier: MIT */
/* The tree's sum alone, strip by strip. */
#include "common/kernels/tree.h"

#include "common/kernels/plan.h"

void mst_tree_sum(const struct mst_tree *tree, size_t first, size_t count, float *total,
		  float *scratch)
{
	struct mst_plan plan;
	struct mst_strip strip;

	mst_plan_make(&plan, tree);
	for (size_t done = 0; done < count; done += strip.count) {
		strip.first = first + done;
		strip.count = count - done < MST_STRIP_ELEMS ? count - done : MST_STRIP_ELEMS;
		strip.sum[MST_SUM_TOTAL] = total + done;
		strip.sum[MST_SUM_GROUP] = scratch;
		strip.sum[MST_SUM_RANK] = scratch + strip.count;
		mst_plan_sum(&plan, &strip);
	}
}
