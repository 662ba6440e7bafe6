/* SPDX-License-Identifier: MIT */
/* The controller of an adaptive policy is asked for the rule of the next step. */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_CONTROL_H
#define MST_SERVER_CORE_LEDGER_PHASES_CONTROL_H

#include "server/core/ledger/state/state.h"

/* The version of @r has been committed: asks the controller for the rule of the next step, unless
 * another policy is about to come into force, or no step follows. */
void mst_control_next(struct mst_ledger *l, const struct mst_record *r);

#endif
