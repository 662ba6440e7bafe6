/* SPDX-License-Identifier: MIT */
/*
 * Whatever text comes as a policy, it is refused in a sentence or gives a rule that can be checked
 * against a job; and a rule that passes can commit a step of that job. A policy that changes its
 * rule makes only rules that pass, too.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/reason.h"
#include "common/wire/lane.h"
#include "server/core/policy/policy.h"
#include "server/core/policy/switch.h"

static void step_check(const struct mst_rule *rule, uint32_t workers)
{
	struct mst_rule_step all = { .roster = workers, .contributions = workers };
	struct mst_rule_step none = { .roster = workers, .missing = workers };

	uint32_t needed = mst_rule_needed(rule, &none);
	MST_ASSERT(needed >= 1);
	MST_ASSERT(!mst_rule_met(rule, &none));
	if (!mst_rule_repeats(rule)) {
		MST_ASSERT(needed <= workers);
		MST_ASSERT(mst_rule_met(rule, &all));
	}
}

static void rule_check(struct mst_rule rule, const struct mst_rule_context *ctx)
{
	struct mst_reason why = { "" };

	rule.min_workers = 1;
	int rc = mst_rule_check(&rule, ctx, &why);
	MST_ASSERT(rc == 0 || (rc == -EINVAL && why.text[0] != '\0'));
	if (rc == 0)
		step_check(&rule, ctx->workers);
}

/* Times that no workers have: later ones are sooner, and some are no time at all. */
static void arrive(struct mst_controller *c, unsigned i, uint32_t workers)
{
	for (uint32_t number = 1; number <= workers && number <= 64; number++) {
		struct mst_arrival arrival = { 1 + i % workers, number, (i * 7 + number) % 5 };
		mst_controller_arrived(c, &arrival, workers);
	}
}

/* A controller makes only rules that have been checked, whatever it is told. */
static void controller_check(struct mst_policy policy, const struct mst_rule_context *ctx)
{
	static const double losses[] = { 1, 0.1, 1e-30, 0, -1, NAN, 1e30 };
	struct mst_policy before = policy;
	struct mst_reason why;

	policy.rule.min_workers = before.rule.min_workers = 1;
	if (mst_policy_check(&policy, ctx, &why) != 0)
		return;
	for (unsigned i = 0; i < 64; i++) {
		double loss = losses[i % (sizeof(losses) / sizeof(losses[0]))];
		struct mst_commit_view view = {
			.gradients = 1u << i % 20,
			.live = 1 + i % ctx->workers,
			.loss = loss,
			.loss_samples = isnan(loss) ? 0 : 1,
			.samples_total = i,
			.samples_max = ctx->samples_max,
			.workers = ctx->workers,
			.rate = i % 7 == 0 ? 0 : 0.1,
			.linear = i % 2 == 0,
			.norms = { .known = i % 9 != 0,
				   .mean_square = fabs(losses[(i + 2) % 7]),
				   .square = fabs(losses[(i + 3) % 7]),
				   .concentration = 1.0 / (1u << i % 4),
				   .factor = 1 },
		};
		if (mst_controller_by_times(&policy.controller))
			arrive(&policy.controller, i, ctx->workers);
		mst_controller_decide(&policy.controller, &view, &policy.rule);
		policy.rule.min_workers = 1;
		MST_ASSERT(policy.rule.quorum <= (int32_t)ctx->workers ||
			   mst_policy_is_fixed(&policy));
		MST_ASSERT(mst_switch_check(&before.rule, &policy.rule, ctx, &why) == 0);
		MST_ASSERT(mst_rule_slots(&policy.rule) <= mst_policy_slots(&before, ctx->workers));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mst_policy policy = { .rule = { 0 } };
	struct mst_reason why = { "" };
	struct mst_reason short_why;
	char *text = strndup((const char *)data, size);

	MST_ASSERT(text != NULL);
	int rc = mst_policy_parse(text, &policy, &why);
	MST_ASSERT(rc == 0 || (rc == -EINVAL && why.text[0] != '\0'));
	MST_ASSERT(mst_policy_parse(text, &policy, &short_why) == rc);
	for (uint32_t workers = 1; rc == 0 && workers <= MST_WORKERS_MAX; workers *= 4) {
		uint32_t slots = 1 + (uint32_t)size % MST_SLOTS_MAX;
		struct mst_rule_context ctx = {
			.owner = (enum muster_owner)(workers % 3 % 2),
			.workers = workers,
			.slots = slots,
			.samples_max = 50,
			.plain_step = size % 5 != 0,
			.norms = true,
			.force = size % 2 == 0,
		};
		rule_check(policy.rule, &ctx);
		ctx.quorum_max = workers * slots;
		controller_check(policy, &ctx);
	}
	free(text);
	return 0;
}
