/* SPDX-License-Identifier: MIT */
/*
 * What workers that own the parameters say that they have after a version, and which of them have
 * something else than most. Reports of the same version and the same section of the same tensors
 * are compared with each other. Ranks that say the same are a group.
 *
 * The group of most ranks is right; of groups that as many ranks have, none is, and all these ranks
 * are told. Reports are judged when every worker that is present has said its own, or something of
 * a later version. If more than half have said something of a later version, reports are judged
 * before, unless those that are waited for could still decide which group is right. Such reports
 * wait until they are of the older half of all that are kept.
 *
 * A rank that is known to differ does not decide what is right, as long as there are others.
 *
 * Memory is bounded: so many reports of versions are kept, of which one rank can fill only a part
 * by itself, and of each so many groups.
 *
 * Pure. Control thread only.
 */
#ifndef MST_SERVER_CONTROL_TRANSFER_COMPARISONS_H
#define MST_SERVER_CONTROL_TRANSFER_COMPARISONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"

#define MST_COMPARISONS_KEPT 64u
#define MST_COMPARISONS_LONE 8u /* of these, that only one rank has said, of each rank */
#define MST_STATE_GROUPS 8u

/* What one or more ranks have said. */
struct mst_state_group {
	uint32_t digest; /* of all of it */
	struct mst_comparison *said;
};

/* What a rank has said. */
struct mst_vote {
	uint32_t digest;
	bool said;
	bool last;      /* it was said as what the rank has at the end of the job */
	bool judged;    /* nobody is told of it any more */
	bool again;     /* it was judged before, and is said as the last one now */
	bool forgotten; /* the rank has another state now: it does not count */
};

/* The reports of one version and the same section of the same tensors. */
struct mst_compared {
	uint64_t version;
	uint32_t first, each, count; /* tensors */
	uint32_t section;            /* of each of them */
	uint32_t said;               /* ranks */
	uint32_t groups;             /* that are kept: those of most ranks */
	bool others;                 /* there are more */
	bool done;                   /* all that has been said is judged */
	struct mst_state_group group[MST_STATE_GROUPS];
	struct mst_vote *vote; /* by rank */
};

struct mst_comparisons {
	uint32_t workers;
	const bool *present; /* by rank: the owner's */
	uint64_t *apart;  /* by rank: it is known to differ from this version on; or UINT64_MAX */
	uint64_t *newest; /* by rank: the newest version that it has said something of */
	struct mst_vote *vote; /* of all rows */
	struct mst_compared *row;
	uint32_t count;
};

/* A rank that has something else than most. */
struct mst_odd_rank {
	uint32_t rank;
	uint32_t from; /* the lowest rank of the group that it is compared with */
	bool is_right; /* its group is the one of the lowest rank of as many as any: see above */
	uint64_t version;
	bool last;
	bool again;                                /* it has been found for this version before */
	const struct mst_comparison *own, *theirs; /* own: NULL: it was not kept */
};

/* @present: outlives @c. Return: 0 or -ENOMEM; then mst_comparisons_fini() frees what there is. */
int mst_comparisons_init(struct mst_comparisons *c, uint32_t workers, const bool *present);
void mst_comparisons_fini(struct mst_comparisons *c); /* accepts a zeroed one */

/* A rank says what it has. What it has said before of the same stays, but at the end of the job.
 * Return: 0 or -ENOMEM. */
int mst_comparisons_take(struct mst_comparisons *c, uint32_t rank,
			 const struct mst_comparison *said);
/* Finds the next rank that has something else than most, and has not been found for this version.
 * What @out points to is valid until the next call. Return: false: there is none now. */
bool mst_comparisons_find(struct mst_comparisons *c, struct mst_odd_rank *out);
/* The rank is known to differ after a version: what it says of later ones is compared with what
 * others say, and does not decide what is right. */
void mst_comparisons_discount(struct mst_comparisons *c, uint32_t rank, uint64_t version);
/* The rank has another state now: what it has said up to now does not count any more. */
void mst_comparisons_forget(struct mst_comparisons *c, uint32_t rank);

#endif
