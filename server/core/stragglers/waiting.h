/* SPDX-License-Identifier: MIT */
/*
 * How long steps waited for one rank: from the arrival of the last other rank that is no straggler
 * until the rank's own. Pure.
 */
#ifndef MST_SERVER_CORE_STRAGGLERS_WAITING_H
#define MST_SERVER_CORE_STRAGGLERS_WAITING_H

#include <stdint.h>

/* The open step: its two last arrivals, of different ranks that are no stragglers; and the last
 * one of a straggler. All zero: there is none yet. */
struct mst_waiting {
	uint32_t last_rank;
	uint64_t last_ns, before_ns, straggler_ns;
};

static inline void mst_waiting_came(struct mst_waiting *w, uint32_t rank, uint64_t now_ns)
{
	if (w->last_ns != 0 && w->last_rank != rank)
		w->before_ns = w->last_ns;
	w->last_rank = rank;
	w->last_ns = now_ns;
}

/* Return: how much later than @than @ns is. */
static inline uint64_t mst_waiting_after(uint64_t ns, uint64_t than)
{
	return ns > than ? ns - than : 0;
}

#endif
