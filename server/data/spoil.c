/* SPDX-License-Identifier: MIT */
/*
 * Finds the gradient that an infinite number or a NaN comes from. Looked for once, when a version
 * would have one: its slots are kept until then, so the gradients can still be read. What the step
 * starts from is finite: the leader lets in no other start state, and no other version is
 * published.
 */
#include "common/kernels/finite.h"
#include "server/data/aggregator_state.h"

/* Takes the place of *found if it is at an earlier element. */
static void keep_first(struct mst_spoilt *found, const struct mst_spoilt *other)
{
	if (found->kind == MST_SPOIL_STEP || other->element < found->element)
		*found = *other;
}

static void look_at_slots(const struct mst_aggregator *a, const struct mst_slot *slot,
			  struct mst_spoilt *found)
{
	for (; slot != NULL; slot = slot->next) {
		uint64_t at = mst_first_nonfinite(mst_slot_gradient(a, slot), a->cfg.type,
						  a->cfg.elems);
		struct mst_spoilt here = { .kind = MST_SPOIL_GRADIENT,
					   .element = at,
					   .rank = slot->session->who.rank,
					   .rank_end = slot->session->who.rank + 1 };
		if (at < a->cfg.elems)
			keep_first(found, &here);
	}
}

/* A rank's own sum, or that of the ranks of its group: their data are not here any more. */
static void look_at_partials(const struct mst_aggregator *a, const struct mst_partial *partial,
			     struct mst_spoilt *found)
{
	for (; partial != NULL; partial = partial->next) {
		uint64_t at = mst_first_nonfinite(partial->sum, MUSTER_F32, a->cfg.elems);
		struct mst_spoilt here = { .kind = MST_SPOIL_SUM,
					   .element = at,
					   .rank = partial->rank,
					   .rank_end = partial->rank_end };
		if (at < a->cfg.elems)
			keep_first(found, partial->found ? &partial->culprit : &here);
	}
}

void mst_spoil_of_group(const struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_partial *partial = task->group.into;

	partial->culprit = (struct mst_spoilt){ .kind = MST_SPOIL_STEP };
	look_at_slots(a, task->group.slots, &partial->culprit);
	partial->found = partial->culprit.kind == MST_SPOIL_GRADIENT;
}

/* The version itself, or the mean that it was to be made of, which has it where a sum or the step
 * has overflowed. */
static uint64_t first_of_version(const struct mst_aggregator *a, const struct mst_task *task)
{
	const void *version = mst_version_buffer(a, task->commit.buffer);
	uint64_t at = task->kind == MST_TASK_REDUCE
			      ? mst_first_nonfinite(a->mean, MUSTER_F32, a->cfg.elems)
			      : mst_first_nonfinite(version, a->cfg.result_type, a->cfg.elems);

	for (unsigned i = 0; i < MST_STATES_MAX && at == a->cfg.elems; i++) {
		const float *state = a->kept[task->commit.to].state[i];
		if (state != NULL)
			at = mst_first_nonfinite(state, MUSTER_F32, a->cfg.elems);
	}
	return at < a->cfg.elems ? at : 0;
}

struct mst_spoilt mst_spoil_of_commit(const struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_spoilt found = { .kind = MST_SPOIL_STEP };

	look_at_slots(a, task->commit.slots, &found);
	look_at_partials(a, task->commit.partials, &found);
	found.version = task->commit.version;
	if (found.kind == MST_SPOIL_STEP)
		found.element = first_of_version(a, task);
	found.element += a->cfg.first;
	return found;
}
