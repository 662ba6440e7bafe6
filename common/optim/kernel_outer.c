/* SPDX-License-Identifier: MIT */
/*
 * The outer optimiser of DiLoCo (Douillard et al., arXiv 2311.08105, algorithm 1). The mean of the
 * workers' differences of parameters, turned round, is the gradient of a step by SGD with
 * Nesterov's momentum. Differences point to where the parameters are to go, so here they are not
 * turned round; the bits are the same.
 */
#include "common/kernels/exact.h"
#include "common/optim/kernels.h"

enum direction { PLAIN, MOMENTUM, NESTEROV };

/* The loop of one combination: @direction is a constant where this is called, so that no element
 * asks for it. */
static inline __attribute__((always_inline)) void step(const struct mst_apply *a,
						       enum direction direction)
{
	const struct mst_figures *f = a->figures;
	float rate = f->scalar[MST_SCALAR_RATE], mu = f->parameter[MST_OUTER_MOMENTUM];
	const float *restrict theta = a->theta, *restrict mean = a->mean;
	float *restrict next = a->next, *restrict m = a->state[MST_OUTER_STATE_MOMENTUM];

	size_t count = a->count; /* which no store to the vectors can change */

	for (size_t i = 0; i < count; i++) {
		float way = mean[i];

		if (direction != PLAIN) {
			float kept = mu * m[i];
			float gathered = kept + way;
			float ahead = mu * gathered;

			m[i] = gathered;
			way = direction == NESTEROV ? way + ahead : gathered;
		}
		float up = rate * way;

		next[i] = theta[i] + up;
	}
}

void MST_ISA_NAME(mst_apply_outer)(const struct mst_apply *a)
{
	if (a->state[MST_OUTER_STATE_MOMENTUM] == NULL)
		step(a, PLAIN);
	else if (a->figures->parameter[MST_OUTER_NESTEROV] != 0)
		step(a, NESTEROV);
	else
		step(a, MOMENTUM);
}
