/* SPDX-License-Identifier: MIT */
/* PROTOCOL 4, outliers, once more: norms of what workers computed, and their median by sorting. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "tests/sim/observer_state.h"

/* So many ranks have to have a norm before one is refused. */
#define RANKS_MIN 3u

/* By rank: the norm of its last contribution that was judged for it. */
static struct {
	bool known;
	double norm;
} last[SIM_WORKERS_MAX];

void obs_outliers_forget(uint32_t rank)
{
	last[rank].known = false;
}

void obs_outliers_forget_all(void)
{
	for (uint32_t rank = 0; rank < SIM_WORKERS_MAX; rank++)
		obs_outliers_forget(rank);
}

void obs_outliers_change(const struct mst_rule *from, const struct mst_rule *to)
{
	if (from->deltas != to->deltas || from->pace.local_steps != to->pace.local_steps ||
	    from->pace.push_every != to->pace.push_every || from->pace.alpha != to->pace.alpha)
		obs_outliers_forget_all();
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool exceeds(double norm)
{
	double sorted[SIM_WORKERS_MAX];
	uint32_t count = 0;

	if (!isfinite(norm))
		return true;
	for (uint32_t rank = 0; rank < SIM_WORKERS_MAX; rank++)
		if (last[rank].known)
			sorted[count++] = last[rank].norm;
	if (count < RANKS_MIN)
		return false;
	qsort(sorted, count, sizeof(sorted[0]), compare);
	double median = sorted[(count - 1) / 2];
	return median > 0 && norm > obs.plan->norm_limit * median;
}

/* What the servers have measured is the norm of what its worker has written. */
static void check_norm(const struct expect_item *item, double told)
{
	double squares = 0;

	for (uint64_t i = 0; i < obs.plan->elems; i++) {
		double value = (double)obs_value(item->content, i);
		squares += value * value;
	}
	double norm = sqrt(squares) / (item->is_sum ? item->samples : 1);
	if (!(fabs(told - norm) <= 1e-9 * norm))
		obs_violated("the norm of %" PRIu64 " of rank %" PRIu32 " is %a, must be %a",
			     item->seq, item->rank, told, norm);
}

void obs_outliers_judged(const struct mst_decision *d, const struct expect_item *item)
{
	enum muster_verdict verdict = d->verdict.verdict;
	double norm = d->verdict.norm;

	if (obs.plan->norm_limit == 0 || (verdict != MUSTER_COUNTED && verdict != MUSTER_OUTLIER))
		return;
	if (item != NULL && !item->spoiled)
		check_norm(item, norm);
	if (exceeds(norm) != (verdict == MUSTER_OUTLIER))
		obs_violated("rank %" PRIu32 " has a norm of %g, which is %s", d->who.rank, norm,
			     verdict == MUSTER_OUTLIER ? "no outlier, and refused as one"
						       : "an outlier, and counted");
	if (isfinite(norm)) {
		last[d->who.rank].known = true;
		last[d->who.rank].norm = norm;
	}
}
