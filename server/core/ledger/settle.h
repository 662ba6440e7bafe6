/* SPDX-License-Identifier: MIT */
/*
 * The settling loop, the only one that calls phases for what has followed from an event.
 *
 * The handling of every event ends with it: it commits if the condition is met, ends the job if
 * that is due, then judges every ask that waits, and repeats this until nothing more follows. So
 * whatever the order of events, no worker is left waiting for something that has already happened.
 */
#ifndef MST_SERVER_CORE_LEDGER_SETTLE_H
#define MST_SERVER_CORE_LEDGER_SETTLE_H

struct mst_ledger;

void mst_settle(struct mst_ledger *l);

#endif
