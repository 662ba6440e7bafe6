/* SPDX-License-Identifier: MIT */
#include "tools/plan/bootstrap.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/rand.h"

static uint32_t samples_of(double looks)
{
	double most = MST_BOOTSTRAP_LOOKS / looks;

	if (most < MST_BOOTSTRAP_SAMPLES_MIN)
		return MST_BOOTSTRAP_SAMPLES_MIN;
	return most < MST_BOOTSTRAP_SAMPLES ? (uint32_t)most : MST_BOOTSTRAP_SAMPLES;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the values. */
static struct mst_interval interval_of(double *value, uint32_t count)
{
	const double tail = (1 - MST_BOOTSTRAP_INTERVAL) / 2;

	qsort(value, count, sizeof(*value), by_size);
	return (struct mst_interval){ mst_quantile(value, count, tail),
				      mst_quantile(value, count, 1 - tail) };
}

static void draw(struct mst_rand *rand, uint32_t steps, uint32_t *step)
{
	for (uint32_t i = 0; i < steps; i++)
		step[i] = (uint32_t)mst_rand_below(rand, steps);
}

/* ---- all quorums ---- */

struct quorum_samples {
	const struct mst_arrivals *a;
	const struct mst_bootstrap_cfg *cfg;
	uint32_t samples;
	uint32_t *step;  /* of the present sample */
	double *gain;    /* [sample * count + index] */
	double *speedup; /* [sample * count + index] */
	double *value;   /* of one figure, by sample */
};

/* The sums of the present sample, one for each quorum, to @sum. */
static void sum_sample(const struct quorum_samples *s, double *sum)
{
	for (uint32_t q = 0; q < s->cfg->count; q++)
		sum[q] = 0;
	for (uint32_t i = 0; i < s->a->steps; i++) {
		const double *arrival = &s->a->sorted[(size_t)s->step[i] * s->a->ranks];
		for (uint32_t q = 0; q < s->cfg->count; q++)
			sum[q] += arrival[s->cfg->quorum[q] - 1];
	}
}

/* A step that takes no time could be made any number of times a second: it is no faster than the
 * shortest that can be told apart. */
static double ratio(double a, double b)
{
	const double least_us = 1e-3;

	return a / (b > least_us ? b : least_us);
}

static void take_sample(const struct quorum_samples *s, uint32_t sample,
			struct mst_quorum_interval *out)
{
	uint32_t count = s->cfg->count, best = 0;
	double *gain = &s->gain[(size_t)sample * count];
	double *speedup = &s->speedup[(size_t)sample * count];

	sum_sample(s, speedup);
	double all = speedup[count - 1];
	for (uint32_t q = 0; q < count; q++) {
		speedup[q] = ratio(all, speedup[q]);
		gain[q] = speedup[q] * s->cfg->quorum[q] / s->a->ranks;
		if (gain[q] >= gain[best])
			best = q;
	}
	out[best].best += 1.0 / s->samples;
}

static void conclude(const struct quorum_samples *s, struct mst_quorum_interval *out)
{
	uint32_t count = s->cfg->count;

	for (uint32_t q = 0; q < count; q++) {
		for (uint32_t i = 0; i < s->samples; i++)
			s->value[i] = s->speedup[(size_t)i * count + q];
		out[q].speedup = interval_of(s->value, s->samples);
		for (uint32_t i = 0; i < s->samples; i++)
			s->value[i] = s->gain[(size_t)i * count + q];
		out[q].gain = interval_of(s->value, s->samples);
		for (uint32_t i = 0; i < s->samples; i++)
			s->value[i] = s->gain[(size_t)i * count + q] /
				      s->gain[(size_t)i * count + s->cfg->best];
		out[q].behind = interval_of(s->value, s->samples);
	}
}

int mst_bootstrap_quorums(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			  struct mst_quorum_interval *out)
{
	struct quorum_samples s = { .a = a, .cfg = cfg };
	struct mst_rand rand;

	s.samples = samples_of((double)a->steps * cfg->count);
	s.step = calloc(a->steps, sizeof(*s.step));
	s.gain = calloc((size_t)s.samples * cfg->count, sizeof(*s.gain));
	s.speedup = calloc((size_t)s.samples * cfg->count, sizeof(*s.speedup));
	s.value = calloc(s.samples, sizeof(*s.value));
	int rc = s.step != NULL && s.gain != NULL && s.speedup != NULL && s.value != NULL
			 ? (int)s.samples
			 : -ENOMEM;
	if (rc > 0) {
		for (uint32_t q = 0; q < cfg->count; q++)
			out[q] = (struct mst_quorum_interval){ .best = 0 };
		mst_rand_seed(&rand, cfg->seed);
		for (uint32_t i = 0; i < s.samples; i++) {
			draw(&rand, a->steps, s.step);
			take_sample(&s, i, out);
		}
		conclude(&s, out);
	}
	free(s.step);
	free(s.gain);
	free(s.speedup);
	free(s.value);
	return rc;
}

/* ---- backup ---- */

/* Gradients a second in a sample, of those of waiting for all in the same sample. */
static double backup_gain(const struct mst_arrivals *a, uint32_t quorum, const uint32_t *step,
			  struct mst_replay_scratch *scratch)
{
	struct mst_replay replay;
	double all = 0;

	for (uint32_t i = 0; i < a->steps; i++)
		all += a->sorted[(size_t)step[i] * a->ranks + a->ranks - 1];
	mst_replay_backup(a, quorum, step, scratch, &replay);
	return ratio(all, replay.us) * replay.counted / ((double)a->ranks * a->steps);
}

int mst_bootstrap_backup(const struct mst_arrivals *a, uint32_t quorum, uint64_t seed,
			 struct mst_interval *gain)
{
	uint32_t samples = samples_of((double)a->steps * a->ranks * 4);
	uint32_t *step = calloc(a->steps, sizeof(*step));
	double *value = calloc(samples, sizeof(*value));
	struct mst_replay_scratch scratch;
	struct mst_rand rand;
	int rc = mst_replay_scratch_init(&scratch, a->ranks);

	if (rc != 0 || step == NULL || value == NULL) {
		rc = -ENOMEM;
	} else {
		mst_rand_seed(&rand, seed);
		for (uint32_t i = 0; i < samples; i++) {
			draw(&rand, a->steps, step);
			value[i] = backup_gain(a, quorum, step, &scratch);
		}
		*gain = interval_of(value, samples);
		rc = (int)samples;
	}
	mst_replay_scratch_fini(&scratch);
	free(step);
	free(value);
	return rc;
}
