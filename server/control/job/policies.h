/* SPDX-License-Identifier: MIT */
/*
 * The policies of a job, as people know them: the last ones that were in force, with the name that
 * was typed for each, and the one that comes into force. The ledger decides when they change; what
 * has happened under each the statistics know.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_JOB_POLICIES_H
#define MST_SERVER_CONTROL_JOB_POLICIES_H

#include "common/wire/message.h"
#include "server/core/policy/policy.h"

/* A policy of the job. */
struct mst_job_policy {
	char name[MST_POLICY_LEN]; /* as it was typed; "": there is none */
	/* If the policy changes its rule: the fixed policy that it is now; else "". */
	char now[MST_POLICY_LEN];
	char metric[MST_NAME_LEN]; /* the reported value that it follows; "": none */
	uint64_t begun;            /* the first version that is made under it; */
	uint64_t since;            /* and as it is now */
	uint64_t number;           /* of the change that it came with; 0: of the command line */
	struct mst_rule rule;
};
/* Under this name as it was typed; from no version on yet. */
void mst_job_policy_init(struct mst_job_policy *out, const char *name,
			 const struct mst_policy *policy);
/* The name of its rule. */
static inline const char *mst_job_policy_now(const struct mst_job_policy *policy)
{
	return policy->now[0] != '\0' ? policy->now : policy->name;
}

/* Zeroed: there is none. */
struct mst_job_policies {
	uint32_t count;                                  /* in all; count - 1 is in force */
	struct mst_job_policy kept[MST_STATUS_POLICIES]; /* at count % MST_STATUS_POLICIES */
	struct mst_job_policy next; /* that comes into force; no name: none does */
};

/* The policy in force, or at first the one that the job starts with. */
static inline const struct mst_job_policy *mst_job_policies_now(const struct mst_job_policies *p)
{
	return &p->kept[(p->count - 1) % MST_STATUS_POLICIES];
}
/* The job begins with the version before @first, and with the policy that has been entered. */
void mst_job_policies_begin(struct mst_job_policies *p, uint64_t first);
/* Another policy is in force. */
void mst_job_policies_enter(struct mst_job_policies *p, const struct mst_job_policy *policy);
/* The job has not begun, and begins with this policy in place of the one that has been entered. */
void mst_job_policies_replace(struct mst_job_policies *p, const struct mst_job_policy *policy);
/* Does the policy in force, or the one that comes into force, follow the values of this name? */
bool mst_job_policies_follow(const struct mst_job_policies *p, const char *metric);
/* Writes the names of policies into the figures of the status that say since when they held. */
void mst_job_policies_fill(const struct mst_job_policies *p, struct mst_status *out);

#endif
