/* SPDX-License-Identifier: MIT */
#include "common/digits/learner.h"

#include <stddef.h>

#define TEST_ROWS 64u /* samples that are looked at together in a test */

struct mst_mlp_shape mst_learner_shape(const struct mst_dataset *data, uint32_t hidden)
{
	return (struct mst_mlp_shape){ data->image_pixels, hidden, MST_DATASET_CLASSES };
}

int mst_learner_init(struct mst_learner *l, const struct mst_dataset *data, uint32_t hidden,
		     uint32_t rows_max)
{
	struct mst_mlp_shape shape = mst_learner_shape(data, hidden);

	*l = (struct mst_learner){ .data = data };
	return mst_mlp_init(&l->net, &shape, rows_max < TEST_ROWS ? TEST_ROWS : rows_max);
}

void mst_learner_fini(struct mst_learner *l)
{
	mst_mlp_fini(&l->net);
}

static void place(struct mst_learner *l, uint32_t row, const struct mst_samples *from,
		  uint32_t index)
{
	float *x = l->net.x + (size_t)row * l->data->image_pixels;

	l->net.label[row] = mst_dataset_sample(l->data, from, index, x);
}

double mst_learner_gradient(struct mst_learner *l, const float *parameters, struct mst_rand *chance,
			    const struct mst_gradient *grad)
{
	const struct mst_samples *train = &l->data->train;

	for (uint32_t row = 0; row < grad->rows; row++)
		place(l, row, train, (uint32_t)mst_rand_below(chance, train->count));
	return mst_mlp_gradient(&l->net, parameters, grad->rows, grad->at, grad->add);
}

struct mst_test_result mst_learner_test(struct mst_learner *l, const float *parameters)
{
	const struct mst_samples *test = &l->data->test;
	struct mst_mlp_score sum = { 0 };
	uint32_t next = 0;

	while (next < test->count) {
		uint32_t rows = 0;
		for (; rows < l->net.rows_max && next < test->count; rows++, next++)
			place(l, rows, test, next);
		struct mst_mlp_score score = mst_mlp_score(&l->net, parameters, rows);
		sum.loss += score.loss;
		sum.right += score.right;
	}
	return (struct mst_test_result){ .loss = sum.loss / test->count,
					 .accuracy = (double)sum.right / test->count };
}
