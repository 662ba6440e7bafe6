/* SPDX-License-Identifier: MIT */
/*
 * The hooks of muster_train(), which serve all policies. A gradient is computed in the buffer that
 * it is pushed from, and parameters are read where the result lies: this worker copies nothing.
 */
#include "client/examples/digits/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/examples/digits/blas.h"
#include "common/base/clock.h"
#include "common/base/reason.h"

/* How long a delayed worker does not look at hints: as long as no server has ever told it to give
 * up, and after that. The kernel adds its timer slack, 50 us. */
#define NAP_NS (1 * MST_MS)
#define SHORT_NAP_NS (MST_MS / 20)

/* What the next gradient is computed on. */
static float *parameters_of(const struct worker *w)
{
	return w->settings->owner == MUSTER_SERVERS_OWN ? muster_parameters(w->muster) : w->own;
}

/* How many samples come next: at most settings->micro, within the batch. */
static uint32_t next_rows(const struct worker *w)
{
	uint32_t left = w->settings->batch - w->done;

	return left < w->settings->micro ? left : w->settings->micro;
}

/* A contribution may begin in the middle of a batch, and may have samples of several. */
static void add_samples(struct worker *w, uint32_t rows, float *grad, struct muster_contribution *c)
{
	bool first = c->weight == 0;
	double loss = mst_learner_gradient(&w->learner, parameters_of(w), &w->chance,
					   &(struct mst_gradient){ grad, rows, !first });
	double loss_before = first ? 0 : c->loss * c->weight;
	c->sum = true;
	c->weight += rows;
	c->loss = (loss_before + loss) / c->weight;
	c->has_loss = true;
}

/* Plays a slower machine: waits for the part of the batch's delay that belongs to these samples.
 * What servers ask for meanwhile waits until these samples are done.
 * Return: false, at once, if what is being computed can no longer count. */
static bool wait_out_delay(struct worker *w, uint32_t rows)
{
	uint64_t now = mst_now_ns();
	uint64_t end = now + w->delay_ns * rows / w->settings->batch;

	for (; now < end; now = mst_now_ns()) {
		if (muster_check(w->muster) == MUSTER_GIVE_UP) {
			w->nap_ns = SHORT_NAP_NS;
			return false;
		}
		mst_sleep_ns(end - now < w->nap_ns ? end - now : w->nap_ns);
	}
	return true;
}

static int compute(void *ctx, void *grad, struct muster_contribution *c)
{
	struct worker *w = ctx;
	uint32_t rows = next_rows(w);

	if (w->done == 0)
		w->delay_ns = mst_delay_next(w->delay);
	add_samples(w, rows, grad, c);
	w->done = (w->done + rows) % w->settings->batch;
	c->full = wait_out_delay(w, rows) && w->done == 0;
	return 0;
}

/* A step between two exchanges, on parameters of the worker's own. */
static int local(void *ctx, void *grad)
{
	const struct worker *w = ctx;
	uint64_t elems = muster_job(w->muster)->elems;
	float lr = (float)w->settings->lr;
	float *parameters = parameters_of(w);
	const float *mean = grad;

	for (uint64_t i = 0; i < elems; i++)
		parameters[i] -= lr * mean[i];
	return 0;
}

/* A batch that was given up is begun anew. Samples that came too late are not computed again: the
 * next ones are as good, since all are picked at random. */
static int judged(void *ctx, const struct muster_outcome *out)
{
	struct worker *w = ctx;

	if (out->verdict == MUSTER_CANCELLED && out->ticket == 0)
		w->done = 0;
	return 0;
}

/* The worker's own optimiser: what the server does by itself where it owns the parameters. */
static void take_step(struct worker *w, const float *mean, double lr_scale)
{
	uint64_t elems = muster_job(w->muster)->elems;
	float lr = (float)(w->settings->lr * lr_scale);
	float keep = (float)w->settings->momentum;

	for (uint64_t i = 0; i < elems; i++) {
		w->momentum[i] = keep * w->momentum[i] + mean[i];
		w->own[i] -= lr * w->momentum[i];
	}
}

static bool test_is_due(const struct worker *w, uint64_t before)
{
	uint32_t every = w->settings->test_every;

	return w->rank == 0 && every > 0 && w->version / every > before / every;
}

/* A loss that is infinite or not a number cannot be reported. That is no error here. */
int worker_report(struct worker *w, const struct mst_test_result *test)
{
	int rc = muster_report(w->muster, "accuracy", test->accuracy);

	if (rc == 0)
		rc = muster_report(w->muster, "test_loss", test->loss);
	return rc == -EDOM || rc == -EAGAIN ? 0 : rc;
}

static int test(struct worker *w)
{
	struct mst_test_result result = worker_test(w);

	printf("version %" PRIu64 ": loss %.3f, test accuracy %.3f\n", w->version, result.loss,
	       result.accuracy);
	fflush(stdout);
	return worker_report(w, &result);
}

static int apply(void *ctx, const struct muster_outcome *out)
{
	struct worker *w = ctx;
	uint64_t before = w->version;

	w->version = out->version;
	if (w->settings->owner == MUSTER_SERVERS_OWN)
		w->newest = out->result;
	else
		take_step(w, out->result, out->orders.lr_scale);
	return test_is_due(w, before) ? test(w) : 0;
}

/* All begin with the state that muster_start() hands out, which one of them has offered. */
static void take_start(struct worker *w, const struct muster_outcome *out)
{
	uint64_t elems = muster_job(w->muster)->elems;

	w->version = out->version;
	w->newest = out->result;
	if (w->settings->owner == MUSTER_SERVERS_OWN)
		return;
	memcpy(w->own, out->result, elems * sizeof(float));
	w->newest = w->own;
}

int worker_learn(struct worker *w)
{
	struct muster_hooks hooks = MUSTER_HOOKS;
	struct muster_outcome out = MUSTER_OUTCOME;
	hooks.ctx = w;
	hooks.compute = compute;
	hooks.local = local;
	hooks.apply = apply;
	hooks.judged = judged;
	int rc = muster_start(w->muster, w->own, &out);
	if (rc)
		return rc;
	take_start(w, &out);
	do /* told to rest for long, or a server is silent: nothing is lost */
		rc = muster_train(w->muster, &hooks);
	while (rc == -ETIMEDOUT);
	return rc;
}

struct mst_test_result worker_test(struct worker *w)
{
	return mst_learner_test(&w->learner, w->newest);
}

static mst_product_fn *product_of(const struct settings *s)
{
	mst_product_fn *blas = s->product == PRODUCT_PLAIN ? NULL : blas_product();

	return blas != NULL ? blas : mst_product;
}

static int allocate(struct worker *w, const struct mst_dataset *data)
{
	const struct settings *s = w->settings;
	int rc = mst_learner_init(&w->learner, data, s->hidden, s->micro);

	if (rc)
		return rc;
	w->learner.net.product = product_of(s);
	uint64_t elems = mst_mlp_elems(&w->learner.net.shape);
	w->own = calloc(elems, sizeof(float));
	w->momentum = calloc(elems, sizeof(float));
	return w->own != NULL && w->momentum != NULL ? 0 : -ENOMEM;
}

/* A job that goes on from a checkpoint goes on with other samples than it began with. */
static void seed_samples(struct worker *w)
{
	uint64_t from = muster_job(w->muster)->first_version;

	mst_rand_seed(&w->chance, w->settings->seed + w->rank + (from << 32));
}

static int join(struct worker *w, struct mst_reason *why)
{
	struct muster_options options = MUSTER_OPTIONS;

	options.elems = mst_mlp_elems(&w->learner.net.shape);
	options.owner = (enum muster_owner)w->settings->owner;
	int rc = muster_open(&options, &w->muster);
	if (rc) {
		mst_reason_set(why, "%s", muster_error(NULL));
		return rc;
	}
	w->rank = muster_job(w->muster)->rank;
	seed_samples(w);
	return 0;
}

int worker_init(struct worker *w, const struct settings *settings, const struct mst_dataset *data,
		struct mst_reason *why)
{
	struct mst_mlp_shape shape = mst_learner_shape(data, settings->hidden);

	*w = (struct worker){ .settings = settings, .nap_ns = NAP_NS };
	int rc = allocate(w, data);
	if (rc) {
		mst_reason_set(why, "no memory for a network of %" PRIu64 " parameters",
			       mst_mlp_elems(&shape));
		return rc;
	}
	mst_mlp_start(&shape, settings->seed, w->own);
	rc = join(w, why);
	if (rc)
		return rc;
	struct mst_delay_options delay = { .spec = settings->delay.item,
					   .spec_count = settings->delay.count,
					   .rank = w->rank,
					   .seed = settings->seed };
	return mst_delay_new(&delay, &w->delay, why);
}

void worker_fini(struct worker *w)
{
	muster_close(w->muster);
	mst_delay_free(w->delay);
	mst_learner_fini(&w->learner);
	free(w->own);
	free(w->momentum);
	*w = (struct worker){ 0 };
}
