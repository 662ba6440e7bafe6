/* SPDX-License-Identifier: MIT */
/*
 * RMSProp (Tieleman and Hinton, Coursera lecture 6.5, 2012). Its scalars say where epsilon is added
 * and what is left of the start of the average: before the root in TensorFlow's form, which Chen et
 * al. use (arXiv 1604.00981), to the root in PyTorch's. In both the momentum gathers quotients, and
 * the rate of the version multiplies the momentum, as in PyTorch.
 */
#include <math.h>

#include "common/kernels/exact.h"
#include "common/optim/kernels.h"
#include "common/optim/quotient.h"

/* @gathers is a constant where this is called, so that no element asks for it. */
static inline __attribute__((always_inline)) void step(const struct mst_apply *a, bool gathers)
{
	const struct mst_figures *f = a->figures;
	float rate = f->scalar[MST_SCALAR_RATE], share = f->scalar[MST_RMSPROP_SCALAR_SHARE];
	float inside = f->scalar[MST_RMSPROP_SCALAR_INSIDE];
	float outside = f->scalar[MST_RMSPROP_SCALAR_OUTSIDE];
	float alpha = f->parameter[MST_RMSPROP_ALPHA], mu = f->parameter[MST_RMSPROP_MOMENTUM];
	float decay = f->parameter[MST_RMSPROP_DECAY];
	const float *restrict theta = a->theta, *restrict mean = a->mean;
	float *restrict next = a->next, *restrict squares = a->state[MST_RMSPROP_STATE_SQUARES];
	float *restrict m = a->state[MST_RMSPROP_STATE_MOMENTUM];

	size_t count = a->count; /* which no store to the vectors can change */

	for (size_t i = 0; i < count; i++) {
		float shrink = decay * theta[i];
		float g = decay != 0 ? mean[i] + shrink : mean[i];
		float square = g * g;
		float kept = alpha * squares[i];
		float sum = kept + square;
		float average = share * sum;
		float within = average + inside;
		float root = sqrtf(within);
		float divisor = root + outside;
		float slope = mst_quotient(g, divisor);

		squares[i] = sum;
		if (gathers) {
			float before = mu * m[i];

			slope = before + slope;
			m[i] = slope;
		}
		float down = rate * slope;

		next[i] = theta[i] - down;
	}
}

void MST_ISA_NAME(mst_apply_rmsprop)(const struct mst_apply *a)
{
	if (a->state[MST_RMSPROP_STATE_MOMENTUM] != NULL)
		step(a, true);
	else
		step(a, false);
}
