/* SPDX-License-Identifier: MIT */
/*
 * Answers to asks: when a worker goes on, and with which version (PROTOCOL 7). An answer may hold a
 * version buffer.
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_ANSWERS_H
#define MST_SERVER_CORE_LEDGER_PHASES_ANSWERS_H

#include "server/core/ledger/state/state.h"

/* Answers every waiting ask that can be answered now. */
void mst_ask_judge_all(struct mst_ledger *l);
/* A shard has sent all of a copied answer. */
void mst_ask_answered(struct mst_ledger *l, struct mst_member *m, uint32_t shard, uint64_t number);

#endif
