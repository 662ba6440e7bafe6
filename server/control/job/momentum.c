/* SPDX-License-Identifier: MIT */
#include "server/control/job/momentum.h"

#include <stdio.h>

#include "common/base/log.h"
#include "server/core/policy/rule.h"

/* The momentum that old gradients bring: 1 - 1/M, where M is the mean age and one. If all workers
 * are equally fast, K gradients of P workers make a version, and each waits for its turn. */
static double own_momentum(const struct mst_rule *rule, uint32_t workers)
{
	double quorum = rule->quorum > 0 ? (double)rule->quorum : 1;
	double others = mst_rule_repeats(rule) ? workers - 1.0 : workers - quorum;
	double age = others / quorum;

	if (age > rule->window)
		age = rule->window;
	return age > 0 ? 1 - 1 / (1 + age) : 0;
}

/* A change from one such policy to another adds nothing. */
bool mst_momentum_adds(struct mst_reason *out, const struct mst_server_options *o,
		       const struct mst_optimizer *optimizer, const struct mst_rule *before,
		       const struct mst_policy *next)
{
	const struct mst_rule *rule = &next->rule;
	char whose[96] = "of the workers' own optimiser, if it has one,";

	if (!mst_policy_is_fixed(next) || !mst_rule_is_asynchronous(rule, o->workers) ||
	    (before != NULL && mst_rule_is_asynchronous(before, o->workers)))
		return false;
	if (o->owner == MUSTER_SERVERS_OWN) {
		double momentum = mst_optimizer_momentum(optimizer);
		if (momentum == 0)
			return false;
		(void)snprintf(whose, sizeof(whose), "of %g of the optimiser %s", momentum,
			       optimizer->row->name);
	}
	mst_reason_set(out,
		       "the momentum %s stays, and old gradients bring another of about %.2g: both "
		       "together may spoil what is learned; %s",
		       whose, own_momentum(rule, o->workers),
		       o->owner == MUSTER_SERVERS_OWN
			       ? "a job that starts under this policy has momentum=0"
			       : "let the workers make it 0 under this policy");
	return true;
}

void mst_momentum_tell(const struct mst_server_options *o, const struct mst_terms *terms,
		       bool resumed)
{
	char text[MST_OPTIM_TEXT_LEN];
	struct mst_reason why;

	if (!resumed && mst_server_options_momentum_is_left_out(o))
		mst_info(
			"job \"%s\": the optimiser is %s, without a momentum: old gradients, which "
			"%s counts, bring one of about %.2g",
			o->job, mst_optimizer_text(&terms->optimizer, text), o->policy,
			own_momentum(&terms->policy.rule, o->workers));
	else if (resumed && o->owner == MUSTER_SERVERS_OWN &&
		 mst_server_options_momentum_is_left_out(o) &&
		 mst_momentum_adds(&why, o, &terms->optimizer, NULL, &terms->policy))
		mst_warn("job \"%s\": %s", o->job, why.text);
}
