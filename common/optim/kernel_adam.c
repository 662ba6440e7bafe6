/* SPDX-License-Identifier: MIT */
/*
 * Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1) and AdamW (Loshchilov and Hutter, arXiv
 * 1711.05101), in the form of PyTorch. Adam's weight decay is a part of the gradient, that of AdamW
 * is apart from it. The states are sums whose scalars make unbiased averages of them, which
 * saves two products for each element.
 */
#include <math.h>

#include "common/kernels/exact.h"
#include "common/optim/kernels.h"
#include "common/optim/quotient.h"

/* @decoupled: the weight decay shrinks the parameters, and is no part of the gradient. It is a
 * constant where this is called, so that no element asks for it. */
static inline __attribute__((always_inline)) void step(const struct mst_apply *a, bool decoupled)
{
	const struct mst_figures *f = a->figures;
	float rate = f->scalar[MST_SCALAR_RATE], decay = f->parameter[MST_ADAM_DECAY];
	float beta1 = f->parameter[MST_ADAM_BETA1], beta2 = f->parameter[MST_ADAM_BETA2];
	float epsilon = f->parameter[MST_ADAM_EPSILON];
	float second = f->scalar[MST_ADAM_SCALAR_SECOND];
	float step_size = rate * f->scalar[MST_ADAM_SCALAR_FIRST],
	      decay_rate = decoupled ? rate * decay : decay;
	const float *restrict theta = a->theta, *restrict mean = a->mean;
	float *restrict next = a->next, *restrict m = a->state[MST_ADAM_STATE_MOMENTUM];
	float *restrict squares = a->state[MST_ADAM_STATE_SQUARES];

	size_t count = a->count; /* which no store to the vectors can change */

	for (size_t i = 0; i < count; i++) {
		float shrink = decay_rate * theta[i];
		float g = !decoupled && decay != 0 ? mean[i] + shrink : mean[i];
		float from = decoupled && decay != 0 ? theta[i] - shrink : theta[i];
		float before = beta1 * m[i];
		float gathered = before + g;
		float kept = beta2 * squares[i];
		float square = g * g;
		float sum = kept + square;
		float root = sqrtf(sum);
		float unbiased = root * second;
		float divisor = unbiased + epsilon;
		float slope = mst_quotient(gathered, divisor);
		float down = step_size * slope;

		m[i] = gathered;
		squares[i] = sum;
		next[i] = from - down;
	}
}

void MST_ISA_NAME(mst_apply_adam)(const struct mst_apply *a)
{
	step(a, false);
}

void MST_ISA_NAME(mst_apply_adamw)(const struct mst_apply *a)
{
	step(a, true);
}
