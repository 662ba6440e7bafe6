/* SPDX-License-Identifier: MIT */
#include "tools/bench/figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum series { STEP, OPENED, WAIT, SUM, ANSWER, OWN, FIRST, SERIES };

/* One step over those who are counted in it. */
struct step_times {
	uint32_t counted;
	uint64_t slowest; /* of the times from own start to own end */
	uint64_t first_start, last_pushed;
	uint64_t last_start, last_start_end; /* of the one that started last */
	uint64_t first_end, last_end;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void step_add(struct step_times *s, const struct mst_bench_record *r)
{
	if (s->counted++ == 0) {
		s->first_start = s->first_end = UINT64_MAX;
		s->last_start = 0;
	}
	s->slowest = larger(s->slowest, r->end_ns - r->start_ns);
	s->first_start = smaller(s->first_start, r->start_ns);
	s->last_pushed = larger(s->last_pushed, r->pushed_ns);
	s->first_end = smaller(s->first_end, r->end_ns);
	s->last_end = larger(s->last_end, r->end_ns);
	if (r->start_ns >= s->last_start) {
		s->last_start = r->start_ns;
		s->last_start_end = r->end_ns;
	}
}

static bool is_counted(const struct mst_bench_record *r, uint64_t step)
{
	return r->end_ns != 0 && r->verdict == MUSTER_COUNTED && r->counted_in == step + 1;
}

static struct step_times gather(struct mst_bench_plan *p, uint64_t step)
{
	struct step_times s = { .counted = 0 };

	for (uint32_t rank = 0; rank < p->workers; rank++) {
		const struct mst_bench_record *r = mst_bench_record_of(p, rank, step);

		if (is_counted(r, step))
			step_add(&s, r);
	}
	return s;
}

/* The last may have handed in, but not known it yet, when the first has its result. */
static void note(uint64_t *const series[SERIES], uint64_t at, const struct step_times *s,
		 const struct mst_bench_plan *p, uint64_t open_ns)
{
	uint64_t all_in = smaller(s->last_pushed, s->first_end);

	series[STEP][at] = p->last_alone ? s->last_end - s->last_start : s->slowest;
	series[OPENED][at] = s->last_end - open_ns;
	series[WAIT][at] = all_in - s->first_start;
	series[SUM][at] = s->first_end - all_in;
	series[ANSWER][at] = s->last_end - s->first_end;
	series[OWN][at] = s->last_start_end - s->last_start;
	series[FIRST][at] = s->first_end > s->last_start ? s->first_end - s->last_start : 0;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The smallest sample that @share of all do not exceed. */
static uint64_t quantile(const uint64_t *sorted, uint64_t count, double share)
{
	uint64_t rank = (uint64_t)ceil(share * (double)count);

	return sorted[rank == 0 ? 0 : rank - 1];
}

static struct mst_bench_spread spread(uint64_t *samples, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum += samples[i];
	qsort(samples, count, sizeof(samples[0]), by_size);
	return (struct mst_bench_spread){
		.min = samples[0],
		.mean = sum / count,
		.p50 = quantile(samples, count, 0.5),
		.p90 = quantile(samples, count, 0.9),
		.p99 = quantile(samples, count, 0.99),
		.p999 = quantile(samples, count, 0.999),
		.max = samples[count - 1],
	};
}

/* Barriers open one after the other. Nothing beyond the last is read: reading would make memory of
 * it. */
static uint64_t steps_made(struct mst_bench_plan *p)
{
	uint64_t step = 0;

	while (step < p->steps && atomic_load_explicit(&mst_bench_step_of(p, step)->begin.state,
						       memory_order_acquire) == MST_BENCH_GO)
		step++;
	return step;
}

static void count_all(struct mst_bench_plan *p, uint64_t steps, struct mst_bench_figures *out)
{
	uint64_t first = UINT64_MAX;

	for (uint64_t step = 0; step < steps; step++) {
		for (uint32_t rank = 0; rank < p->workers; rank++) {
			const struct mst_bench_record *r = mst_bench_record_of(p, rank, step);

			out->wrong += r->wrong;
			out->checked += r->end_ns != 0;
			if (r->end_ns != 0)
				first = smaller(first, r->end_ns);
			if (step < p->warmup)
				continue;
			out->counted += r->verdict == MUSTER_COUNTED;
			out->late += r->verdict == MUSTER_LATE;
		}
	}
	out->first_commit_ns = first == UINT64_MAX ? 0 : first - p->begun_ns;
}

static void conclude(uint64_t *const series[SERIES], struct mst_bench_figures *out)
{
	uint64_t count = out->samples;

	if (count == 0)
		return;
	out->step = spread(series[STEP], count);
	out->opened = spread(series[OPENED], count);
	out->wait_ns = spread(series[WAIT], count).p50;
	out->sum_ns = spread(series[SUM], count).p50;
	out->answer_ns = spread(series[ANSWER], count).p50;
	out->own_ns = spread(series[OWN], count).p50;
	out->first_ns = spread(series[FIRST], count).p50;
}

int mst_bench_figures_make(struct mst_bench_plan *p, struct mst_bench_figures *out)
{
	uint64_t steps = steps_made(p);
	uint64_t *all = calloc((size_t)SERIES * (steps + 1), sizeof(all[0]));
	uint64_t *series[SERIES];

	if (all == NULL)
		return -ENOMEM;
	*out = (struct mst_bench_figures){ .samples = 0 };
	for (int i = 0; i < SERIES; i++)
		series[i] = all + (size_t)i * steps;
	for (uint64_t step = 0; step < steps; step++) {
		struct step_times s = gather(p, step);

		out->commits += s.counted > 0;
		if (step >= p->warmup && s.counted > 0)
			note(series, out->samples++, &s, p, mst_bench_step_of(p, step)->open_ns);
	}
	count_all(p, steps, out);
	conclude(series, out);
	free(all);
	return 0;
}
