/* SPDX-License-Identifier: MIT */
/*
 * The network between workers and servers, and between servers. Everything that is sent arrives
 * one latency later; gradients and results also take their time on the links of their server, each
 * server having an equal part of the vector.
 *
 * Contributions are reported by every server: by further ones to the leader, one latency later.
 * The leader's decisions reach further servers one latency later, and then their part of a result
 * is sent. An answer is there when all its parts are: mst_sim_worker_told() counts them. Pure.
 */
#ifndef MST_TOOLS_SIM_NETWORK_NETWORK_H
#define MST_TOOLS_SIM_NETWORK_NETWORK_H

#include "server/core/heap.h"
#include "tools/sim/cfg.h"
#include "tools/sim/network/link.h"

struct mst_sim_network {
	uint64_t latency_ns;
	uint32_t servers;
	struct mst_sim_queue mail;      /* on its way for a latency, so in order of time */
	struct mst_sim_queue ready;     /* arrives at once */
	struct mst_sim_link *up, *down; /* of each server */
	struct mst_heap busy; /* links that carry something: server, or servers + server for down */
};

/* Return: 0 or -ENOMEM. Call mst_sim_network_fini() in any case. */
int mst_sim_network_init(struct mst_sim_network *n, const struct mst_sim_net_cfg *cfg,
			 uint32_t servers);
void mst_sim_network_fini(struct mst_sim_network *n); /* accepts one that is all zero */

/* What follows returns 0 or -ENOMEM. */
/* A worker sends an event: a contribution to all servers, anything else to the leader. */
int mst_sim_network_send(struct mst_sim_network *n, const struct mst_ledger_event *ev,
			 uint64_t now_ns);
/* An event that comes about at the leader itself. */
int mst_sim_network_post(struct mst_sim_network *n, const struct mst_ledger_event *ev,
			 uint64_t now_ns);
/* A decision is told to its worker; an answer comes from all servers. */
int mst_sim_network_tell(struct mst_sim_network *n, const struct mst_decision *order,
			 uint64_t now_ns);

/* When something happens next; MST_NEVER: nothing is on its way. */
uint64_t mst_sim_network_due(const struct mst_sim_network *n);
/* Makes that happen. Return: 1: @out has arrived, an EVENT at the ledger or an ORDER at its
 * worker; 0: nothing has arrived yet; -ENOMEM. */
int mst_sim_network_step(struct mst_sim_network *n, uint64_t now_ns, struct mst_sim_message *out);

#endif
