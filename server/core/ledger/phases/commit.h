/* SPDX-License-Identifier: MIT */
/* The commit of the open step, and what it records (PROTOCOL 5). */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_COMMIT_H
#define MST_SERVER_CORE_LEDGER_PHASES_COMMIT_H

#include "server/core/ledger/state/state.h"

/* Commits the open step if that is due, and nothing more: the next step is still to be opened.
 * Return: the record of the version; NULL: nothing is committed. */
const struct mst_record *mst_step_commit_if_due(struct mst_ledger *l);
/* Under a rule that preempts, tells the members that compute that another step is open. */
void mst_step_preempt(struct mst_ledger *l);

#endif
