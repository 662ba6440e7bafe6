/* SPDX-License-Identifier: MIT */
/* muster_train(): the loop that serves every policy. */
#include <errno.h>

#include "client/api/batch.h"
#include "client/api/handle.h"
#include "client/api/paced.h"
#include "client/local/sized.h"

/* Shows an outcome to the hooks. A positive return of apply() finishes the job. */
static int show(struct muster *m, const struct muster_hooks *hooks,
		const struct muster_outcome *out)
{
	int rc = 0;

	if (out->verdict != MUSTER_NONE && hooks->judged != NULL)
		rc = hooks->judged(hooks->ctx, out);
	if (rc >= 0 && out->withdrawn > 0 && hooks->withdrawn != NULL)
		rc = hooks->withdrawn(hooks->ctx, out);
	if (rc < 0 || !out->fresh)
		return rc < 0 ? rc : 0;
	rc = hooks->apply(hooks->ctx, out);
	return rc > 0 ? muster_finish(m, "a worker's apply() had enough") : rc;
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
		if (out.withdrawn > 0)
			mst_paced_begin_anew(m);
		if (!out.finished) /* an ask may still be open, and its answer on its way */
			mst_paced_outcome(m);
		rc = show(m, hooks, &out);
		if (rc < 0)
			return rc;
	} while (more > 0 || (m->worker.finishing && !out.finished));
	return out.finished;
}

static int hand_in(struct muster *m, const struct muster_hooks *hooks)
{
	struct muster_contribution c;
	void *grad = muster_gradient(m);
	/* NULL: the session has ended, and the wait that follows tells. */
	int rc = grad != NULL ? mst_batch_compute(m, hooks, grad, &c) : MST_BATCH_GIVEN_UP;

	if (rc == MST_BATCH_GIVEN_UP)
		return muster_abandon(m);
	return rc < 0 ? rc : muster_push(m, &c, NULL);
}

/* To the next exchange, and through it. 1: finished. */
static int go_round(struct muster *m, const struct muster_hooks *hooks)
{
	int rc;

	if (mst_paced_is(m)) {
		rc = mst_paced_exchange(m, hooks);
	} else {
		rc = mst_paced_end(m);
		if (rc > 0)
			rc = hand_in(m, hooks);
	}
	return rc == 0 ? take_outcomes(m, hooks) : rc;
}

static int read_hooks(struct muster *m, const struct muster_hooks *theirs, struct muster_hooks *out)
{
	static const struct mst_sized sized = { "hooks", "MUSTER_HOOKS",
						sizeof(struct muster_hooks) };

	if (theirs == NULL)
		return mst_reason_fail(&m->failure, -EINVAL, "muster_train() needs hooks");
	int rc = mst_sized_read(&sized, theirs, out, &m->failure);
	if (rc != 0)
		return rc;
	if (out->compute == NULL || out->apply == NULL)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_train() needs the hooks compute and apply");
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
		return mst_reason_fail(&m->failure, -EINVAL,
				       "call muster_start() before muster_train()");
	if (m->worker.phase == MST_WORKER_OVER)
		return 0;
	/* If the last call ended inside a wait, the outcome of that push comes first. */
	if (mst_worker_awaits(&m->worker))
		rc = take_outcomes(m, hooks);
	while (rc == 0)
		rc = go_round(m, hooks);
	return rc > 0 ? 0 : rc;
}
