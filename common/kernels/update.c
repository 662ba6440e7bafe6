/* SPDX-License-Identifier: MIT */
/*
 * The servers' optimisers. Once for each parameter of a commit.
 *
 * `next` may be `theta`, so these two are not restrict: the compiler looks at run time whether they
 * are apart. A commit writes another version's buffer than it reads, so there they are.
 */
#include "common/kernels/update.h"

#include "common/kernels/exact.h"

static void accumulate(float *restrict m, const float *restrict g, float mu, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float kept = mu * m[i];

		m[i] = kept + g[i];
	}
}

static void descend(float *next, const float *theta, const float *slope, float eta, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float step = eta * slope[i];

		next[i] = theta[i] - step;
	}
}

void mst_update_sgd(float *next, const float *theta, const float *g, float *m, float mu, float eta,
		    size_t count)
{
	if (mu != 0.0f) {
		accumulate(m, g, mu, count);
		g = m;
	}
	descend(next, theta, g, eta, count);
}

void mst_update_add(float *next, const float *theta, const float *total, size_t count)
{
	for (size_t i = 0; i < count; i++)
		next[i] = theta[i] + total[i];
}
