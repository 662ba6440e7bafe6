/* SPDX-License-Identifier: MIT */
#include "tools/plan/bootstrap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/rand.h"
#include "tools/student.h"

/* A time takes so much longer to replay than to look at. */
#define REPLAY_COST 20
/* More is noise of few samples. */
#define ACCELERATION_MAX 0.2

static const double tail = (1 - MST_BOOTSTRAP_INTERVAL) / 2;

/* A step that takes no time could be made any number of times a second: it is no faster than the
 * shortest that can be told apart. */
static double ratio(double a, double b)
{
	const double least_us = 1e-3;

	return fmax(a, least_us) / fmax(b, least_us);
}

/* ---- samples ---- */

/* The samples as they are drawn. */
struct draws {
	const struct mst_arrivals *a;
	uint32_t block, samples;
	struct mst_rand rand;
	uint32_t *step; /* of the present sample */
	double *value;  /* of one figure, by sample */
};

/* @looks: times that are looked at for one sample. */
static int draws_init(struct draws *d, const struct mst_arrivals *a,
		      const struct mst_bootstrap_cfg *cfg, double looks)
{
	double most = fmin(MST_BOOTSTRAP_LOOKS / looks, MST_BOOTSTRAP_SAMPLES);

	*d = (struct draws){ .a = a, .block = cfg->block };
	d->samples = cfg->samples > 0 ? cfg->samples
				      : (uint32_t)fmax(most, MST_BOOTSTRAP_SAMPLES_MIN);
	d->step = calloc(a->steps, sizeof(*d->step));
	d->value = calloc(d->samples, sizeof(*d->value));
	mst_rand_seed(&d->rand, cfg->seed);
	return d->step != NULL && d->value != NULL ? 0 : -ENOMEM;
}

static void draws_fini(struct draws *d)
{
	free(d->step);
	free(d->value);
}

/* After the last step of the trace a block goes on with the first. */
static void draw(struct draws *d)
{
	uint32_t steps = d->a->steps, at = 0;

	for (uint32_t i = 0; i < steps; i++) {
		at = i % d->block == 0 ? (uint32_t)mst_rand_below(&d->rand, steps) : at + 1;
		d->step[i] = at %= steps;
	}
}

/* ---- intervals ---- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* By how much an interval is wider than the values of the samples are. */
static double wider(const struct draws *d)
{
	double blocks = fmax((double)d->a->steps / d->block, 2);

	return sqrt(blocks / (blocks - 1)) * mst_student_quantile(1 - tail, blocks - 1) /
	       mst_student_quantile(1 - tail, INFINITY);
}

/* A sixth of the skewness of the values around @centre. */
static double acceleration(const struct draws *d, double centre)
{
	double squares = 0, cubes = 0;

	for (uint32_t i = 0; i < d->samples; i++) {
		double off = d->value[i] - centre;
		squares += off * off / d->samples;
		cubes += off * off * off / d->samples;
	}
	double a = squares > 0 ? cubes / pow(squares, 1.5) / 6 : 0;
	return fmax(fmin(a, ACCELERATION_MAX), -ACCELERATION_MAX);
}

/* Above this value another one, like those of the samples, lies with the probability 1 - @share: if
 * samples are few, that is further out than the quantile of their values. */
static double value_at(const struct draws *d, double share)
{
	double at = (share * (d->samples + 1.0) - 1) / (d->samples - 1.0);

	return mst_quantile(d->value, d->samples, fmin(fmax(at, 0), 1));
}

/* The interval of a figure whose values in the samples are in d->value; sorts them. */
static struct mst_interval interval_of(struct draws *d, double figure)
{
	double centre = 0, by = wider(d), z = mst_student_quantile(1 - tail, INFINITY);

	for (uint32_t i = 0; i < d->samples; i++) {
		d->value[i] = log(d->value[i]);
		centre += d->value[i] / d->samples;
	}
	qsort(d->value, d->samples, sizeof(d->value[0]), by_size);
	double a = acceleration(d, centre);
	double below = mst_student_below(-z / (1 + a * z), INFINITY);
	double above = mst_student_below(z / (1 - a * z), INFINITY);
	double low = fmin(value_at(d, below) - centre, 0);
	double high = fmax(value_at(d, above) - centre, 0);
	return (struct mst_interval){ figure * exp(by * low), figure * exp(by * high) };
}

/* ---- all quorums ---- */

struct quorum_samples {
	struct draws draws;
	const struct mst_quorum_figures *figures;
	uint32_t count, best;
	double *gain;    /* [sample * count + index] */
	double *speedup; /* [sample * count + index] */
};

/* The sums of the present sample, one for each quorum, to @sum. */
static void sum_sample(const struct quorum_samples *s, double *sum)
{
	const struct mst_arrivals *a = s->draws.a;

	for (uint32_t q = 0; q < s->count; q++)
		sum[q] = 0;
	for (uint32_t i = 0; i < a->steps; i++) {
		const double *arrival = &a->sorted[(size_t)s->draws.step[i] * a->ranks];
		for (uint32_t q = 0; q < s->count; q++)
			sum[q] += arrival[s->figures[q].quorum - 1];
	}
}

static void take_sample(const struct quorum_samples *s, uint32_t sample,
			struct mst_quorum_interval *out)
{
	uint32_t count = s->count, best = 0;
	double *gain = &s->gain[(size_t)sample * count];
	double *speedup = &s->speedup[(size_t)sample * count];

	sum_sample(s, speedup);
	double all = speedup[count - 1];
	for (uint32_t q = 0; q < count; q++) {
		speedup[q] = ratio(all, speedup[q]);
		gain[q] = speedup[q] * s->figures[q].quorum / s->draws.a->ranks;
		if (gain[q] >= gain[best])
			best = q;
	}
	out[best].best += 1.0 / s->draws.samples;
}

/* No step that waits for fewer takes longer. */
static void keep_possible(const struct quorum_samples *s, uint32_t q,
			  struct mst_quorum_interval *out)
{
	const struct mst_quorum_figures *f = &s->figures[q];
	double least = (double)f->quorum / s->draws.a->ranks;

	out->speedup.low = fmax(out->speedup.low, fmin(1, f->speedup));
	out->gain.low = fmax(out->gain.low, fmin(least, f->gain));
}

static void conclude(struct quorum_samples *s, struct mst_quorum_interval *out)
{
	struct draws *d = &s->draws;
	uint32_t count = s->count;

	for (uint32_t q = 0; q < count; q++) {
		for (uint32_t i = 0; i < d->samples; i++)
			d->value[i] = s->speedup[(size_t)i * count + q];
		out[q].speedup = interval_of(d, s->figures[q].speedup);
		for (uint32_t i = 0; i < d->samples; i++)
			d->value[i] = s->gain[(size_t)i * count + q];
		out[q].gain = interval_of(d, s->figures[q].gain);
		keep_possible(s, q, &out[q]);
		for (uint32_t i = 0; i < d->samples; i++)
			d->value[i] = s->gain[(size_t)i * count + q] /
				      s->gain[(size_t)i * count + s->best];
		out[q].behind = interval_of(d, s->figures[q].gain / s->figures[s->best].gain);
	}
}

int mst_bootstrap_quorums(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			  const struct mst_quorum_figures *figures, uint32_t count, uint32_t best,
			  struct mst_quorum_interval *out)
{
	struct quorum_samples s = { .figures = figures, .count = count, .best = best };
	int rc = draws_init(&s.draws, a, cfg, (double)a->steps * count);

	s.gain = calloc((size_t)s.draws.samples * count, sizeof(*s.gain));
	s.speedup = calloc((size_t)s.draws.samples * count, sizeof(*s.speedup));
	if (s.gain == NULL || s.speedup == NULL)
		rc = -ENOMEM;
	if (rc == 0) {
		for (uint32_t q = 0; q < count; q++)
			out[q] = (struct mst_quorum_interval){ .best = 0 };
		for (uint32_t i = 0; i < s.draws.samples; i++) {
			draw(&s.draws);
			take_sample(&s, i, out);
		}
		conclude(&s, out);
		rc = (int)s.draws.samples;
	}
	draws_fini(&s.draws);
	free(s.gain);
	free(s.speedup);
	return rc;
}

/* ---- backup ---- */

/* Gradients a second in a sample, of those of waiting for all in the same sample. */
static double backup_gain(const struct draws *d, uint32_t quorum,
			  struct mst_replay_scratch *scratch)
{
	struct mst_replay replay;

	mst_replay_backup(d->a, quorum, d->step, scratch, &replay);
	return ratio(mst_replay_all(d->a, d->step), replay.us / replay.counted * d->a->ranks);
}

int mst_bootstrap_backup(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			 const struct mst_quorum_figures *figures, struct mst_interval *gain)
{
	struct mst_replay_scratch scratch;
	struct draws d;
	int rc = draws_init(&d, a, cfg,
			    (double)mst_replay_length(a) * a->ranks * a->ranks / figures->quorum *
				    REPLAY_COST);
	int failed = mst_replay_scratch_init(&scratch, a->ranks);

	rc = rc != 0 ? rc : failed;
	for (uint32_t i = 0; rc == 0 && i < d.samples; i++) {
		draw(&d);
		d.value[i] = backup_gain(&d, figures->quorum, &scratch);
	}
	if (rc == 0) {
		*gain = interval_of(&d, figures->gain);
		rc = (int)d.samples;
	}
	mst_replay_scratch_fini(&scratch);
	draws_fini(&d);
	return rc;
}

/* ---- without stragglers ---- */

int mst_bootstrap_replaced(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			   const double *replaced, double speedup, struct mst_interval *out)
{
	struct draws d;
	int rc = draws_init(&d, a, cfg, a->steps);

	for (uint32_t sample = 0; rc == 0 && sample < d.samples; sample++) {
		double all = 0, without = 0;
		draw(&d);
		for (uint32_t i = 0; i < a->steps; i++) {
			all += a->sorted[(size_t)d.step[i] * a->ranks + a->ranks - 1];
			without += replaced[d.step[i]];
		}
		d.value[sample] = ratio(all, without);
	}
	if (rc == 0) {
		*out = interval_of(&d, speedup);
		rc = (int)d.samples;
	}
	draws_fini(&d);
	return rc;
}
