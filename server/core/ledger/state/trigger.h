/* SPDX-License-Identifier: MIT */
/*
 * What ends a step before its quorum is there (PROTOCOL 3, "Triggers"). A trigger is the first
 * contribution that ends its worker's batch, or the step's deadline. What follows is one of two:
 *
 *   collect      every worker that computes is advised to hand in what it has finished. The step
 *                commits when all have, or have passed, or when the time of grace is over.
 *   no collect   the step commits with what it has, or with the first contribution that comes.
 *                Under a rule by micro-batches that commit may be held (open_step.h).
 *
 * Timers are judged in ticks only, after all events: what has arrived by then counts.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_TRIGGER_H
#define MST_SERVER_CORE_LEDGER_STATE_TRIGGER_H

#include "server/core/ledger/state/state.h"

/* A contribution has been counted that ends its worker's batch, or is one. */
void mst_trigger_full(struct mst_ledger *l);
/* Judges the timers of the open step. */
void mst_trigger_tick(struct mst_ledger *l);
/* When the next of them may be due; MST_NEVER: none runs. */
uint64_t mst_trigger_deadline(const struct mst_ledger *l);
/* @m has just been answered: if everybody is asked to hand in, so is @m; and if nobody will ask for
 * what it computes. */
void mst_trigger_answered(struct mst_ledger *l, const struct mst_member *m);
/* Nobody had anything to hand in: the step begins again. */
void mst_trigger_again(struct mst_ledger *l);
/* Another rule is in force: asks for the contributions that grow until they are asked for, if no
 * step is going to. */
void mst_trigger_changed(struct mst_ledger *l);
/* Tells a busy worker on which versions contributions still count. */
void mst_advise(struct mst_ledger *l, const struct mst_member *m, bool hand_in);

#endif
