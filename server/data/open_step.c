/* SPDX-License-Identifier: MIT */
#include "server/data/open_step.h"

#include <errno.h>
#include <stdlib.h>

/* ---- memory ---- */

uint64_t mst_open_step_bytes(const struct mst_aggregator_cfg *cfg)
{
	return cfg->partials * cfg->elems * sizeof(float) +
	       (cfg->partials + 1u) * sizeof(struct mst_partial) +
	       cfg->workers * sizeof(struct mst_rank_open) + 2 * mst_ranks_bytes(cfg->workers);
}

static int alloc_partials(struct mst_aggregator *a)
{
	struct mst_open_step *s = &a->open;

	s->partial = calloc(a->cfg.partials > 0 ? a->cfg.partials : 1, sizeof(*s->partial));
	if (s->partial == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->cfg.partials; i++) {
		s->partial[i].sum = calloc(a->cfg.elems, sizeof(float));
		if (s->partial[i].sum == NULL)
			return -ENOMEM;
	}
	return 0;
}

int mst_open_step_init(struct mst_aggregator *a)
{
	a->open.rank = calloc(a->cfg.workers, sizeof(*a->open.rank));
	if (a->open.rank == NULL)
		return -ENOMEM;
	int rc = mst_ranks_init(&a->open.counted, a->cfg.workers);
	if (rc == 0)
		rc = mst_ranks_init(&a->open.ready, a->cfg.workers);
	return rc == 0 ? alloc_partials(a) : rc;
}

void mst_open_step_fini(struct mst_aggregator *a)
{
	for (uint32_t i = 0; a->open.partial != NULL && i < a->cfg.partials; i++)
		free(a->open.partial[i].sum);
	free(a->open.partial);
	mst_ranks_fini(&a->open.counted);
	mst_ranks_fini(&a->open.ready);
	free(a->open.rank);
}

/* ---- partial sums ---- */

/* A free partial sum, for those ranks; NULL: none is free. */
static struct mst_partial *take_partial(struct mst_aggregator *a, uint32_t rank, uint32_t rank_end)
{
	for (uint32_t i = 0; i < a->cfg.partials; i++) {
		struct mst_partial *partial = &a->open.partial[i];
		if (partial->taken)
			continue;
		partial->taken = true;
		partial->rank = rank;
		partial->rank_end = rank_end;
		partial->found = false;
		partial->next = NULL;
		return partial;
	}
	return NULL;
}

/* From a rank's second contribution on, its sum is kept in a buffer, beginning with the first, and
 * its slots come free. While no buffer is free the slots stay full. They are added up when a commit
 * gives a buffer back, or summed by the commit itself: in the same order, to the same bits. */
void mst_open_step_add_up(struct mst_aggregator *a, uint32_t rank)
{
	struct mst_rank_open *open = &a->open.rank[rank];
	struct mst_slot *next;

	if (open->first == open->last)
		return;
	open->partial = take_partial(a, rank, rank + 1);
	if (open->partial == NULL)
		return;
	for (struct mst_slot *slot = open->first; slot != NULL; slot = next) {
		next = slot->next;
		mst_open_step_add_to_partial(a, slot, open->partial, slot == open->first);
	}
	open->first = open->last = NULL;
}

void mst_open_step_give_back(struct mst_aggregator *a, struct mst_partial *partials)
{
	if (partials == NULL)
		return;
	for (struct mst_partial *partial = partials; partial != NULL; partial = partial->next)
		partial->taken = false;

	uint32_t rank = mst_ranks_first(&a->open.counted);
	for (; rank != MST_RANK_NONE; rank = mst_ranks_next(&a->open.counted, rank + 1))
		mst_open_step_add_up(a, rank);
}

/* The rank has nothing in the step any more. */
static void clear_rank(struct mst_aggregator *a, uint32_t rank)
{
	a->open.rank[rank] = (struct mst_rank_open){ 0 };
	mst_ranks_remove(&a->open.counted, rank);
}

/* ---- groups ---- */

/*
 * A group of the tree that is complete while the step is open can be summed at once, if there is
 * nothing else to do: then the commit has one summand to read instead of G, and the time it takes
 * after its last contribution hardly grows with the number of workers. The sum is the one that the
 * commit would make, so the bits are the same.
 *
 * It costs writing and reading one more vector. So it waits until the shard is idle: what a commit
 * takes in the meantime it sums in one pass.
 */
#define GROUP_MIN 4u

static struct mst_span group_ranks(const struct mst_aggregator *a, uint64_t group)
{
	uint64_t end = (group + 1) * a->cfg.group;

	return (struct mst_span){ group * a->cfg.group,
				  end < a->cfg.workers ? end : a->cfg.workers };
}

/* Has each rank of the group one contribution in the step, which lies in its slot? */
static bool is_complete(const struct mst_aggregator *a, uint64_t group)
{
	struct mst_span ranks = group_ranks(a, group);

	for (uint64_t r = ranks.begin; r < ranks.end; r++)
		if (a->open.rank[r].first == NULL || a->open.rank[r].first != a->open.rank[r].last)
			return false;
	return true;
}

void mst_open_step_note_ready(struct mst_aggregator *a, uint32_t rank)
{
	uint32_t group = rank / a->cfg.group;
	struct mst_span ranks = group_ranks(a, group);

	if (a->cfg.workers > a->cfg.group && ranks.end - ranks.begin >= GROUP_MIN &&
	    is_complete(a, group))
		mst_ranks_add(&a->open.ready, group);
}

/* The slots are taken, or dropped: no group is to be summed early. */
static void forget_ready(struct mst_aggregator *a)
{
	for (uint32_t group; (group = mst_ranks_first(&a->open.ready)) != MST_RANK_NONE;)
		mst_ranks_remove(&a->open.ready, group);
}

static void group_begin(struct mst_aggregator *a, uint64_t group, struct mst_partial *into)
{
	struct mst_span ranks = group_ranks(a, group);
	struct mst_task task = { .kind = MST_TASK_GROUP, .moves = true, .group.into = into };
	struct mst_slot **slots = &task.group.slots;

	for (uint64_t r = ranks.begin; r < ranks.end; r++) {
		*slots = a->open.rank[r].first;
		slots = &a->open.rank[r].first->next;
		clear_rank(a, (uint32_t)r);
	}
	a->open.rank[ranks.begin].partial = into;
	mst_ranks_add(&a->open.counted, (uint32_t)ranks.begin);
	mst_task_add(a, &task);
}

bool mst_open_step_sum_ready(struct mst_aggregator *a)
{
	uint32_t group;

	for (; (group = mst_ranks_first(&a->open.ready)) != MST_RANK_NONE;
	     mst_ranks_remove(&a->open.ready, group)) {
		if (!is_complete(a, group))
			continue; /* its ranks have contributed again by now */
		struct mst_span ranks = group_ranks(a, group);
		struct mst_partial *into = take_partial(a, (uint32_t)ranks.begin,
							(uint32_t)ranks.end);
		if (into == NULL)
			break;
		group_begin(a, group, into);
	}
	return a->queue_count > 0;
}

/* ---- its end ---- */

void mst_open_step_take(struct mst_aggregator *a, struct mst_slot **slots,
			struct mst_partial **partials)
{
	for (uint32_t rank; (rank = mst_ranks_first(&a->open.counted)) != MST_RANK_NONE;) {
		const struct mst_rank_open *open = &a->open.rank[rank];
		if (open->partial != NULL) {
			*partials = open->partial;
			partials = &open->partial->next;
		} else {
			*slots = open->first;
			slots = &open->last->next;
		}
		clear_rank(a, rank);
	}
	forget_ready(a);
	a->open.entries = 0;
}

void mst_open_step_drop(struct mst_aggregator *a)
{
	struct mst_slot *next;

	for (uint32_t rank; (rank = mst_ranks_first(&a->open.counted)) != MST_RANK_NONE;) {
		for (struct mst_slot *slot = a->open.rank[rank].first; slot != NULL; slot = next) {
			next = slot->next;
			mst_aggregator_read_done(a, slot);
		}
		clear_rank(a, rank);
	}
	forget_ready(a);
	a->open.entries = 0;
}
