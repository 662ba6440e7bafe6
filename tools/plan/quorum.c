/* SPDX-License-Identifier: MIT */
#include "tools/plan/quorum.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double mst_quantile(const double *sorted, uint32_t count, double share)
{
	double at = share * (count - 1);
	uint32_t below = (uint32_t)at;

	if (below + 1 >= count)
		return sorted[count - 1];
	return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

void mst_arrival_figures_of(const struct mst_arrivals *a, uint32_t k, double *scratch,
			    struct mst_arrival_figures *out)
{
	double sum = 0;

	for (uint32_t step = 0; step < a->steps; step++) {
		scratch[step] = a->sorted[(size_t)step * a->ranks + k - 1];
		sum += scratch[step];
	}
	qsort(scratch, a->steps, sizeof(*scratch), by_size);
	*out = (struct mst_arrival_figures){
		.mean_us = sum / a->steps,
		.p50_us = mst_quantile(scratch, a->steps, 0.5),
		.p90_us = mst_quantile(scratch, a->steps, 0.9),
		.at_least = (double)a->at_least[k - 1] / a->steps,
	};
}
