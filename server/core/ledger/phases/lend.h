/* SPDX-License-Identifier: MIT */
/*
 * The average of the weights, lent to one reader at a time. LEND is a decision between two commits,
 * and every shard executes the decisions in the same order. So the parts of all shards are of one
 * version, whatever each of them is doing when the average is asked for. No commit waits for the
 * reader: the shards keep what is lent apart from what the next commit writes (aggregator.c). It is
 * lent again when every shard has said that nobody reads it any more.
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_LEND_H
#define MST_SERVER_CORE_LEDGER_PHASES_LEND_H

#include "server/core/ledger/state/state.h"

void mst_lend_asked(struct mst_ledger *l);
void mst_lend_returned(struct mst_ledger *l, const struct mst_ledger_event *ev);

#endif
