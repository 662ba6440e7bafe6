/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/stragglers/timed_job.h"

#include <math.h>
#include <stdlib.h>

const char *const shape_name[] = { "const:20",   "uniform:16,24",     "exp:20",
				   "sexp:10,10", "pareto, shape 2.1", "20, and 5 % 200" };

/* In milliseconds. */
static double draw(enum times shape, struct mst_rand *r)
{
	double u = 1 - mst_rand_unit(r); /* above 0 */

	switch (shape) {
	case CONST:
		return 20;
	case UNIFORM:
		return 16 + 8 * u;
	case EXP:
		return -20 * log(u);
	case SEXP:
		return 10 - 10 * log(u);
	case PARETO:
		return 10 * pow(u, -1 / 2.1);
	default:
		return u < 0.05 ? 200 : 20 * (0.95 + 0.1 * mst_rand_unit(r));
	}
}

static uint64_t draw_ns(struct timed_job *j, uint32_t rank)
{
	return (uint64_t)(draw(j->shape, &j->rand) * j->factor[rank] * MS);
}

void job_open(struct timed_job *j, enum times shape, uint32_t ranks, uint64_t seed)
{
	*j = (struct timed_job){ .shape = shape, .ranks = ranks, .now_ns = 1000000000 };
	mst_rand_seed(&j->rand, seed);
	if (mst_stragglers_init(&j->judge, ranks) != 0)
		abort();
	for (uint32_t rank = 0; rank < ranks; rank++)
		j->factor[rank] = 1;
}

void job_close(struct timed_job *j)
{
	mst_stragglers_fini(&j->judge);
}

void job_step(struct timed_job *j)
{
	uint64_t last_ns = j->now_ns;

	for (uint32_t rank = 0; rank < j->ranks; rank++) {
		if (j->factor[rank] <= 0)
			continue;
		uint64_t took_ns = draw_ns(j, rank);
		mst_stragglers_began(&j->judge, rank, j->now_ns);
		mst_stragglers_came(&j->judge, rank, j->now_ns + took_ns);
		if (j->now_ns + took_ns > last_ns)
			last_ns = j->now_ns + took_ns;
	}
	j->now_ns = last_ns;
}

void job_steps(struct timed_job *j, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		job_step(j);
}

/* ---- the first few ---- */

static void begin(struct timed_job *j, uint32_t rank)
{
	j->ends_ns[rank] = j->now_ns + draw_ns(j, rank);
	j->on[rank] = j->version;
	mst_stragglers_began(&j->judge, rank, j->now_ns);
}

static uint32_t next_to_end(const struct timed_job *j)
{
	uint32_t first = j->ranks;

	for (uint32_t rank = 0; rank < j->ranks; rank++)
		if (j->ends_ns[rank] != 0 &&
		    (first == j->ranks || j->ends_ns[rank] < j->ends_ns[first]))
			first = rank;
	return first;
}

void job_race(struct timed_job *j)
{
	uint64_t opened_ns = j->now_ns;
	uint32_t counted = 0;

	for (uint32_t rank = 0; rank < j->ranks; rank++)
		if (j->ends_ns[rank] == 0 && j->factor[rank] > 0)
			begin(j, rank);
	while (counted < j->quorum) {
		uint32_t rank = next_to_end(j);
		j->now_ns = j->ends_ns[rank];
		j->ends_ns[rank] = 0;
		mst_stragglers_came(&j->judge, rank, j->now_ns);
		if (j->on[rank] == j->version) {
			counted++;
			mst_stragglers_counted(&j->judge, rank, j->now_ns);
			mst_stragglers_missed(&j->judge, rank, NULL, j->now_ns);
			continue;
		}
		struct mst_miss miss = { .behind_ns = j->now_ns - opened_ns,
					 .step_ns = (uint64_t)(20 * MS) };
		mst_stragglers_missed(&j->judge, rank, &miss, j->now_ns);
	}
	mst_stragglers_step(&j->judge, opened_ns);
	j->version++;
	for (uint32_t rank = 0; rank < j->ranks && j->preempts; rank++) {
		if (j->ends_ns[rank] != 0)
			mst_stragglers_gave_up(&j->judge, rank, j->now_ns);
		j->ends_ns[rank] = 0;
	}
}

void job_races(struct timed_job *j, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		job_race(j);
}

bool job_is_slow(const struct timed_job *j, uint32_t rank)
{
	return mst_stragglers_is_slow(&j->judge, rank, j->now_ns);
}

int by_size_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}
