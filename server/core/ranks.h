/* SPDX-License-Identifier: MIT */
/*
 * A set of ranks. It knows how many ranks it has, and finds the next one from any rank on in a few
 * instructions: level 0 has a bit for each rank, level 1 a bit for each word of level 0 that is not
 * zero, level 2 the same for level 1. The ledger searches such sets with every event, for ten
 * thousand members and more. The aggregator also has sets of groups of ranks, and the control plane
 * sets of places. Pure.
 */
#ifndef MST_SERVER_CORE_RANKS_H
#define MST_SERVER_CORE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#define MST_RANK_NONE UINT32_MAX
enum { MST_RANKS_LEVELS = 3 };
#define MST_RANKS_MAX (64u * 64u * 64u)

struct mst_ranks {
	uint32_t count;
	uint32_t words[MST_RANKS_LEVELS];
	uint64_t *level
		/* bit i: rank i is in the set (level 0); word i of the level below is not zero */
		[MST_RANKS_LEVELS];
};

/* Makes an empty set for ranks below @ranks, which is 1 .. MST_RANKS_MAX.
 * Return: 0 or -ENOMEM. */
int mst_ranks_init(struct mst_ranks *s, uint32_t ranks);
uint64_t mst_ranks_bytes(uint32_t ranks); /* that mst_ranks_init() allocates */
void mst_ranks_fini(struct mst_ranks *s); /* accepts a set that is all zero */

static inline bool mst_ranks_has(const struct mst_ranks *s, uint32_t rank)
{
	return s->level[0][rank / 64] >> (rank % 64) & 1u;
}
/* These do nothing if @rank is already in the set, or not in it. */
void mst_ranks_add(struct mst_ranks *s, uint32_t rank);
void mst_ranks_remove(struct mst_ranks *s, uint32_t rank);

/* The least rank in the set that is @from or above; MST_RANK_NONE: there is none. */
uint32_t mst_ranks_next(const struct mst_ranks *s, uint32_t from);
/* The least rank in the set; MST_RANK_NONE: the set is empty. */
static inline uint32_t mst_ranks_first(const struct mst_ranks *s)
{
	return mst_ranks_next(s, 0);
}

#endif
