/* SPDX-License-Identifier: MIT */
/*
 * Which rule may follow which in a running job. What is fixed when a job starts cannot follow a
 * policy: who owns the parameters, the optimiser, the slots of a session, and the room of a set.
 * docs/policies.md has the matrix. Pure.
 */
#ifndef MST_SERVER_CORE_POLICY_SWITCH_H
#define MST_SERVER_CORE_POLICY_SWITCH_H

#include "server/core/policy/rule.h"

/* May @to come into force in a job under @from?
 * @ctx: the figures of the running job, with its quorum_max.
 * @why: a sentence with numbers.
 * Return: 0 or -EINVAL. */
int mst_switch_check(const struct mst_rule *from, const struct mst_rule *to,
		     const struct mst_rule_context *ctx, struct mst_reason *why);

#endif
