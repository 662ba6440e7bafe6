/* SPDX-License-Identifier: MIT */
/* What the files that draw a plan share. */
#ifndef MST_TESTS_SIM_PLAN_DRAW_H
#define MST_TESTS_SIM_PLAN_DRAW_H

#include "common/base/rand.h"
#include "tests/sim/plan.h"

static inline uint64_t below(struct mst_rand *r, uint64_t bound)
{
	return mst_rand_below(r, bound);
}

static inline uint64_t between(struct mst_rand *r, uint64_t low, uint64_t high)
{
	return low + below(r, high - low + 1);
}

static inline bool chance(struct mst_rand *r, double probability)
{
	return mst_rand_unit(r) < probability;
}

/* plan_hosts.c: over which networks links go. @network: as for sim_plan_make(). Return: there is
 * such a network. */
bool sim_plan_draw_network(struct mst_rand *r, const char *network, struct sim_plan *p);
void sim_plan_draw_hosts(struct sim_plan *p);

/* plan_faults.c: how many servers there are, and what goes wrong. */
void sim_plan_draw_faults(struct mst_rand *r, struct sim_plan *p);
void sim_plan_add_fault(struct sim_plan *p, const struct sim_fault *f);

/* plan_generations.c: is a job to outlive its servers? */
void sim_plan_draw_generations(struct sim_plan *p);
/* plan_changes.c: and is its policy changed? */
void sim_plan_draw_changes_that_last(struct sim_plan *p);

/* plan_ranks.c: and does it lose ranks? */
void sim_plan_draw_lost_ranks(struct sim_plan *p);

#endif
