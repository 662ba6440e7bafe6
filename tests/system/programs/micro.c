/* SPDX-License-Identifier: MIT */
/*
 * A worker of muster_train() whose batches are made of micro-batches of one sample. The k-th
 * micro-batch of a session has the k-th of its vectors (values.h) as gradient, so that anybody can
 * tell which micro-batches a contribution is made of; and its own steps have the rate 2^-10, by
 * which f32 multiplies without rounding. modes.py computes all of it again.
 *
 *	micro ELEMS MICROS [[RANK:]key=value ...]
 *	MICROS          micro-batches of a batch; a power of two
 *	sleep_us=N      each takes so long
 *	die=N           kill -9 itself in the N-th
 *	RANK:key=value  for that rank only
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "muster/muster.h"
#include "tests/system/programs/values.h"

#define RATE (1.0f / 1024)

struct micro_worker {
	struct muster *muster;
	uint64_t elems, micros, sleep_us, die;
	uint64_t done; /* micro-batches of this session */
	float *one;    /* the gradient of a micro-batch */
};

static int compute(void *ctx, void *grad, struct muster_contribution *c)
{
	struct micro_worker *w = ctx;
	const struct muster_job *job = muster_job(w->muster);
	float *g = grad;

	w->done++;
	values_fill(w->one, w->elems, job->rank, job->incarnation, w->done);
	for (uint64_t i = 0; i < w->elems; i++)
		g[i] = c->weight > 0 ? g[i] + w->one[i] : w->one[i];
	if (w->done == w->die)
		raise(SIGKILL);
	usleep((useconds_t)w->sleep_us);
	c->weight++;
	c->sum = true;
	c->full = w->done % w->micros == 0;
	return 0;
}

static int local(void *ctx, void *grad)
{
	struct micro_worker *w = ctx;
	float *x = muster_parameters(w->muster);
	const float *mean = grad;

	for (uint64_t i = 0; i < w->elems; i++)
		x[i] -= RATE * mean[i];
	return 0;
}

static int apply(void *ctx, const struct muster_outcome *out)
{
	(void)ctx;
	(void)out;
	return 0;
}

static int work(struct micro_worker *w)
{
	struct muster_hooks hooks = MUSTER_HOOKS;
	struct muster_outcome out = MUSTER_OUTCOME;

	hooks.ctx = w;
	hooks.compute = compute;
	hooks.local = local;
	hooks.apply = apply;
	values_fill(w->one, w->elems, 999, 0, 0);
	int rc = muster_start(w->muster, w->one, &out);
	if (rc == 0)
		rc = muster_train(w->muster, &hooks);
	if (rc != 0)
		fprintf(stderr, "micro: %s\n", muster_error(w->muster));
	return rc;
}

/* "key=value", or "RANK:key=value". */
static void set(struct micro_worker *w, const char *text)
{
	const char *colon = strchr(text, ':'), *rank = getenv("MUSTER_RANK");

	if (colon != NULL && (rank == NULL || strtoul(text, NULL, 10) != strtoul(rank, NULL, 10)))
		return;
	text = colon != NULL ? colon + 1 : text;
	if (strncmp(text, "sleep_us=", 9) == 0)
		w->sleep_us = strtoull(text + 9, NULL, 10);
	if (strncmp(text, "die=", 4) == 0)
		w->die = strtoull(text + 4, NULL, 10);
}

int main(int argc, char **argv)
{
	struct muster_options options = MUSTER_OPTIONS;
	struct micro_worker w = { 0 };

	if (argc < 3) {
		fprintf(stderr, "usage: micro ELEMS MICROS [[RANK:]key=value ...]\n");
		return 2;
	}
	w.elems = options.elems = strtoull(argv[1], NULL, 10);
	w.micros = strtoull(argv[2], NULL, 10);
	for (int i = 3; i < argc; i++)
		set(&w, argv[i]);
	w.one = calloc(w.elems, sizeof(float));
	if (w.one == NULL || muster_open(&options, &w.muster) != 0) {
		fprintf(stderr, "micro: %s\n", muster_error(NULL));
		return EXIT_FAILURE;
	}
	int rc = work(&w);
	muster_close(w.muster);
	free(w.one);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
