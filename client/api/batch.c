/* SPDX-License-Identifier: MIT */
#include "client/api/batch.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/reason.h"

/* What compute() has made of a batch so far. */
struct progress {
	uint64_t calls;
	double weight; /* before the last call */
	uint64_t began_ns;
};

/* compute() has returned without ending the batch. Then it must at least have made progress. */
static int check_progress(struct muster *m, const struct progress *p,
			  const struct muster_contribution *c)
{
	double took_s = (double)(mst_now_ns() - p->began_ns) / (double)MST_SECOND;

	if (!(c->weight > p->weight))
		return mst_reason_fail(
			&m->failure, -EINVAL,
			"rank %" PRIu32 ": micro-batch %" PRIu64 " of a batch added no samples "
			"(weight %g, before it %g) and did not set full: compute() must add to "
			"weight, and set full at the end of a batch",
			m->session.job.rank, p->calls, c->weight, p->weight);
	if (took_s * (double)MST_SECOND <= (double)mst_client_session_patience(&m->session))
		return 0;
	return mst_reason_fail(
		&m->failure, -EINVAL,
		"rank %" PRIu32 ": %" PRIu64 " micro-batches with %g samples in %.3g s, and full "
		"is not set: longer than a step waits for a worker (--patience, --lease); "
		"compute() must set full at the end of a batch",
		m->session.job.rank, p->calls, c->weight, took_s);
}

/* Does the contribution end here? Under a rule by micro-batches it does with each of them, which is
 * a part of its batch unless that ends, too. Else it does with its batch. Under a rule that asks
 * for contributions the next batch goes on in the same one. Nobody asks in a session that has
 * ended, and where the control connection is cut off, the links alone tell that it has. So they are
 * looked at between two batches, and muster_check() says what has come of it. */
static bool ends(struct muster *m, struct progress *p, struct muster_contribution *c)
{
	if (m->worker.held.by_micro && !c->full && c->weight > p->weight)
		c->part = true;
	if (c->part)
		return true;
	if (!c->full || !m->worker.held.until_asked)
		return c->full;
	c->full = false;
	*p = (struct progress){ .weight = p->weight, .began_ns = mst_now_ns() };
	(void)mst_engine_take(&m->engine);
	return false;
}

int mst_batch_compute(struct muster *m, const struct muster_hooks *hooks, void *grad,
		      struct muster_contribution *c)
{
	struct progress p = { .began_ns = mst_now_ns() };

	*c = (struct muster_contribution)MUSTER_CONTRIBUTION;
	for (;;) {
		enum muster_hint hint = muster_check(m);
		if (hint == MUSTER_GIVE_UP)
			return MST_BATCH_GIVEN_UP;
		if (hint == MUSTER_HAND_IN)
			return c->weight > 0 ? MST_BATCH_DONE : MST_BATCH_GIVEN_UP;
		p.calls++;
		p.weight = c->weight;
		int rc = hooks->compute(hooks->ctx, grad, c);
		if (rc >= 0 && ends(m, &p, c))
			return MST_BATCH_DONE;
		if (rc >= 0)
			rc = check_progress(m, &p, c);
		if (rc < 0)
			return rc;
	}
}
