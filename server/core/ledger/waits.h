/* SPDX-License-Identifier: MIT */
/*
 * Asks, sorted by what their answers wait for. An ask that cannot be answered is put into the set
 * of asks that wait for the same thing. It is tried again when that has happened, or when its own
 * member has changed. So an event costs only as much as the asks that it lets go on, however many
 * others wait. Pure.
 */
#ifndef MST_SERVER_CORE_LEDGER_WAITS_H
#define MST_SERVER_CORE_LEDGER_WAITS_H

#include "server/core/heap.h"
#include "server/core/ledger/member.h"
#include "server/core/ranks.h"

struct mst_waits {
	struct mst_ranks set[MST_WAITS]; /* the set of ITSELF stays empty: it is never searched */
	struct mst_heap clocks;          /* of the members that wait for CLOCK: their clocks, */
	struct mst_heap since;           /* and when they began to wait */
};

/* Return: 0 or -ENOMEM. */
int mst_waits_init(struct mst_waits *w, uint32_t workers);
uint64_t mst_waits_bytes(uint32_t workers); /* that mst_waits_init() allocates */
void mst_waits_fini(struct mst_waits *w);   /* accepts waits that are all zero */

/* Puts the ask of @m among those that wait for @what. ITSELF: @m has no ask that waits. */
void mst_waits_for(struct mst_waits *w, struct mst_member *m, enum mst_wait what);
/* @what has happened: all asks that waited for it are to be tried. @member: the array of all
 * members. */
void mst_waits_over(struct mst_waits *w, struct mst_member *member, enum mst_wait what);
/* The clock bound now lets members with clocks up to @most go on: their asks are to be tried. */
void mst_waits_clock(struct mst_waits *w, struct mst_member *member, uint64_t most);

#endif
