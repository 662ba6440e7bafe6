/* SPDX-License-Identifier: MIT */
/* The delays of one rank: one model of the specs, at most one mix, and a stream of random
 * numbers. */
#include "common/delay/delay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/delay/model.h"

#define NS_PER_MS 1e6

struct mst_delay {
	struct mst_rand rand;
	const struct mst_model *model; /* NULL: no delay */
	double p[MST_DELAY_PARAMS];
	struct mst_trace trace;
	bool mixed;
	double share, factor; /* of the mix */
};

static int trace_take(struct mst_delay *d, struct mst_spec *s, uint32_t rank,
		      struct mst_reason *why)
{
	struct mst_reason wrong = { "no memory for its times" };
	int rc = 0;

	if (s->traces == NULL)
		rc = mst_trace_file_read(s->file, &s->traces, &wrong);
	if (rc == 0)
		rc = mst_trace_pick(&d->trace, s->traces, rank);
	if (rc != 0)
		mst_spec_refuse(s->text, wrong.text, why);
	return rc;
}

static int model_take(struct mst_delay *d, struct mst_spec *s, uint32_t rank,
		      struct mst_reason *why)
{
	d->model = s->model;
	memcpy(d->p, s->p, sizeof(d->p));
	return s->model->kind == MST_MODEL_TRACE ? trace_take(d, s, rank, why) : 0;
}

/* A rank's own model replaces the model for all ranks and also their mix; a rank's own mix replaces
 * only the mix. */
static int delay_choose(struct mst_delay *d, const struct mst_specs *all, uint32_t rank,
			struct mst_reason *why)
{
	struct mst_spec *own = mst_specs_for_rank(all, rank, false);
	struct mst_spec *model = own != NULL ? own : mst_specs_for_all(all, false);
	const struct mst_spec *own_mix = mst_specs_for_rank(all, rank, true);
	const struct mst_spec *common_mix = own == NULL ? mst_specs_for_all(all, true) : NULL;
	const struct mst_spec *mixed = own_mix != NULL ? own_mix : common_mix;

	if (mixed != NULL) {
		d->mixed = true;
		d->share = mixed->p[0];
		d->factor = mixed->p[1];
	}
	return model != NULL ? model_take(d, model, rank, why) : 0;
}

/* Starts a stream of numbers for (seed, rank). Streams of neighbouring ranks have nothing in
 * common. */
static void rand_start(struct mst_rand *r, uint64_t seed, uint32_t rank)
{
	mst_rand_seed(r, seed);
	mst_rand_seed(r, mst_rand_next(r) + rank);
}

/* The model of one rank, from specs that have been parsed. */
static int delay_make(const struct mst_delay_options *opt, const struct mst_specs *all,
		      struct mst_delay **out, struct mst_reason *why)
{
	struct mst_delay *d = calloc(1, sizeof(*d));

	if (d == NULL) {
		mst_reason_set(why, "no memory for %u delays", opt->spec_count);
		return -ENOMEM;
	}
	int rc = delay_choose(d, all, opt->rank, why);
	if (rc != 0) {
		mst_delay_free(d);
		return rc;
	}
	rand_start(&d->rand, opt->seed, opt->rank);
	*out = d;
	return 0;
}

static void specs_free(struct mst_specs *all)
{
	for (size_t i = 0; all->spec != NULL && i < all->count; i++)
		mst_trace_file_free(all->spec[i].traces);
	free(all->spec);
}

int mst_delay_new_each(const struct mst_delay_options *opt, uint32_t count, struct mst_delay **out,
		       struct mst_reason *why)
{
	struct mst_specs all = {
		.spec = calloc((size_t)opt->spec_count + 1, sizeof(*all.spec)),
		.count = opt->spec_count,
	};
	struct mst_delay_options one = *opt;
	uint32_t made = 0;
	int rc = -ENOMEM;

	if (all.spec != NULL)
		rc = mst_specs_parse(&all, opt->spec, why);
	else
		mst_reason_set(why, "no memory for %u delays", opt->spec_count);
	for (; rc == 0 && made < count; one.rank++) {
		rc = delay_make(&one, &all, &out[made], why);
		made += rc == 0;
	}
	specs_free(&all);
	while (rc != 0 && made > 0)
		mst_delay_free(out[--made]);
	return rc;
}

int mst_delay_new(const struct mst_delay_options *opt, struct mst_delay **out,
		  struct mst_reason *why)
{
	struct mst_delay *d;
	int rc = mst_delay_new_each(opt, 1, &d, why);

	if (rc == 0)
		*out = d;
	return rc;
}

void mst_delay_free(struct mst_delay *d)
{
	if (d == NULL)
		return;
	mst_trace_free(&d->trace);
	free(d);
}

static double model_draw_ns(struct mst_delay *d)
{
	if (d->model->kind == MST_MODEL_TRACE)
		return (double)mst_trace_next(&d->trace);
	return d->model->draw(&d->rand, d->p) * NS_PER_MS;
}

uint64_t mst_delay_next(struct mst_delay *d)
{
	if (d->model == NULL)
		return 0;
	double ns = model_draw_ns(d);
	if (d->mixed && mst_rand_unit(&d->rand) < d->share)
		ns *= d->factor;
	/* Zero times infinity is taken as no delay; a delay that is too long is limited. */
	if (isnan(ns))
		return 0;
	return ns < (double)MST_DELAY_MAX ? (uint64_t)ns : MST_DELAY_MAX;
}
