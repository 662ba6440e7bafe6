/* SPDX-License-Identifier: MIT */
/*
 * Lesson 1: one push, one pull. Every worker hands in a gradient whose sum is known, and looks at
 * what the servers made of it.
 *
 *	muster run -n 3 -- ./01_push_pull
 *
 * The servers own the parameters here and update them as `--optimizer` says; its default is
 * sgd:lr=0.1,momentum=0.9, and in the first step momentum changes nothing yet.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <muster/muster.h>

#define ELEMS 1000
#define LR 0.1

static float start[ELEMS]; /* all zero */

/* Rank r hands in r + 1 in every element. Policy bsp waits for all workers. out->set names the
 * workers whose gradients are in the version. */
static int check(const struct muster_outcome *out)
{
	const float *parameters = out->result;
	double sum = 0;

	for (uint32_t i = 0; i < out->set_len; i++)
		sum += (out->set[i].rank + 1) * out->set[i].weight;
	double want = -LR * sum / out->weight;

	printf("version %llu holds", (unsigned long long)out->version);
	for (uint32_t i = 0; i < out->set_len; i++)
		printf(" rank %u x %u,", out->set[i].rank, out->set[i].count);
	printf(" and every parameter should be %g\n", want);
	for (int i = 0; i < ELEMS; i++) {
		if (fabs(parameters[i] - want) <= 1e-6)
			continue;
		fprintf(stderr, "parameter %d is %g\n", i, parameters[i]);
		return -1;
	}
	return 0;
}

static int push_and_wait(struct muster *m, struct muster_outcome *out)
{
	struct muster_contribution mine = MUSTER_CONTRIBUTION;
	uint64_t ticket;

	mine.weight = 1; /* samples in it */
	mine.full = true;

	/* The buffer is where the server will read: what is computed in it is never copied. */
	float *gradient = muster_gradient(m);
	for (int i = 0; i < ELEMS; i++)
		gradient[i] = (float)(muster_job(m)->rank + 1);

	int rc = muster_push(m, &mine, &ticket);
	if (rc == 0)
		rc = muster_wait(m, out);
	if (rc == 0)
		printf("ticket %llu: %s\n", (unsigned long long)ticket,
		       out->verdict == MUSTER_COUNTED ? "counted" : "not counted");
	return rc;
}

int main(void)
{
	struct muster_options options = MUSTER_OPTIONS; /* server, job, rank: from muster run */
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster *m;

	options.elems = ELEMS;
	if (muster_open(&options, &m)) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return EXIT_FAILURE;
	}
	/* All offer the same start state; the lowest rank's becomes version 0. */
	int rc = muster_start(m, start, &out);
	if (rc == 0)
		rc = push_and_wait(m, &out);
	if (rc)
		fprintf(stderr, "%s\n", muster_error(m));
	else
		rc = check(&out);
	if (rc == 0 && muster_job(m)->rank == 0)
		muster_finish(m, "the lesson is over");
	muster_close(m);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
