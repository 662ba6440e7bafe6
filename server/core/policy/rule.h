/* SPDX-License-Identifier: MIT */
/*
 * Policies: the table of what a user may type, as rows of struct mst_rule, and the one function
 * that judges by the numbers of a rule. Pure. docs/policies.md explains the rows and names their
 * papers. A new fixed policy is a new row in rule.c.
 */
#ifndef MST_SERVER_CORE_POLICY_RULE_H
#define MST_SERVER_CORE_POLICY_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/wire/rule.h"
#include "muster/muster.h"

/* Reads "backup:4", "deadline:50,4", "bsp"... into @out. The fields that other options determine
 * stay: late_start, weigh, linear, batch, patience_ns, on_loss, min_workers; and divide, unless the
 * policy is one of deltas, which says itself whether they are averaged or added up.
 * @why: on failure a sentence.
 * Return: 0; -ENOENT: there is no policy of this name; -EINVAL. */
int mst_rule_parse(const char *policy, struct mst_rule *out, struct mst_reason *why);

/* A line for --help on the policy with this index: its parameter, and what it does. NULL: there are
 * no more. */
const char *mst_rule_help(unsigned index);

/* What a rule is checked against. */
struct mst_rule_context {
	enum muster_owner owner;
	uint32_t workers;
	uint32_t slots;   /* of each session */
	uint32_t history; /* workers own: versions that are kept; 0: it is not known */
	/* contributions that a set has room for; 0: room will be made as needed */
	uint32_t quorum_max;
	double samples_max; /* the job ends there; 0: never */
	bool plain_step;    /* a version is the one before less the rate times the mean */
	bool norms;         /* workers tell norms, and servers know that of the mean */
	bool force;         /* the user wants a quorum of less than half of the workers */
};

/* Can this rule be met, and does it make sense with this owner of the parameters?
 * @why: a sentence with numbers.
 * Return: 0 or -EINVAL. */
int mst_rule_check(const struct mst_rule *rule, const struct mst_rule_context *ctx,
		   struct mst_reason *why);

/* The slots that a worker needs under this rule, so that it always has one after its contribution
 * was counted: 1 if the worker waits for the commit, or if every contribution commits; else 2. */
uint32_t mst_rule_slots(const struct mst_rule *rule);

/* May a rank contribute twice to a step? Not if ranks wait for the commit. */
static inline bool mst_rule_repeats(const struct mst_rule *rule)
{
	return rule->release != MST_RELEASE_COMMIT;
}

/* Under a rule by micro-batches a step takes so many contributions at most, and is then committed,
 * whatever it waits for: MAX for each worker, but no more than ALL, and at least MIN for each. Each
 * version buffer has as many entries. */
#define MST_MICRO_MAX 1024u
#define MST_MICRO_MIN 128u
#define MST_MICRO_ALL 65536u

/* The contributions of any ranks that the steps of a job are planned for which starts with this
 * rule; 0: each has a slot of its own. */
uint32_t mst_rule_planned(const struct mst_rule *rule, uint32_t workers);

/* Do contributions grow until the server asks for them? */
static inline bool mst_rule_until_asked(const struct mst_rule *rule)
{
	return rule->trigger == MST_TRIGGER_DEADLINE && rule->collect;
}

/* What the commit condition needs to know of the open step. */
struct mst_rule_step {
	uint32_t roster;        /* ranks waited for */
	uint32_t missing;       /* ranks of the roster that have neither contributed nor passed */
	uint32_t contributions; /* counted */
	/* Contributions that the step surely has room for where ranks may contribute again; 0: any
	 * number. */
	uint32_t room;
	bool overdue; /* the step commits with what it has: see trigger and grace of the rule */
};

/* How many contributions commit this step now (PROTOCOL 2, "Needed"). With quorum 0 these are
 * all that are counted and all that are missing. A step with an empty roster needs no more than
 * it has. */
uint32_t mst_rule_needed(const struct mst_rule *rule, const struct mst_rule_step *step);
/* Do gradients on old versions count, in a job of so many workers? Not where every worker waits for
 * every other, where contributions are differences of parameters, or where they are micro-batches,
 * of which few are old: on average they are younger than a version. */
bool mst_rule_is_asynchronous(const struct mst_rule *rule, uint32_t workers);
/* Is every version made of one contribution, in a job of so many workers? */
bool mst_rule_commits_each(const struct mst_rule *rule, uint32_t workers);
/* Does the step commit now? Never without any contribution. */
bool mst_rule_met(const struct mst_rule *rule, const struct mst_rule_step *step);

/* The numbers in a policy as a user types it: "4", "-1", "0.5". Pure. */
struct mst_number {
	double min, max;
	bool whole; /* the number has no fraction */
};

/* Reads a decimal number in the range. strtod() alone would also take blanks, "inf" and
 * hexadecimal.
 * Return: what follows the number, or NULL. */
const char *mst_number_parse(const char *text, const struct mst_number *number, double *out);

#endif
