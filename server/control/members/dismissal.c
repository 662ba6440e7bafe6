/* SPDX-License-Identifier: MIT */
#include "server/control/members/dismissal.h"

#include <errno.h>
#include <inttypes.h>

bool mst_dismissal_make(struct mst_dismissal *d, struct mst_conn *c, int error, const char *what,
			uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LOST, .who = c->who, .error = error };
	struct mst_reason reason;

	if (!mst_requests_event(&d->base->job.requests, &ev))
		return false;
	c->left = true;
	if (error == -EPROTO) {
		mst_frontend_accuse(&d->base->front, c, what, &reason);
	} else {
		d->who = c->who;
		mst_reason_set(&d->why, "it %s", what);
		mst_reason_set(&reason, "rank %" PRIu32 " %s", c->who.rank, what);
	}
	if (error == -ENOTCONN) /* for the ledger it is lost */
		error = mst_job_evict_word(&d->base->job, MST_EVICT_LOST);
	mst_frontend_error(&d->base->front, c, error, reason.text, now_ns);
	return true;
}

const char *mst_dismissal_why(const struct mst_dismissal *d, struct mst_identity who)
{
	bool same = d->who.rank == who.rank && d->who.incarnation == who.incarnation;

	return same && d->why.text[0] != '\0' ? d->why.text : NULL;
}
