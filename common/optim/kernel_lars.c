/* SPDX-License-Identifier: MIT */
/*
 * LARS (You, Gitman and Ginsburg, arXiv 1708.03888, algorithm 1): a momentum of steps down the mean
 * gradient, whose rate is in the momentum, and is each tensor's own. The trust ratio is a part of
 * the rate when this is called. Nesterov's step, which is not in the paper, looks ahead by one
 * momentum, as in the implementations that have it.
 */
#include "common/kernels/exact.h"
#include "common/optim/kernels.h"

enum lars_form { PLAIN, MOMENTUM, NESTEROV };

/* The loop of one combination: @form and @decays are constants where this is called, so that no
 * element asks for them. */
static inline __attribute__((always_inline)) void step(const struct mst_apply *a,
						       enum lars_form form, bool decays)
{
	const struct mst_figures *f = a->figures;
	float rate = f->scalar[MST_SCALAR_RATE], mu = f->parameter[MST_LARS_MOMENTUM];
	float decay = f->parameter[MST_LARS_DECAY];
	const float *restrict theta = a->theta, *restrict mean = a->mean;
	float *restrict next = a->next, *restrict v = a->state[MST_LARS_STATE_MOMENTUM];

	size_t count = a->count; /* which no store to the vectors can change */

	for (size_t i = 0; i < count; i++) {
		float g = mean[i];

		if (decays) {
			float shrink = decay * theta[i];

			g = g + shrink;
		}
		float down = rate * g;
		if (form != PLAIN) {
			float kept = mu * v[i];
			float gathered = kept + down;
			float ahead = mu * gathered;

			v[i] = gathered;
			down = form == NESTEROV ? down + ahead : gathered;
		}
		next[i] = theta[i] - down;
	}
}

void MST_ISA_NAME(mst_apply_lars)(const struct mst_apply *a)
{
	bool decays = a->figures->parameter[MST_LARS_DECAY] != 0;
	bool nesterov = a->figures->parameter[MST_LARS_NESTEROV] != 0;

	if (a->state[MST_LARS_STATE_MOMENTUM] == NULL)
		decays ? step(a, PLAIN, true) : step(a, PLAIN, false);
	else if (nesterov)
		decays ? step(a, NESTEROV, true) : step(a, NESTEROV, false);
	else
		decays ? step(a, MOMENTUM, true) : step(a, MOMENTUM, false);
}
