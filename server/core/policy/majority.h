/* SPDX-License-Identifier: MIT */
/*
 * Whether a generation of servers may start without some of the ranks (PROTOCOL 11). It may if no
 * other leader can go on with the ranks that are not there, and if the next start has a rank that
 * knows of this one, whoever is there. Pure.
 */
#ifndef MST_SERVER_CORE_POLICY_MAJORITY_H
#define MST_SERVER_CORE_POLICY_MAJORITY_H

#include <stdbool.h>
#include <stdint.h>

/* More than half. */
static inline uint32_t mst_majority(uint32_t workers)
{
	return workers / 2 + 1;
}

/* The least number of live workers (--min-workers) that lets starts go without some ranks. With one
 * or two ranks there is no such number, and it is 1. */
static inline uint32_t mst_majority_least(uint32_t workers)
{
	return workers > 2 ? mst_majority(workers) : 1;
}

struct mst_gathered {
	uint32_t workers; /* that the generation before had */
	uint32_t least;   /* --min-workers: with fewer a leader does not go on */
	uint32_t started; /* ranks that are there, and have said START */
	/* Ranks of these that have been in a generation of the run: new processes have not. */
	uint32_t claims;
};

/* May a generation start with these, though others are missing? */
bool mst_majority_starts(const struct mst_gathered *g);

#endif
