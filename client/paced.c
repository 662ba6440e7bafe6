/* SPDX-License-Identifier: MIT */
#include "client/paced.h"

#include <errno.h>
#include <string.h>

#include "client/batch.h"

typedef int take_fn(struct muster *m, const struct muster_hooks *hooks);

static const struct mst_pace *pace_of(const struct muster *m)
{
	return &m->worker.held.pace;
}

bool mst_paced_is(const struct muster *m)
{
	return pace_of(m)->local_steps > 0 || pace_of(m)->push_every > 0;
}

/* ---- the worker's own parameters ---- */

static void take_result(struct muster *m)
{
	const void *result = mst_contiguous_result(&m->contiguous, &m->worker.held);

	memcpy(m->own.parameters, result, mst_contiguous_result_bytes(&m->contiguous));
}

int mst_paced_begin(struct muster *m, const struct muster_hooks *hooks)
{
	if (m->own.begun)
		return 0;
	if (hooks->local == NULL)
		return mst_client_fail(&m->failure, -ENOTSUP,
				       "under policy %s a worker steps on parameters of its own: "
				       "muster_train() needs the hook local",
				       m->session.job.policy);
	if (m->settings.type != MUSTER_F32 || m->settings.result_type != MUSTER_F32)
		return mst_client_fail(&m->failure, -ENOTSUP,
				       "under policy %s a worker steps on parameters of its own, "
				       "which needs gradients and results of type f32",
				       m->session.job.policy);
	if (mst_own_allocate(&m->own, m->session.job.elems) != 0)
		return mst_client_fail(&m->failure, -ENOMEM,
				       "no memory for the parameters of this worker's own, and a "
				       "gradient, which policy %s needs",
				       m->session.job.policy);
	take_result(m);
	m->own.begun = true;
	m->own.pushed_ago = m->own.fetched_ago = 0;
	m->own.weight = m->own.loss_sum = 0;
	return 0;
}

void mst_paced_end(struct muster *m)
{
	m->own.begun = false;
}

/* ---- one step ---- */

static void add_to_sum(struct mst_own *own, const struct muster_contribution *c)
{
	own->has_loss = c->has_loss && (own->has_loss || own->weight == 0);
	own->weight += c->weight;
	own->loss_sum += c->has_loss ? c->loss * c->weight : 0;
}

/* A batch, and the step that follows from it. Where the gradient is a sum over its samples the step
 * is still on their mean.
 * Return: enum mst_batch, or an error. */
static int step(struct muster *m, const struct muster_hooks *hooks)
{
	struct mst_own *own = &m->own;
	struct muster_contribution c;
	int rc = mst_batch_compute(m, hooks, own->grad, &c);

	if (rc != MST_BATCH_DONE)
		return rc;
	for (uint64_t i = 0; c.sum && i < m->session.job.elems; i++)
		own->grad[i] /= (float)c.weight;
	rc = hooks->local(hooks->ctx, own->grad);
	add_to_sum(own, &c);
	return rc < 0 ? rc : MST_BATCH_DONE;
}

/* Pushes what lies in the slot, for all samples since the last push. */
static int push(struct muster *m, bool keep)
{
	struct mst_own *own = &m->own;
	struct muster_contribution c = MUSTER_CONTRIBUTION;

	c.weight = own->weight;
	c.has_loss = own->has_loss;
	c.loss = own->has_loss ? own->loss_sum / own->weight : 0;
	c.full = true;
	c.keep = keep;
	own->weight = own->loss_sum = 0;
	return muster_push(m, &c, NULL);
}

static int fetch(struct muster *m, const struct muster_hooks *hooks, take_fn *take)
{
	int rc = muster_pull(m);

	return rc == 0 ? take(m, hooks) : rc;
}

/* ---- local steps, and elastic averaging ---- */

/* All of the way from the servers' parameters, on which the steps began. */
static void write_difference(const struct muster *m, float *grad)
{
	const float *base = mst_contiguous_result(&m->contiguous, &m->worker.held);

	for (uint64_t i = 0; i < m->session.job.elems; i++)
		grad[i] = m->own.parameters[i] - base[i];
}

/* Zhang, Choromanska, LeCun 2015, algorithm 1: z = alpha (x - centre), x = x - z, and the servers
 * add z to the centre. */
static void write_elastic(const struct muster *m, float *grad, float alpha)
{
	const float *centre = mst_contiguous_result(&m->contiguous, &m->worker.held);
	float *x = m->own.parameters;

	for (uint64_t i = 0; i < m->session.job.elems; i++) {
		grad[i] = alpha * (x[i] - centre[i]);
		x[i] -= grad[i];
	}
}

/* The batch can no longer count, or the job or session is over: the wait that follows tells. */
static int give_up(struct muster *m, const struct muster_hooks *hooks, take_fn *take)
{
	int rc = muster_abandon(m);

	m->own.weight = m->own.loss_sum = 0;
	return rc == 0 ? take(m, hooks) : rc;
}

static int exchange_average(struct muster *m, const struct muster_hooks *hooks, take_fn *take)
{
	float *grad = muster_gradient(m);

	if (grad == NULL)
		return give_up(m, hooks, take);
	write_difference(m, grad);
	int rc = push(m, false);
	if (rc == 0)
		rc = take(m, hooks);
	if (rc == 0)
		take_result(m);
	return rc;
}

/* With the newest centre, which is asked for first. */
static int exchange_elastic(struct muster *m, const struct muster_hooks *hooks, take_fn *take)
{
	float alpha = (float)pace_of(m)->alpha;
	int rc = fetch(m, hooks, take);

	if (rc != 0)
		return rc;
	float *grad = muster_gradient(m);
	if (grad == NULL)
		return give_up(m, hooks, take);
	write_elastic(m, grad, alpha);
	return push(m, true);
}

static int exchange_steps(struct muster *m, const struct muster_hooks *hooks, take_fn *take)
{
	uint32_t steps = pace_of(m)->local_steps;

	for (uint32_t i = 0; i < steps; i++) {
		int rc = step(m, hooks);
		if (rc == MST_BATCH_GIVEN_UP)
			return give_up(m, hooks, take);
		if (rc < 0)
			return rc;
	}
	return pace_of(m)->alpha > 0 ? exchange_elastic(m, hooks, take)
				     : exchange_average(m, hooks, take);
}

/* ---- Downpour ---- */

/* Dean et al. 2012, algorithm 7.1: gradients accrue, while the worker steps with each of them. */
static int accrue(struct muster *m)
{
	struct mst_own *own = &m->own;
	float *grad = muster_gradient(m);

	if (grad == NULL)
		return -EAGAIN;
	for (uint64_t i = 0; i < m->session.job.elems; i++)
		grad[i] = own->pushed_ago > 0 ? grad[i] + own->grad[i] : own->grad[i];
	return 0;
}

static int exchange_downpour(struct muster *m, const struct muster_hooks *hooks, take_fn *take)
{
	struct mst_own *own = &m->own;
	struct mst_pace pace = *pace_of(m);
	int rc = step(m, hooks);

	if (rc == MST_BATCH_GIVEN_UP)
		return give_up(m, hooks, take);
	if (rc >= 0)
		rc = accrue(m);
	if (rc == -EAGAIN) { /* all slots are in flight: wait for one, then go on */
		rc = fetch(m, hooks, take);
		if (rc == 0)
			rc = accrue(m);
	}
	if (rc != 0)
		return rc;
	if (++own->pushed_ago >= pace.push_every) {
		own->pushed_ago = 0;
		rc = push(m, true);
	}
	if (rc != 0 || ++own->fetched_ago < pace.fetch_every)
		return rc;
	own->fetched_ago = 0;
	rc = fetch(m, hooks, take);
	if (rc == 0)
		take_result(m);
	return rc;
}

int mst_paced_exchange(struct muster *m, const struct muster_hooks *hooks, take_fn *take)
{
	return pace_of(m)->local_steps > 0 ? exchange_steps(m, hooks, take)
					   : exchange_downpour(m, hooks, take);
}
