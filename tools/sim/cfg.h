/* SPDX-License-Identifier: MIT */
/* What is simulated: one job under one policy. The engine reads this struct and changes nothing in
 * it; the options (options.h) fill it. */
#ifndef MST_TOOLS_SIM_CFG_H
#define MST_TOOLS_SIM_CFG_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/ledger/ledger.h"
#include "tools/sim/learn/curve.h"

struct mst_sim_problem;

/* Workers that train report the error under this name. */
#define MST_SIM_METRIC "error"

/* In place of a number of checks: a worker obeys a hint at the moment when the hint comes. */
#define MST_SIM_AT_ONCE UINT32_MAX

/* The way between workers and servers. Rates are in bytes per ns, which is GB/s; 0: no limit. */
struct mst_sim_net_cfg {
	uint64_t latency_ns; /* one way, of everything that is sent */
	uint64_t bytes;      /* of a gradient, and of a result */
	double worker_rate;  /* of a worker's link, each way */
	double server_rate;  /* of a server's link, each way */
};

enum mst_sim_change_kind {
	MST_SIM_KILL,   /* the process ends, and its connections close */
	MST_SIM_FREEZE, /* the process stands still for good, and its connections stay */
	MST_SIM_NAP,    /* the process stands still for length_ns */
	MST_SIM_JOIN,   /* a new process takes the rank */
};

struct mst_sim_change {
	uint64_t at_ns; /* after the job's start */
	uint32_t rank;
	enum mst_sim_change_kind kind;
	uint64_t length_ns; /* NAP */
};

struct mst_sim_switch {
	uint64_t version; /* the commit after which the rule changes */
	struct mst_rule rule;
};

struct mst_sim_cfg {
	const char *policy; /* as it was typed */
	uint32_t tickets;   /* not 0: TensorFlow's rule with so many gradients a step (tickets.h) */
	struct mst_ledger_cfg ledger; /* also of a job with tickets: workers, and where it ends */
	struct mst_sim_net_cfg net;
	uint32_t checks; /* how often in a batch a worker looks whether to give up; 0: never */
	uint32_t micro;  /* micro-batches of a batch, 1 or more */
	const char *const *delay; /* specs of the time of a gradient (common/delay) */
	uint32_t delay_count;
	uint64_t seed;
	struct mst_sim_problem *problem; /* that is trained on (problem.h); NULL: none */
	struct mst_sim_every every;      /* points of the curve; distance 0: a fitting one */
	bool paced;                      /* workers may have parameters of their own */
	/* For the serial simulation of stale gradients: each is computed on the version so many
	 * commits ago, after a ramp of so many commits. */
	uint32_t staleness, staleness_ramp;
	const struct mst_sim_change *change; /* in order of time */
	uint32_t change_count;
	const struct mst_sim_switch *change_of_rule; /* in order of versions */
	uint32_t change_of_rule_count;
};

#endif
