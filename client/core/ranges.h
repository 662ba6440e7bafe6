/* SPDX-License-Identifier: MIT */
/*
 * The elements of the contribution being filled that have been handed over already. Ranges in
 * rising order, neighbours merged, so that a backward pass that hands over layer by layer keeps
 * one.
 */
#ifndef MST_CLIENT_CORE_RANGES_H
#define MST_CLIENT_CORE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct mst_range {
	uint64_t begin, end; /* elements [begin, end) */
};

struct mst_ranges {
	struct mst_range *list;
	uint32_t count, max;
	uint64_t elems;
};

/* Allocates all it will need. 0 or -ENOMEM. */
int mst_ranges_init(struct mst_ranges *r, uint64_t elems);
void mst_ranges_fini(struct mst_ranges *r); /* of a zeroed struct too */

/* 0; -ERANGE outside the vector; -EEXIST a part of it was given before; -ENOSPC more separate
 * ranges than are kept apart, which a vector of up to 131072 elements cannot have. */
int mst_ranges_add(struct mst_ranges *r, uint64_t first, uint64_t count);
/* The first that was given of what mst_ranges_add() finds given before. */
struct mst_range mst_ranges_given(const struct mst_ranges *r, uint64_t first);
static inline void mst_ranges_clear(struct mst_ranges *r)
{
	r->count = 0;
}

/* The first elements from @from on that no range covers; false: there are none. */
bool mst_ranges_gap(const struct mst_ranges *r, uint64_t from, struct mst_range *out);

#endif
