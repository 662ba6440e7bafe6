/* SPDX-License-Identifier: MIT */
/*
 * A network with one hidden layer: relu, then softmax and cross-entropy. Its parameters are one
 * vector, W1[hidden][inputs] b1[hidden] W2[outputs][hidden] b2[outputs], and a gradient has the
 * same form: just what is pushed and what comes back. Neither is copied here.
 */
#ifndef MST_DIGITS_MLP_H
#define MST_DIGITS_MLP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/digits/product.h"

struct mst_mlp_shape {
	uint32_t inputs, hidden, outputs;
};

/* Room to work on up to rows_max samples at once. */
struct mst_mlp {
	struct mst_mlp_shape shape;
	mst_product_fn *product; /* mst_product at first; the owner may set another */
	uint32_t rows_max;
	float *x;       /* rows_max x inputs: the caller fills the first rows */
	uint8_t *label; /* rows_max: what they are */
	float *h, *dh;  /* rows_max x hidden: activations, and the gradient of the loss by them */
	float *z;       /* rows_max x outputs: scores, then probabilities, then their error */
};

/* What a network makes of samples. */
struct mst_mlp_score {
	double loss; /* sum */
	uint32_t right;
};

/* Length of the parameter vector. */
uint64_t mst_mlp_elems(const struct mst_mlp_shape *shape);
/* Where W1, b1, W2 and b2 end in it. */
#define MST_MLP_TENSORS 4u
void mst_mlp_ends(const struct mst_mlp_shape *shape, uint64_t end[MST_MLP_TENSORS]);

/* Start parameters (He et al. 2015: normal, variance 2 / inputs of the layer; biases 0). The same
 * for the same seed. */
void mst_mlp_start(const struct mst_mlp_shape *shape, uint64_t seed, float *parameters);

/* Allocates all that will be needed. Return: 0 or -ENOMEM. */
int mst_mlp_init(struct mst_mlp *net, const struct mst_mlp_shape *shape, uint32_t rows_max);
void mst_mlp_fini(struct mst_mlp *net); /* fine for a zeroed one */

/**
 * mst_mlp_gradient - the gradient of the loss, summed over the first @rows samples of net->x.
 * @grad: mst_mlp_elems(); stored to, or with @add added to.
 * Return: the samples' loss, summed. Allocates nothing.
 */
double mst_mlp_gradient(struct mst_mlp *net, const float *parameters, uint32_t rows, float *grad,
			bool add);

/* How well @parameters tell the first @rows samples of net->x. */
struct mst_mlp_score mst_mlp_score(struct mst_mlp *net, const float *parameters, uint32_t rows);

#endif
