/* SPDX-License-Identifier: MIT */
/*
 * The decider of a simulated job: the ledger of the server (mst_sim_ledger_new()), or for
 * comparison the rule of TensorFlow (tickets.h). Usage is that of the ledger: handle an event, then
 * take decisions until there is none, then tick at the latest at the deadline.
 */
#ifndef MST_TOOLS_SIM_DECIDER_H
#define MST_TOOLS_SIM_DECIDER_H

#include "server/core/ledger/ledger.h"
#include "tools/sim/worker.h"

struct mst_sim_decider;

struct mst_sim_decider_ops {
	void (*free)(struct mst_sim_decider *d);
	void (*handle)(struct mst_sim_decider *d, const struct mst_ledger_event *ev,
		       uint64_t now_ns);
	bool (*next)(struct mst_sim_decider *d, struct mst_decision *out);
	void (*tick)(struct mst_sim_decider *d, uint64_t now_ns);
	uint64_t (*deadline)(const struct mst_sim_decider *d);
	/* What a worker is to do that is answered with this version. */
	struct mst_sim_orders (*orders)(const struct mst_sim_decider *d, uint64_t version);
	/* The record of a version that it has just committed; NULL: it keeps none. */
	const struct mst_record *(*record)(const struct mst_sim_decider *d, uint64_t version);
	/* Does it end sessions that are silent? Then it has to be told of heartbeats. */
	bool leases;
};

struct mst_sim_decider {
	const struct mst_sim_decider_ops *ops;
};

/* The ledger. Return: 0, -EINVAL or -ENOMEM, as mst_ledger_new(). */
int mst_sim_ledger_new(const struct mst_ledger_cfg *cfg, struct mst_sim_decider **out);

#endif
