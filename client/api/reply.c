/* SPDX-License-Identifier: MIT */
#include "client/api/reply.h"

#include <errno.h>
#include <inttypes.h>

static int time_is_over(struct muster *m, const struct mst_reply *r)
{
	return mst_reason_fail(&m->failure, -ETIMEDOUT, "rank %" PRIu32 ": after %.3g s %s",
			       m->session.job.rank, (double)m->wait_ns / (double)MST_SECOND,
			       r->late);
}

int mst_reply_await(struct muster *m, const struct mst_reply *r)
{
	uint64_t deadline_ns = mst_deadline_ns(m->wait_ns);
	struct mst_engine_watch watch = { 0 };
	int slept = 0;

	for (;;) {
		int rc = r->look(m, r->ctx);
		if (rc == 0)
			rc = r->tell(m, r->ctx);
		if (rc != 0)
			return rc;
		if (slept == -ETIMEDOUT)
			return time_is_over(m, r);
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
