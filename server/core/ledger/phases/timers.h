/* SPDX-License-Identifier: MIT */
/*
 * The ledger's clock, and the timers (PROTOCOL 2). Two timers can end a session: the lease, if
 * the worker's process sends nothing; and patience, if other workers wait for too long for a worker
 * that is alive.
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_TIMERS_H
#define MST_SERVER_CORE_LEDGER_PHASES_TIMERS_H

#include "server/core/ledger/state/state.h"

/* Brings the ledger's clock to @now_ns, less the time in which the server did not listen. */
void mst_timers_look(struct mst_ledger *l, uint64_t now_ns);
void mst_timers_heard(struct mst_ledger *l, uint64_t heard_ns, uint64_t now_ns);
void mst_timers_tick(struct mst_ledger *l);
/* @handing_ns: when what is handed from worker to worker has a timer that is due. */
uint64_t mst_timers_deadline(const struct mst_ledger *l, uint64_t handing_ns);

#endif
