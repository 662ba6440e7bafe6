/* SPDX-License-Identifier: MIT */
#include "tools/plan/quorum.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- replay ---- */

int mst_replay_scratch_init(struct mst_replay_scratch *s, uint32_t ranks)
{
	*s = (struct mst_replay_scratch){ calloc(ranks, sizeof(double)),
					  calloc(ranks, sizeof(double)),
					  calloc(ranks, sizeof(double)) };
	return s->busy != NULL && s->arrival != NULL && s->order != NULL ? 0 : -ENOMEM;
}

void mst_replay_scratch_fini(struct mst_replay_scratch *s)
{
	free(s->busy);
	free(s->arrival);
	free(s->order);
}

static void swap(double *a, double *b)
{
	double kept = *a;

	*a = *b;
	*b = kept;
}

/* The k-th smallest, k from 0; the order of the numbers changes. Hoare's quickselect. */
static double select_kth(double *v, uint32_t count, uint32_t k)
{
	int64_t low = 0, high = (int64_t)count - 1;

	while (low < high) {
		double pivot = v[(low + high) / 2];
		int64_t i = low, j = high;
		while (i <= j) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i <= j)
				swap(&v[i++], &v[j--]);
		}
		if ((int64_t)k <= j)
			high = j;
		else if ((int64_t)k >= i)
			low = i;
		else
			break;
	}
	return v[k];
}

/* One step, which begins at @now. A rank begins with it now, or when it has finished its late
 * gradient; if the step is over by then, the rank goes on to the next.
 * Return: when the step is committed. */
static double replay_step(const double *us, uint32_t ranks, uint32_t quorum, double now,
			  struct mst_replay_scratch *s)
{
	for (uint32_t rank = 0; rank < ranks; rank++) {
		double begin = s->busy[rank] > now ? s->busy[rank] : now;
		s->arrival[rank] = begin + us[rank];
	}
	memcpy(s->order, s->arrival, ranks * sizeof(*s->order));
	return select_kth(s->order, ranks, quorum - 1);
}

void mst_replay_backup(const struct mst_arrivals *a, uint32_t quorum, const uint32_t *step,
		       struct mst_replay_scratch *s, struct mst_replay *out)
{
	double now = 0;

	*out = (struct mst_replay){ 0 };
	memset(s->busy, 0, a->ranks * sizeof(*s->busy));
	for (uint32_t i = 0; i < a->steps; i++) {
		uint32_t at = step != NULL ? step[i] : i;
		double commit = replay_step(&a->us[(size_t)at * a->ranks], a->ranks, quorum, now,
					    s);
		for (uint32_t rank = 0; rank < a->ranks; rank++) {
			bool began = s->busy[rank] <= commit;
			bool in_time = s->arrival[rank] <= commit;
			if (!began)
				continue;
			if (in_time)
				out->counted++;
			else
				out->late++;
			s->busy[rank] = in_time ? commit : s->arrival[rank];
		}
		now = commit;
	}
	out->us = now;
}
