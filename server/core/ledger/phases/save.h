/* SPDX-License-Identifier: MIT */
/*
 * Which versions are saved. A version is saved when it has been committed, so a checkpoint is of
 * one version on every server. Its buffer stays, as if somebody read it, until every server has
 * written its part or has failed to. Until then no other version is saved.
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_SAVE_H
#define MST_SERVER_CORE_LEDGER_PHASES_SAVE_H

#include "server/core/ledger/state/state.h"

/* Takes what cfg.kept says, in a new ledger. */
void mst_save_resume(struct mst_ledger *l);
void mst_save_started(struct mst_ledger *l);
/* A version has been committed: has it saved if that is due. */
void mst_save_committed(struct mst_ledger *l);
/* The job ends. @made: the shards have made the newest version, or nothing keeps them from it. */
void mst_save_at_end(struct mst_ledger *l, bool made);
/* A server is lost, which ends the job: what it has not written fails. */
void mst_save_server_lost(struct mst_ledger *l, uint32_t shard);
void mst_save_reported(struct mst_ledger *l, const struct mst_ledger_event *ev);
/* What a checkpoint of the version that is being saved keeps: mst_ledger_keep(). */
void mst_save_keep(const struct mst_ledger *l, struct mst_kept *out);

#endif
