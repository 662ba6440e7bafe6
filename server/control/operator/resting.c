/* SPDX-License-Identifier: MIT */
#include "server/control/operator/resting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "common/base/reason.h"

/* The connection of the rank's present session. */
static const struct mst_conn *worker_of(const struct mst_resting *r, uint32_t rank)
{
	const struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next(&r->base->front, &i)) != NULL;) {
		if (c->role == MST_CONN_WORKER && c->who.rank == rank && !c->left)
			return c;
	}
	return NULL;
}

static int check(const struct mst_resting *r, uint32_t rank, struct mst_reason *why)
{
	const struct mst_job *j = &r->base->job;

	if (j->state != MST_JOB_RUNNING) {
		mst_reason_set(why, "job \"%s\" %s: there is nothing to rest from", j->o->job,
			       mst_job_is_over(j) ? "is over" : "has not started");
		return -EAGAIN;
	}
	if (rank >= j->o->workers) {
		mst_reason_set(why,
			       "rank %" PRIu32 " is not one of job \"%s\": its %" PRIu32
			       " workers are ranks 0 to %" PRIu32,
			       rank, j->o->job, j->o->workers, j->o->workers - 1);
		return -EINVAL;
	}
	if (!j->present[rank] || worker_of(r, rank) == NULL) {
		mst_reason_set(why, "rank %" PRIu32 " takes no part in job \"%s\" now", rank,
			       j->o->job);
		return -ENOTCONN;
	}
	return 0;
}

bool mst_resting_ask(struct mst_resting *r, struct mst_conn *c, const struct mst_rest *rest,
		     uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_REST, .rests = rest->rests != 0 };
	struct mst_reason why;

	if (r->waits)
		return false;
	int rc = check(r, rest->rank, &why);
	if (rc != 0) {
		mst_frontend_error(&r->base->front, c, rc, why.text, now_ns);
		return true;
	}
	ev.who = worker_of(r, rest->rank)->who;
	if (!mst_requests_event(&r->base->job.requests, &ev))
		return false;
	mst_info("%s asks rank %" PRIu32 " to %s", c->peer, rest->rank,
		 ev.rests ? "rest" : "return");
	r->waits = true;
	r->requester = c->id;
	return true;
}

/* Return: 0, or the error of the answer. */
static int read_outcome(const struct mst_notice *notice, struct mst_reason *text)
{
	uint32_t rank = notice->who.rank;
	bool rests = notice->rest.rests;

	switch (notice->rest.outcome) {
	case MST_REST_DONE:
		mst_reason_set(text, "rank %" PRIu32 " %s", rank,
			       rests ? "rests: the job goes on without it until it returns"
				     : "returns: it takes part from the next version on");
		return 0;
	case MST_REST_ALREADY:
		mst_reason_set(text, "rank %" PRIu32 " %s already", rank,
			       rests ? "rests" : "takes part");
		return 0;
	case MST_REST_LAST:
		mst_reason_set(text,
			       "rank %" PRIu32
			       " is the last that takes part in the steps: it cannot rest before "
			       "another returns",
			       rank);
		return -EBUSY;
	case MST_REST_BEHIND:
		mst_reason_set(
			text,
			"rank %" PRIu32
			" is behind, and waits for the state of another worker: it cannot rest "
			"before it has caught up",
			rank);
		return -EBUSY;
	case MST_REST_ABSENT:
		break;
	}
	mst_reason_set(text, "the session of rank %" PRIu32 " is over", rank);
	return -ENOTCONN;
}

void mst_resting_taken(struct mst_resting *r, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_conn *c = mst_frontend_conn(&r->base->front, r->requester);
	struct mst_reason text;
	int rc = read_outcome(notice, &text);

	r->waits = false;
	if (c == NULL)
		return;
	if (rc != 0) {
		mst_frontend_error(&r->base->front, c, rc, text.text, now_ns);
		return;
	}
	struct mst_message *m = mst_frontend_draft(&r->base->front, MST_MSG_DONE);
	mst_reason_set(&text, "job \"%s\": %s", r->base->job.o->job, text.text);
	snprintf(m->why, sizeof(m->why), "%s", text.text);
	mst_frontend_send(&r->base->front, c, m);
}

void mst_resting_noted(const struct mst_resting *r, const struct mst_notice *notice)
{
	mst_info("job \"%s\": rank %" PRIu32 " %s", r->base->job.o->job, notice->who.rank,
		 notice->rest.rests ? "rests" : "has returned");
}
