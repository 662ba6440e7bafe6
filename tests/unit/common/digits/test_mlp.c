/* SPDX-License-Identifier: MIT */
#include "tests/ut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rand.h"
#include "common/digits/mlp.h"

#define ROWS 7u
#define ELEMS_MAX 100u

static const struct mst_mlp_shape shape = { .inputs = 6, .hidden = 5, .outputs = 3 };

/* A small network with samples in it, and parameters with no zero among them. */
struct mlp_case {
	struct mst_mlp net;
	uint64_t elems;
	float parameters[ELEMS_MAX], grad[ELEMS_MAX];
};

static void setup(struct mlp_case *w)
{
	struct mst_rand chance;

	w->elems = mst_mlp_elems(&shape);
	CU_ASSERT_FATAL(w->elems <= ELEMS_MAX);
	CU_ASSERT_EQUAL_FATAL(mst_mlp_init(&w->net, &shape, ROWS), 0);
	mst_rand_seed(&chance, 7);
	for (uint64_t i = 0; i < w->elems; i++)
		w->parameters[i] = (float)mst_rand_normal(&chance) * .6f;
	for (uint32_t i = 0; i < ROWS * shape.inputs; i++)
		w->net.x[i] = (float)mst_rand_unit(&chance);
	for (uint32_t row = 0; row < ROWS; row++)
		w->net.label[row] = (uint8_t)mst_rand_below(&chance, shape.outputs);
}

static void the_vector_has_all_weights_and_biases(void)
{
	struct mst_mlp_shape mnist = { 784, 100, 10 };

	CU_ASSERT_EQUAL(mst_mlp_elems(&mnist), 79510);
	CU_ASSERT_EQUAL(mst_mlp_elems(&shape), 6 * 5 + 5 + 5 * 3 + 3);
}

static void gradient_is_the_slope_of_the_loss(void)
{
	const float step = 2e-3f;
	struct mlp_case w;

	setup(&w);
	mst_mlp_gradient(&w.net, w.parameters, ROWS, w.grad, false);
	for (uint64_t i = 0; i < w.elems; i++) {
		float here = w.parameters[i];
		w.parameters[i] = here + step;
		double above = mst_mlp_score(&w.net, w.parameters, ROWS).loss;
		w.parameters[i] = here - step;
		double below = mst_mlp_score(&w.net, w.parameters, ROWS).loss;
		w.parameters[i] = here;
		CU_ASSERT_DOUBLE_EQUAL(w.grad[i], (above - below) / (2 * step), 3e-3);
	}
	mst_mlp_fini(&w.net);
}

/* The second micro-batch must lie in the first rows. */
static void move_rows(struct mst_mlp *net, uint32_t from, uint32_t count)
{
	memmove(net->x, net->x + (size_t)from * shape.inputs,
		(size_t)count * shape.inputs * sizeof(float));
	memmove(net->label, net->label + from, count);
}

static void micro_batches_add_up_to_the_batch(void)
{
	struct mlp_case w;
	float whole[ELEMS_MAX];

	setup(&w);
	double loss = mst_mlp_gradient(&w.net, w.parameters, ROWS, whole, false);
	double parts = mst_mlp_gradient(&w.net, w.parameters, 3, w.grad, false);
	move_rows(&w.net, 3, ROWS - 3);
	parts += mst_mlp_gradient(&w.net, w.parameters, ROWS - 3, w.grad, true);
	CU_ASSERT_DOUBLE_EQUAL(parts, loss, 1e-5);
	for (uint64_t i = 0; i < w.elems; i++)
		CU_ASSERT_DOUBLE_EQUAL(w.grad[i], whole[i], 1e-5);
	mst_mlp_fini(&w.net);
}

static void storing_does_not_read_the_buffer(void)
{
	struct mlp_case w;

	setup(&w);
	for (uint64_t i = 0; i < w.elems; i++)
		w.grad[i] = NAN;
	mst_mlp_gradient(&w.net, w.parameters, ROWS, w.grad, false);
	for (uint64_t i = 0; i < w.elems; i++)
		CU_ASSERT(isfinite(w.grad[i]));
	mst_mlp_fini(&w.net);
}

static void scoring_and_learning_agree_on_the_loss(void)
{
	struct mlp_case w;

	setup(&w);
	double loss = mst_mlp_gradient(&w.net, w.parameters, ROWS, w.grad, false);
	struct mst_mlp_score score = mst_mlp_score(&w.net, w.parameters, ROWS);
	CU_ASSERT_DOUBLE_EQUAL(score.loss, loss, 1e-9);
	CU_ASSERT(score.right <= ROWS);
	mst_mlp_fini(&w.net);
}

/* With all weights 0 the bias alone decides. */
static void the_highest_score_is_the_answer(void)
{
	struct mlp_case w;

	setup(&w);
	memset(w.parameters, 0, sizeof(w.parameters));
	w.parameters[w.elems - 1] = 1000; /* its exponential is beyond a float */
	w.net.label[0] = 2;
	w.net.label[1] = 0;
	struct mst_mlp_score score = mst_mlp_score(&w.net, w.parameters, 2);
	CU_ASSERT_EQUAL(score.right, 1);
	CU_ASSERT_DOUBLE_EQUAL(score.loss, 1000, 1e-3);
	mst_mlp_fini(&w.net);
}

static void start_depends_on_the_seed_alone(void)
{
	struct mst_mlp_shape wide = { .inputs = 784, .hidden = 50, .outputs = 10 };
	uint64_t elems = mst_mlp_elems(&wide);
	float *a = malloc(elems * sizeof(float));
	float *b = malloc(elems * sizeof(float));
	double squares = 0;

	CU_ASSERT_FATAL(a && b);
	mst_mlp_start(&wide, 3, a);
	mst_mlp_start(&wide, 3, b);
	CU_ASSERT_EQUAL(memcmp(a, b, elems * sizeof(float)), 0);
	mst_mlp_start(&wide, 4, b);
	CU_ASSERT_NOT_EQUAL(memcmp(a, b, elems * sizeof(float)), 0);
	for (uint64_t i = 0; i < 784 * 50; i++)
		squares += (double)a[i] * a[i];
	CU_ASSERT_DOUBLE_EQUAL(squares / (784 * 50), 2.0 / 784, 1e-4);
	CU_ASSERT_EQUAL(a[784 * 50], 0);
	CU_ASSERT_EQUAL(a[elems - 1], 0);
	free(a);
	free(b);
}

static CU_TestInfo cases[] = {
	{ "the vector has all weights and biases", the_vector_has_all_weights_and_biases },
	{ "the gradient is the slope of the loss", gradient_is_the_slope_of_the_loss },
	{ "micro-batches add up to the batch", micro_batches_add_up_to_the_batch },
	{ "storing does not read what the buffer held", storing_does_not_read_the_buffer },
	{ "scoring and learning agree on the loss", scoring_and_learning_agree_on_the_loss },
	{ "the highest score is the answer, however high", the_highest_score_is_the_answer },
	{ "the start depends on the seed alone", start_depends_on_the_seed_alone },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("digits: mlp", cases);
}
