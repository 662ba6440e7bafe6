/* SPDX-License-Identifier: MIT */
#include "tools/plan/replaced.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/rand.h"

/* More times say no more. */
#define POOL_MAX 65536u
#define DRAWS 32u

/* What a rank may be replaced by. */
struct pool {
	const struct mst_arrivals *a;
	const struct mst_slow *slow;
	bool all_slow;     /* every rank is a straggler */
	double *length_us; /* by step: how long it is for all ranks */
	double *ratio;     /* times / the lengths of their steps */
	uint32_t count;
	struct mst_rand rand;
};

/* ---- the lengths of steps ---- */

/* The times of a step that are not in a period. */
struct fast_times {
	uint32_t count;
	double mean, squares; /* of differences from the mean */
};

static struct fast_times times_of(const struct pool *p, uint32_t step)
{
	struct fast_times t = { 0 };

	for (uint32_t rank = 0; rank < p->a->ranks; rank++) {
		size_t at = (size_t)step * p->a->ranks + rank;
		if (p->slow->mark[at])
			continue;
		double off = p->a->us[at] - t.mean;
		t.mean += off / ++t.count;
		t.squares += off * (p->a->us[at] - t.mean);
	}
	return t;
}

/* Sums over the steps that have fast ranks. */
struct step_sums {
	double steps, times, mean, between, within;
};

static struct step_sums sum_steps(const struct pool *p)
{
	struct step_sums s = { 0 };

	for (uint32_t step = 0; step < p->a->steps; step++) {
		struct fast_times t = times_of(p, step);
		if (t.count == 0)
			continue;
		double off = t.mean - s.mean;
		s.mean += off / ++s.steps;
		s.between += off * (t.mean - s.mean);
		s.times += t.count;
		s.within += t.squares;
	}
	return s;
}

/* Which part of the differences between steps is one of the steps, and not of their times? */
static double part_of_steps(const struct step_sums *s)
{
	if (s->times <= s->steps || s->steps < 2 || s->between <= 0)
		return 0;
	double within = s->within / (s->times - s->steps), between = s->between / (s->steps - 1);
	double by_chance = within / (s->times / s->steps);

	return by_chance < between ? 1 - by_chance / between : 0;
}

static void fill_lengths(struct pool *p)
{
	struct step_sums s = sum_steps(p);
	double part = part_of_steps(&s);

	for (uint32_t step = 0; step < p->a->steps; step++) {
		struct fast_times t = times_of(p, step);
		double longer = t.mean > 0 && s.mean > 0 ? pow(t.mean / s.mean, part) : 1;
		p->length_us[step] = s.mean * longer;
	}
}

/* ---- times ---- */

static bool is_in(const struct pool *p, uint32_t step, uint32_t rank)
{
	if (!p->all_slow)
		return !p->slow->rank[rank].straggler;
	return !p->slow->mark[(size_t)step * p->a->ranks + rank];
}

static uint64_t count_in(const struct pool *p)
{
	uint64_t count = 0;

	for (uint32_t step = 0; step < p->a->steps; step++)
		for (uint32_t rank = 0; rank < p->a->ranks; rank++)
			count += is_in(p, step, rank);
	return count;
}

/* If there are many times, every second is taken, or every third. */
static int fill(struct pool *p)
{
	uint64_t in = count_in(p), every = in / POOL_MAX + 1, seen = 0;

	p->ratio = calloc(in / every + 1, sizeof(*p->ratio));
	if (p->ratio == NULL)
		return -ENOMEM;
	for (uint32_t step = 0; step < p->a->steps; step++) {
		double length_us = p->length_us[step];
		for (uint32_t rank = 0; rank < p->a->ranks && length_us > 0; rank++) {
			double us = p->a->us[(size_t)step * p->a->ranks + rank];
			if (is_in(p, step, rank) && seen++ % every == 0)
				p->ratio[p->count++] = us / length_us;
		}
	}
	return 0;
}

/* The longest of as many times as there are stragglers. */
static double draw(struct pool *p)
{
	double most = 0;

	for (uint32_t i = 0; i < p->slow->stragglers; i++)
		most = fmax(most, p->ratio[mst_rand_below(&p->rand, p->count)]);
	return most;
}

static double longest(struct pool *p, uint32_t step)
{
	double others_us = 0, sum = 0;

	for (uint32_t rank = 0; rank < p->a->ranks; rank++)
		if (!p->slow->rank[rank].straggler)
			others_us = fmax(others_us, p->a->us[(size_t)step * p->a->ranks + rank]);
	if (p->slow->stragglers == 0 || p->count == 0)
		return others_us;
	for (uint32_t i = 0; i < DRAWS; i++)
		sum += fmax(others_us, draw(p) * p->length_us[step]);
	return sum / DRAWS;
}

int mst_replaced_fill(const struct mst_arrivals *a, const struct mst_slow *slow, uint64_t seed,
		      double *out)
{
	struct pool p = { .a = a, .slow = slow, .all_slow = slow->stragglers == a->ranks };
	int rc = -ENOMEM;

	mst_rand_seed(&p.rand, seed);
	p.length_us = calloc(a->steps, sizeof(*p.length_us));
	if (p.length_us != NULL) {
		fill_lengths(&p);
		rc = fill(&p);
	}
	for (uint32_t step = 0; rc == 0 && step < a->steps; step++)
		out[step] = longest(&p, step);
	free(p.length_us);
	free(p.ratio);
	return rc;
}
