/* SPDX-License-Identifier: MIT */
/* What can be said of the open step: whom it waits for, and whether its commit is due. */
#ifndef MST_SERVER_CORE_LEDGER_STATE_OPEN_STEP_H
#define MST_SERVER_CORE_LEDGER_STATE_OPEN_STEP_H

#include "server/core/ledger/state/state.h"

/* Can more contributions still come into the open step? Not if the job ends with what is counted,
 * or does not commit it. */
static inline bool mst_step_gathers(const struct mst_ledger *l)
{
	return l->phase == MST_PHASE_RUNNING && !l->settling && (!l->end_due || l->end_whole);
}

/* When a timer of the open step is judged that is due at @due_ns. */
static inline uint64_t mst_judged_at(const struct mst_ledger *l, uint64_t due_ns)
{
	return due_ns < UINT64_MAX - l->lag_ns ? due_ns + l->lag_ns : due_ns;
}

/* The least clock on the roster; 0: the roster is empty. */
static inline uint64_t mst_step_clock_min(const struct mst_ledger *l)
{
	return l->counts.clocks.count > 0 ? mst_heap_least(&l->counts.clocks) : 0;
}

/* Contributions keep their slots until the commit, except that partial sums are planned for what
 * the rule that the job starts with takes. */
static inline uint32_t mst_step_room(const struct mst_ledger *l, uint32_t roster)
{
	uint32_t slots = roster * l->cfg.slots;
	uint32_t planned = mst_rule_planned(&l->cfg.rule, l->cfg.workers);

	return planned > slots ? planned : slots;
}

static inline struct mst_rule_step mst_step_view(const struct mst_ledger *l)
{
	uint32_t roster = mst_counts_count(&l->counts, MST_STANDS_ROSTERED);

	return (struct mst_rule_step){
		.roster = roster,
		.room = mst_step_room(l, roster),
		.missing = mst_counts_count(&l->counts, MST_STANDS_MISSING),
		.contributions = l->entry_count,
		.overdue = l->overdue,
	};
}

/* Is all there that the step needs, and its commit held for a micro-batch that would be older than
 * the window after it? Nobody waits meanwhile: workers go on handing over micro-batches, which
 * count in this step. */
bool mst_step_is_held(const struct mst_ledger *l);
/* Until when it may be held. */
uint64_t mst_step_held_until(const struct mst_ledger *l);

/* Is a commit due, whether or not a buffer is free for it? */
bool mst_step_due(const struct mst_ledger *l);

#endif
