/* SPDX-License-Identifier: MIT */
/* muster_train(): the loop that serves every policy. */
#include <errno.h>
#include <inttypes.h>

#include "client/handle.h"
#include "client/sized.h"
#include "common/base/clock.h"

enum batch {
	BATCH_DONE,     /* full */
	BATCH_GIVEN_UP, /* it can no longer count */
};

/* What compute() has made of a batch. */
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
		return mst_client_fail(
			&m->failure, -EINVAL,
			"rank %" PRIu32 ": micro-batch %" PRIu64 " of a batch added no samples "
			"(weight %g, before it %g) and did not set full: compute() must add to "
			"weight, and set full at the end of a batch",
			m->session.job.rank, p->calls, c->weight, p->weight);
	if (took_s * (double)MST_SECOND <= (double)mst_client_session_patience(&m->session))
		return 0;
	return mst_client_fail(
		&m->failure, -EINVAL,
		"rank %" PRIu32 ": %" PRIu64 " micro-batches with %g samples in %.3g s, and full "
		"is not set: longer than a step waits for a worker (--patience, --lease); "
		"compute() must set full at the end of a batch",
		m->session.job.rank, p->calls, c->weight, took_s);
}

/* Computes micro-batches until the batch is full or can no longer count. Return: enum batch, or
 * what a hook returned. */
static int compute_batch(struct muster *m, const struct muster_hooks *hooks,
			 struct muster_contribution *c)
{
	struct progress p = { .began_ns = mst_now_ns() };
	void *grad = muster_gradient(m);

	*c = (struct muster_contribution)MUSTER_CONTRIBUTION;
	if (grad == NULL)
		return BATCH_GIVEN_UP; /* the session has ended: the wait that follows tells */
	for (;;) {
		if (muster_check(m) == MUSTER_GIVE_UP)
			return BATCH_GIVEN_UP;
		p.calls++;
		p.weight = c->weight;
		int rc = hooks->compute(hooks->ctx, grad, c);
		if (rc >= 0 && c->full)
			return BATCH_DONE;
		if (rc >= 0)
			rc = check_progress(m, &p, c);
		if (rc < 0)
			return rc;
	}
}

/* Waits, and applies what is fresh, until nothing more is ready. 1: finished. */
static int take_outcomes(struct muster *m, const struct muster_hooks *hooks)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int more, rc = 0;

	do {
		more = muster_wait(m, &out);
		if (more < 0)
			return more;
		if (out.fresh)
			rc = hooks->apply(hooks->ctx, &out);
		if (rc > 0)
			rc = muster_finish(m, "a worker's apply() had enough");
		if (rc < 0)
			return rc;
	} while (more > 0 || (m->worker.finishing && !out.finished));
	return out.finished;
}

static int hand_in(struct muster *m, const struct muster_hooks *hooks)
{
	struct muster_contribution c;
	int rc = compute_batch(m, hooks, &c);

	if (rc == BATCH_GIVEN_UP)
		return muster_abandon(m);
	return rc < 0 ? rc : muster_push(m, &c, NULL);
}

static int read_hooks(struct muster *m, const struct muster_hooks *theirs, struct muster_hooks *out)
{
	static const struct mst_sized sized = { "hooks", "MUSTER_HOOKS",
						sizeof(struct muster_hooks) };

	if (theirs == NULL)
		return mst_client_fail(&m->failure, -EINVAL, "muster_train() needs hooks");
	int rc = mst_sized_read(&sized, theirs, out, m->failure.text, sizeof(m->failure.text));
	if (rc != 0)
		return rc;
	if (out->compute == NULL || out->apply == NULL)
		return mst_client_fail(&m->failure, -EINVAL,
				       "muster_train() needs the hooks compute and apply");
	if (out->local != NULL)
		return mst_client_fail(&m->failure, -ENOTSUP,
				       "hooks.local is set, but no policy of this release has "
				       "steps of a worker's own between exchanges: leave it NULL");
	return 0;
}

int muster_train(struct muster *m, const struct muster_hooks *theirs)
{
	struct muster_hooks read = MUSTER_HOOKS;
	const struct muster_hooks *hooks = &read;

	if (m->inherited)
		return mst_handle_disowned(m);
	int rc = read_hooks(m, theirs, &read);
	if (rc != 0)
		return rc;
	if (m->worker.phase < MST_WORKER_WORKING)
		return mst_client_fail(&m->failure, -EINVAL,
				       "call muster_start() before muster_train()");
	if (m->worker.phase == MST_WORKER_OVER)
		return 0;
	/* If the last call ended inside a wait, the outcome of that push comes first. */
	if (mst_worker_awaits(&m->worker))
		rc = take_outcomes(m, hooks);
	while (rc == 0) {
		rc = hand_in(m, hooks);
		if (rc == 0)
			rc = take_outcomes(m, hooks);
	}
	return rc > 0 ? 0 : rc;
}
