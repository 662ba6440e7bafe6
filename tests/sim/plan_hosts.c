/* SPDX-License-Identifier: MIT */
/* On which hosts the processes of a world are, and so over which networks their links go. */
#include <string.h>

#include "tests/sim/plan_draw.h"

#define MIXED_SHARE 0.3

/* The first is the leader's. */
#define HOSTS_OF_SERVERS 1u
#define HOSTS_OF_WORKERS (HOSTS_OF_SERVERS + SIM_SERVERS_MAX)

static const char *const names[] = {
	[SIM_NEAR] = "near",
	[SIM_FAR] = "far",
	[SIM_MIXED] = "mixed",
};

const char *sim_network_name(enum sim_network network)
{
	return names[network];
}

static bool find(const char *name, enum sim_network *out)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		*out = (enum sim_network)i;
		return true;
	}
	return false;
}

/* Whether a world is mixed comes from a source of its own: all others are what they would be
 * without. */
bool sim_plan_draw_network(struct mst_rand *r, const char *network, struct sim_plan *p)
{
	struct mst_rand mixed;

	mst_rand_seed(&mixed, p->seed ^ UINT64_C(0x6d69786564));
	p->network = chance(r, 0.5) ? SIM_FAR : SIM_NEAR;
	if (chance(&mixed, MIXED_SHARE))
		p->network = SIM_MIXED;
	return network == NULL || find(network, &p->network);
}

/* Half of the ranks stay where they are; else a process is where the one before was, or it is
 * not. */
static uint32_t draw_apart(struct mst_rand *r, double far_share)
{
	bool apart = chance(r, far_share), moves = chance(r, 0.5);
	uint32_t bits = 0;

	for (uint32_t i = 0; i < SIM_HOSTS; i++) {
		bits |= (uint32_t)apart << i;
		apart ^= moves && chance(r, 0.6);
	}
	return bits;
}

/* Followers are mostly on the leader's host: else all workers are far. */
void sim_plan_draw_hosts(struct sim_plan *p)
{
	static const double shares[] = { 0.2, 0.5, 0.8 };
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x686f737473));
	double far_share = shares[below(&r, 3)];
	for (uint32_t rank = 0; rank < p->workers; rank++)
		p->manners[rank].apart = draw_apart(&r, far_share);
	bool some = chance(&r, 0.15);
	for (uint32_t k = 1; k < SIM_SERVERS_MAX; k++)
		p->server_apart[k] = some && chance(&r, 0.6);
}

uint32_t sim_plan_host_of_server(const struct sim_plan *p, uint32_t server)
{
	bool apart = p->network == SIM_FAR || (p->network == SIM_MIXED && p->server_apart[server]);

	return HOSTS_OF_SERVERS + (apart ? server : 0);
}

uint32_t sim_plan_host_of_worker(const struct sim_plan *p, uint32_t rank, uint32_t before)
{
	bool apart = p->manners[rank].apart >> before % SIM_HOSTS & 1;

	if (p->network == SIM_NEAR || (p->network == SIM_MIXED && !apart))
		return sim_plan_host_of_server(p, 0);
	return HOSTS_OF_WORKERS + rank + before * SIM_WORKERS_MAX;
}
