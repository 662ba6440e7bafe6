/* SPDX-License-Identifier: MIT */
/*
 * The counts keeps, for each standing that a member can have, the set of the members that have it.
 * So the ledger can tell with every event how many members the open step waits for, whose
 * contribution is judged next, and whose lease ends first, without looking at all members.
 *
 * The standings of a member are computed from that member alone, in one function,
 * mst_counts_note(). Therefore the sets agree with the members as long as mst_counts_note() is
 * called after every change of a member. Pure.
 */
#ifndef MST_SERVER_CORE_LEDGER_COUNTS_H
#define MST_SERVER_CORE_LEDGER_COUNTS_H

#include "server/core/heap.h"
#include "server/core/ledger/member.h"
#include "server/core/ranks.h"

enum mst_standing {
	MST_STANDS_ABSENT,    /* the rank is free: it has no session */
	MST_STANDS_IN,        /* the member takes part in the job */
	MST_STANDS_NEW,       /* the member takes part from the next step on */
	MST_STANDS_ROSTERED,  /* the open step waits for the member, or has its contribution */
	MST_STANDS_MISSING,   /* the open step waits for the member, and has nothing of it yet */
	MST_STANDS_COUNTED,   /* the open step has a contribution of the rank */
	MST_STANDS_PASSED,    /* the member has said that it gives nothing to the open step */
	MST_STANDS_JUDGEABLE, /* every shard has reported the member's next header */
	MST_STANDS_BUSY,      /* the member computes */
	MST_STANDS_BEHIND,    /* the member lacks versions that are gone */
	MST_STANDS_KEEPING,   /* the member has an ask open and still holds a version buffer */
	MST_STANDINGS
};

/* What mst_counts_note() saw of a member when it was last called. */
struct mst_noted {
	uint32_t standing; /* a bit for each set that has the member */
	/* Keys in the heaps; MST_NEVER: the member is not in that heap. */
	uint64_t clock, lease, at_hand;
};

struct mst_counts {
	struct mst_ranks set[MST_STANDINGS];
	struct mst_heap clocks; /* of the members on the roster */
	struct mst_heap leases; /* of every session */
	/* Where by_micro is set: the versions that members on the roster were given last who
	 * compute on them, or have pushed what is still to be judged; where workers own, of all,
	 * for each needs the version after it. */
	struct mst_heap at_hand;
	bool in_order;           /* workers own */
	bool by_micro;           /* the rule in force is one by micro-batches */
	struct mst_noted *noted; /* by rank */
};

/* All sets begin empty; a member enters them with its first mst_counts_note().
 * Return: 0 or -ENOMEM. */
int mst_counts_init(struct mst_counts *c, uint32_t workers);
uint64_t mst_counts_bytes(uint32_t workers); /* that mst_counts_init() allocates */
void mst_counts_fini(struct mst_counts *c);  /* accepts a counts that is all zero */

/* Brings all sets up to date with @m. To be called after every change of a member. */
void mst_counts_note(struct mst_counts *c, struct mst_member *m, uint32_t slots, uint32_t shards);

/* The oldest version that somebody on the roster computes on; MST_VERSION_NONE: none. */
static inline uint64_t mst_counts_oldest_at_hand(const struct mst_counts *c)
{
	return c->at_hand.count > 0 ? mst_heap_least(&c->at_hand) : MST_VERSION_NONE;
}

static inline uint32_t mst_counts_count(const struct mst_counts *c, enum mst_standing standing)
{
	return c->set[standing].count;
}
/* The least rank that has this standing and is not below @from; MST_RANK_NONE: there is none. */
static inline uint32_t mst_counts_next(const struct mst_counts *c, enum mst_standing standing,
				       uint32_t from)
{
	return mst_ranks_next(&c->set[standing], from);
}

#endif
