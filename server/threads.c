/* SPDX-License-Identifier: MIT */
#include "server/threads.h"

#include <stdio.h>

#include "common/host/tasks.h"

/* The thread that writes the log, and those that make links. A recording has one more, and so have
 * checkpoints. */
#define ALWAYS (1u + MST_ANSWERS_MAX)

static uint32_t transports(const struct mst_plan_cfg *cfg, const struct mst_terms *terms)
{
	struct mst_net_cfg net = { .fabric = &terms->fabric, .networks = cfg->networks };
	const struct mst_transport *transport = mst_networks_transport(cfg->networks);
	struct mst_claim claim = { 0 };

	if (transport->claim != NULL)
		transport->claim(&net, NULL, true, &claim);
	return claim.threads;
}

/* Options that say too little, or something impossible, are not reported here but where they are
 * checked. */
uint32_t mst_threads_of(const struct mst_plan_cfg *cfg)
{
	struct mst_vector vector = { .elems = cfg->options->elems };
	struct mst_plan_cfg with = *cfg;
	struct mst_terms terms;
	struct mst_plan plan;
	uint32_t always = ALWAYS + mst_server_options_record(cfg->options) +
			  mst_server_options_saves(cfg->options) +
			  (mst_server_options_tls(cfg->options) && cfg->options->join == NULL);
	uint32_t shards = 1;
	struct mst_reason why;

	with.terms = &terms;
	if (mst_terms_read(cfg->options, &terms, &why) != 0)
		return always + shards;
	if (cfg->options->join == NULL && vector.elems > 0 &&
	    mst_plan_leader(&with, &vector, &plan, &why) == 0)
		shards = plan.server.aggregator.shards;
	return always + transports(cfg, &terms) + shards;
}

int mst_threads_check(const struct mst_plan_cfg *cfg, struct mst_reason *why)
{
	return mst_host_tasks_check("the threads of this server", mst_threads_of(cfg), NULL, why);
}
