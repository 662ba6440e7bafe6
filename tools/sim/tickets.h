/* SPDX-License-Identifier: MIT */
/*
 * The rule of TensorFlow's SyncReplicasOptimizer, for comparison: it is no policy of the server.
 *
 * A step commits after N gradients that are not older than the step, from any workers. An older
 * gradient is dropped without a word. At a commit as many tickets as the job has workers, each with
 * the number of the new step, are put at the end of a queue. After its push a worker takes the
 * first ticket, or waits for one, and computes its next gradient on the step of its ticket. So a
 * ticket belongs to nobody: a fast worker may take two for one step, and then its second gradient
 * may be one too many.
 *
 * Source: tensorflow/python/training/sync_replicas_optimizer.py, and the accumulators that it uses.
 *
 * Only the number of the tickets of earlier steps is kept, as all of them mean the same: a
 * gradient that is dropped. They are told as tickets of the step before the newest.
 */
#ifndef MST_TOOLS_SIM_TICKETS_H
#define MST_TOOLS_SIM_TICKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/ledger/ledger.h"

struct mst_sim_tickets;

/* @cfg: how many workers there are, and where the job ends; the rest is not used. @quorum: N, from
 * 1 to the number of workers. Return: 0 or -ENOMEM. */
int mst_sim_tickets_new(const struct mst_ledger_cfg *cfg, uint32_t quorum,
			struct mst_sim_tickets **out);
void mst_sim_tickets_free(struct mst_sim_tickets *t); /* accepts NULL */

/* As the calls of the ledger: handle an event, then take decisions until there is none. It has no
 * timers, ends no session that is silent, and keeps no records. */
void mst_sim_tickets_handle(struct mst_sim_tickets *t, const struct mst_ledger_event *ev);
bool mst_sim_tickets_next(struct mst_sim_tickets *t, struct mst_decision *out);

#endif
