/* SPDX-License-Identifier: MIT */
/* Whether servers save versions, when, and what disk they have: from a source of chance of its own,
 * so that all else is what it would be without. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/rand.h"
#include "common/wire/part.h"
#include "tests/sim/plan.h"

#define EVERY_COMMITS_MAX 6u
#define EVERY_MS_MAX 20u
#define THEN_COMMITS_MAX 6u

static bool chance(struct mst_rand *r, double probability)
{
	return mst_rand_unit(r) < probability;
}

static void draw_every(struct mst_rand *r, struct sim_saves *s)
{
	bool by_time = chance(r, 0.2);

	s->commits = by_time || chance(r, 0.1) ? 0 : 1 + mst_rand_below(r, EVERY_COMMITS_MAX);
	if (by_time)
		(void)snprintf(s->every, sizeof(s->every), "%" PRIu64 "ms",
			       1 + mst_rand_below(r, EVERY_MS_MAX));
	else
		(void)snprintf(s->every, sizeof(s->every), "%" PRIu64, s->commits);
}

/* From none, by about as long as a step takes, to many leases. */
static void draw_disk(struct mst_rand *r, const struct sim_plan *p, struct sim_saves *s)
{
	const uint64_t most_ns[] = { 0, MST_MS / 5, 5 * MST_MS, 30 * MST_MS };

	s->most_ns = most_ns[mst_rand_below(r, sizeof(most_ns) / sizeof(most_ns[0]))];
	s->slow_chance = chance(r, 0.5) ? 0 : 0.3;
	s->slow_ns = 6 * p->lease_ns;
	s->fail_chance = chance(r, 0.6) ? 0 : 0.25;
	s->hangs = chance(r, 0.15) ? (int)mst_rand_below(r, p->servers) : -1;
	s->hangs_from = 1 + mst_rand_below(r, 3);
}

/* Each server gets at least one unit of the vector. Under a clock bound whoever starts is let go
 * on, whatever its clock was: nobody here knows how far it may be ahead then. */
static void draw_then(struct mst_rand *r, const struct sim_plan *p, struct sim_saves *s)
{
	uint64_t units = p->elems / MST_PART_ELEMS_MIN;
	uint32_t most = (uint32_t)(units < SIM_SERVERS_MAX ? units : SIM_SERVERS_MAX);

	s->then_commits = 1 + mst_rand_below(r, THEN_COMMITS_MAX);
	uint32_t servers = 1 + (uint32_t)mst_rand_below(r, most > 0 ? most : 1);
	for (uint32_t k = 0; k < servers; k++)
		s->then_weight[k] = 1;
	if (servers > 1 && units > servers && chance(r, 0.4))
		s->then_weight[mst_rand_below(r, servers)] = 2;
	if (p->rule.release != MST_RELEASE_BOUND && chance(r, 0.5))
		s->then_servers = servers;
}

void sim_plan_draw_saves(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x73617665));
	p->saves.hangs = -1;
	if (!chance(&r, 0.3))
		return;
	p->saves.wanted = true;
	draw_every(&r, &p->saves);
	draw_disk(&r, p, &p->saves);
	draw_then(&r, p, &p->saves);
}

void sim_plan_go_on(const struct sim_plan *p, struct sim_plan *out)
{
	*out = *p;
	out->saves.resumes = true;
	out->fault_count = 0;
	out->servers = p->saves.then_servers;
	out->commits = p->commits + p->saves.then_commits;
	for (uint32_t k = 0; k < out->servers; k++)
		out->weight[k] = p->saves.then_weight[k];
	for (uint32_t k = p->servers; k < out->servers; k++)
		out->server_comes_ns[k] = 0;
	if (out->saves.hangs >= (int)out->servers)
		out->saves.hangs = -1;
}
