/* SPDX-License-Identifier: MIT */
/*
 * The times of all gradients, by step and rank, and in each step in the order of arrival. Pure.
 *
 * Times that are missing are censored: the gradient never came, or was given up, so it is known to
 * be later than the last gradient of its step that was counted, and to take longer than the worker
 * had computed it. The bound is the longer of the two. A missing time is replaced by the mean of
 * that rank's times beyond the bound, by the estimator of Kaplan and Meier (1958). Then the mean of
 * the rank's row is that estimator's mean (Efron 1967: redistribution to the right). It is taken by
 * rank, because the ranks of a job differ. If the rank has no time beyond the bound, the bound
 * itself is taken, and what depends on it is known to be at least so much.
 *
 * The estimator assumes that within a rank the bound says nothing about the time except that the
 * time is longer.
 */
#ifndef MST_TOOLS_PLAN_ARRIVALS_H
#define MST_TOOLS_PLAN_ARRIVALS_H

#include "common/base/reason.h"
#include "tools/plan/rows.h"

#define MST_ARRIVAL_CELLS_MAX 8388608u /* steps x ranks: 128 MiB for both tables */
/* With a smaller share of the times, or fewer of them in a step, there is nothing to plan by. */
#define MST_ARRIVAL_SHARE_MIN 0.4
#define MST_ARRIVAL_STEP_MIN 1.5

struct mst_arrivals {
	uint32_t steps, ranks;
	double *us;         /* [step * ranks + rank] */
	double *sorted;     /* [step * ranks + k - 1]: the k-th arrival */
	uint32_t *at_least; /* [k - 1]: steps in which the k-th arrival is only known to be later */
	uint32_t *rank_at_least; /* [rank]: steps in which its time is only known to be longer */
	uint32_t *rank_given_up; /* [rank]: gradients of it that were not finished */
	uint32_t *rank_first, *rank_end; /* [rank]: its first row's step, and that after its last */
	uint64_t *number;                /* [step]: its number in the file */

	/* What was done with the rows. */
	uint64_t absent;         /* cells without a row */
	uint64_t censored;       /* cells whose time is missing, those included */
	uint64_t at_least_cells; /* of them, those that are known to be at least so much */
	uint64_t repeats; /* of a recording: rows left out, as their step has one of the rank */
	uint64_t open;    /* of a recording: steps left out, as none of their gradients counted */
	uint64_t gap;     /* steps between the first and the last that have no row */
};

/* Makes the tables. Sorts the rows.
 * @why: on failure what is wrong, in words, without the name of the file.
 * Return: 0, -EINVAL or -ENOMEM. */
int mst_arrivals_new(struct mst_arrival_rows *rows, struct mst_arrivals *out,
		     struct mst_reason *why);
void mst_arrivals_free(struct mst_arrivals *a); /* accepts zeroed memory */

/* The time of a rank in a step, or a lower bound of it. */
struct mst_lifetime {
	double us;
	uint32_t step;
	bool known;
};
/* Replaces the bounds among the times of one rank, as above, and sorts @t. A bound without a time
 * beyond it becomes the next larger number: it is later than what it is a bound of. It stays
 * unknown, and so do means that such a bound is part of; all others become known.
 * Return: how many stay unknown. */
uint32_t mst_lifetimes_complete(struct mst_lifetime *t, uint32_t count);

#endif
