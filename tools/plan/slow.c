/* SPDX-License-Identifier: MIT */
#include "tools/plan/slow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tools/plan/judge.h"

/* What ranks are compared with. */
struct fast {
	double *mean_us; /* by step: of the ranks that are not slow; 0: all are */
	double *last_us; /* by step: the longest of their times */
};

static void fill_fast(const struct mst_arrivals *a, const bool *mark, struct fast *fast)
{
	for (uint32_t step = 0; step < a->steps; step++) {
		uint32_t count = 0;
		double sum = 0, last = 0;
		for (uint32_t rank = 0; rank < a->ranks; rank++) {
			double us = a->us[(size_t)step * a->ranks + rank];
			if (mark[(size_t)step * a->ranks + rank])
				continue;
			count++;
			sum += us;
			last = fmax(last, us);
		}
		fast->mean_us[step] = count > 0 ? sum / count : 0;
		fast->last_us[step] = last;
	}
}

static void count_slowest(const struct mst_arrivals *a, struct mst_slow_rank *rank)
{
	for (uint32_t step = 0; step < a->steps; step++) {
		const double *us = &a->us[(size_t)step * a->ranks];
		const double *sorted = &a->sorted[(size_t)step * a->ranks];
		double last = sorted[a->ranks - 1];
		for (uint32_t i = 0; i < a->ranks && sorted[a->ranks - 2] < last; i++)
			rank[i].slowest += us[i] == last;
	}
}

/* ---- one rank ---- */

static void add_step(struct mst_slow_rank *r, uint32_t step, bool begins)
{
	if (r->slow++ == 0)
		r->first = step;
	r->last = step;
	r->periods += begins;
}

static void judge_rank(const struct mst_arrivals *a, const bool *mark, const struct fast *fast,
		       struct mst_slow_rank *r)
{
	double us = 0, fast_us = 0;
	bool was = false;

	for (uint32_t step = 0; step < a->steps; step++) {
		size_t at = (size_t)step * a->ranks + r->rank;
		if (mark[at]) {
			add_step(r, step, !was);
			r->cost_us += fmax(a->us[at] - fast->last_us[step], 0);
			us += fast->mean_us[step] > 0 ? a->us[at] : 0;
			fast_us += fast->mean_us[step];
		}
		was = mark[at];
	}
	r->ratio = fast_us > 0 ? us / fast_us : 1;
	r->at_least = 2 * (uint64_t)a->rank_given_up[r->rank] > a->steps &&
		      2 * (uint64_t)a->rank_at_least[r->rank] > a->steps;
}

/* @all_us: of all steps that wait for all. */
static void conclude(const struct mst_arrivals *a, double all_us, struct mst_slow_rank *r)
{
	bool costs = r->slow > 0 && r->cost_us >= MST_SLOW_COST * all_us;

	r->straggler = costs || r->at_least;
	r->persistent = (costs && 2 * (uint64_t)r->slow > a->steps) || r->at_least;
}

/* What is left of marks are those of stragglers. */
static void clear_marks(const struct mst_arrivals *a, struct mst_slow *s)
{
	for (uint32_t step = 0; step < a->steps; step++)
		for (uint32_t rank = 0; rank < a->ranks; rank++)
			s->mark[(size_t)step * a->ranks + rank] &= s->rank[rank].straggler;
}

/* ---- all ranks ---- */

static double sum_all(const struct mst_arrivals *a)
{
	double sum = 0;

	for (uint32_t step = 0; step < a->steps; step++)
		sum += a->sorted[(size_t)step * a->ranks + a->ranks - 1];
	return sum;
}

static double mean_without(const struct mst_arrivals *a, const struct mst_slow_rank *rank)
{
	double sum = 0;

	for (uint32_t step = 0; step < a->steps; step++) {
		const double *us = &a->us[(size_t)step * a->ranks];
		double last = 0;
		for (uint32_t i = 0; i < a->ranks; i++)
			if (!rank[i].straggler)
				last = fmax(last, us[i]);
		sum += last;
	}
	return sum / a->steps;
}

static void judge_ranks(const struct mst_arrivals *a, const struct fast *fast, struct mst_slow *s)
{
	double all_us = sum_all(a);

	for (uint32_t rank = 0; rank < a->ranks; rank++) {
		struct mst_slow_rank *r = &s->rank[rank];
		r->rank = rank;
		judge_rank(a, s->mark, fast, r);
		conclude(a, all_us, r);
		s->stragglers += r->straggler;
		s->persistent += r->persistent;
		s->at_least += r->at_least;
	}
	count_slowest(a, s->rank);
	clear_marks(a, s);
	s->without_us = mean_without(a, s->rank);
}

int mst_slow_find(const struct mst_arrivals *a, struct mst_slow *out)
{
	struct fast fast = { calloc(a->steps, sizeof(double)), calloc(a->steps, sizeof(double)) };
	int rc = -ENOMEM;

	*out = (struct mst_slow){
		.rank = calloc(a->ranks, sizeof(*out->rank)),
		.mark = calloc((size_t)a->steps * a->ranks, sizeof(*out->mark)),
	};
	if (out->rank != NULL && out->mark != NULL && fast.mean_us != NULL && fast.last_us != NULL)
		rc = mst_judge_trace(a, out->mark);
	if (rc == 0) {
		fill_fast(a, out->mark, &fast);
		judge_ranks(a, &fast, out);
	}
	free(fast.mean_us);
	free(fast.last_us);
	return rc;
}

void mst_slow_free(struct mst_slow *slow)
{
	free(slow->rank);
	free(slow->mark);
	*slow = (struct mst_slow){ 0 };
}
