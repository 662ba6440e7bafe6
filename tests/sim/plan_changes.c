/* SPDX-License-Identifier: MIT */
/* Whether an operator changes the policy of a job that outlives its servers: from a source of
 * chance of its own. Each policy is asked for once, and waits for all workers, as bsp does:
 * elsewhere a worker may lack more versions than others can bring it. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "tests/sim/plan_draw.h"

static const char *const policies[] = { "backup", "ksync", "kasync" };

#define POLICIES (sizeof(policies) / sizeof(policies[0]))

static void draw_change(struct mst_rand *r, struct sim_plan *p, const char *policy)
{
	struct sim_fault f = { .kind = SIM_FAULT_POLICY, .target = SIM_SERVER, .with = SIM_ALL };

	(void)snprintf(f.policy, sizeof(f.policy), "%s:%" PRIu32, policy, p->workers);
	f.when = (struct sim_trigger){ .moment = SIM_MOMENT_COMMIT,
				       .server = 0,
				       .nth = (uint32_t)between(r, 1, p->commits),
				       .after_ns = chance(r, 0.5) ? 0 : between(r, 0, MST_MS) };
	sim_plan_add_fault(p, &f);
}

void sim_plan_draw_changes_that_last(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x6c6173747321));
	if (!p->generations.wanted || !chance(&r, 0.5))
		return;
	uint64_t first = below(&r, POLICIES), count = between(&r, 1, POLICIES);
	for (uint64_t i = 0; i < count; i++)
		draw_change(&r, p, policies[(first + i) % POLICIES]);
}
