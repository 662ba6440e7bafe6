/* SPDX-License-Identifier: MIT */
/*
 * The start of the job, or of a later generation of its servers (PROTOCOL 2, 11): which ranks are
 * waited for, what it begins with, and which worker sends that.
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_START_H
#define MST_SERVER_CORE_LEDGER_PHASES_START_H

#include "server/core/ledger/state/state.h"
#include "server/core/policy/majority.h"

void mst_start_state(struct mst_ledger *l, struct mst_member *m, const struct mst_brought *brought);
/* Does what follows from any event before the start: tells a worker to send what all begin with, or
 * marks that the job begins. */
void mst_start_settle(struct mst_ledger *l);
/* The ranks that the start counts. */
void mst_start_gathered(struct mst_ledger *l, struct mst_gathered *out);
/* Starts the job; its first step is still to be opened. */
void mst_start_begin(struct mst_ledger *l);
/* The first step is open: has the bound hold for the ranks that a checkpoint has kept ahead. */
void mst_start_bound(struct mst_ledger *l);

#endif
