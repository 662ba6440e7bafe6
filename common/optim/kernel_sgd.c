/* SPDX-License-Identifier: MIT */
/*
 * Steps down the mean gradient, or down a momentum that gathers the means. As PyTorch's SGD
 * computes it: the decay is added to the gradient, and Nesterov's step looks ahead by one momentum.
 */
#include "common/kernels/exact.h"
#include "common/optim/kernels.h"

enum slope { PLAIN, MOMENTUM, NESTEROV };

/* The loop of one combination: @slope and @decays are constants where this is called, so that no
 * element asks for them. */
static inline __attribute__((always_inline)) void step(const struct mst_apply *a, enum slope slope,
						       bool decays)
{
	const struct mst_figures *f = a->figures;
	float rate = f->scalar[MST_SCALAR_RATE], mu = f->parameter[MST_SGD_MOMENTUM];
	float decay = f->parameter[MST_SGD_DECAY];
	const float *restrict theta = a->theta, *restrict mean = a->mean;
	float *restrict next = a->next, *restrict m = a->state[MST_SGD_STATE_MOMENTUM];

	size_t count = a->count; /* which no store to the vectors can change */

	for (size_t i = 0; i < count; i++) {
		float g = mean[i];

		if (decays) {
			float shrink = decay * theta[i];

			g = g + shrink;
		}
		if (slope != PLAIN) {
			float kept = mu * m[i];
			float gathered = kept + g;
			float ahead = mu * gathered;

			m[i] = gathered;
			g = slope == NESTEROV ? g + ahead : gathered;
		}
		float down = rate * g;

		next[i] = theta[i] - down;
	}
}

void MST_ISA_NAME(mst_apply_sgd)(const struct mst_apply *a)
{
	bool decays = a->figures->parameter[MST_SGD_DECAY] != 0;
	bool nesterov = a->figures->parameter[MST_SGD_NESTEROV] != 0;

	if (a->state[MST_SGD_STATE_MOMENTUM] == NULL)
		decays ? step(a, PLAIN, true) : step(a, PLAIN, false);
	else if (nesterov)
		decays ? step(a, NESTEROV, true) : step(a, NESTEROV, false);
	else
		decays ? step(a, MOMENTUM, true) : step(a, MOMENTUM, false);
}
