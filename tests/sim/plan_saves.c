/* SPDX-License-Identifier: MIT */
/* Whether servers save versions, when, and what disk they have: from a source of chance of its own,
 * so that all else is what it would be without. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/rand.h"
#include "tests/sim/plan.h"

#define EVERY_COMMITS_MAX 6u
#define EVERY_MS_MAX 20u

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
}
