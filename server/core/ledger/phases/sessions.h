/* SPDX-License-Identifier: MIT */
/*
 * How sessions begin, and how they end because the worker or an operator wants it (PROTOCOL 2).
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_SESSIONS_H
#define MST_SERVER_CORE_LEDGER_PHASES_SESSIONS_H

#include "server/core/ledger/state/state.h"

void mst_life_join(struct mst_ledger *l, const struct mst_ledger_event *ev);
void mst_life_linked(struct mst_ledger *l, struct mst_member *m, const struct mst_ledger_event *ev);
void mst_life_start(struct mst_ledger *l, struct mst_member *m, const struct mst_ledger_event *ev);
void mst_life_leave(struct mst_ledger *l, struct mst_member *m, uint64_t seq);
void mst_life_unlinked(struct mst_ledger *l, struct mst_member *m, uint32_t shard);
/* Ends @m's session because an operator wants it, if that does not make the job fail under on_loss.
 */
void mst_life_evict(struct mst_ledger *l, struct mst_member *m);

#endif
