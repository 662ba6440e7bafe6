/* SPDX-License-Identifier: MIT */
#include "server/core/policy/policy.h"

#include <errno.h>
#include <string.h>

#include "common/base/reason.h"
#include "server/core/policy/switch.h"

static unsigned fixed_count(void)
{
	unsigned count = 0;

	while (mst_rule_help(count) != NULL)
		count++;
	return count;
}

const char *mst_policy_help(unsigned index)
{
	unsigned fixed = fixed_count();

	return index < fixed ? mst_rule_help(index) : mst_controller_help(index - fixed);
}

/* The sentence of a rule that is unknown ends with the names that there are. */
static void add_names(struct mst_reason *why)
{
	const char *help;

	for (unsigned i = 0; (help = mst_controller_help(i)) != NULL; i++)
		mst_reason_add(why, " %.*s", (int)strcspn(help, ":"), help);
}

int mst_policy_parse(const char *policy, struct mst_policy *out, struct mst_reason *why)
{
	int rc = mst_controller_parse(policy, &out->controller, &out->rule, why);

	if (rc != -ENOENT)
		return rc;
	rc = mst_rule_parse(policy, &out->rule, why);
	if (rc == -ENOENT)
		add_names(why);
	if (rc == 0)
		out->controller = (struct mst_controller){ .kind = MST_CONTROLLER_NONE };
	return rc == 0 ? 0 : -EINVAL;
}

int mst_policy_check(const struct mst_policy *policy, const struct mst_rule_context *ctx,
		     struct mst_reason *why)
{
	const struct mst_rule *first = &policy->rule;
	struct mst_rule last = mst_controller_last(&policy->controller, first, ctx->workers);
	int rc = mst_controller_check(&policy->controller, ctx, why);

	if (rc == 0)
		rc = mst_rule_check(first, ctx, why);
	return rc != 0 ? rc : mst_rule_check(&last, ctx, why);
}

int mst_policy_switch_check(const struct mst_rule *from, const struct mst_policy *to,
			    const struct mst_rule_context *ctx, struct mst_reason *why)
{
	struct mst_rule last = mst_controller_last(&to->controller, &to->rule, ctx->workers);
	int rc = mst_controller_check(&to->controller, ctx, why);

	if (rc == 0)
		rc = mst_switch_check(from, &to->rule, ctx, why);
	return rc != 0 ? rc : mst_switch_check(&to->rule, &last, ctx, why);
}

uint32_t mst_policy_slots(const struct mst_policy *policy, uint32_t workers)
{
	struct mst_rule last = mst_controller_last(&policy->controller, &policy->rule, workers);
	uint32_t first = mst_rule_slots(&policy->rule), more = mst_rule_slots(&last);

	return more > first ? more : first;
}
