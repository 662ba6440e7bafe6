/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/outliers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

int mst_outliers_init(struct mst_outliers *o, double limit, uint32_t ranks)
{
	*o = (struct mst_outliers){ .limit = limit, .ranks = ranks };
	if (limit == 0)
		return 0;
	o->last = calloc(ranks, sizeof(*o->last));
	o->sorted = calloc(ranks, sizeof(*o->sorted));
	if (o->last == NULL || o->sorted == NULL) {
		mst_outliers_fini(o);
		return -ENOMEM;
	}
	mst_outliers_forget_all(o);
	return 0;
}

uint64_t mst_outliers_bytes(double limit, uint32_t ranks)
{
	return limit == 0 ? 0 : 2 * (uint64_t)ranks * sizeof(double);
}

void mst_outliers_fini(struct mst_outliers *o)
{
	free(o->last);
	free(o->sorted);
	o->last = o->sorted = NULL;
}

/* The first place whose norm is not below this one. */
static uint32_t place_of(const struct mst_outliers *o, double norm)
{
	uint32_t low = 0, high = o->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (o->sorted[middle] < norm)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void enter(struct mst_outliers *o, uint32_t rank, double norm)
{
	uint32_t place = place_of(o, norm);

	MST_ASSERT(o->count < o->ranks);
	memmove(o->sorted + place + 1, o->sorted + place, (o->count - place) * sizeof(*o->sorted));
	o->sorted[place] = norm;
	o->count++;
	o->last[rank] = norm;
}

void mst_outliers_forget(struct mst_outliers *o, uint32_t rank)
{
	if (o->limit == 0 || isnan(o->last[rank]))
		return;
	uint32_t place = place_of(o, o->last[rank]);
	o->count--;
	memmove(o->sorted + place, o->sorted + place + 1, (o->count - place) * sizeof(*o->sorted));
	o->last[rank] = (double)NAN;
}

void mst_outliers_forget_all(struct mst_outliers *o)
{
	if (o->limit == 0)
		return;
	for (uint32_t rank = 0; rank < o->ranks; rank++)
		o->last[rank] = (double)NAN;
	o->count = 0;
}

double mst_outliers_median(const struct mst_outliers *o)
{
	return o->count > 0 ? o->sorted[(o->count - 1) / 2] : (double)NAN;
}

bool mst_outliers_judge(struct mst_outliers *o, uint32_t rank, double norm)
{
	if (o->limit == 0)
		return false;
	if (!isfinite(norm))
		return true;
	double median = mst_outliers_median(o);
	bool exceeds = o->count >= MST_OUTLIERS_MIN && median > 0 && norm > o->limit * median;
	mst_outliers_forget(o, rank);
	enter(o, rank, norm);
	return exceeds;
}
