/* SPDX-License-Identifier: MIT */
#include "client/api/paced.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "client/api/batch.h"
#include "common/base/reason.h"

/* What advance() returns beside errors. */
enum { GOES_ON, WAITS };

static const struct mst_pace *pace_of(const struct muster *m)
{
	return &m->worker.held.pace;
}

bool mst_paced_is(const struct muster *m)
{
	return pace_of(m)->local_steps > 0 || pace_of(m)->push_every > 0;
}

/* ---- the worker's own parameters ---- */

static const float *result_of(const struct muster *m)
{
	return mst_contiguous_result(&m->contiguous, &m->worker.held);
}

static void take_result(struct muster *m)
{
	memcpy(m->own.parameters, result_of(m), mst_contiguous_result_bytes(&m->contiguous));
}

static void forget_batches(struct mst_own *own)
{
	own->weight = own->loss_sum = 0;
	own->has_loss = false;
}

/* The parameters begin anew, with a result, and so does all that depends on them. */
static void reset(struct mst_own *own)
{
	own->begun = false;
	own->stage = MST_OWN_STEP;
	own->steps = own->accrued = own->unfetched = 0;
	forget_batches(own);
}

static int check(struct muster *m, const struct muster_hooks *hooks)
{
	if (hooks->local == NULL)
		return mst_reason_fail(&m->failure, -ENOTSUP,
				       "under policy %s a worker steps on parameters of its own: "
				       "muster_train() needs the hook local",
				       m->session.job.policy);
	if (m->settings.type != MUSTER_F32 || m->settings.result_type != MUSTER_F32)
		return mst_reason_fail(&m->failure, -ENOTSUP,
				       "under policy %s a worker steps on parameters of its own, "
				       "which needs gradients and results of type f32",
				       m->session.job.policy);
	return 0;
}

static int begin(struct muster *m, const struct muster_hooks *hooks)
{
	struct mst_own *own = &m->own;
	int rc = check(m, hooks);

	if (rc != 0 || own->begun)
		return rc;
	if (mst_own_allocate(own, m->session.job.elems) != 0)
		return mst_reason_fail(&m->failure, -ENOMEM,
				       "no memory for %" PRIu64 " parameters of this worker's own, "
				       "and a gradient, which policy %s needs",
				       m->session.job.elems, m->session.job.policy);
	reset(own);
	take_result(m);
	own->begun = true;
	return 0;
}

/* ---- what stages are made of ---- */

/* For all samples since the last push. If it fails, the data may not be finite, and then the
 * parameters are not either: they begin anew. */
static int push(struct muster *m, bool keep)
{
	struct mst_own *own = &m->own;
	struct muster_contribution c = MUSTER_CONTRIBUTION;

	c.weight = own->weight;
	c.has_loss = own->has_loss;
	c.loss = own->has_loss ? own->loss_sum / own->weight : 0;
	c.full = true;
	c.keep = keep;
	forget_batches(own);
	int rc = muster_push(m, &c, NULL);
	if (rc != 0)
		reset(own);
	return rc;
}

/* The newest version is asked for, to go on with @next when it is here. */
static int fetch(struct muster *m, enum mst_own_stage next)
{
	int rc = muster_pull(m);

	if (rc != 0)
		return rc;
	m->own.stage = next;
	return WAITS;
}

/* What was done on this version can no longer count, or the job or the session is over. */
static int give_up(struct muster *m)
{
	reset(&m->own);
	int rc = muster_abandon(m);
	return rc == 0 ? WAITS : rc;
}

/* ---- one step ---- */

static void add_to_sum(struct mst_own *own, const struct muster_contribution *c)
{
	own->has_loss = c->has_loss && (own->has_loss || own->weight == 0);
	own->weight += c->weight;
	own->loss_sum += c->has_loss ? c->loss * c->weight : 0;
}

/* A batch in own->grad. A gradient that is a sum over its samples becomes their mean.
 * Return: enum mst_batch, or an error. */
static int compute(struct muster *m, const struct muster_hooks *hooks,
		   struct muster_contribution *c)
{
	float *grad = m->own.grad;
	int rc = mst_batch_compute(m, hooks, grad, c);

	if (rc != MST_BATCH_DONE)
		return rc;
	if (!(c->weight > 0))
		return mst_reason_fail(&m->failure, -EINVAL,
				       "rank %" PRIu32 ": compute() set full for a batch of weight "
				       "%g: it must add its samples to weight",
				       m->session.job.rank, c->weight);
	for (uint64_t i = 0; c->sum && i < m->session.job.elems; i++)
		grad[i] /= (float)c->weight;
	return MST_BATCH_DONE;
}

static int step(struct muster *m, const struct muster_hooks *hooks)
{
	struct mst_own *own = &m->own;
	struct muster_contribution c;
	int rc = compute(m, hooks, &c);

	if (rc == MST_BATCH_GIVEN_UP)
		return give_up(m);
	if (rc == MST_BATCH_DONE)
		rc = hooks->local(hooks->ctx, own->grad);
	if (rc < 0)
		return rc;
	add_to_sum(own, &c);
	own->steps++;
	own->unfetched++;
	if (pace_of(m)->push_every > 0)
		own->stage = MST_OWN_ACCRUE;
	return GOES_ON;
}

/* ---- local steps, and elastic averaging ---- */

/* All of the way from the servers' parameters, on which the steps began. */
static void write_difference(const struct muster *m, float *grad)
{
	const float *base = result_of(m);

	for (uint64_t i = 0; i < m->session.job.elems; i++)
		grad[i] = m->own.parameters[i] - base[i];
}

/* Zhang, Choromanska, LeCun 2015, algorithm 1: z = alpha (x - centre), x = x - z, and the servers
 * add z to the centre. */
static void write_elastic(const struct muster *m, float *grad, float alpha)
{
	const float *centre = result_of(m);
	float *x = m->own.parameters;

	for (uint64_t i = 0; i < m->session.job.elems; i++) {
		grad[i] = alpha * (x[i] - centre[i]);
		x[i] -= grad[i];
	}
}

/* A slot is free: each push was followed by an outcome, which brings one. So without a buffer the
 * session is over, which the wait that follows tells. */
static int meet(struct muster *m)
{
	struct mst_own *own = &m->own;
	float *grad = muster_gradient(m);
	double alpha = pace_of(m)->alpha;

	if (grad == NULL)
		return give_up(m);
	if (alpha > 0)
		write_elastic(m, grad, (float)alpha);
	else
		write_difference(m, grad);
	own->steps = 0;
	own->stage = alpha > 0 ? MST_OWN_STEP : MST_OWN_AWAIT;
	int rc = push(m, alpha > 0);
	if (rc != 0)
		return rc;
	return alpha > 0 ? GOES_ON : WAITS;
}

static int step_locally(struct muster *m, const struct muster_hooks *hooks)
{
	if (m->own.steps < pace_of(m)->local_steps)
		return step(m, hooks);
	return pace_of(m)->alpha > 0 ? fetch(m, MST_OWN_MEET) : meet(m);
}

/* ---- Downpour ---- */

/* False: all slots are in flight. */
static bool add_gradient(struct muster *m)
{
	struct mst_own *own = &m->own;
	float *sum = muster_gradient(m);

	if (sum == NULL)
		return false;
	for (uint64_t i = 0; i < m->session.job.elems; i++)
		sum[i] = own->accrued > 0 ? sum[i] + own->grad[i] : own->grad[i];
	own->accrued++;
	own->stage = MST_OWN_STEP;
	return true;
}

/* Dean et al. 2012, algorithm 7.1: gradients accrue, while the worker steps with each of them. */
static int accrue(struct muster *m)
{
	struct mst_own *own = &m->own;
	const struct mst_pace *pace = pace_of(m);

	if (!add_gradient(m))
		return fetch(m, MST_OWN_ACCRUE); /* that wait brings a slot */
	bool fetches = own->unfetched >= pace->fetch_every;
	bool pushes = own->accrued >= pace->push_every;
	if (fetches) {
		own->unfetched = 0;
		own->stage = MST_OWN_AWAIT;
	}
	if (pushes) {
		own->accrued = 0;
		int rc = push(m, !fetches); /* it carries the ask */
		if (rc != 0)
			return rc;
	}
	if (!fetches)
		return GOES_ON;
	return pushes ? WAITS : fetch(m, MST_OWN_AWAIT);
}

/* ---- the whole ---- */

static int advance(struct muster *m, const struct muster_hooks *hooks)
{
	switch (m->own.stage) {
	case MST_OWN_ACCRUE:
		return accrue(m);
	case MST_OWN_MEET:
		return meet(m);
	case MST_OWN_AWAIT:
		return fetch(m, MST_OWN_AWAIT);
	default:
		return pace_of(m)->local_steps > 0 ? step_locally(m, hooks) : step(m, hooks);
	}
}

int mst_paced_exchange(struct muster *m, const struct muster_hooks *hooks)
{
	int rc = begin(m, hooks);

	while (rc == GOES_ON)
		rc = advance(m, hooks);
	return rc == WAITS ? 0 : rc;
}

void mst_paced_begin_anew(struct muster *m)
{
	reset(&m->own);
}

void mst_paced_outcome(struct muster *m)
{
	struct mst_own *own = &m->own;

	if (own->begun && own->stage == MST_OWN_AWAIT) {
		take_result(m);
		own->stage = MST_OWN_STEP;
	}
	if (!mst_paced_is(m))
		own->begun = false;
}

int mst_paced_end(struct muster *m)
{
	struct mst_own *own = &m->own;

	if (own->stage == MST_OWN_ACCRUE)
		(void)add_gradient(m);
	own->stage = MST_OWN_STEP;
	if (own->accrued == 0)
		return 1;
	own->accrued = 0;
	return push(m, false);
}
