/* SPDX-License-Identifier: MIT */
#include "tools/plan/arrivals.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one rank ---- */

/* By time; of equal ones a time stands before a bound, which is later. */
static int by_time(const void *a, const void *b)
{
	const struct mst_lifetime *x = a, *y = b;

	if (x->us != y->us)
		return x->us < y->us ? -1 : 1;
	return y->known - x->known;
}

/* From the last time to the first, @mean is the estimator's mean of what lies beyond. Of
 * @beyond + 1 that are at risk at a time, one ends there. The bounds after the last time count
 * with their bounds. */
uint32_t mst_lifetimes_complete(struct mst_lifetime *t, uint32_t count)
{
	uint32_t beyond = 0, at_least = 0;
	double mean = 0;
	bool any = false;

	qsort(t, count, sizeof(*t), by_time);
	for (uint32_t i = count; i > 0; i--, beyond++) {
		struct mst_lifetime *one = &t[i - 1];
		bool missing = !one->known;
		any |= one->known;
		if (missing && any) {
			one->us = mean;
			one->known = at_least == 0;
		} else if (missing) {
			one->us = nextafter(one->us, INFINITY);
		}
		if (!missing || !any)
			mean += (one->us - mean) / (beyond + 1);
		at_least += !one->known;
	}
	return at_least;
}

/* ---- rows ---- */

static int by_cell(const void *a, const void *b)
{
	const struct mst_arrival_row *x = a, *y = b;

	if (x->generation != y->generation)
		return x->generation < y->generation ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static bool same_step(const struct mst_arrival_row *a, const struct mst_arrival_row *b)
{
	return a->step == b->step && a->generation == b->generation;
}

/* A trace has one time for each rank and step. In a recording a rank may contribute twice on a
 * version, of which the first tells how long it takes from the start of the step. */
static int check_repeats(struct mst_arrival_rows *rows, struct mst_arrivals *a,
			 struct mst_reason *why)
{
	struct mst_arrival_row *r = rows->row;
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++) {
		bool again = kept > 0 && same_step(&r[i], &r[kept - 1]) &&
			     r[i].rank == r[kept - 1].rank;
		if (again && !rows->recorded) {
			mst_reason_set(why,
				       "line %" PRIu32 " repeats worker %" PRIu32
				       " of step %" PRIu64 ", which line %" PRIu32 " has",
				       r[i].line, r[i].rank, r[i].step, r[kept - 1].line);
			return -EINVAL;
		}
		a->repeats += again;
		if (!again)
			r[kept++] = r[i];
	}
	rows->count = kept;
	return 0;
}

static void count_gap(const struct mst_arrival_rows *rows, struct mst_arrivals *a)
{
	for (size_t i = 1; i < rows->count; i++) {
		const struct mst_arrival_row *r = &rows->row[i];
		if (r->generation == r[-1].generation && r->step > r[-1].step + 1)
			a->gap += r->step - r[-1].step - 1;
	}
}

/* Leaves out steps none of whose gradients was counted, such as the last of a job. */
static void drop_open(struct mst_arrival_rows *rows, struct mst_arrivals *a)
{
	struct mst_arrival_row *r = rows->row;
	size_t kept = 0;

	for (size_t first = 0, end; first < rows->count; first = end) {
		bool counted = false;
		for (end = first; end < rows->count && same_step(&r[end], &r[first]); end++)
			counted |= r[end].counted;
		a->open += !counted;
		if (!counted)
			continue;
		memmove(&r[kept], &r[first], (end - first) * sizeof(*r));
		kept += end - first;
	}
	rows->count = kept;
}

/* Counts steps and ranks. */
static void count_steps(const struct mst_arrival_rows *rows, struct mst_arrivals *a)
{
	uint64_t steps = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const struct mst_arrival_row *r = &rows->row[i];
		steps += i == 0 || !same_step(r, r - 1);
		if (r->rank >= a->ranks)
			a->ranks = r->rank + 1;
	}
	a->steps = (uint32_t)steps;
}

/* A trace whose workers are numbered from 1 would have a worker 0 that never comes. */
static int check_ranks(const struct mst_arrival_rows *rows, const struct mst_arrivals *a,
		       struct mst_reason *why)
{
	bool *seen = calloc(a->ranks, sizeof(*seen));
	uint32_t rank = 0;

	if (seen == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < rows->count; i++)
		seen[rows->row[i].rank] = true;
	while (rank < a->ranks && (seen[rank] || rows->recorded))
		rank++;
	free(seen);
	if (rank == a->ranks)
		return 0;
	mst_reason_set(why,
		       "worker %" PRIu32 " has no line, though worker %" PRIu32
		       " has: number the workers from 0, without gaps",
		       rank, a->ranks - 1);
	return -EINVAL;
}

static int check_size(const struct mst_arrival_rows *rows, struct mst_arrivals *a,
		      struct mst_reason *why)
{
	uint64_t cells = (uint64_t)a->steps * a->ranks;

	a->absent = cells - rows->count;
	if (a->steps < 2 || a->ranks < 2)
		mst_reason_set(why,
			       "there are %" PRIu32 " steps and %" PRIu32
			       " workers: a plan takes at least two of each",
			       a->steps, a->ranks);
	else if (cells > MST_ARRIVAL_CELLS_MAX)
		mst_reason_set(why,
			       "%" PRIu32 " steps of %" PRIu32 " workers are %" PRIu64
			       " times, more than %u: read a part of the steps, with --from and "
			       "--to",
			       a->steps, a->ranks, cells, MST_ARRIVAL_CELLS_MAX);
	else if ((double)rows->count < MST_ARRIVAL_SHARE_MIN * (double)cells ||
		 (double)rows->count < MST_ARRIVAL_STEP_MIN * a->steps)
		mst_reason_set(why,
			       "of the %" PRIu64 " times of %" PRIu32 " steps and %" PRIu32
			       " workers %" PRIu64 " are missing, which leaves too few%s",
			       cells, a->steps, a->ranks, a->absent,
			       rows->recorded ? "; of a policy whose workers go on before the "
						"commit, compare the n-th gradients of the "
						"workers: --pair order"
					      : "");
	else
		return 0;
	return -EINVAL;
}

/* ---- tables ---- */

/* Numbers the steps from 0, and keeps the numbers that they had. */
static void number_steps(struct mst_arrival_rows *rows, struct mst_arrivals *a)
{
	struct mst_arrival_row before = { 0 };
	uint64_t steps = 0;

	for (size_t i = 0; i < rows->count; i++) {
		struct mst_arrival_row *r = &rows->row[i];
		if (i == 0 || !same_step(r, &before))
			a->number[steps++] = r->step;
		before = *r;
		r->step = steps - 1;
	}
}

static int make_tables(struct mst_arrivals *a, struct mst_reason *why)
{
	size_t cells = (size_t)a->steps * a->ranks;

	a->us = calloc(cells, sizeof(*a->us));
	a->sorted = calloc(cells, sizeof(*a->sorted));
	a->at_least = calloc(a->ranks, sizeof(*a->at_least));
	a->rank_at_least = calloc(a->ranks, sizeof(*a->rank_at_least));
	a->rank_given_up = calloc(a->ranks, sizeof(*a->rank_given_up));
	a->rank_first = calloc(a->ranks, sizeof(*a->rank_first));
	a->rank_end = calloc(a->ranks, sizeof(*a->rank_end));
	a->number = calloc(a->steps, sizeof(*a->number));
	if (a->us != NULL && a->sorted != NULL && a->at_least != NULL && a->rank_at_least != NULL &&
	    a->rank_given_up != NULL && a->rank_first != NULL && a->rank_end != NULL &&
	    a->number != NULL)
		return 0;
	mst_reason_set(why,
		       "no memory for %zu times, twice (%zu MiB): read a part of the steps, with "
		       "--from and --to",
		       cells, 2 * cells * sizeof(*a->us) >> 20);
	return -ENOMEM;
}

/* Until the missing times are replaced, a cell that has a bound has it below zero: 5 is -6. */
static double as_bound(double us)
{
	return -us - 1;
}

static void place_rows(const struct mst_arrival_rows *rows, struct mst_arrivals *a)
{
	const struct mst_arrival_row *r = rows->row;

	for (size_t first = 0, end; first < rows->count; first = end) {
		double *cell = &a->us[r[first].step * a->ranks];
		double bound = 0;
		for (end = first; end < rows->count && r[end].step == r[first].step; end++)
			if (r[end].counted && r[end].us > bound)
				bound = r[end].us;
		for (uint32_t rank = 0; rank < a->ranks; rank++)
			cell[rank] = as_bound(bound);
		for (size_t i = first; i < end; i++) {
			cell[r[i].rank] = r[i].known ? r[i].us : as_bound(fmax(r[i].us, bound));
			a->rank_given_up[r[i].rank] += !r[i].known;
			if (a->rank_end[r[i].rank] == 0)
				a->rank_first[r[i].rank] = (uint32_t)r[i].step;
			a->rank_end[r[i].rank] = (uint32_t)r[i].step + 1;
		}
	}
}

/* Completes the times of one rank. What stays a bound is noted in @bounded, by step. */
static void complete_rank(struct mst_arrivals *a, uint32_t rank, struct mst_lifetime *t,
			  double *bounded)
{
	uint32_t missing = 0;

	for (uint32_t step = 0; step < a->steps; step++) {
		double us = a->us[(size_t)step * a->ranks + rank];
		bool known = us >= 0;
		missing += !known;
		t[step] = (struct mst_lifetime){ known ? us : as_bound(us), step, known };
	}
	if (missing == 0)
		return;
	a->censored += missing;
	a->rank_at_least[rank] = mst_lifetimes_complete(t, a->steps);
	a->at_least_cells += a->rank_at_least[rank];
	for (uint32_t i = 0; i < a->steps; i++) {
		a->us[(size_t)t[i].step * a->ranks + rank] = t[i].us;
		if (!t[i].known && t[i].us < bounded[t[i].step])
			bounded[t[i].step] = t[i].us;
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* @bounded: the least time of each step that is only a bound. All arrivals from it on may be
 * later. */
static void sort_steps(struct mst_arrivals *a, const double *bounded)
{
	memcpy(a->sorted, a->us, (size_t)a->steps * a->ranks * sizeof(*a->us));
	for (uint32_t step = 0; step < a->steps; step++) {
		double *arrival = &a->sorted[(size_t)step * a->ranks];
		qsort(arrival, a->ranks, sizeof(*arrival), by_size);
		for (uint32_t k = 0; k < a->ranks; k++)
			a->at_least[k] += arrival[k] >= bounded[step];
	}
}

static int fill_tables(const struct mst_arrival_rows *rows, struct mst_arrivals *a)
{
	struct mst_lifetime *t = calloc(a->steps, sizeof(*t));
	double *bounded = calloc(a->steps, sizeof(*bounded));
	int rc = t != NULL && bounded != NULL ? 0 : -ENOMEM;

	if (rc == 0) {
		for (uint32_t step = 0; step < a->steps; step++)
			bounded[step] = INFINITY;
		place_rows(rows, a);
		for (uint32_t rank = 0; rank < a->ranks; rank++)
			complete_rank(a, rank, t, bounded);
		sort_steps(a, bounded);
	}
	free(t);
	free(bounded);
	return rc;
}

int mst_arrivals_new(struct mst_arrival_rows *rows, struct mst_arrivals *out,
		     struct mst_reason *why)
{
	struct mst_arrivals a = { 0 };

	if (rows->count > 0)
		qsort(rows->row, rows->count, sizeof(*rows->row), by_cell);
	int rc = check_repeats(rows, &a, why);
	if (rc != 0)
		return rc;
	count_gap(rows, &a);
	if (rows->recorded)
		drop_open(rows, &a);
	count_steps(rows, &a);
	rc = check_size(rows, &a, why);
	if (rc == 0)
		rc = check_ranks(rows, &a, why);
	if (rc == 0)
		rc = make_tables(&a, why);
	if (rc == 0) {
		number_steps(rows, &a);
		rc = fill_tables(rows, &a);
	}
	if (rc == 0 && a.sorted[(size_t)a.steps * a.ranks - 1] <= 0) {
		mst_reason_set(why, "all times are 0");
		rc = -EINVAL;
	}
	if (rc != 0) {
		mst_arrivals_free(&a);
		return rc;
	}
	*out = a;
	return 0;
}

void mst_arrivals_free(struct mst_arrivals *a)
{
	free(a->us);
	free(a->sorted);
	free(a->at_least);
	free(a->rank_at_least);
	free(a->rank_given_up);
	free(a->rank_first);
	free(a->rank_end);
	free(a->number);
	*a = (struct mst_arrivals){ 0 };
}
