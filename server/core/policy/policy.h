/* SPDX-License-Identifier: MIT */
/*
 * A policy as a user types it: a rule, and if it changes while the job runs, a controller. Pure.
 */
#ifndef MST_SERVER_CORE_POLICY_POLICY_H
#define MST_SERVER_CORE_POLICY_POLICY_H

#include "server/core/policy/controller.h"

struct mst_policy {
	struct mst_rule rule; /* of the first step */
	struct mst_controller controller;
};

/* Reads "backup:4", "adasync:ksync"... The fields of out->rule that mst_rule_parse() leaves as they
 * are stay.
 * @why: on failure a sentence.
 * Return: 0 or -EINVAL. */
int mst_policy_parse(const char *policy, struct mst_policy *out, struct mst_reason *why);

/* A line for --help on the policy with this index: its parameter, and what it does. NULL: there are
 * no more. */
const char *mst_policy_help(unsigned index);

/* Does the rule stay as it is? */
static inline bool mst_policy_is_fixed(const struct mst_policy *policy)
{
	return policy->controller.kind == MST_CONTROLLER_NONE;
}

/* Can every rule of the policy be met, and does it make sense in such a job?
 * @why: a sentence with numbers.
 * Return: 0 or -EINVAL. */
int mst_policy_check(const struct mst_policy *policy, const struct mst_rule_context *ctx,
		     struct mst_reason *why);
/* May the policy follow the rule @from in a running job? See switch.h.
 * @why: a sentence with numbers.
 * Return: 0 or -EINVAL. */
int mst_policy_switch_check(const struct mst_rule *from, const struct mst_policy *to,
			    const struct mst_rule_context *ctx, struct mst_reason *why);

/* The slots that a worker needs under each rule of the policy: mst_rule_slots(). */
uint32_t mst_policy_slots(const struct mst_policy *policy, uint32_t workers);

#endif
