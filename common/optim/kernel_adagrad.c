/* SPDX-License-Identifier: MIT */
/*
 * Adagrad (Duchi, Hazan and Singer, JMLR 12, 2011) with a diagonal matrix, in the form of PyTorch's
 * Adagrad. The root of the sum of squares, and then epsilon, divide the gradient; the decay is
 * added to the gradient before.
 */
#include <math.h>

#include "common/kernels/exact.h"
#include "common/optim/kernels.h"
#include "common/optim/quotient.h"

void MST_ISA_NAME(mst_apply_adagrad)(const struct mst_apply *a)
{
	const struct mst_figures *f = a->figures;
	float rate = f->scalar[MST_SCALAR_RATE], epsilon = f->parameter[MST_ADAGRAD_EPSILON];
	float decay = f->parameter[MST_ADAGRAD_DECAY];
	const float *restrict theta = a->theta, *restrict mean = a->mean;
	float *restrict next = a->next, *restrict squares = a->state[MST_ADAGRAD_STATE_SQUARES];

	size_t count = a->count; /* which no store to the vectors can change */

	for (size_t i = 0; i < count; i++) {
		float shrink = decay * theta[i];
		float g = decay != 0 ? mean[i] + shrink : mean[i];
		float square = g * g;
		float sum = squares[i] + square;
		float root = sqrtf(sum);
		float divisor = root + epsilon;
		float slope = mst_quotient(g, divisor);
		float down = rate * slope;

		squares[i] = sum;
		next[i] = theta[i] - down;
	}
}
