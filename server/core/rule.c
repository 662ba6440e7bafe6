/* SPDX-License-Identifier: MIT */
/*
 * The table of policies, and what the numbers of a rule mean. docs/policies.md names the paper of
 * each row.
 */
#include "server/core/rule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

/* Which field the number after the colon fills. */
enum parameter {
	PARAMETER_NONE,
	PARAMETER_QUORUM,
	PARAMETER_BACKUP,
	PARAMETER_WINDOW,
	PARAMETER_BOUND
};

struct policy {
	const char *name;
	enum parameter parameter;
	struct mst_rule rule;
	const char *help;
};

static const struct policy policies[] = {
	{ "bsp", PARAMETER_NONE, { .quorum = 0 }, "bsp            wait for every worker" },
	{ "backup",
	  PARAMETER_BACKUP,
	  { .quorum = 1 },
	  "backup:N       commit after the first N workers (-B: all but B), drop late ones" },
	{ "ksync",
	  PARAMETER_QUORUM,
	  { .preempt = true },
	  "ksync:K        as backup:K, and advise busy workers to give up at the commit" },
	{ "kbatchsync",
	  PARAMETER_QUORUM,
	  { .release = MST_RELEASE_PUSH, .preempt = true },
	  "kbatchsync:K   commit after K gradients, whoever makes them" },
	{ "kasync",
	  PARAMETER_QUORUM,
	  { .window = MST_WINDOW_MAX },
	  "kasync:K       commit after K distinct workers; stale gradients count" },
	{ "kbatchasync",
	  PARAMETER_QUORUM,
	  { .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH },
	  "kbatchasync:K  commit after K gradients; stale ones count; nobody waits" },
	{ "softsync",
	  PARAMETER_QUORUM,
	  { .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH, .compensate = true },
	  "softsync:C     as kbatchasync:C, each gradient divided by its staleness" },
	{ "async",
	  PARAMETER_NONE,
	  { .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH },
	  "async          commit every gradient as it comes" },
	{ "bounded",
	  PARAMETER_WINDOW,
	  { .quorum = 1, .late = MST_LATE_REJECT, .release = MST_RELEASE_PUSH },
	  "bounded:S      as async, but reject a gradient more than S versions old" },
	{ "ssp",
	  PARAMETER_BOUND,
	  { .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_BOUND },
	  "ssp:S          as async, but nobody may be more than S gradients ahead of the slowest" },
};
enum { POLICY_COUNT = sizeof(policies) / sizeof(policies[0]) };

const char *mst_rule_help(unsigned index)
{
	return index < POLICY_COUNT ? policies[index].help : NULL;
}

static const struct policy *policy_find(const char *name, size_t len)
{
	for (size_t i = 0; i < POLICY_COUNT; i++) {
		if (strlen(policies[i].name) == len && memcmp(policies[i].name, name, len) == 0)
			return &policies[i];
	}
	return NULL;
}

/* "4", "-1": a whole number in [min, INT32_MAX]. */
static int number_parse(const char *text, int64_t min, int32_t *out)
{
	char *end;

	if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
		return -EINVAL;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < min || value > INT32_MAX)
		return -EINVAL;
	*out = (int32_t)value;
	return 0;
}

static int parameter_apply(const struct policy *p, const char *text, struct mst_rule *rule)
{
	int32_t value = 0;
	int64_t min = p->parameter == PARAMETER_BACKUP   ? -INT32_MAX
		      : p->parameter == PARAMETER_QUORUM ? 1
							 : 0;

	if (number_parse(text, min, &value) != 0 ||
	    (p->parameter == PARAMETER_BACKUP && value == 0))
		return -EINVAL;
	switch (p->parameter) {
	case PARAMETER_QUORUM:
	case PARAMETER_BACKUP:
		rule->quorum = value;
		break;
	case PARAMETER_WINDOW:
		rule->window = (uint32_t)value;
		break;
	case PARAMETER_BOUND:
		rule->bound = (uint32_t)value;
		break;
	case PARAMETER_NONE:
		break;
	}
	return 0;
}

static int refuse_unknown(const char *policy, char *why, size_t why_len)
{
	int used = snprintf(why, why_len, "unknown policy \"%.40s\"; there are", policy);

	for (size_t i = 0; i < POLICY_COUNT && used > 0 && (size_t)used < why_len; i++)
		used += snprintf(why + used, why_len - (size_t)used, " %s", policies[i].name);
	return -EINVAL;
}

static int refuse_parameter(const struct policy *p, const char *policy, char *why, size_t why_len)
{
	static const char *const wants[] = {
		[PARAMETER_NONE] = "takes no number",
		[PARAMETER_QUORUM] = "needs a number of gradients, 1 or more",
		[PARAMETER_BACKUP] = "needs a number of workers, or -B for all but B",
		[PARAMETER_WINDOW] = "needs a number of versions, 0 or more",
		[PARAMETER_BOUND] = "needs a number of gradients, 0 or more",
	};

	snprintf(why, why_len, "policy \"%.40s\": %s %s, as in %s%s", policy, p->name,
		 wants[p->parameter], p->name, p->parameter == PARAMETER_NONE ? "" : ":4");
	return -EINVAL;
}

int mst_rule_parse(const char *policy, struct mst_rule *out, char *why, size_t why_len)
{
	const char *colon = strchr(policy, ':');
	size_t len = colon != NULL ? (size_t)(colon - policy) : strlen(policy);
	const struct policy *p = policy_find(policy, len);

	if (p == NULL)
		return refuse_unknown(policy, why, why_len);
	struct mst_rule row = p->rule;
	if ((colon != NULL) != (p->parameter != PARAMETER_NONE) ||
	    (colon != NULL && parameter_apply(p, colon + 1, &row) != 0))
		return refuse_parameter(p, policy, why, why_len);
	out->quorum = row.quorum;
	out->window = row.window;
	out->late = row.late;
	out->release = row.release;
	out->bound = row.bound;
	out->preempt = row.preempt;
	out->compensate = row.compensate;
	return 0;
}

/* Can the quorum be met by so many workers? */
static int check_quorum(const struct mst_rule *rule, const struct mst_rule_context *ctx, char *why,
			size_t why_len)
{
	uint32_t workers = ctx->workers;

	if (rule->quorum < 0 && (uint64_t) - (int64_t)rule->quorum >= workers) {
		snprintf(why, why_len, "all but %" PRId64 " of %" PRIu32 " workers leaves nobody",
			 -(int64_t)rule->quorum, workers);
		return -EINVAL;
	}
	if (!mst_rule_repeats(rule) && rule->quorum > 0 && (uint32_t)rule->quorum > workers) {
		snprintf(why, why_len,
			 "a quorum of %" PRId32 " distinct workers cannot be met by %" PRIu32
			 " workers",
			 rule->quorum, workers);
		return -EINVAL;
	}
	if (ctx->quorum_max > 0 && rule->quorum > 0 && (uint32_t)rule->quorum > ctx->quorum_max) {
		snprintf(why, why_len,
			 "a quorum of %" PRId32 " is more than this job has room for (%" PRIu32 ")",
			 rule->quorum, ctx->quorum_max);
		return -EINVAL;
	}
	struct mst_rule_step whole = { .roster = workers, .missing = workers };
	uint32_t needed = mst_rule_needed(rule, &whole);
	bool drops = !mst_rule_repeats(rule) && rule->window == 0 && !rule->preempt;
	if (drops && 2 * (uint64_t)needed < workers && !ctx->force) {
		snprintf(why, why_len,
			 "a quorum of %" PRIu32 " of %" PRIu32
			 " workers drops more than half of all gradients; say --force "
			 "if that is meant",
			 needed, workers);
		return -EINVAL;
	}
	return 0;
}

/* Also checks that the release fits the owner and the slots. */
int mst_rule_check(const struct mst_rule *rule, const struct mst_rule_context *ctx, char *why,
		   size_t why_len)
{
	if (rule->release != MST_RELEASE_COMMIT && ctx->owner == MUSTER_WORKERS_OWN) {
		snprintf(why, why_len,
			 "this policy lets workers go on before the commit, which needs "
			 "--owner servers: "
			 "workers that own the parameters apply every version in order");
		return -EINVAL;
	}
	if (mst_rule_slots(rule) > ctx->slots) {
		snprintf(why, why_len,
			 "this policy needs %" PRIu32 " slots per worker, there is %" PRIu32
			 "; say --slots 2",
			 mst_rule_slots(rule), ctx->slots);
		return -EINVAL;
	}
	if (rule->min_workers == 0 || rule->min_workers > ctx->workers) {
		snprintf(why, why_len,
			 "--min-workers %" PRIu32 " must be 1 to %" PRIu32 " (--workers)",
			 rule->min_workers, ctx->workers);
		return -EINVAL;
	}
	return check_quorum(rule, ctx, why, why_len);
}

uint32_t mst_rule_slots(const struct mst_rule *rule)
{
	return rule->release == MST_RELEASE_PUSH && rule->quorum != 1 ? 2 : 1;
}

uint32_t mst_rule_needed(const struct mst_rule *rule, const struct mst_rule_step *step)
{
	uint32_t reachable = step->contributions + step->missing;

	MST_ASSERT(step->missing <= step->roster);
	if (rule->quorum == 0)
		return reachable;
	if (rule->quorum < 0) {
		uint32_t spare = (uint32_t) - (int64_t)rule->quorum;
		uint32_t wanted = step->roster > spare ? step->roster - spare : 1;
		return wanted < reachable ? wanted : reachable;
	}
	uint32_t quorum = (uint32_t)rule->quorum;
	if (mst_rule_repeats(rule))
		return step->roster > 0 ? quorum : step->contributions;
	return quorum < reachable ? quorum : reachable;
}

bool mst_rule_met(const struct mst_rule *rule, const struct mst_rule_step *step)
{
	return step->contributions > 0 && step->contributions >= mst_rule_needed(rule, step);
}
