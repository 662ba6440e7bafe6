/* SPDX-License-Identifier: MIT */
#include "server/control/job/policies.h"

#include <stdio.h>
#include <string.h>

void mst_job_policy_init(struct mst_job_policy *out, const char *name,
			 const struct mst_policy *policy)
{
	const char *metric = mst_controller_metric(&policy->controller);

	*out = (struct mst_job_policy){ .rule = policy->rule };
	snprintf(out->name, sizeof(out->name), "%s", name);
	mst_controller_now(&policy->controller, &policy->rule, out->now, sizeof(out->now));
	if (metric != NULL)
		snprintf(out->metric, sizeof(out->metric), "%s", metric);
}

void mst_job_policies_enter(struct mst_job_policies *p, const struct mst_job_policy *policy)
{
	p->kept[p->count++ % MST_STATUS_POLICIES] = *policy;
}

void mst_job_policies_replace(struct mst_job_policies *p, const struct mst_job_policy *policy)
{
	struct mst_job_policy *now = &p->kept[(p->count - 1) % MST_STATUS_POLICIES];
	uint64_t begun = now->begun;

	*now = *policy;
	now->begun = now->since = begun;
}

void mst_job_policies_begin(struct mst_job_policies *p, uint64_t first)
{
	struct mst_job_policy *now = &p->kept[(p->count - 1) % MST_STATUS_POLICIES];

	now->begun = now->since = first;
}

bool mst_job_policies_follow(const struct mst_job_policies *p, const char *metric)
{
	const struct mst_job_policy *now = mst_job_policies_now(p), *next = &p->next;

	return strcmp(now->metric, metric) == 0 ||
	       (next->name[0] != '\0' && strcmp(next->metric, metric) == 0);
}

static const char *name_of(const struct mst_job_policies *p, uint64_t since)
{
	uint32_t kept = p->count < MST_STATUS_POLICIES ? p->count : MST_STATUS_POLICIES;

	for (uint32_t i = 0; i < kept; i++)
		if (p->kept[i].since == since)
			return mst_job_policy_now(&p->kept[i]);
	return "";
}

void mst_job_policies_fill(const struct mst_job_policies *p, struct mst_status *out)
{
	snprintf(out->policy, sizeof(out->policy), "%s", mst_job_policies_now(p)->name);
	out->policy_change = mst_job_policies_now(p)->number;
	snprintf(out->next_policy, sizeof(out->next_policy), "%s", p->next.name);
	out->next_since = p->next.name[0] != '\0' ? p->next.since : 0;
	for (uint32_t i = 0; i < out->policy_count; i++)
		snprintf(out->under[i].policy, sizeof(out->under[i].policy), "%s",
			 name_of(p, out->under[i].since));
}
