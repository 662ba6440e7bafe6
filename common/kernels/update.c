/* SPDX-License-Identifier: MIT */
/* The servers' optimisers alone, strip by strip: what is made of `theta` may be written over it. */
#include "common/kernels/update.h"

#include <string.h>

#include "common/kernels/isa.h"

#define STRIP_ELEMS 256

static size_t strip_of(size_t left)
{
	return left < STRIP_ELEMS ? left : STRIP_ELEMS;
}

void mst_update_sgd(float *next, const float *theta, const float *g, float *m, float mu, float eta,
		    size_t count)
{
	const struct mst_isa *isa = mst_isa();
	float made[STRIP_ELEMS];

	if (mu != 0.0f) {
		isa->accumulate(m, g, mu, count);
		g = m;
	}
	for (size_t done = 0, part; done < count; done += part) {
		part = strip_of(count - done);
		isa->descend(made, theta + done, g + done, eta, part);
		memcpy(next + done, made, part * sizeof(*next));
	}
}

void mst_update_add(float *next, const float *theta, const float *total, size_t count)
{
	const struct mst_isa *isa = mst_isa();
	float made[STRIP_ELEMS];

	for (size_t done = 0, part; done < count; done += part) {
		part = strip_of(count - done);
		isa->ascend(made, theta + done, total + done, part);
		memcpy(next + done, made, part * sizeof(*next));
	}
}
