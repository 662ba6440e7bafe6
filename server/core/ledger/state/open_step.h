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
uint64_t mst_step_clock_min(const struct mst_ledger *l);
struct mst_rule_step mst_step_view(const struct mst_ledger *l);
/* Is a commit due, whether or not a buffer is free for it? */
bool mst_step_due(const struct mst_ledger *l);

#endif
