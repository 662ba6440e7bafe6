/* SPDX-License-Identifier: MIT */
#include "client/api/reply.h"

#include <errno.h>
#include <inttypes.h>

#include "client/api/returning.h"

static int time_is_over(struct muster *m, const struct mst_reply *r)
{
	return mst_reason_fail(&m->failure, -ETIMEDOUT, "rank %" PRIu32 ": after %.3g s %s",
			       m->session.job.rank, (double)m->wait_ns / (double)MST_SECOND,
			       r->late);
}

/* The session is lost. The handle comes back here too, unless a gradient buffer is in use. */
static int come_back(struct muster *m, const struct mst_reply *r, uint64_t deadline_ns)
{
	if (m->worker.filling >= 0)
		return mst_reason_fail(&m->failure, -ETIMEDOUT,
				       "rank %" PRIu32
				       ": a server is lost, and a gradient is being "
				       "filled: push it, and muster_wait() comes back to the next "
				       "server; %s",
				       m->session.job.rank, r->late);
	return mst_return_await(m, deadline_ns);
}

int mst_reply_await(struct muster *m, const struct mst_reply *r)
{
	uint64_t deadline_ns = mst_deadline_ns(m->wait_ns);
	struct mst_engine_watch watch = { 0 };
	int slept = 0;

	for (;;) {
		int rc = r->look(m, r->ctx);
		if (rc == 0 && mst_return_is_due(m))
			rc = come_back(m, r, deadline_ns);
		if (rc == 0)
			rc = r->tell(m, r->ctx);
		if (rc != 0)
			return rc;
		if (slept == -ETIMEDOUT)
			return time_is_over(m, r);
		rc = mst_handle_serve(m);
		if (rc == 0)
			rc = mst_engine_watch(&m->engine, &watch);
		if (rc == 0)
			rc = mst_engine_interrupted(&m->engine, slept);
		if (rc == 0 && r->or_last_version)
			rc = mst_engine_cut_off(&m->engine);
		if (rc < 0)
			return rc;
		slept = rc == 0 ? mst_engine_sleep(&m->engine, deadline_ns) : 0;
	}
}
