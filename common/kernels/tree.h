/* SPDX-License-Identifier: MIT */
/*
 * The fixed tree over ranks: within a rank in seq order; ranks in order within groups of G; groups
 * in order. Absent ranks are skipped; a sum starts from its first present member. So the bits of a
 * total depend on the set alone.
 */
#ifndef MST_KERNELS_TREE_H
#define MST_KERNELS_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "muster/muster.h"

/* One leaf. Leaves stand in order of rank, those of a rank in order of seq. */
struct mst_leaf {
	uint32_t rank;
	float coefficient; /* not used where `partial` */
	bool partial;      /* data are f32: the sum of this rank's first leaves */
	/* type[]; f32[] where partial. Of the whole range: the chunk is cut by `first`. */
	const void *data;
};

struct mst_tree {
	enum muster_type type;
	uint32_t group; /* G */
	const struct mst_leaf *leaf;
	size_t leaf_count; /* > 0 */
};

/* total[0..count) = the tree's sum of elements [first, first + count). @scratch: 2 x count floats,
 * apart from total. */
void mst_tree_sum(const struct mst_tree *tree, size_t first, size_t count, float *total,
		  float *scratch);

#endif
