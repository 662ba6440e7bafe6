/* SPDX-License-Identifier: MIT */
/*
 * Lesson 2: leave the loop to muster. Two hooks say what is special about this job; the same loop
 * then serves every policy. What is checked at the end is true of bsp, which waits for all ranks.
 *
 *	muster run -n 3 -- ./02_hook_loop
 *
 * Every rank wants x to be somewhere else: rank r would have x[i] = i + r. Together they minimise
 * the mean of |x - wish|^2 / 2, and so must meet in the mean of their wishes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <muster/muster.h>

#define ELEMS 16
#define SAMPLES 4      /* one batch; a micro-batch is one sample */
#define VERSIONS 300   /* enough for sgd:lr=0.1,momentum=0.9, the servers' default */
#define TOLERANCE 1e-3 /* of x, in the end */

struct job {
	uint32_t rank;
	const float *x; /* the servers' parameters, read where they lie */
};

/* One sample: its gradient is x - wish, its loss half the square of that. */
static int compute(void *ctx, void *buffer, struct muster_contribution *c)
{
	const struct job *job = ctx;
	float *gradient = buffer;
	double loss = 0;

	for (uint32_t i = 0; i < ELEMS; i++) {
		float off = job->x[i] - (float)(i + job->rank);
		/* The first micro-batch stores: the buffer holds anything before. */
		gradient[i] = c->weight == 0 ? off : gradient[i] + off;
		loss += 0.5 * off * off;
	}
	c->sum = true; /* over the samples; the server divides by their number */
	c->loss = c->weight == 0 ? loss : (c->loss * c->weight + loss) / (c->weight + 1);
	c->has_loss = true;
	c->weight += 1;
	c->full = c->weight == SAMPLES;
	return 0;
}

/* A new version: go on from there. More than 0 says that it is enough, for all. */
static int apply(void *ctx, const struct muster_outcome *out)
{
	struct job *job = ctx;

	job->x = out->result;
	return out->version >= VERSIONS;
}

static int check(const struct job *job, uint32_t workers)
{
	for (uint32_t i = 0; i < ELEMS; i++) {
		double want = i + (workers - 1) / 2.0;
		if (fabs(job->x[i] - want) <= TOLERANCE)
			continue;
		fprintf(stderr, "x[%u] is %g, should be %g\n", i, job->x[i], want);
		return -1;
	}
	printf("rank %u: all met in the middle, x[0] = %.4f\n", job->rank, job->x[0]);
	return 0;
}

int main(void)
{
	static const float start[ELEMS];
	struct muster_options options = MUSTER_OPTIONS;
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster *m;

	options.elems = ELEMS;
	if (muster_open(&options, &m)) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return EXIT_FAILURE;
	}
	struct job job = { .rank = muster_job(m)->rank };
	struct muster_hooks hooks = MUSTER_HOOKS;
	hooks.ctx = &job;
	hooks.compute = compute;
	hooks.apply = apply;
	int rc = muster_start(m, start, &out);
	job.x = out.result;
	if (rc == 0)
		rc = muster_train(m, &hooks);
	if (rc)
		fprintf(stderr, "%s\n", muster_error(m));
	else
		rc = check(&job, muster_job(m)->workers);
	muster_close(m);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
