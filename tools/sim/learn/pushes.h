/* SPDX-License-Identifier: MIT */
/*
 * Contributions on their way, with their data: from the push until the commit that they are counted
 * in, or until a verdict that they are not. The counted ones form the set of the open step.
 */
#ifndef MST_TOOLS_SIM_LEARN_PUSHES_H
#define MST_TOOLS_SIM_LEARN_PUSHES_H

#include <stdint.h>

#include "server/core/ledger/ledger.h"
#include "tools/sim/learn/versions.h"

struct mst_sim_push {
	struct mst_identity who;
	uint64_t seq;
	double samples, loss;
	float coefficient;
	/* What it was computed on, if that is to be compared; else NULL. Held as long as the push
	 * lasts. */
	struct mst_sim_version *read;
	struct mst_sim_push *next; /* of this rank, or unused */
	float *data;
};

struct mst_sim_pushes {
	uint64_t elems;
	struct mst_sim_versions *versions; /* that pushes hold some of */
	uint32_t workers;
	struct mst_sim_push **pending; /* by rank: no verdict yet */
	struct mst_sim_push *unused;
	struct mst_sim_push **set; /* of the open step */
	uint32_t set_count, set_room;
};

/* @versions: outlives @p. Return: 0 or -ENOMEM. Call mst_sim_pushes_fini() in any case. */
int mst_sim_pushes_init(struct mst_sim_pushes *p, struct mst_sim_versions *versions,
			uint32_t workers);
void mst_sim_pushes_fini(struct mst_sim_pushes *p); /* accepts one that is all zero */

/* A contribution, whose data the caller writes. What an earlier session of the rank has left is
 * forgotten. Return: NULL: no memory. */
struct mst_sim_push *mst_sim_pushes_add(struct mst_sim_pushes *p, struct mst_identity who,
					uint64_t seq);
/* The contribution joins the set. Return: 0 or -ENOMEM. */
int mst_sim_pushes_count(struct mst_sim_pushes *p, struct mst_identity who, uint64_t seq,
			 float coefficient);
/* The contribution is not counted, unless it is in the set already. */
void mst_sim_pushes_drop(struct mst_sim_pushes *p, struct mst_identity who, uint64_t seq);
/* Puts the set in order of ranks, and within a rank in order of pushing. */
void mst_sim_pushes_sort(struct mst_sim_pushes *p);
/* The set has been summed, and the next step has an empty one. */
void mst_sim_pushes_clear(struct mst_sim_pushes *p);

#endif
