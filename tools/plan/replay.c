/* SPDX-License-Identifier: MIT */
#include "tools/plan/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_US 1e3
/* As in the ledger: an ask is held no longer than so many steps take. */
#define STEPS_HELD 2

int mst_replay_scratch_init(struct mst_replay_scratch *s, uint32_t ranks)
{
	*s = (struct mst_replay_scratch){
		.busy = calloc(ranks, sizeof(*s->busy)),
		.begin = calloc(ranks, sizeof(*s->begin)),
		.arrival = calloc(ranks, sizeof(*s->arrival)),
		.order = calloc(ranks, sizeof(*s->order)),
		.next = calloc(ranks, sizeof(*s->next)),
		.took = calloc(ranks, sizeof(*s->took)),
	};
	return s->busy != NULL && s->begin != NULL && s->arrival != NULL && s->order != NULL &&
			       s->next != NULL && s->took != NULL
		       ? 0
		       : -ENOMEM;
}

void mst_replay_scratch_fini(struct mst_replay_scratch *s)
{
	free(s->busy);
	free(s->begin);
	free(s->arrival);
	free(s->order);
	free(s->next);
	free(s->took);
}

uint32_t mst_replay_length(const struct mst_arrivals *a)
{
	uint32_t steps = MST_REPLAY_GRADIENTS / a->ranks;

	if (steps > MST_REPLAY_STEPS)
		steps = MST_REPLAY_STEPS;
	return steps > a->steps ? steps : a->steps;
}

double mst_replay_all(const struct mst_arrivals *a, const uint32_t *step)
{
	uint32_t length = mst_replay_length(a);
	double sum = 0;

	for (uint32_t i = 0; i < length; i++) {
		uint32_t nth = i % a->steps, at = step != NULL ? step[nth] : nth;
		sum += a->sorted[(size_t)at * a->ranks + a->ranks - 1];
	}
	return sum / length;
}

/* ---- order statistics ---- */

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

/* ---- late starts ---- */

static void took(struct mst_durations *d, double us)
{
	mst_durations_add(d, (uint64_t)(us * NS_PER_US));
}

/* A step that began at @now usually takes @step_us. Would the gradient that @rank begins at @at be
 * late although it took no longer than any of its last ones? */
static bool comes_too_late(const struct mst_replay_scratch *s, uint32_t rank, double at, double now,
			   double step_us)
{
	double least_us = (double)mst_durations_least(&s->took[rank]) / NS_PER_US;

	return least_us > 0 && step_us > 0 && at + least_us > now + step_us;
}

/* When does @rank begin, which is at an older gradient at @now? No more ranks are so than a step
 * can do without, so all of them may be held. */
static double begin_late(const struct mst_replay_scratch *s, uint32_t rank, double now,
			 double step_us)
{
	double held_until = now + STEPS_HELD * step_us, end = s->busy[rank];

	if (end < held_until && comes_too_late(s, rank, end, now, step_us))
		return held_until;
	return end;
}

/* ---- steps ---- */

/* The rows of a replay: which steps of the trace, in which order. */
struct rows {
	const struct mst_arrivals *a;
	const uint32_t *step;
};

static double time_of(const struct rows *rows, uint32_t rank, uint32_t nth)
{
	uint32_t at = rows->step != NULL ? rows->step[nth] : nth;

	return rows->a->us[(size_t)at * rows->a->ranks + rank];
}

/* One step, which begins at @now. Return: when it is committed. */
static double make_step(const struct rows *rows, uint32_t quorum, double now,
			struct mst_replay_scratch *s)
{
	double step_us = (double)mst_durations_median(&s->steps) / NS_PER_US;
	uint32_t ranks = rows->a->ranks;

	for (uint32_t rank = 0; rank < ranks; rank++) {
		s->begin[rank] = s->busy[rank] > now ? begin_late(s, rank, now, step_us) : now;
		s->arrival[rank] = s->begin[rank] + time_of(rows, rank, s->next[rank]);
	}
	memcpy(s->order, s->arrival, ranks * sizeof(*s->order));
	return select_kth(s->order, ranks, quorum - 1);
}

/* How many of those that arrive with the commit count: the quorum is full then. */
static uint32_t places_left(const struct mst_replay_scratch *s, uint32_t ranks, uint32_t quorum,
			    double commit)
{
	uint32_t before = 0;

	for (uint32_t rank = 0; rank < ranks; rank++)
		before += s->arrival[rank] < commit;
	return quorum - before;
}

/* A gradient that was begun in the step that ends at @commit. */
static void end_gradient(const struct rows *rows, uint32_t rank, bool in_time,
			 struct mst_replay_scratch *s, struct mst_replay *out)
{
	if (in_time)
		out->counted++;
	else
		out->late++;
	took(&s->took[rank], s->arrival[rank] - s->begin[rank]);
	s->busy[rank] = s->arrival[rank];
	s->next[rank] = s->next[rank] + 1 < rows->a->steps ? s->next[rank] + 1 : 0;
}

/* A rank that has ended its late gradient, and not begun, has been held. */
static void end_step(const struct rows *rows, uint32_t quorum, double commit,
		     struct mst_replay_scratch *s, struct mst_replay *out)
{
	uint32_t ranks = rows->a->ranks, left = places_left(s, ranks, quorum, commit);

	for (uint32_t rank = 0; rank < ranks; rank++) {
		bool ties = s->arrival[rank] == commit && left > 0;
		bool in_time = s->arrival[rank] < commit || ties;
		left -= ties;
		if (in_time || s->begin[rank] < commit)
			end_gradient(rows, rank, in_time, s, out);
	}
}

static void begin(struct mst_replay_scratch *s, uint32_t ranks)
{
	s->steps = (struct mst_durations){ 0 };
	memset(s->busy, 0, ranks * sizeof(*s->busy));
	memset(s->next, 0, ranks * sizeof(*s->next));
	memset(s->took, 0, ranks * sizeof(*s->took));
}

void mst_replay_backup(const struct mst_arrivals *a, uint32_t quorum, const uint32_t *step,
		       struct mst_replay_scratch *s, struct mst_replay *out)
{
	const struct rows rows = { a, step };
	double wanted = (double)mst_replay_length(a) * a->ranks;
	double most_steps = fmax(a->steps, MST_REPLAY_TIMES / a->ranks);

	*out = (struct mst_replay){ 0 };
	begin(s, a->ranks);
	while (out->counted < wanted && out->steps < most_steps) {
		double commit = make_step(&rows, quorum, out->us, s);
		end_step(&rows, quorum, commit, s, out);
		took(&s->steps, commit - out->us);
		out->us = commit;
		out->steps++;
	}
}
