/* SPDX-License-Identifier: MIT */
/* Adds the sum of the deltas. */
#include "common/kernels/exact.h"
#include "common/optim/kernels.h"

static void add(float *restrict next, const float *restrict theta, const float *restrict total,
		size_t count)
{
	for (size_t i = 0; i < count; i++)
		next[i] = theta[i] + total[i];
}

void MST_ISA_NAME(mst_apply_add)(const struct mst_apply *a)
{
	add(a->next, a->theta, a->mean, a->count);
}
