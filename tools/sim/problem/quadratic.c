/* SPDX-License-Identifier: MIT */
/*
 * The quadratic F(w) = 1/2 sum c[i] (w[i] - w*[i])^2: the problem of which theory knows everything.
 * The c[i] are spaced evenly on a logarithmic scale from 1 / cond to 1, so L = 1 and c = 1 / cond.
 *
 * The gradient of m samples is that of F and a normal vector of which each element has the variance
 * sigma^2 / (dim m): so the square of its length is sigma^2 / m on average, as Dutta et al. 2018
 * have it. It is also the gradient of the same quadratic about another minimum, w* - noise / c, and
 * the loss of a batch is the value of that one: never negative, F(w) and sigma^2 / (2 m dim) sum
 * 1 / c[i] on average.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/reason.h"
#include "tools/sim/problem/problem.h"

struct quadratic {
	struct mst_sim_problem problem; /* first */
	double sigma;                   /* of one element of the gradient of one sample */
	double *curvature;              /* c */
	float *minimum, *start;
};

static const struct quadratic *quadratic_of(const struct mst_sim_problem *p)
{
	return (const struct quadratic *)p;
}

static void quadratic_free(struct mst_sim_problem *p)
{
	struct quadratic *q = (struct quadratic *)p;

	free(q->curvature);
	free(q->minimum);
	free(q->start);
	free(q);
}

static void quadratic_start(const struct mst_sim_problem *p, float *parameters)
{
	for (uint64_t i = 0; i < p->elems; i++)
		parameters[i] = quadratic_of(p)->start[i];
}

static double quadratic_gradient(struct mst_sim_problem *p, const float *parameters,
				 struct mst_rand *chance, uint64_t samples, float *gradient)
{
	const struct quadratic *q = quadratic_of(p);
	double sigma = q->sigma / sqrt((double)samples);
	double twice = 0;

	for (uint64_t i = 0; i < p->elems; i++) {
		double slope = q->curvature[i] * ((double)parameters[i] - (double)q->minimum[i]);
		if (sigma > 0)
			slope += sigma * mst_rand_normal(chance);
		gradient[i] = (float)slope;
		twice += slope * slope / q->curvature[i];
	}
	return twice / 2;
}

static double quadratic_error(struct mst_sim_problem *p, const float *parameters)
{
	const struct quadratic *q = quadratic_of(p);
	double twice = 0;

	for (uint64_t i = 0; i < p->elems; i++) {
		double away = (double)parameters[i] - (double)q->minimum[i];
		twice += q->curvature[i] * away * away;
	}
	return twice / 2;
}

static const struct mst_sim_problem_ops ops = {
	.free = quadratic_free,
	.start = quadratic_start,
	.gradient = quadratic_gradient,
	.error = quadratic_error,
};

/* Each direction has the same share of F(start), which is 1, on one side of the minimum or the
 * other. */
static void place(struct quadratic *q, double cond, uint64_t seed)
{
	uint64_t dim = q->problem.elems;
	struct mst_rand chance;

	mst_rand_seed(&chance, seed);
	for (uint64_t i = 0; i < dim; i++) {
		double part = dim > 1 ? (double)i / (double)(dim - 1) : 0;
		q->curvature[i] = pow(cond, -part);
		double away = sqrt(2 / (q->curvature[i] * (double)dim));
		q->minimum[i] = (float)mst_rand_normal(&chance);
		q->start[i] = (float)((double)q->minimum[i] +
				      (mst_rand_below(&chance, 2) ? away : -away));
	}
}

int mst_sim_quadratic_new(const struct mst_sim_problem_spec *spec, struct mst_sim_problem **out,
			  struct mst_reason *why)
{
	struct quadratic *q = calloc(1, sizeof(*q));
	double dim = spec->parameter[MST_SIM_QUADRATIC_DIM];
	size_t elems = (size_t)dim;

	mst_reason_set(why, "no memory for a quadratic of %zu parameters", elems);
	if (q == NULL)
		return -ENOMEM;
	q->problem.ops = &ops;
	q->problem.elems = elems;
	q->problem.tensors = 1;
	q->problem.tensor_end[0] = elems;
	q->sigma = spec->parameter[MST_SIM_QUADRATIC_NOISE] / sqrt(dim);
	q->curvature = calloc(elems, sizeof(*q->curvature));
	q->minimum = calloc(elems, sizeof(*q->minimum));
	q->start = calloc(elems, sizeof(*q->start));
	if (q->curvature == NULL || q->minimum == NULL || q->start == NULL) {
		quadratic_free(&q->problem);
		return -ENOMEM;
	}
	place(q, spec->parameter[MST_SIM_QUADRATIC_COND], spec->seed);
	*out = &q->problem;
	return 0;
}
