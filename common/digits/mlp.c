/* SPDX-License-Identifier: MIT */
/* Five products of matrices. Between them are passes over rows x hidden elements at most. */
#include "common/digits/mlp.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rand.h"

/* Where the parts lie in a vector of parameters; W1 is at 0. */
struct places {
	uint64_t b1, w2, b2;
};

static struct places places_of(const struct mst_mlp_shape *s)
{
	uint64_t b1 = (uint64_t)s->hidden * s->inputs;
	uint64_t w2 = b1 + s->hidden;

	return (struct places){ .b1 = b1, .w2 = w2, .b2 = w2 + (uint64_t)s->outputs * s->hidden };
}

uint64_t mst_mlp_elems(const struct mst_mlp_shape *shape)
{
	return places_of(shape).b2 + shape->outputs;
}

void mst_mlp_ends(const struct mst_mlp_shape *shape, uint64_t end[MST_MLP_TENSORS])
{
	struct places at = places_of(shape);

	end[0] = at.b1;
	end[1] = at.w2;
	end[2] = at.b2;
	end[3] = mst_mlp_elems(shape);
}

static void draw_weights(struct mst_rand *chance, float *w, uint32_t inputs, uint32_t outputs)
{
	double deviation = sqrt(2.0 / inputs);

	for (uint64_t i = 0; i < (uint64_t)inputs * outputs; i++)
		w[i] = (float)(deviation * mst_rand_normal(chance));
}

void mst_mlp_start(const struct mst_mlp_shape *shape, uint64_t seed, float *parameters)
{
	struct places at = places_of(shape);
	struct mst_rand chance;

	mst_rand_seed(&chance, seed);
	draw_weights(&chance, parameters, shape->inputs, shape->hidden);
	memset(parameters + at.b1, 0, shape->hidden * sizeof(float));
	draw_weights(&chance, parameters + at.w2, shape->hidden, shape->outputs);
	memset(parameters + at.b2, 0, shape->outputs * sizeof(float));
}

int mst_mlp_init(struct mst_mlp *net, const struct mst_mlp_shape *shape, uint32_t rows_max)
{
	*net = (struct mst_mlp){ .shape = *shape, .product = mst_product, .rows_max = rows_max };
	net->x = calloc((size_t)rows_max * shape->inputs, sizeof(float));
	net->label = calloc(rows_max, 1);
	net->h = calloc((size_t)rows_max * shape->hidden, sizeof(float));
	net->dh = calloc((size_t)rows_max * shape->hidden, sizeof(float));
	net->z = calloc((size_t)rows_max * shape->outputs, sizeof(float));
	if (net->x && net->label && net->h && net->dh && net->z)
		return 0;
	mst_mlp_fini(net);
	return -ENOMEM;
}

void mst_mlp_fini(struct mst_mlp *net)
{
	free(net->x);
	free(net->label);
	free(net->h);
	free(net->dh);
	free(net->z);
	*net = (struct mst_mlp){ 0 };
}

/* Every row of @to becomes the bias, for a product to be added to. */
static void fill_rows(float *to, uint32_t rows, const float *bias, uint32_t width)
{
	for (uint32_t row = 0; row < rows; row++)
		memcpy(to + (size_t)row * width, bias, width * sizeof(float));
}

/* to[width] = or += the sum of the rows of @from. */
static void sum_rows(float *to, const float *from, uint32_t rows, uint32_t width, bool add)
{
	if (!add)
		memset(to, 0, width * sizeof(float));
	for (uint32_t row = 0; row < rows; row++)
		for (uint32_t i = 0; i < width; i++)
			to[i] += from[(size_t)row * width + i];
}

/* Fills net->h with activations and net->z with scores. */
static void forward(struct mst_mlp *net, const float *parameters, uint32_t rows)
{
	const struct mst_mlp_shape *s = &net->shape;
	struct places at = places_of(s);
	struct mst_matrix x = { net->x, rows, s->inputs, false };
	struct mst_matrix w1 = { parameters, s->hidden, s->inputs, true };
	struct mst_matrix h = { net->h, rows, s->hidden, false };
	struct mst_matrix w2 = { parameters + at.w2, s->outputs, s->hidden, true };

	fill_rows(net->h, rows, parameters + at.b1, s->hidden);
	net->product(net->h, x, w1, true);
	for (size_t i = 0; i < (size_t)rows * s->hidden; i++)
		net->h[i] = net->h[i] < 0 ? 0 : net->h[i];
	fill_rows(net->z, rows, parameters + at.b2, s->outputs);
	net->product(net->z, h, w2, true);
}

static uint32_t highest(const float *z, uint32_t count)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < count; i++)
		if (z[i] > z[best])
			best = i;
	return best;
}

/* Scores become probabilities. The highest is taken off first, so that no exponential overflows.
 * Return: the loss, -log of the label's probability. */
static double softmax(float *z, uint32_t count, uint8_t label)
{
	float top = z[highest(z, count)];
	float own = z[label];
	float sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		z[i] = expf(z[i] - top);
		sum += z[i];
	}
	for (uint32_t i = 0; i < count; i++)
		z[i] /= sum;
	return log((double)sum) + (double)(top - own);
}

/* Scores become the loss's derivative by them. Return: the loss of all rows. */
static double score_errors(struct mst_mlp *net, uint32_t rows)
{
	uint32_t outputs = net->shape.outputs;
	double loss = 0;

	for (uint32_t row = 0; row < rows; row++) {
		float *z = net->z + (size_t)row * outputs;
		assert(net->label[row] < outputs);
		loss += softmax(z, outputs, net->label[row]);
		z[net->label[row]] -= 1;
	}
	return loss;
}

/* From net->z, now the errors, back to every parameter. */
static void backward(struct mst_mlp *net, const float *parameters, uint32_t rows, float *grad,
		     bool add)
{
	const struct mst_mlp_shape *s = &net->shape;
	struct places at = places_of(s);
	struct mst_matrix dz = { net->z, rows, s->outputs, false };
	struct mst_matrix dz_turned = { net->z, rows, s->outputs, true };
	struct mst_matrix h = { net->h, rows, s->hidden, false };
	struct mst_matrix dh_turned = { net->dh, rows, s->hidden, true };
	struct mst_matrix x = { net->x, rows, s->inputs, false };
	struct mst_matrix w2 = { parameters + at.w2, s->outputs, s->hidden, false };

	net->product(grad + at.w2, dz_turned, h, add);
	sum_rows(grad + at.b2, net->z, rows, s->outputs, add);
	net->product(net->dh, dz, w2, false);
	for (size_t i = 0; i < (size_t)rows * s->hidden; i++)
		net->dh[i] = net->h[i] > 0 ? net->dh[i] : 0;
	net->product(grad, dh_turned, x, add);
	sum_rows(grad + at.b1, net->dh, rows, s->hidden, add);
}

double mst_mlp_gradient(struct mst_mlp *net, const float *parameters, uint32_t rows, float *grad,
			bool add)
{
	assert(rows > 0 && rows <= net->rows_max);
	forward(net, parameters, rows);
	double loss = score_errors(net, rows);
	backward(net, parameters, rows, grad, add);
	return loss;
}

struct mst_mlp_score mst_mlp_score(struct mst_mlp *net, const float *parameters, uint32_t rows)
{
	uint32_t outputs = net->shape.outputs;
	struct mst_mlp_score score = { 0 };

	assert(rows > 0 && rows <= net->rows_max);
	forward(net, parameters, rows);
	for (uint32_t row = 0; row < rows; row++) {
		float *z = net->z + (size_t)row * outputs;
		score.right += highest(z, outputs) == net->label[row];
		score.loss += softmax(z, outputs, net->label[row]);
	}
	return score;
}
