/* SPDX-License-Identifier: MIT */
/*
 * Contributions. Every shard reports each of them. When the last shard has, it is judged once, in
 * the order of seq, by the rule in force at that time (PROTOCOL 3 and 4).
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_JUDGE_H
#define MST_SERVER_CORE_LEDGER_PHASES_JUDGE_H

#include "server/core/ledger/state/state.h"

void mst_judge_full(struct mst_ledger *l, struct mst_member *m, const struct mst_ledger_event *ev);
/* Judges one contribution that every shard has reported.
 * Return: false if there is none, or if a commit is due first. */
bool mst_judge_next(struct mst_ledger *l);
void mst_judge_abandoned(struct mst_ledger *l, struct mst_member *m, uint32_t shard, uint32_t slot,
			 uint64_t epoch);

#endif
