/* SPDX-License-Identifier: MIT */
/*
 * The controller of an adaptive policy is asked for the rule of the next step.
 *
 * For policies that look for stragglers (Sync-Switch) they are found here. A window is over when as
 * many gradients are counted as workers are live; under bsp that is a commit. In each window a
 * worker is slow if its throughput is some standard deviations below the mean of all, and a
 * straggler after some such windows in a row. The throughput is one over the time that its last
 * gradient took, or, if it has computed for longer than that, over the time that it has.
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_CONTROL_H
#define MST_SERVER_CORE_LEDGER_PHASES_CONTROL_H

#include "server/core/ledger/state/state.h"

/* The version of @r has been committed: asks the controller for the rule of the next step, unless
 * another policy is about to come into force, or no step follows. */
void mst_control_next(struct mst_ledger *l, const struct mst_record *r);

#endif
