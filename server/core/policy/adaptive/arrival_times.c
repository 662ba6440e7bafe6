/* SPDX-License-Identifier: MIT */
#include "server/core/policy/adaptive/arrival_times.h"

#include <math.h>

/* Older samples fade, for the times of workers change. */
#define SAMPLES_MAX 8.0
/* What is gained by less than this share is noise. */
#define EQUAL 1.01
/* K is looked for in so many places between two workers, and in all. */
#define PLACES 20u
#define PLACES_MAX 2000u

void mst_arrival_times_add(struct mst_arrival_times *t, uint32_t workers,
			   const struct mst_arrival *arrival)
{
	uint32_t at = mst_quorum_class(workers, arrival->number);

	if (mst_quorum_of_class(workers, at) != arrival->number)
		return;
	struct mst_quorum_cell *cell = &t->at[at];
	cell->weight = fmin(cell->weight + 1, SAMPLES_MAX);
	cell->mean_s += (arrival->after_s - cell->mean_s) / cell->weight;
}

bool mst_arrival_times_known(const struct mst_arrival_times *t, uint32_t workers, uint32_t live)
{
	for (uint32_t at = 0; at < mst_quorum_classes(workers); at++)
		if (mst_quorum_of_class(workers, at) <= live && !(t->at[at].weight > 0))
			return false;
	return true;
}

/* One quorum has more samples than another. So the means need not grow with k, as the
 * times do. */
static double grown(const struct mst_arrival_times *t, uint32_t at)
{
	double most = 0;

	for (uint32_t i = 0; i <= at; i++)
		most = fmax(most, t->at[i].mean_s);
	return most;
}

double mst_arrival_times_of(const struct mst_arrival_times *t, uint32_t workers, double k)
{
	uint32_t last = mst_quorum_classes(workers) - 1, at = 0;

	while (at < last && mst_quorum_of_class(workers, at) < k)
		at++;
	double right = mst_quorum_of_class(workers, at), right_s = grown(t, at);
	if (at == 0 || k >= right)
		return right_s;
	double left = mst_quorum_of_class(workers, at - 1), left_s = grown(t, at - 1);
	return left_s + (right_s - left_s) * (k - left) / (right - left);
}

uint32_t mst_arrival_times_start(const struct mst_arrival_times *t, uint32_t workers, uint32_t live)
{
	uint32_t chosen = live;

	for (uint32_t k = live; k-- > 1;)
		if (k * mst_arrival_times_of(t, workers, chosen) >
		    chosen * mst_arrival_times_of(t, workers, k) * EQUAL)
			chosen = k;
	return chosen;
}

/* The bound is in proportion to T(K) / (T(start) ratio) + start / K: at the start the time and the
 * noise weigh the same, as they do where K has the most gradients a second, and all K that are near
 * it are about as good. For exponential times and start 1 it is the paper's K^2 / (P - K), as far
 * as whole numbers show. */
double mst_arrival_times_k(const struct mst_arrival_times *t, uint32_t workers, uint32_t live,
			   uint32_t start, double ratio)
{
	double unit = mst_arrival_times_of(t, workers, start) * ratio, least = INFINITY,
	       chosen = live;

	if (start >= live || !(unit > 0))
		return live;
	uint32_t places = live < PLACES_MAX / PLACES ? (live - 1) * PLACES : PLACES_MAX;
	for (uint32_t i = places + 1; i-- > 0;) {
		double k = 1 + (live - 1.0) * i / places;
		double bound = mst_arrival_times_of(t, workers, k) / unit + start / k;
		if (bound < least) {
			least = bound;
			chosen = k;
		}
	}
	return chosen;
}
