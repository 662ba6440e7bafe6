/* SPDX-License-Identifier: MIT */
/* Digits, with the model of the example (common/digits). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/reason.h"
#include "common/digits/learner.h"
#include "tools/sim/problem/problem.h"

static_assert(MST_MLP_TENSORS <= MST_SIM_TENSORS_MAX, "there is room for where each ends");

#define ROWS_MAX 64u /* samples that are looked at together */

struct digits {
	struct mst_sim_problem problem; /* first */
	struct mst_dataset data;
	struct mst_learner learner;
	uint64_t seed;
};

static void digits_free(struct mst_sim_problem *p)
{
	struct digits *d = (struct digits *)p;

	mst_learner_fini(&d->learner);
	mst_dataset_fini(&d->data);
	free(d);
}

static void digits_start(const struct mst_sim_problem *p, float *parameters)
{
	const struct digits *d = (const struct digits *)p;

	mst_mlp_start(&d->learner.net.shape, d->seed, parameters);
}

static double digits_gradient(struct mst_sim_problem *p, const float *parameters,
			      struct mst_rand *chance, uint64_t samples, float *gradient)
{
	struct digits *d = (struct digits *)p;
	double loss = 0;

	for (uint64_t done = 0; done < samples;) {
		uint64_t left = samples - done;
		uint32_t rows = left < ROWS_MAX ? (uint32_t)left : ROWS_MAX;
		struct mst_gradient to = { gradient, rows, done > 0 };
		loss += mst_learner_gradient(&d->learner, parameters, chance, &to);
		done += rows;
	}
	for (uint64_t i = 0; i < p->elems; i++)
		gradient[i] /= (float)samples;
	return loss / (double)samples;
}

static double digits_error(struct mst_sim_problem *p, const float *parameters)
{
	struct digits *d = (struct digits *)p;

	return 1 - mst_learner_test(&d->learner, parameters).accuracy;
}

static const struct mst_sim_problem_ops ops = {
	.free = digits_free,
	.start = digits_start,
	.gradient = digits_gradient,
	.error = digits_error,
};

static int make(struct digits *d, const struct mst_sim_problem_spec *spec, struct mst_reason *why)
{
	uint32_t hidden = (uint32_t)spec->parameter[MST_SIM_DIGITS_HIDDEN];
	int rc = spec->directory[0] != '\0' ? mst_dataset_load(spec->directory, &d->data, why)
					    : mst_dataset_draw(spec->seed, &d->data);

	if (rc == 0) {
		mst_reason_set(why, "no memory for a network of %u hidden units", hidden);
		rc = mst_learner_init(&d->learner, &d->data, hidden, ROWS_MAX);
	}
	return rc;
}

int mst_sim_digits_new(const struct mst_sim_problem_spec *spec, struct mst_sim_problem **out,
		       struct mst_reason *why)
{
	struct digits *d = calloc(1, sizeof(*d));

	mst_reason_set(why, "no memory for digits");
	if (d == NULL)
		return -ENOMEM;
	d->problem.ops = &ops;
	d->seed = spec->seed;
	int rc = make(d, spec, why);
	if (rc != 0) {
		digits_free(&d->problem);
		return rc;
	}
	d->problem.elems = mst_mlp_elems(&d->learner.net.shape);
	d->problem.tensors = MST_MLP_TENSORS;
	mst_mlp_ends(&d->learner.net.shape, d->problem.tensor_end);
	*out = &d->problem;
	return 0;
}
