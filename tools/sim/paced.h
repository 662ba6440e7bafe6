/* SPDX-License-Identifier: MIT */
/*
 * A simulated worker between two exchanges with the servers, under a rule with a pace: local steps,
 * elastic averaging, and Downpour. When it exchanges, and what it waits for, is as in
 * client/api/paced.c; what it would compute is not. Pure.
 */
#ifndef MST_TOOLS_SIM_PACED_H
#define MST_TOOLS_SIM_PACED_H

#include "tools/sim/worker.h"

static inline bool mst_sim_paced_is(const struct mst_sim_worker *w)
{
	return w->orders.pace.local_steps > 0 || w->orders.pace.push_every > 0;
}

/* All that was done since the last push is forgotten. */
void mst_sim_paced_reset(struct mst_sim_worker *w);
/* A batch is complete, and taken: goes on, exchanges, or waits. */
void mst_sim_paced_step(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act);
/* A version has come, under whatever rule: goes on with what the worker has waited for. */
void mst_sim_paced_answered(struct mst_sim_worker *w, uint64_t now_ns, struct mst_sim_act *act);

/* What worker.c does for it. */
/* Goes on with the batch at hand, or begins one. */
void mst_sim_worker_compute(struct mst_sim_worker *w, uint64_t now_ns);
/* Pushes what is taken, tagged with w->tag. With MST_HEADER_ASK it then waits. */
void mst_sim_worker_push(struct mst_sim_worker *w, uint32_t flags, struct mst_sim_act *act);
/* Asks for the newest version, and waits. */
void mst_sim_worker_ask(struct mst_sim_worker *w, struct mst_sim_act *act);

#endif
