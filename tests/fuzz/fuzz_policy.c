/* SPDX-License-Identifier: MIT */
/*
 * Whatever text comes as a policy, it is refused in a sentence or gives a rule that can be checked
 * against a job; and a rule that passes can commit a step of that job.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/lane.h"
#include "server/core/rule.h"

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

static void rule_check(struct mst_rule *rule, const struct mst_rule_context *ctx)
{
	char why[512] = "";

	rule->min_workers = 1;
	int rc = mst_rule_check(rule, ctx, why, sizeof(why));
	MST_ASSERT(rc == 0 || (rc == -EINVAL && why[0] != '\0'));
	if (rc == 0)
		step_check(rule, ctx->workers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mst_rule rule = { 0 };
	char why[512] = "", short_why[8];
	char *policy = strndup((const char *)data, size);

	MST_ASSERT(policy != NULL);
	int rc = mst_rule_parse(policy, &rule, why, sizeof(why));
	MST_ASSERT(rc == 0 || (rc == -EINVAL && why[0] != '\0'));
	MST_ASSERT(mst_rule_parse(policy, &rule, short_why, sizeof(short_why)) == rc);
	for (uint32_t workers = 1; rc == 0 && workers <= MST_WORKERS_MAX; workers *= 4) {
		struct mst_rule_context ctx = {
			.owner = (enum muster_owner)(workers % 3 % 2),
			.workers = workers,
			.slots = 1 + (uint32_t)size % MST_SLOTS_MAX,
			.force = size % 2 == 0,
		};
		rule_check(&rule, &ctx);
	}
	free(policy);
	return 0;
}
