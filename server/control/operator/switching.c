/* SPDX-License-Identifier: MIT */
#include "server/control/operator/switching.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "server/control/job/momentum.h"
#include "server/control/job/policy_reading.h"
#include "server/control/job/sentences.h"

/* ---- what is asked for ---- */

static int check_state(const struct mst_job *j, const struct mst_policy_change *change,
		       struct mst_reason *why)
{
	if (j->state == MST_JOB_GATHERING) {
		mst_reason_set(
			why,
			"job \"%s\" has not started, and its policy can change only while it "
			"runs; wait until all %" PRIu32
			" workers have started, or start the server with --policy %s",
			j->o->job, j->o->workers, change->policy);
		return -EAGAIN;
	}
	if (mst_job_is_over(j)) {
		mst_reason_set(why, "job \"%s\" is over: %s", j->o->job, j->why.text);
		return -ESHUTDOWN;
	}
	return 0;
}

static int read_change(const struct mst_job *j, const struct mst_policy_change *change,
		       struct mst_policy *out, struct mst_reason *why)
{
	int rc = check_state(j, change, why);

	return rc != 0 ? rc : mst_job_read_policy(j, change, out, why);
}

/* ---- answers ---- */

static void answer(const struct mst_switching *s, struct mst_conn *c, const char *text)
{
	struct mst_message *m = mst_frontend_draft(&s->base->front, MST_MSG_DONE);
	struct mst_reason said;

	mst_reason_set(&said, "job \"%s\": %s", s->base->job.o->job, text);
	snprintf(m->why, sizeof(m->why), "%s", said.text);
	mst_frontend_send(&s->base->front, c, m);
}

/* Is the job under this policy, or about to be? Then there is nothing to do. */
static bool is_there(const struct mst_switching *s, const char *asked, struct mst_reason *text)
{
	const struct mst_job_policy *now = mst_job_policy(&s->base->job),
				    *next = &s->base->job.policies.next;
	bool is_due = next->name[0] != '\0';

	if (is_due && strcmp(next->name, asked) == 0)
		mst_reason_set(text, "from version %" PRIu64 " on: %s; that was asked for before",
			       next->since, next->name);
	else if (!is_due && strcmp(now->name, asked) == 0)
		mst_reason_set(text, "%s is in force already, since version %" PRIu64, now->name,
			       now->begun);
	else
		return false;
	return true;
}

bool mst_switching_ask(struct mst_switching *s, struct mst_conn *c,
		       const struct mst_policy_change *change, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_POLICY };
	struct mst_policy policy;
	struct mst_reason text;

	if (s->waits)
		return false;
	int rc = read_change(&s->base->job, change, &policy, &text);
	if (rc != 0) {
		mst_frontend_error(&s->base->front, c, rc, text.text, now_ns);
		return true;
	}
	if (is_there(s, change->policy, &text)) {
		answer(s, c, text.text);
		return true;
	}
	s->controller = policy.controller;
	ev.rule = policy.rule;
	ev.controller = &s->controller;
	if (!mst_requests_event(&s->base->job.requests, &ev))
		return false;
	mst_info("%s asks for policy %s", c->peer, change->policy);
	const struct mst_job *j = &s->base->job;
	s->warning.text[0] = '\0';
	if (mst_momentum_adds(&s->warning, j->o, &j->terms.optimizer, &mst_job_policy(j)->rule,
			      &policy))
		mst_warn("job \"%s\", policy %s: %s", j->o->job, change->policy, s->warning.text);
	s->waits = true;
	s->requester = c->id;
	mst_job_policy_init(&s->asked, change->policy, &policy);
	s->forced = change->force;
	return true;
}

/* ---- what the ledger says ---- */

static void describe(const struct mst_job *j, const struct mst_job_policy *p,
		     struct mst_reason *text)
{
	const struct mst_job_policy *before = &j->policies.next;
	struct mst_reason what;

	mst_sentence_policy(&what, &p->rule, j->o->workers);
	mst_reason_set(text, "from version %" PRIu64 " on: %s (%s%s%s)", p->since, p->name, p->now,
		       p->now[0] != '\0' ? " " : "", what.text);
	if (before->name[0] != '\0')
		mst_reason_add(text, "; it takes the place of %s, which was not in force yet",
			       before->name);
}

/* Workers hear of it before whoever has asked does: they keep it, if this server is lost now. */
static void note_change(struct mst_switching *s)
{
	struct mst_frontend *front = &s->base->front;
	struct mst_in_force *now = &s->base->job.in_force.now;
	struct mst_conn *c;

	now->number += now->number < MST_IN_FORCE_NUMBER_MAX;
	now->forced = s->forced != 0;
	snprintf(now->policy, sizeof(now->policy), "%s", s->asked.name);
	s->base->job.in_force.cannot = false;
	s->asked.number = now->number;
	struct mst_message *m = mst_frontend_draft(front, MST_MSG_IN_FORCE);
	m->in_force = *now;
	for (uint32_t i = 0; (c = mst_frontend_next_of(front, MST_CONN_WORKER, &i)) != NULL;)
		if (c->welcomed)
			mst_frontend_send(front, c, m);
}

/* If the job has ended meanwhile, that was said before this. */
void mst_switching_taken(struct mst_switching *s, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_conn *c = mst_frontend_conn(&s->base->front, s->requester);
	struct mst_job *j = &s->base->job;
	struct mst_reason text;

	s->waits = false;
	if (mst_job_is_over(j)) {
		mst_reason_set(&text, "job \"%s\" is over: %s", j->o->job, j->why.text);
		if (c != NULL)
			mst_frontend_error(&s->base->front, c, -ESHUTDOWN, text.text, now_ns);
		return;
	}
	s->asked.since = notice->policy.version;
	note_change(s);
	describe(j, &s->asked, &text);
	j->policies.next = s->asked;
	mst_info("job \"%s\": %s", j->o->job, text.text);
	if (s->warning.text[0] != '\0')
		mst_reason_add(&text, "; %s", s->warning.text);
	if (c != NULL)
		answer(s, c, text.text);
}

/* The policy in force has chosen another rule. */
static void adapt(struct mst_job *j, const struct mst_notice *notice)
{
	const struct mst_job_policy *before = mst_job_policy(j);
	struct mst_job_policy next = *before;

	snprintf(next.now, sizeof(next.now), "%s", notice->policy.now);
	next.since = notice->policy.version;
	next.rule = notice->policy.rule;
	mst_info("job \"%s\": %s is in force, from version %" PRIu64 " on, in place of %s: %s, %s",
		 j->o->job, next.now, next.since, before->now, next.name, notice->policy.why);
	mst_job_policies_enter(&j->policies, &next);
}

static void enter(struct mst_job *j, const struct mst_notice *notice)
{
	struct mst_job_policy *next = &j->policies.next;
	bool is_fixed = next->now[0] == '\0';

	mst_info("job \"%s\": %s is in force, from version %" PRIu64 " on, in place of %s%s%s",
		 j->o->job, mst_job_policy_now(next), notice->policy.version,
		 mst_job_policy_now(mst_job_policy(j)), is_fixed ? "" : ": ",
		 is_fixed ? "" : next->name);
	next->begun = next->since = notice->policy.version;
	mst_job_policies_enter(&j->policies, next);
	next->name[0] = '\0';
}

void mst_switching_in_force(struct mst_switching *s, const struct mst_notice *notice)
{
	struct mst_job *j = &s->base->job;

	if (mst_job_is_over(j))
		return;
	if (notice->policy.adapts)
		adapt(j, notice);
	else if (j->policies.next.name[0] == '\0')
		return;
	else if (notice->policy.whole)
		enter(j, notice);
	else
		mst_info("job \"%s\": version %" PRIu64 " needs no more contributions than %s does",
			 j->o->job, notice->policy.version, mst_job_policy_now(&j->policies.next));
}

void mst_switching_stuck(const struct mst_switching *s, const struct mst_notice *notice)
{
	mst_warn("job \"%s\": %s stays at %s: %s", s->base->job.o->job,
		 mst_job_policy(&s->base->job)->name, notice->policy.now, notice->policy.why);
}

void mst_switching_dropped(const struct mst_switching *s, const struct mst_notice *notice)
{
	mst_info("job \"%s\": the change to %s dropped %" PRIu64
		 " gradients that were on their way: they were late for version %" PRIu64,
		 s->base->job.o->job, mst_job_policy_now(mst_job_policy(&s->base->job)),
		 notice->dropped.count, notice->dropped.version);
}
