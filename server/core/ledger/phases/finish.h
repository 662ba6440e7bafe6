/* SPDX-License-Identifier: MIT */
/* The end of the job: why it is due, and when it is there (PROTOCOL 2). */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_FINISH_H
#define MST_SERVER_CORE_LEDGER_PHASES_FINISH_H

#include "server/core/ledger/state/state.h"

/* Lets the job end for an operator. The open step is waited for, so that the last version is made
 * as all others are; but not for long, because a worker that hangs may be why the job is to end. */
void mst_life_end_whole(struct mst_ledger *l);
/* @m wants the job to end with @version, which is not 0. */
void mst_life_goal(struct mst_ledger *l, const struct mst_member *m, uint64_t version);
/* The server is being stopped: the job ends with the newest version, as soon as that is made. A
 * step that lacks contributions is given up. @for_good: no other server takes its place. */
void mst_life_stop(struct mst_ledger *l, bool for_good);
/* Lets the job fail. Nothing is committed any more, not even what the end of the job still waits
 * for. */
void mst_life_fail(struct mst_ledger *l, enum mst_finish_why why);
void mst_life_settled(struct mst_ledger *l, uint32_t shard);
/* Ends the job if that is due, but for what is said of it. Return: true if it has ended now. */
bool mst_life_finish_if_due(struct mst_ledger *l);
/* To be called when the job has ended, and what is saved at its end is decided. */
void mst_life_tell_finish(struct mst_ledger *l);

#endif
