/* SPDX-License-Identifier: MIT */
/*
 * The optimiser that the options describe. What is left out follows the policy of the start: its
 * kind, gradients or differences of parameters, and the momentum of gradients. Old gradients bring
 * a momentum of their own (Mitliagkas, Zhang, Hadjis, Re 2016), so under a policy that counts them
 * the servers add none. A job that goes on from a checkpoint goes on with what that one had.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/core/policy/policy.h"
#include "server/options/options.h"

static bool is_auto(const struct mst_server_options *o)
{
	return strcmp(o->optimizer, "auto") == 0;
}

/* A policy that cannot be read is refused where the rule is made. */
static struct mst_policy policy_of(const struct mst_server_options *o)
{
	struct mst_policy policy = { .rule = { .quorum = 0 } };
	struct mst_reason why;

	if (mst_policy_parse(o->policy, &policy, &why) != 0)
		return (struct mst_policy){ .rule = { .quorum = 0 } };
	return policy;
}

/* Are the policy's contributions differences of parameters? */
static bool has_deltas(const struct mst_server_options *o)
{
	return policy_of(o).rule.deltas;
}

/* A policy that changes by itself has the momentum of bsp. */
static bool is_asynchronous(const struct mst_server_options *o)
{
	struct mst_policy policy = policy_of(o);

	return mst_policy_is_fixed(&policy) && mst_rule_is_asynchronous(&policy.rule, o->workers);
}

int mst_server_options_optimizer(const struct mst_server_options *o, struct mst_optimizer *out,
				 struct mst_reason *why)
{
	const char *usual = has_deltas(o) ? MST_OPTIMIZER_DELTAS : MST_OPTIMIZER_GRADIENTS;
	const char *text = is_auto(o) ? usual : o->optimizer;

	if (mst_optimizer_parse(text, out, why) != 0)
		return mst_reason_fail(why, -EINVAL, "option --optimizer: %s", why->text);
	if (is_asynchronous(o))
		mst_optimizer_leave_momentum(out, text, 0);
	return 0;
}

/* A momentum goes on where the optimiser is the same. All of it does under auto, unless the policy
 * contributes what that optimiser cannot take. */
char *mst_server_options_optimizer_kept(const struct mst_server_options *o, const char *kept,
					char text[MST_OPTIM_TEXT_LEN])
{
	struct mst_optimizer was, typed;
	struct mst_reason why;

	(void)snprintf(text, MST_OPTIM_TEXT_LEN, "%s", o->optimizer);
	if (mst_optimizer_parse(kept, &was, &why) != 0)
		return text;
	if (is_auto(o))
		return was.row->deltas == has_deltas(o) ? mst_optimizer_text(&was, text) : text;
	if (mst_optimizer_parse(o->optimizer, &typed, &why) != 0 || typed.row != was.row)
		return text;
	mst_optimizer_leave_momentum(&typed, o->optimizer, mst_optimizer_momentum(&was));
	return mst_optimizer_text(&typed, text);
}

bool mst_server_options_momentum_is_left_out(const struct mst_server_options *o)
{
	struct mst_optimizer typed;
	struct mst_reason why;
	const char *text = is_auto(o) ? MST_OPTIMIZER_GRADIENTS : o->optimizer;

	if (o->owner != MUSTER_SERVERS_OWN || !is_asynchronous(o) ||
	    mst_optimizer_parse(text, &typed, &why) != 0 || mst_optimizer_momentum(&typed) == 0)
		return false;
	mst_optimizer_leave_momentum(&typed, text, 0);
	return mst_optimizer_momentum(&typed) == 0;
}

int mst_server_options_optimizer_check(const struct mst_server_options *o,
				       struct mst_optimizer *out, struct mst_reason *why)
{
	int rc = mst_server_options_optimizer(o, out, why);

	if (rc != 0)
		return rc;
	if (o->owner == MUSTER_WORKERS_OWN && !is_auto(o))
		return mst_reason_fail(
			why, -EINVAL,
			"--optimizer %.60s has nothing to do with --owner workers: there the"
			" workers update the parameters themselves",
			o->optimizer);
	if (has_deltas(o) && !out->row->deltas)
		return mst_reason_fail(
			why, -EINVAL,
			"--policy %.60s contributes differences of parameters, which "
			"--optimizer %.60s would take for gradients; say --optimizer %s, or "
			"leave the option out",
			o->policy, o->optimizer, MST_OPTIMIZER_DELTAS);
	return 0;
}
