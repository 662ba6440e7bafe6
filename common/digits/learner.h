/* SPDX-License-Identifier: MIT */
/* The network and its digits together: gradients over samples that are drawn at random, and how
 * well parameters do on the digits that nobody trains with. */
#ifndef MST_DIGITS_LEARNER_H
#define MST_DIGITS_LEARNER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/rand.h"
#include "common/digits/dataset.h"
#include "common/digits/mlp.h"

struct mst_learner {
	const struct mst_dataset *data;
	struct mst_mlp net;
};

/* Where a gradient goes: the sum over @rows samples is stored to @at, or with @add added to it. */
struct mst_gradient {
	float *at;
	uint32_t rows; /* from 1 to the learner's rows_max */
	bool add;
};

/* Means over the test samples. */
struct mst_test_result {
	double loss, accuracy;
};

/* The network that these digits are learnt with. */
struct mst_mlp_shape mst_learner_shape(const struct mst_dataset *data, uint32_t hidden);

/* @data must outlive the learner. @rows_max: samples of one gradient. Return: 0 or -ENOMEM. */
int mst_learner_init(struct mst_learner *l, const struct mst_dataset *data, uint32_t hidden,
		     uint32_t rows_max);
void mst_learner_fini(struct mst_learner *l); /* accepts one that is all zero */

/* Draws training samples by @chance. Return: their loss, summed. Allocates nothing. */
double mst_learner_gradient(struct mst_learner *l, const float *parameters, struct mst_rand *chance,
			    const struct mst_gradient *grad);
struct mst_test_result mst_learner_test(struct mst_learner *l, const float *parameters);

#endif
