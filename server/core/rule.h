/* SPDX-License-Identifier: MIT */
/*
 * Policies: what a user types, as rows of struct mst_rule, and the one evaluator of their numbers.
 * Pure. Rows and their sources: docs/policies.md. A new fixed policy is a new row in rule.c.
 */
#ifndef MST_SERVER_CORE_RULE_H
#define MST_SERVER_CORE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/rule.h"
#include "muster/muster.h"

/* Reads "backup:4", "ssp:3", "bsp"... into @out: only the fields a policy fixes are written (quorum
 * window late release bound preempt weigh compensate), so that what options fix stays.
 * @why: on failure a sentence, with the nearest policy if the name is unknown.
 * Return: 0 or -EINVAL. */
int mst_rule_parse(const char *policy, struct mst_rule *out, char *why, size_t why_len);

/* One line a policy: what it takes and does, for --help. NULL past the last. */
const char *mst_rule_help(unsigned index);

/* What a rule is checked against. */
struct mst_rule_context {
	enum muster_owner owner;
	uint32_t workers;
	uint32_t slots;      /* of every session */
	uint32_t quorum_max; /* contributions a set has room for; 0: it will be made to fit */
	bool force;          /* a quorum under half of the workers is meant */
};

/* Can this rule be met, and does it make sense with these owners? @why: a sentence with figures.
 * Return: 0 or -EINVAL. */
int mst_rule_check(const struct mst_rule *rule, const struct mst_rule_context *ctx, char *why,
		   size_t why_len);

/* Slots a worker needs under this rule, so that a counted worker is never without one: 1 where it
 * waits for the commit, or every contribution commits; else 2. */
uint32_t mst_rule_slots(const struct mst_rule *rule);

/* May a rank contribute twice to a step? One that waits for the commit cannot. */
static inline bool mst_rule_repeats(const struct mst_rule *rule)
{
	return rule->release != MST_RELEASE_COMMIT;
}

/* The open step, as the commit condition sees it. */
struct mst_rule_step {
	uint32_t roster;        /* ranks waited for */
	uint32_t missing;       /* of those, neither counted nor passed */
	uint32_t contributions; /* counted */
};

/* How many contributions commit this step now (PROTOCOL 2, "Needed"); with quorum 0 as many as are
 * counted plus those still missing. A step whose roster is empty needs no more than it has. */
uint32_t mst_rule_needed(const struct mst_rule *rule, const struct mst_rule_step *step);
/* Is the condition met? Never for an empty set. */
bool mst_rule_met(const struct mst_rule *rule, const struct mst_rule_step *step);

/* Base weight b and coefficient c of a contribution (PROTOCOL 5), each computed once in double. */
struct mst_rule_share {
	double base;
	float coefficient;
};
struct mst_rule_share mst_rule_share(const struct mst_rule *rule, uint64_t staleness,
				     double samples, bool is_sum);

#endif
