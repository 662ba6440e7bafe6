/* SPDX-License-Identifier: MIT */
/*
 * A limit for the norm of a contribution (options.clip), as Chen et al. have it: each worker clips
 * its own gradient before it is sent. Ranges of the gradient are sent before the rest is computed,
 * so nothing can be scaled any more when the norm is known. Instead, the header carries a factor,
 * and the server multiplies by it with all its other factors (server/core/policy/factor.h).
 *
 * The norm is that of the server's own clipping: the squares of blocks of 4096 elements, counted
 * from the start of the vector, in double, and their sum without rounding. So it does not depend on
 * the ranges in which the gradient was given.
 */
#ifndef MST_CLIENT_LOCAL_CLIP_H
#define MST_CLIENT_LOCAL_CLIP_H

#include <stdint.h>

#include "client/core/ranges.h"
#include "common/base/exact_sum.h"
#include "common/wire/lane.h"
#include "muster/muster.h"

struct mst_clip {
	double limit; /* 0: there is none, and nothing is measured */
	uint64_t elems;
	enum muster_type type;
	/* These belong to the contribution at hand. */
	struct mst_exact_sum squares;
	uint64_t *seen; /* a bit for each block: its squares are in the sum */
};

/* Return: 0 or -ENOMEM. */
int mst_clip_init(struct mst_clip *c, double limit, uint64_t elems, enum muster_type type);
void mst_clip_fini(struct mst_clip *c); /* of a zeroed struct too */

/* What follows is called only if there is a limit. */

/* Begins the next contribution, of which nothing has been given yet. */
void mst_clip_begin(struct mst_clip *c);
/* Takes the squares of the blocks that lie wholly in the range. @src: its data. */
void mst_clip_range(struct mst_clip *c, const struct mst_range *range, const void *src);
/* Copies what a range has of other blocks from @src to the gradient, for one that is sent from
 * memory of the caller's.
 * Return: bytes. */
size_t mst_clip_keep(const struct mst_clip *c, const struct mst_range *range, const void *src,
		     void *gradient);
/* All of it has been given: takes the squares of the other blocks from the gradient, and writes the
 * factor to the header, unless it is 1. */
void mst_clip_end(struct mst_clip *c, const void *gradient, struct mst_lane_header *header);

/* The sum of the squares of a range, for the norm of a contribution that servers want to know. */
double mst_client_squares(const void *from, enum muster_type type, uint64_t count);

#endif
