/* SPDX-License-Identifier: MIT */
#include "tools/plan/slow.h"

#include <math.h>

/* Terms are summed from the largest on, by their logarithms: binomial coefficients are huge. */
double mst_binomial_tail(uint32_t count, double p, uint32_t least)
{
	double tail = 0;

	if (least == 0)
		return 1;
	for (uint32_t k = least; k <= count; k++) {
		double term = exp(lgamma(count + 1.0) - lgamma(k + 1.0) - lgamma(count - k + 1.0) +
				  k * log(p) + (count - k) * log1p(-p));
		tail += term;
		if (k > count * p && term < tail * 1e-12)
			break;
	}
	return tail < 1 ? tail : 1;
}

static uint32_t slow_ranks(uint32_t ranks)
{
	return ranks / MST_SLOW_SHARE > 0 ? ranks / MST_SLOW_SHARE : 1;
}

/* Equal times count as neither slower nor faster. */
static void judge_step(const double *us, const double *sorted, uint32_t ranks,
		       struct mst_slow_rank *out)
{
	double quick = sorted[ranks - slow_ranks(ranks) - 1], last = sorted[ranks - 1];
	double median = (sorted[(ranks - 1) / 2] + sorted[ranks / 2]) / 2;
	bool alone = sorted[ranks - 2] < last;

	for (uint32_t rank = 0; rank < ranks; rank++) {
		out[rank].slow += us[rank] > quick;
		out[rank].slowest += alone && us[rank] == last;
		out[rank].ratio += median > 0 ? us[rank] / median : 1;
	}
}

void mst_slow_judge(const struct mst_arrivals *a, struct mst_slow_rank *out)
{
	double p = (double)slow_ranks(a->ranks) / a->ranks;

	for (uint32_t rank = 0; rank < a->ranks; rank++)
		out[rank] = (struct mst_slow_rank){ .rank = rank };
	for (uint32_t step = 0; step < a->steps; step++) {
		size_t first = (size_t)step * a->ranks;
		judge_step(&a->us[first], &a->sorted[first], a->ranks, out);
	}
	for (uint32_t rank = 0; rank < a->ranks; rank++) {
		struct mst_slow_rank *r = &out[rank];
		r->ratio /= a->steps;
		r->chance = mst_binomial_tail(a->steps, p, r->slow);
		r->at_least = 2 * (uint64_t)a->rank_at_least[rank] > a->steps;
		r->persistent = 2 * (uint64_t)r->slow > a->steps &&
				r->chance < MST_SLOW_LEVEL / a->ranks &&
				(r->ratio >= MST_SLOW_RATIO || r->at_least);
	}
}

double mst_slow_without(const struct mst_arrivals *a, const struct mst_slow_rank *rank)
{
	double sum = 0;

	for (uint32_t step = 0; step < a->steps; step++) {
		const double *us = &a->us[(size_t)step * a->ranks];
		double last = 0;
		for (uint32_t i = 0; i < a->ranks; i++)
			if (!rank[i].persistent && us[i] > last)
				last = us[i];
		sum += last;
	}
	return sum / a->steps;
}
