/* SPDX-License-Identifier: MIT */
/*
 * The norms of tensors, for optimisers whose rate depends on them. A norm is the root of a sum of
 * squares that is added up without rounding (exact_sum.h). So a tensor may be cut anywhere between
 * blocks: each shard or server adds up the stretch that it has, and the sums of all stretches give
 * the same bits as the whole.
 */
#ifndef MST_OPTIM_NORMS_H
#define MST_OPTIM_NORMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/exact_sum.h"

/* Sums of squares of a tensor, or of a stretch of it. */
struct mst_squares {
	struct mst_exact_sum theta;     /* of the parameters before the step */
	struct mst_exact_sum direction; /* of what the optimiser steps along: optim.h says what */
};

static inline void mst_squares_join(struct mst_squares *sum, const struct mst_squares *other)
{
	mst_exact_join(&sum->theta, &other->theta);
	mst_exact_join(&sum->direction, &other->direction);
}

/* A range of the vector, which a shard or a server has. Of the tensors that go on beyond a border
 * of the range: the squares of what lies in the range. Zero where no tensor goes on. */
struct mst_edges {
	struct mst_squares left, right;
	bool spans; /* one tensor goes on beyond both borders: its squares are in `right` */
};

/* What a server reports of its edges, in this order, one sum at a time. */
enum mst_edge_sum {
	MST_EDGE_LEFT_THETA,
	MST_EDGE_LEFT_DIRECTION,
	MST_EDGE_RIGHT_THETA,
	MST_EDGE_RIGHT_DIRECTION,
	MST_EDGE_SUMS
};

static inline bool mst_edge_is_right(uint32_t sum)
{
	return sum >= MST_EDGE_RIGHT_THETA;
}
/* The sum of @squares that is meant. */
static inline struct mst_exact_sum *mst_edge_of(struct mst_squares *squares, uint32_t sum)
{
	return sum == MST_EDGE_LEFT_THETA || sum == MST_EDGE_RIGHT_THETA ? &squares->theta
									 : &squares->direction;
}

#endif
