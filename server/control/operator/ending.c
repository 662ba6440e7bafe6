/* SPDX-License-Identifier: MIT */
#include "server/control/operator/ending.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "server/control/job/sentences.h"

static void answer(struct mst_endings *e, uint64_t requester, int error, const char *text,
		   uint64_t now_ns)
{
	struct mst_conn *c = mst_frontend_conn(&e->base->front, requester);

	if (c == NULL)
		return;
	if (error != 0) {
		mst_frontend_error(&e->base->front, c, error, text, now_ns);
		return;
	}
	struct mst_message *m = mst_frontend_draft(&e->base->front, MST_MSG_DONE);
	(void)snprintf(m->why, sizeof(m->why), "%s", text);
	mst_frontend_send(&e->base->front, c, m);
}

/* ---- a session ---- */

/* The connection of the rank's present session. */
static const struct mst_conn *worker_of(const struct mst_endings *e, uint32_t rank)
{
	const struct mst_conn *c;

	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&e->base->front, MST_CONN_WORKER, &i)) != NULL;) {
		if (c->who.rank == rank && !c->left)
			return c;
	}
	return NULL;
}

static bool fails_at_loss(const struct mst_job *j)
{
	return j->state == MST_JOB_RUNNING && mst_job_policy(j)->rule.on_loss == MST_LOSS_FAIL;
}

static void say_fails_at_loss(const struct mst_job *j, uint32_t rank, struct mst_reason *why)
{
	if (!fails_at_loss(j)) {
		mst_reason_set(why,
			       "job \"%s\" fails when fewer than %" PRIu32
			       " workers are left (--min-workers), so rank %" PRIu32
			       " cannot be evicted; muster finish ends the job well",
			       j->o->job, mst_server_options_min_workers(j->o), rank);
		return;
	}
	mst_reason_set(why,
		       "job \"%s\" fails when it loses a worker (--on-loss fail), so rank %" PRIu32
		       " cannot be evicted; muster finish ends the job well",
		       j->o->job, rank);
}

static int check_evict(const struct mst_endings *e, uint32_t rank, struct mst_reason *why)
{
	const struct mst_job *j = &e->base->job;

	if (mst_job_is_over(j)) {
		mst_reason_set(why, "job \"%s\" is over: %s", j->o->job, j->why.text);
		return -ESHUTDOWN;
	}
	if (rank >= j->o->workers) {
		mst_reason_set(why,
			       "rank %" PRIu32 " is not one of job \"%s\": its %" PRIu32
			       " workers are ranks 0 to %" PRIu32,
			       rank, j->o->job, j->o->workers, j->o->workers - 1);
		return -EINVAL;
	}
	if (worker_of(e, rank) == NULL) {
		mst_reason_set(why, "rank %" PRIu32 " takes no part in job \"%s\" now", rank,
			       j->o->job);
		return -ENOTCONN;
	}
	if (fails_at_loss(j)) {
		say_fails_at_loss(j, rank, why);
		return -EPERM;
	}
	return 0;
}

bool mst_ending_ask_evict(struct mst_endings *e, struct mst_conn *c, uint32_t rank, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_EVICT };
	struct mst_reason why;

	if (e->evicts)
		return false;
	int rc = check_evict(e, rank, &why);
	if (rc != 0) {
		mst_frontend_error(&e->base->front, c, rc, why.text, now_ns);
		return true;
	}
	ev.who = worker_of(e, rank)->who;
	if (!mst_requests_event(&e->base->job.requests, &ev))
		return false;
	mst_info("%s evicts rank %" PRIu32, c->peer, rank);
	e->evicts = true;
	e->who = ev.who;
	e->evict_requester = c->id;
	return true;
}

/* The session may have ended for another reason before the ledger was asked; it is over in any
 * case. */
void mst_ending_evicted(struct mst_endings *e, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_identity who = notice->who;
	struct mst_reason text;

	if (!e->evicts || who.rank != e->who.rank || who.incarnation != e->who.incarnation)
		return;
	e->evicts = false;
	mst_reason_set(&text,
		       "job \"%s\": rank %" PRIu32 "%s; whoever may join can take the rank now",
		       e->base->job.o->job, who.rank,
		       notice->evict.why == MST_EVICT_ASKED ? " is evicted"
							    : "'s session is over already");
	answer(e, e->evict_requester, 0, text.text, now_ns);
}

void mst_ending_evict_refused(struct mst_endings *e, const struct mst_notice *notice,
			      uint64_t now_ns)
{
	struct mst_reason why;

	if (!e->evicts)
		return;
	e->evicts = false;
	say_fails_at_loss(&e->base->job, notice->who.rank, &why);
	answer(e, e->evict_requester, -EPERM, why.text, now_ns);
}

/* ---- the job ---- */

bool mst_ending_ask_end(struct mst_endings *e, struct mst_conn *c, const char *why, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_END };
	struct mst_job *j = &e->base->job;
	struct mst_reason text;

	if (e->ends)
		return false;
	if (j->state != MST_JOB_RUNNING) {
		mst_reason_set(&text, "job \"%s\" %s%s", j->o->job,
			       mst_job_is_over(j)
				       ? "is over: "
				       : "has not started, so there is nothing to finish",
			       j->why.text);
		mst_frontend_error(&e->base->front, c, mst_job_is_over(j) ? -ESHUTDOWN : -EAGAIN,
				   text.text, now_ns);
		return true;
	}
	if (!mst_requests_event(&j->requests, &ev))
		return false;
	mst_info("%s finishes the job", c->peer);
	e->ends = true;
	e->end_requester = c->id;
	if (j->asked.text[0] == '\0') {
		j->asked_by = (struct mst_identity){ .rank = UINT32_MAX };
		mst_reason_set(&j->asked, "an operator finished the job%s%s",
			       why[0] != '\0' ? ": " : "", why);
	}
	return true;
}

void mst_ending_finished(struct mst_endings *e, const struct mst_notice *notice, uint64_t now_ns)
{
	const struct mst_job *j = &e->base->job;
	struct mst_reason text;

	if (!e->ends)
		return;
	e->ends = false;
	bool failed = j->state == MST_JOB_FAILED;
	mst_reason_set(&text, "job \"%s\" %s at version %" PRIu64 ": %s", j->o->job,
		       failed ? "has failed" : "is finished", notice->finish.version, j->why.text);
	answer(e, e->end_requester, failed ? -EHOSTDOWN : 0, text.text, now_ns);
}
