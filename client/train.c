/* SPDX-License-Identifier: MIT */
/* muster_train(): the loop that serves every policy. No policy of this release orders steps between
 * exchanges, so the hook `local` is not called yet. */
#include <errno.h>
#include <math.h>

#include "client/client.h"

enum batch {
	BATCH_DONE,     /* full, or to be handed in as it is */
	BATCH_GIVEN_UP, /* it can no longer count */
};

/* Micro-batches until the batch is full, or the server wants no more of it. Return: enum batch, or
 * what a hook returned. */
static int compute_batch(struct muster *m, const struct muster_hooks *hooks,
			 struct muster_contribution *c)
{
	void *grad = muster_gradient(m);

	*c = (struct muster_contribution){ .loss = NAN };
	if (grad == NULL)
		return BATCH_GIVEN_UP; /* the session has ended: the wait that follows tells */
	for (;;) {
		enum muster_advice advice = muster_check(m);
		if (advice == MUSTER_GIVE_UP)
			return BATCH_GIVEN_UP;
		if (advice == MUSTER_HAND_IN && c->weight > 0)
			return BATCH_DONE;
		int rc = hooks->compute(hooks->ctx, grad, c);
		if (rc < 0)
			return rc;
		if (c->full)
			return BATCH_DONE;
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
	} while (more > 0 || (m->asked_end && !out.finished));
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

int muster_train(struct muster *m, const struct muster_hooks *hooks)
{
	int rc = 0;

	if (hooks == NULL || hooks->compute == NULL || hooks->apply == NULL)
		return mst_client_fail(m, -EINVAL,
				       "muster_train() needs the hooks compute and apply");
	if (m->worker.phase < MST_WORKER_WORKING)
		return mst_client_fail(m, -EINVAL, "call muster_start() before muster_train()");
	if (m->worker.phase == MST_WORKER_OVER)
		return 0;
	/* Called again after a wait that was cut short: first what was pushed then. */
	if (mst_worker_awaits(&m->worker))
		rc = take_outcomes(m, hooks);
	while (rc == 0) {
		rc = hand_in(m, hooks);
		if (rc == 0)
			rc = take_outcomes(m, hooks);
	}
	return rc > 0 ? 0 : rc;
}
