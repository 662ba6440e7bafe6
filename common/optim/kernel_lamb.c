/* SPDX-License-Identifier: MIT */
/*
 * LAMB (You et al., arXiv 1904.00962, algorithm 2): the step of Adam without bias, and the weight
 * decay, make a direction; the rate is each tensor's own. The trust ratio is a part of the rate
 * when the step is made. The states are sums, as those of kernel_adam.c are.
 *
 * The norm of the direction has to be known before the step. So the reduce phase computes the
 * direction, and the step computes it again: both do the same to the same numbers. To keep it would
 * take a vector more, and the states would be written before the commit.
 */
#include <math.h>

#include "common/kernels/exact.h"
#include "common/optim/kernels.h"
#include "common/optim/quotient.h"

/* @steps: the step is made; else the direction alone is wanted, and no state is written. It is a
 * constant where this is called, so that no element asks for it. */
static inline __attribute__((always_inline)) void pass(const struct mst_apply *a, bool steps)
{
	const struct mst_figures *f = a->figures;
	float rate = f->scalar[MST_SCALAR_RATE], decay = f->parameter[MST_ADAM_DECAY];
	float beta1 = f->parameter[MST_ADAM_BETA1], beta2 = f->parameter[MST_ADAM_BETA2];
	float epsilon = f->parameter[MST_ADAM_EPSILON];
	float first = f->scalar[MST_ADAM_SCALAR_FIRST];
	float second = f->scalar[MST_ADAM_SCALAR_SECOND];
	const float *restrict theta = a->theta, *restrict mean = a->mean;
	float *restrict next = a->next, *restrict m = a->state[MST_ADAM_STATE_MOMENTUM];
	float *restrict squares = a->state[MST_ADAM_STATE_SQUARES];

	size_t count = a->count; /* which no store to the vectors can change */

	for (size_t i = 0; i < count; i++) {
		float before = beta1 * m[i];
		float gathered = before + mean[i];
		float kept = beta2 * squares[i];
		float square = mean[i] * mean[i];
		float sum = kept + square;
		float root = sqrtf(sum);
		float unbiased = root * second;
		float divisor = unbiased + epsilon;
		float slope = mst_quotient(gathered, divisor);
		float adam = first * slope;
		float shrink = decay * theta[i];
		float direction = adam + shrink;

		if (steps) {
			float down = rate * direction;

			m[i] = gathered;
			squares[i] = sum;
			next[i] = theta[i] - down;
		} else {
			next[i] = direction;
		}
	}
}

void MST_ISA_NAME(mst_apply_lamb)(const struct mst_apply *a)
{
	pass(a, true);
}

void MST_ISA_NAME(mst_apply_lamb_direction)(const struct mst_apply *a)
{
	pass(a, false);
}
