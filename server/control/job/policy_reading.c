/* SPDX-License-Identifier: MIT */
#include "server/control/job/policy_reading.h"

#include <errno.h>

#include "server/options/rule.h"

/* As at the start. */
static int read_policy(const struct mst_job *j, const struct mst_policy_change *change,
		       struct mst_policy *out, struct mst_reason *why)
{
	struct mst_server_options o = *j->o;

	o.policy = change->policy;
	/* the optimiser stays, and mst_policy_switch_check() says whether it suits the policy */
	return mst_server_options_policy(&o, &j->terms.optimizer, out, why);
}

static int check(const struct mst_job *j, const struct mst_policy_change *change,
		 const struct mst_policy *policy, struct mst_reason *why)
{
	struct mst_rule_context ctx = {
		.owner = (enum muster_owner)j->o->owner,
		.workers = j->o->workers,
		.slots = j->plan.layout.slots,
		.history = j->o->history,
		.quorum_max = mst_plan_quorum_max(&j->plan),
		.samples_max = j->o->samples,
		.plain_step = mst_optimizer_is_plain(&j->plan.server.ledger.optimizer),
		.norms = mst_controller_by_norms(&j->terms.policy.controller),
		.force = j->o->force || change->force != 0,
	};

	if (mst_policy_switch_check(&mst_job_policy(j)->rule, policy, &ctx, why) == 0 &&
	    mst_server_options_schedule_suits(&j->terms.schedule, &policy->rule, why) == 0 &&
	    mst_server_options_distance_suits(j->o->lr_distance, policy, j->o->workers, why) == 0)
		return 0;
	mst_reason_set(why, "job \"%s\" cannot change from %s to %s: %s", j->o->job,
		       mst_job_policy(j)->name, change->policy, why->text);
	return -EINVAL;
}

int mst_job_read_policy(const struct mst_job *j, const struct mst_policy_change *change,
			struct mst_policy *out, struct mst_reason *why)
{
	int rc = read_policy(j, change, out, why);

	return rc != 0 ? rc : check(j, change, out, why);
}
