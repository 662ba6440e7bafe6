/* SPDX-License-Identifier: MIT */
/*
 * The table of policies, and what the numbers of a rule mean. docs/policies.md names the paper of
 * each row.
 */
#include "server/core/policy/rule.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/text.h"

/* ---- numbers ---- */

const char *mst_number_parse(const char *text, const struct mst_number *number, double *out)
{
	size_t len = strspn(text, number->whole ? "-0123456789" : "0123456789.");
	char copy[32], *end;

	if (len == 0 || len >= sizeof(copy))
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	double value = mst_text_real(copy, &end);
	if (*end != '\0' || !(value >= number->min && value <= number->max))
		return NULL;
	*out = value;
	return text + len;
}

/* ---- the table ---- */

/* What a number after the colon means. */
enum parameter {
	PARAMETER_NONE,
	PARAMETER_QUORUM,
	PARAMETER_BACKUP,
	PARAMETER_WINDOW,
	PARAMETER_BOUND,
	PARAMETER_GRACE,
	PARAMETER_AGE,
	PARAMETER_DEADLINE,
	PARAMETER_STEPS,
	PARAMETER_ALPHA,
	PARAMETER_PUSH,
	PARAMETER_FETCH,
	PARAMETERS
};

/* The range of a parameter, and how a refusal names it. */
struct range {
	struct mst_number number;
	const char *wants;
	const char *example; /* as a user would type it */
};

/* Grace and deadline are milliseconds, at most a day. */
#define DAY_MS 86400000.0

static const struct range ranges[PARAMETERS] = {
	[PARAMETER_NONE] = { .wants = "no number" },
	[PARAMETER_QUORUM] = { { 1, INT32_MAX, true }, "a number of gradients, 1 or more", "4" },
	[PARAMETER_BACKUP] = { { -INT32_MAX, INT32_MAX, true },
			       "a number of workers, or -B for all but B",
			       "4" },
	[PARAMETER_WINDOW] = { { 0, INT32_MAX, true }, "a number of versions, 0 or more", "4" },
	[PARAMETER_BOUND] = { { 0, INT32_MAX, true }, "a number of gradients, 0 or more", "4" },
	[PARAMETER_GRACE] = { { 0, DAY_MS, false },
			      "milliseconds of grace, above 0 (0, no limit, before an age above 0)",
			      "5" },
	[PARAMETER_AGE] = { { 0, INT32_MAX, true }, "a number of versions, 0 or more", "16" },
	[PARAMETER_DEADLINE] = { { 0.001, DAY_MS, false }, "milliseconds, 0.001 or more", "50" },
	[PARAMETER_STEPS] = { { 1, INT32_MAX, true }, "a number of steps, 1 or more", "10" },
	[PARAMETER_ALPHA] = { { 1e-9, 1, false }, "a number above 0, at most 1", "0.1" },
	[PARAMETER_PUSH] = { { 1, INT32_MAX, true }, "a number of batches, 1 or more", "5" },
	[PARAMETER_FETCH] = { { 1, INT32_MAX, true }, "a number of batches, 1 or more", "5" },
};

#define POLICY_PARAMETERS 2u

struct policy {
	const char *name;
	enum parameter parameter[POLICY_PARAMETERS];
	uint32_t optional; /* how many of the parameters, the last ones, may be left out */
	struct mst_rule rule;
	const char *help;
};

static const struct policy policies[] = {
	{ "bsp", { 0 }, 0, { .quorum = 0 }, "bsp              wait for every worker" },
	{ "backup",
	  { PARAMETER_BACKUP },
	  0,
	  { .quorum = 1 },
	  "backup:N         commit after the first N workers (-B: all but B), drop late ones" },
	{ "ksync",
	  { PARAMETER_QUORUM },
	  0,
	  { .preempt = true },
	  "ksync:K          as backup:K, and advise busy workers to give up at the commit" },
	{ "kbatchsync",
	  { PARAMETER_QUORUM },
	  0,
	  { .release = MST_RELEASE_PUSH, .preempt = true },
	  "kbatchsync:K     commit after K gradients, whoever makes them" },
	{ "kasync",
	  { PARAMETER_QUORUM },
	  0,
	  { .window = MST_WINDOW_MAX },
	  "kasync:K         commit after K distinct workers; stale gradients count" },
	{ "kbatchasync",
	  { PARAMETER_QUORUM },
	  0,
	  { .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH },
	  "kbatchasync:K    commit after K gradients; stale ones count; nobody waits" },
	{ "softsync",
	  { PARAMETER_QUORUM },
	  0,
	  { .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH, .compensate = true },
	  "softsync:C       as kbatchasync:C, each gradient divided by its staleness" },
	{ "async",
	  { 0 },
	  0,
	  { .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH },
	  "async            commit every gradient as it comes" },
	{ "bounded",
	  { PARAMETER_WINDOW },
	  0,
	  { .quorum = 1, .late = MST_LATE_REJECT, .release = MST_RELEASE_PUSH },
	  "bounded:S        as async, but reject a gradient more than S versions old" },
	{ "ssp",
	  { PARAMETER_BOUND },
	  0,
	  { .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_BOUND },
	  "ssp:S            as async, but nobody is more than S gradients ahead of the slowest" },
	{ "nonblocking",
	  { PARAMETER_GRACE, PARAMETER_AGE },
	  2,
	  { .trigger = MST_TRIGGER_FULL, .collect = true },
	  "nonblocking[:MS[,AGE]] a full batch commits what is finished; with AGE nobody waits" },
	{ "anytime",
	  { PARAMETER_DEADLINE },
	  0,
	  { .trigger = MST_TRIGGER_DEADLINE, .collect = true },
	  "anytime:MS       everybody computes for MS and then hands in what is finished" },
	{ "deadline",
	  { PARAMETER_DEADLINE, PARAMETER_QUORUM },
	  0,
	  { .trigger = MST_TRIGGER_DEADLINE },
	  "deadline:MS,N    as backup:N, but commit after MS with those who are there" },
	{ "local",
	  { PARAMETER_STEPS, PARAMETER_BACKUP },
	  1,
	  { .deltas = true, .divide = true, .quorum = 0 },
	  "local:T[,N]      average parameters after T steps of each worker; N as in backup:N" },
	{ "easgd",
	  { PARAMETER_STEPS, PARAMETER_ALPHA },
	  0,
	  { .deltas = true, .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH },
	  "easgd:T,A        after T steps a worker and the servers move closer by a share of A" },
	{ "easgdsync",
	  { PARAMETER_STEPS, PARAMETER_ALPHA },
	  0,
	  { .deltas = true, .quorum = 0 },
	  "easgdsync:T,A    as easgd, and every worker waits for all" },
	{ "downpour",
	  { PARAMETER_PUSH, PARAMETER_FETCH },
	  0,
	  { .quorum = 1, .window = MST_WINDOW_MAX, .release = MST_RELEASE_PUSH },
	  "downpour:P,F     as async, pushing every P batches and fetching every F" },
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

#define NS_PER_MS 1e6

/* Without stale gradients it is the policy of the paper: all are asked for what they have. */
static void apply_age(uint32_t age, struct mst_rule *rule)
{
	if (age == 0)
		return;
	rule->window = age;
	rule->late = MST_LATE_REJECT;
	rule->release = MST_RELEASE_PUSH;
	rule->collect = false;
	rule->by_micro = true;
}

static bool parameter_apply(enum parameter parameter, double value, struct mst_rule *rule)
{
	switch (parameter) {
	case PARAMETER_QUORUM:
		rule->quorum = (int32_t)value;
		break;
	case PARAMETER_BACKUP:
		rule->quorum = (int32_t)value;
		return rule->quorum != 0;
	case PARAMETER_WINDOW:
		rule->window = (uint32_t)value;
		break;
	case PARAMETER_BOUND:
		rule->bound = (uint32_t)value;
		break;
	case PARAMETER_GRACE:
		rule->grace_ns = (uint64_t)(value * NS_PER_MS);
		break;
	case PARAMETER_AGE:
		apply_age((uint32_t)value, rule);
		break;
	case PARAMETER_DEADLINE:
		rule->deadline_ns = (uint64_t)(value * NS_PER_MS);
		break;
	case PARAMETER_STEPS:
		rule->pace.local_steps = (uint32_t)value;
		break;
	case PARAMETER_ALPHA:
		rule->pace.alpha = value;
		break;
	case PARAMETER_PUSH:
		rule->pace.push_every = (uint32_t)value;
		break;
	case PARAMETER_FETCH:
		rule->pace.fetch_every = (uint32_t)value;
		break;
	default:
		return false;
	}
	return true;
}

static uint32_t parameter_count(const struct policy *p)
{
	uint32_t count = 0;

	while (count < POLICY_PARAMETERS && p->parameter[count] != PARAMETER_NONE)
		count++;
	return count;
}

/* @text: what follows the colon.
 * Return: how many parameters were read, or -1 if one is wrong or too many. */
static int parameters_parse(const struct policy *p, const char *text, struct mst_rule *rule)
{
	uint32_t count = parameter_count(p);
	double value = 0;

	for (uint32_t i = 0; i < count; i++) {
		const char *behind = mst_number_parse(text, &ranges[p->parameter[i]].number,
						      &value);
		if (behind == NULL || !parameter_apply(p->parameter[i], value, rule))
			return -1;
		if (*behind == '\0')
			return (int)i + 1;
		if (*behind != ',')
			return -1;
		text = behind + 1;
	}
	return -1;
}

static int refuse_unknown(const char *policy, struct mst_reason *why)
{
	mst_reason_set(why, "unknown policy \"%.40s\"; there are", policy);
	for (size_t i = 0; i < POLICY_COUNT; i++)
		mst_reason_add(why, " %s", policies[i].name);
	return -ENOENT;
}

static int refuse_parameter(const struct policy *p, const char *policy, struct mst_reason *why)
{
	uint32_t count = parameter_count(p);
	const struct range *first = &ranges[p->parameter[0]];
	const struct range *second = &ranges[count > 1 ? p->parameter[1] : PARAMETER_NONE];

	if (count == 0)
		mst_reason_set(why, "policy \"%.40s\": %s takes no number, as in %s", policy,
			       p->name, p->name);
	else if (count == 1)
		mst_reason_set(why, "policy \"%.40s\": %s %s %s, as in %s:%s", policy, p->name,
			       p->optional > 0 ? "takes" : "needs", first->wants, p->name,
			       first->example);
	else
		mst_reason_set(
			why,
			"policy \"%.40s\": %s %s %s, and after a comma it %s %s, as in %s:%s,%s",
			policy, p->name, p->optional == count ? "takes" : "needs", first->wants,
			p->optional > 0 ? "may have" : "needs", second->wants, p->name,
			first->example, second->example);
	return -EINVAL;
}

/* Where workers wait until all have handed in, no time at all for it can only be a mistake. */
static bool lacks_grace(const struct policy *p, int given, const struct mst_rule *row)
{
	return p->parameter[0] == PARAMETER_GRACE && given > 0 && row->grace_ns == 0 &&
	       !row->by_micro;
}

int mst_rule_parse(const char *policy, struct mst_rule *out, struct mst_reason *why)
{
	const char *colon = strchr(policy, ':');
	size_t len = colon != NULL ? (size_t)(colon - policy) : strlen(policy);
	const struct policy *p = policy_find(policy, len);

	if (p == NULL)
		return refuse_unknown(policy, why);
	struct mst_rule row = p->rule;
	int given = colon != NULL ? parameters_parse(p, colon + 1, &row) : 0;
	if (given < 0 || (uint32_t)given + p->optional < parameter_count(p) ||
	    lacks_grace(p, given, &row))
		return refuse_parameter(p, policy, why);
	row.late_start = out->late_start;
	row.weigh = out->weigh;
	row.linear = out->linear;
	row.batch = out->batch;
	row.patience_ns = out->patience_ns;
	row.on_loss = out->on_loss;
	row.min_workers = out->min_workers;
	if (!row.deltas)
		row.divide = out->divide;
	*out = row;
	return 0;
}

/* Can the quorum be met by so many workers? */
static int check_quorum(const struct mst_rule *rule, const struct mst_rule_context *ctx,
			struct mst_reason *why)
{
	uint32_t workers = ctx->workers;

	if (rule->quorum < 0 && (uint64_t) - (int64_t)rule->quorum >= workers) {
		mst_reason_set(why, "all but %" PRId64 " of %" PRIu32 " workers leaves nobody",
			       -(int64_t)rule->quorum, workers);
		return -EINVAL;
	}
	if (!mst_rule_repeats(rule) && rule->quorum > 0 && (uint32_t)rule->quorum > workers) {
		mst_reason_set(why,
			       "a quorum of %" PRId32 " distinct workers cannot be met by %" PRIu32
			       " workers",
			       rule->quorum, workers);
		return -EINVAL;
	}
	if (ctx->quorum_max > 0 && rule->quorum > 0 && (uint32_t)rule->quorum > ctx->quorum_max) {
		mst_reason_set(why,
			       "a quorum of %" PRId32
			       " is more than this job has room for (%" PRIu32 ")",
			       rule->quorum, ctx->quorum_max);
		return -EINVAL;
	}
	struct mst_rule_step whole = { .roster = workers, .missing = workers };
	uint32_t needed = mst_rule_needed(rule, &whole);
	bool drops = !mst_rule_repeats(rule) && rule->window == 0 && !rule->preempt &&
		     rule->trigger == MST_TRIGGER_NONE;
	if (drops && 2 * (uint64_t)needed < workers && !ctx->force) {
		mst_reason_set(why,
			       "a quorum of %" PRIu32 " of %" PRIu32
			       " workers drops more than half of all gradients; say --force "
			       "if that is meant",
			       needed, workers);
		return -EINVAL;
	}
	return 0;
}

#define NS_PER_S 1e9

/* A limit that patience always comes before would never be reached. */
static int check_times(const struct mst_rule *rule, struct mst_reason *why)
{
	bool collects = (rule->collect || rule->by_micro) && rule->grace_ns >= rule->patience_ns;
	uint64_t limit_ns = collects ? rule->grace_ns : rule->deadline_ns;

	if (limit_ns == 0 || limit_ns < rule->patience_ns)
		return 0;
	mst_reason_set(
		why,
		"%s of %g ms has to be shorter than the patience of %g s, after which a step "
		"gives up the workers that it waits for; raise --patience",
		collects ? "a grace" : "a deadline", (double)limit_ns / NS_PER_MS,
		(double)rule->patience_ns / NS_PER_S);
	return -EINVAL;
}

/* Elastic averaging in which all P workers contribute to each version. Where the loss is flat, an
 * exchange multiplies the difference between the mean of the workers and the centre by
 * 1 - alpha (1 + P). Beyond -1 it grows with every exchange, whatever the rate is. */
static int check_alpha(const struct mst_rule *rule, uint32_t workers, struct mst_reason *why)
{
	double turns = rule->pace.alpha * (1.0 + workers);

	if (mst_rule_repeats(rule) || turns <= 2)
		return 0;
	mst_reason_set(why,
		       "with A = %g and %" PRIu32
		       " workers each exchange multiplies the difference between the workers and "
		       "the servers by 1 - A (1 + %" PRIu32
		       ") = %.3g, so it grows without limit; A may be 2 / (1 + %" PRIu32
		       ") = %.4f at most, and 0.9 / %" PRIu32 " is usual",
		       rule->pace.alpha, workers, workers, 1 - turns, workers,
		       floor(2e4 / (1.0 + workers)) / 1e4, workers);
	return -EINVAL;
}

/* Does a worker have parameters of its own, and fetch the servers' now and then? */
static bool is_paced(const struct mst_rule *rule)
{
	return rule->pace.local_steps > 0 || rule->pace.push_every > 0;
}

/* A worker that owns the parameters takes every version after the one that it has computed on. */
static int check_history(const struct mst_rule *rule, const struct mst_rule_context *ctx,
			 struct mst_reason *why)
{
	if (!rule->by_micro || ctx->owner != MUSTER_WORKERS_OWN || ctx->history == 0 ||
	    rule->window <= ctx->history)
		return 0;
	mst_reason_set(
		why,
		"a micro-batch may be %" PRIu32 " versions old, and where workers own its "
		"worker then takes all versions after the one that it was computed on, of which "
		"the servers keep %" PRIu32 "; say --history %" PRIu32 " or more, or a lower age",
		rule->window, ctx->history, rule->window);
	return -EINVAL;
}

/* Checks the release, too: it must fit the owner and the slots. */
int mst_rule_check(const struct mst_rule *rule, const struct mst_rule_context *ctx,
		   struct mst_reason *why)
{
	if (is_paced(rule) && ctx->owner == MUSTER_WORKERS_OWN) {
		mst_reason_set(
			why, "under this policy workers step on copies of the servers' parameters, "
			     "which needs --owner servers");
		return -EINVAL;
	}
	if (rule->release != MST_RELEASE_COMMIT && !rule->by_micro &&
	    ctx->owner == MUSTER_WORKERS_OWN) {
		mst_reason_set(why, "this policy lets workers go on before the commit, which needs "
				    "--owner servers: "
				    "workers that own the parameters apply every version in order");
		return -EINVAL;
	}
	int rc = check_history(rule, ctx, why);
	if (rc != 0)
		return rc;
	if (mst_rule_slots(rule) > ctx->slots) {
		mst_reason_set(why,
			       "this policy needs %" PRIu32 " slots per worker, there is %" PRIu32
			       "; say --slots 2",
			       mst_rule_slots(rule), ctx->slots);
		return -EINVAL;
	}
	if (rule->min_workers == 0 || rule->min_workers > ctx->workers) {
		mst_reason_set(why,
			       "--min-workers %" PRIu32 " must be 1 to %" PRIu32 " (--workers)",
			       rule->min_workers, ctx->workers);
		return -EINVAL;
	}
	rc = check_times(rule, why);
	if (rc == 0)
		rc = check_alpha(rule, ctx->workers, why);
	return rc != 0 ? rc : check_quorum(rule, ctx, why);
}

uint32_t mst_rule_slots(const struct mst_rule *rule)
{
	return rule->release == MST_RELEASE_PUSH && rule->quorum != 1 ? 2 : 1;
}

static uint32_t micro_max(uint32_t workers)
{
	uint64_t most = (uint64_t)MST_MICRO_MAX * workers;
	uint32_t least = MST_MICRO_MIN * workers;

	if (most > MST_MICRO_ALL)
		most = MST_MICRO_ALL;
	return most > least ? (uint32_t)most : least;
}

uint32_t mst_rule_planned(const struct mst_rule *rule, uint32_t workers)
{
	if (!mst_rule_repeats(rule))
		return 0;
	if (rule->by_micro)
		return micro_max(workers);
	return rule->quorum > 0 ? (uint32_t)rule->quorum : 0;
}

uint32_t mst_rule_needed(const struct mst_rule *rule, const struct mst_rule_step *step)
{
	uint32_t reachable = step->contributions + step->missing;

	MST_ASSERT(step->missing <= step->roster);
	if (rule->by_micro && step->roster == 0)
		return step->contributions;
	if (rule->by_micro)
		return step->room > 0 ? step->room : micro_max(step->roster);
	if (rule->quorum == 0)
		return reachable;
	if (rule->quorum < 0) {
		uint32_t spare = (uint32_t) - (int64_t)rule->quorum;
		uint32_t wanted = step->roster > spare ? step->roster - spare : 1;
		return wanted < reachable ? wanted : reachable;
	}
	uint32_t quorum = (uint32_t)rule->quorum;
	if (mst_rule_repeats(rule) && step->room > 0 && step->room < quorum)
		quorum = step->room;
	if (mst_rule_repeats(rule))
		return step->roster > 0 ? quorum : step->contributions;
	return quorum < reachable ? quorum : reachable;
}

bool mst_rule_is_asynchronous(const struct mst_rule *rule, uint32_t workers)
{
	bool all = !mst_rule_repeats(rule) && rule->quorum > 0 && (uint32_t)rule->quorum >= workers;

	return !rule->deltas && rule->window > 0 && !rule->by_micro && !all;
}

bool mst_rule_commits_each(const struct mst_rule *rule, uint32_t workers)
{
	if (rule->by_micro)
		return false;
	return rule->quorum > 0 ? rule->quorum == 1 : (int64_t)workers + rule->quorum <= 1;
}

bool mst_rule_met(const struct mst_rule *rule, const struct mst_rule_step *step)
{
	return step->contributions > 0 &&
	       (step->overdue || step->contributions >= mst_rule_needed(rule, step));
}
