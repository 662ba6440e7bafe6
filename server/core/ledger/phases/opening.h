/* SPDX-License-Identifier: MIT */
/* The open step as it begins: which ranks it waits for, and under which rule (PROTOCOL 2). */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_OPENING_H
#define MST_SERVER_CORE_LEDGER_PHASES_OPENING_H

#include "server/core/ledger/state/state.h"

/* Opens a step: empties the set, and puts every member that takes part on the roster. */
void mst_step_open(struct mst_ledger *l);
/* Lets a step go on that no member can commit: its roster is empty, or all members have passed. */
void mst_step_revive(struct mst_ledger *l);
/* @controller: NULL: there is none. */
void mst_step_policy(struct mst_ledger *l, const struct mst_rule *rule,
		     const struct mst_controller *controller);

#endif
