/* SPDX-License-Identifier: MIT */
#include "server/control/generations/take_over.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "server/control/job/momentum.h"
#include "server/control/job/policy_reading.h"

/* ---- who brings what ---- */

void mst_take_over_left(struct mst_job *j, uint32_t rank)
{
	if (j->state != MST_JOB_GATHERING || j->in_force.claims.workers == 0)
		return;
	mst_in_force_unclaim(&j->in_force.claims, rank);
	j->in_force.is_open = true;
}

void mst_take_over_joined(struct mst_job *j, uint32_t rank, const struct mst_in_force *brings)
{
	mst_take_over_left(j, rank);
	if (j->state == MST_JOB_GATHERING && j->in_force.claims.workers > 0 && brings != NULL)
		mst_in_force_claim(&j->in_force.claims, rank, brings);
}

/* ---- what follows ---- */

static void read_started(const struct mst_job *j, struct mst_policy *out,
			 struct mst_job_policy *name)
{
	*out = j->terms.policy;
	mst_job_policy_init(name, j->o->policy, out);
}

/* Where it was saved with the figures of its controller, it goes on where it was. */
static void go_on(const struct mst_job *j, const char *name, struct mst_policy *policy)
{
	struct mst_server_options o = *j->o;

	o.policy = name;
	if (mst_resume_is_set(&j->resume) && strcmp(j->resume.manifest.policy, name) == 0)
		mst_resume_policy(&j->resume, &o, policy);
}

static void read_changed(struct mst_job *j, struct mst_policy *out, struct mst_job_policy *name)
{
	struct mst_job_in_force *f = &j->in_force;
	struct mst_policy_change change = { .force = f->now.forced };

	snprintf(change.policy, sizeof(change.policy), "%s", f->now.policy);
	f->cannot = mst_job_read_policy(j, &change, out, &f->why) != 0;
	if (f->cannot) {
		read_started(j, out, name);
		return;
	}
	go_on(j, f->now.policy, out);
	mst_job_policy_init(name, f->now.policy, out);
	name->number = f->now.number;
}

/* @chosen is another one than before. A policy is read as one that follows that of the command
 * line. Return: false: the ledger has no room. */
static bool give(struct mst_job *j, const struct mst_in_force *chosen)
{
	struct mst_job_in_force *f = &j->in_force;
	struct mst_ledger_event ev = { .kind = MST_EV_POLICY };
	struct mst_job_policy name;
	struct mst_policy policy;

	read_started(j, &policy, &name);
	mst_job_policies_replace(&j->policies, &name);
	f->now = *chosen;
	f->cannot = false;
	if (chosen->number > 0)
		read_changed(j, &policy, &name);
	f->controller = policy.controller;
	ev.rule = policy.rule;
	ev.controller = &f->controller;
	if (!mst_requests_event(&j->requests, &ev)) {
		f->now = (struct mst_in_force){ .number = UINT64_MAX }; /* nothing has been given */
		return false;
	}
	mst_job_policies_replace(&j->policies, &name);
	f->waits = true;
	return true;
}

bool mst_take_over_settle(struct mst_job *j)
{
	struct mst_job_in_force *f = &j->in_force;

	if (!f->is_open || j->state != MST_JOB_GATHERING)
		return true;
	if (f->waits)
		return false;
	struct mst_in_force chosen = mst_in_force_choose(&f->claims, &f->kept);
	if (!mst_in_force_same(&chosen, &f->now) && !give(j, &chosen))
		return false;
	f->is_open = false;
	return true;
}

bool mst_take_over_taken(struct mst_job *j)
{
	bool waited = j->in_force.waits;

	j->in_force.waits = false;
	return waited;
}

/* ---- what people are told ---- */

static void tell_not_believed(const struct mst_job *j)
{
	struct mst_in_force what;
	uint32_t rank;

	if (mst_in_force_not_believed(&j->in_force.claims, &j->in_force.now, &what, &rank))
		mst_warn("job \"%s\": of %" PRIu32 " workers that came back, rank %" PRIu32
			 " alone says that the policy was changed to %s (change %" PRIu64
			 "); that is not believed: if you have asked for it, ask again, muster "
			 "policy %s",
			 j->o->job, j->in_force.claims.claims, rank, what.policy, what.number,
			 what.policy);
}

static const char *knows_from(const struct mst_job_in_force *f)
{
	return mst_in_force_same(&f->now, &f->kept) ? "as its checkpoint says"
						    : "as its workers say";
}

static void tell_policy(const struct mst_job *j)
{
	const struct mst_job_in_force *f = &j->in_force;

	if (f->now.number == 0)
		return;
	if (f->cannot)
		mst_warn("job \"%s\" goes on under --policy %s: the policy was changed to %s while "
			 "it ran (change %" PRIu64 "), which this server cannot run: %s; muster "
			 "policy asks for another one",
			 j->o->job, j->o->policy, f->now.policy, f->now.number, f->why.text);
	else if (strcmp(f->now.policy, j->o->policy) == 0)
		mst_info("job \"%s\" goes on under %s, as --policy of this server says too (change "
			 "%" PRIu64 ", %s)",
			 j->o->job, f->now.policy, f->now.number, knows_from(f));
	else
		mst_info(
			"job \"%s\" goes on under %s, to which the policy was changed while it ran "
			"(change %" PRIu64 ", %s), and not under --policy %s of this server; "
			"muster policy %s changes it back",
			j->o->job, f->now.policy, f->now.number, knows_from(f), j->o->policy,
			j->o->policy);
}

static void tell_momentum(const struct mst_job *j)
{
	struct mst_policy_change change = { .force = 1 };
	struct mst_policy policy;
	struct mst_reason text;

	if (j->in_force.now.number == 0 || j->in_force.cannot)
		return;
	snprintf(change.policy, sizeof(change.policy), "%s", j->in_force.now.policy);
	if (mst_job_read_policy(j, &change, &policy, &text) == 0 &&
	    mst_momentum_adds(&text, j->o, &j->terms.optimizer, &j->terms.policy.rule, &policy))
		mst_warn("job \"%s\", policy %s: %s", j->o->job, change.policy, text.text);
}

void mst_take_over_tell(const struct mst_job *j)
{
	tell_not_believed(j);
	tell_policy(j);
	tell_momentum(j);
	bool learns = mst_job_policy(j)->now[0] != '\0' && !mst_resume_is_set(&j->resume);
	if (j->generation.now.number > 1)
		mst_info("job \"%s\": ranks that rested take part again%s%s", j->o->job,
			 learns ? ", and what the policy has learnt begins anew: " : "",
			 learns ? mst_job_policy(j)->name : "");
}
