/* SPDX-License-Identifier: MIT */
/* Whether other servers take the place of those that are lost, with the same workers: from a source
 * of chance of its own, so that all other worlds are what they would be without. */
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/wire/lane.h"
#include "server/core/policy/rule.h"
#include "tests/sim/plan_draw.h"

/* At any moment of a step, at the server. Moments are counted over all generations. */
static void draw_loss(struct mst_rand *r, struct sim_plan *p)
{
	struct sim_fault f = { .kind = chance(r, 0.7) ? SIM_FAULT_KILL : SIM_FAULT_POWER_OFF,
			       .target = sim_target_of_server((uint32_t)below(r, p->servers)),
			       .with = SIM_ALL };

	f.when.server = SIM_ALL;
	f.when.moment = (uint32_t)between(r, MST_IMM_HEADER, MST_IMM_ANSWER);
	if (chance(r, 0.4))
		f.when.moment = SIM_MOMENT_COMMIT;
	uint64_t most = f.when.moment == SIM_MOMENT_COMMIT ? p->commits : p->commits * p->workers;
	f.when.nth = (uint32_t)between(r, 1, most);
	f.when.after_ns = chance(r, 0.5) ? 0 : between(r, 0, 100000);
	sim_plan_add_fault(p, &f);
}

static void follow_bsp(struct sim_plan *p)
{
	struct mst_reason why;

	(void)snprintf(p->policy, sizeof(p->policy), "bsp");
	int rc = mst_rule_parse(p->policy, &p->rule, &why);
	MST_ASSERT(rc == 0);
	p->adaptive = p->backs_up = p->deltas = false;
	p->switches_at = 0;
	p->rule.divide = !p->add;
}

void sim_plan_draw_generations(struct sim_plan *p)
{
	struct mst_rand r;

	mst_rand_seed(&r, p->seed ^ UINT64_C(0x67656e6572));
	if (p->owner != MUSTER_WORKERS_OWN || !chance(&r, 0.25))
		return;
	follow_bsp(p);
	p->saves = (struct sim_saves){ .hangs = -1 };
	p->norm_limit = p->nan_chance = 0;
	p->fault_count = 0;
	p->marks = true;
	/* A server that loses power is missed after its lease alone. */
	p->join_ns += 2 * sim_plan_server_lease_ns(p);
	for (uint32_t rank = 0; rank < p->workers; rank++)
		p->manners[rank].trains = p->manners[rank].into = false;
	p->generations.wanted = true;
	p->generations.patience_ns = 20 * MST_SECOND;
	for (uint32_t i = 0; i < SIM_LOSSES_MAX; i++)
		p->generations.next_ns[i] = between(&r, 0, chance(&r, 0.5) ? 10 : 2000) * MST_MS;
	for (uint64_t count = between(&r, 1, SIM_LOSSES_MAX); count > 0; count--)
		draw_loss(&r, p);
}
