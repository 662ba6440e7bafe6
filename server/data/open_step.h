/* SPDX-License-Identifier: MIT */
/*
 * The open step: the contributions that have been counted since the last commit. The next commit
 * takes them all.
 *
 * For each rank it has the slots with the contributions, in the order in which they were counted,
 * or one partial sum of them all. A slot stays full until its last read is done. So two partial
 * sums are made before the commit, to the bits that the commit would make:
 *
 *   - the sum of a rank that contributes again, because it has few slots, and needs them;
 *   - the sum of a group of the tree that is complete, when there is nothing else to do.
 *
 * All functions are for the aggregator's thread. Except for mst_open_step_init() none allocates.
 */
#ifndef MST_SERVER_DATA_OPEN_STEP_H
#define MST_SERVER_DATA_OPEN_STEP_H

#include "server/data/aggregator_state.h"

/* Bytes that mst_open_step_init() allocates. */
uint64_t mst_open_step_bytes(const struct mst_aggregator_cfg *cfg);
/* Makes an empty step, and the buffers for partial sums. Return: 0 or -ENOMEM; then
 * mst_open_step_fini() frees what has been made. */
int mst_open_step_init(struct mst_aggregator *a);
void mst_open_step_fini(struct mst_aggregator *a); /* accepts zeroed memory */

/* Adds up what the rank has in the step, if that is several contributions and a buffer for their
 * partial sum is free. */
void mst_open_step_add_up(struct mst_aggregator *a, uint32_t rank);

static inline void mst_open_step_add_to_partial(struct mst_aggregator *a, struct mst_slot *slot,
						struct mst_partial *into, bool starts)
{
	mst_task_add(a, &(struct mst_task){ .kind = MST_TASK_PARTIAL,
					    .moves = true,
					    .partial = { slot, into, starts } });
}

/* The contribution in @slot, which is full, is counted: it is the last of its rank in the step. */
static inline void mst_open_step_add(struct mst_aggregator *a, struct mst_slot *slot)
{
	uint32_t rank = slot->session->who.rank;
	struct mst_rank_open *open = &a->open.rank[rank];

	a->open.entries++;
	if (open->partial != NULL) {
		mst_open_step_add_to_partial(a, slot, open->partial, false);
		return;
	}
	if (open->first == NULL)
		open->first = slot;
	else
		open->last->next = slot;
	open->last = slot;
	mst_ranks_add(&a->open.counted, rank);
	if (open->first != open->last)
		mst_open_step_add_up(a, rank);
}

/* The rank has contributed to the step, which takes one contribution of each: its group may be
 * complete now. */
void mst_open_step_note_ready(struct mst_aggregator *a, uint32_t rank);
/* Queues the sums of the groups that are ready, as far as they are still complete and there are
 * buffers. Return: is there something in the queue now? */
bool mst_open_step_sum_ready(struct mst_aggregator *a);

/* To be called when the queue is empty: the shards are idle, and may sum groups.
 * Return: is there something to do now? */
static inline bool mst_open_step_sum_groups(struct mst_aggregator *a)
{
	return mst_ranks_first(&a->open.ready) != MST_RANK_NONE && mst_open_step_sum_ready(a);
}

/* The step is committed: writes its summands to *@slots, chained in order of rank and seq, and to
 * *@partials, chained in order of rank; a rank is in one of both. The next step is open, and has
 * nothing. */
void mst_open_step_take(struct mst_aggregator *a, struct mst_slot **slots,
			struct mst_partial **partials);
/* The commit has read these partial sums, a chain that mst_open_step_take() has made. They go to
 * ranks that had to keep several slots in the open step. */
void mst_open_step_give_back(struct mst_aggregator *a, struct mst_partial *partials);
/* The job has ended: no commit will read what is counted in the step, and its sessions must not
 * wait for one. */
void mst_open_step_drop(struct mst_aggregator *a);

#endif
