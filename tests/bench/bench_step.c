/* SPDX-License-Identifier: MIT */
/*
 * A worker that computes nothing: it pushes what lies in its gradient buffer and waits for the
 * result, step after step. Rank 0 prints elements, p50, p99 and least in us of a step. Every result
 * is checked in part: all workers push ones, so the mean is 1 (bsp, --owner workers).
 *
 * Where the servers own the parameters, the gradient is ones in each element, and with them the
 * elements of a result are the same, and another than before.
 *
 * usage: muster run -n W --owner workers [--transport T] -- bench_step ELEMS STEPS
 *        muster run -n W --owner servers [--optimizer O] -- bench_step ELEMS STEPS servers
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/hist.h"
#include "muster/muster.h"

static int fail(const struct muster *m, const char *what)
{
	fprintf(stderr, "bench_step: %s: %s\n", what, muster_error(m));
	return EXIT_FAILURE;
}

struct pusher {
	struct muster *m;
	uint64_t elems, steps;
	bool servers; /* own the parameters */
	float before; /* an element of the last result */
};

/* The memory of a slot is filled once: nobody else writes to it. */
static void fill(const struct pusher *b, float *gradient)
{
	for (uint64_t i = 0; b->servers && gradient[0] != 1 && i < b->elems; i++)
		gradient[b->elems - 1 - i] = 1;
	gradient[0] = gradient[b->elems / 2] = gradient[b->elems - 1] = 1;
}

static bool is_right(struct pusher *b, const float *result)
{
	float first = result[0], before = b->before;

	b->before = first;
	if (first != result[b->elems / 2] || first != result[b->elems - 1])
		return false;
	return b->servers ? isfinite(first) && first != before : first == 1;
}

/* @took: from the push until the result is readable. Return: 0, or what failed. */
static const char *step(struct pusher *b, struct muster_outcome *out, uint64_t *took)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1, .full = true };
	float *gradient = muster_gradient(b->m);

	if (gradient == NULL)
		return "no gradient buffer";
	fill(b, gradient);
	uint64_t begin = mst_now_ns();
	if (muster_push(b->m, &c, NULL) != 0)
		return "push";
	if (muster_wait(b->m, out) < 0)
		return "wait";
	*took = mst_now_ns() - begin;
	return out->result != NULL && is_right(b, out->result) ? NULL : "a wrong result";
}

static int start(struct pusher *b, struct muster_outcome *out)
{
	float *zeros = b->servers ? calloc(b->elems, sizeof(float)) : NULL;

	if (b->servers && zeros == NULL)
		return -1;
	int rc = muster_start(b->m, zeros, out);
	free(zeros);
	return rc;
}

static int run(struct pusher *b)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	const char *failed = NULL;
	struct mst_hist h;
	uint64_t took;

	if (start(b, &out) != 0)
		return fail(b->m, "start");
	mst_hist_init(&h);
	for (uint64_t i = 0; i < b->steps + b->steps / 10 && failed == NULL; i++) {
		failed = step(b, &out, &took);
		if (failed == NULL && i >= b->steps / 10)
			mst_hist_add(&h, took);
	}
	if (failed != NULL)
		return fail(b->m, failed);
	if (muster_job(b->m)->rank == 0)
		printf("step %" PRIu64 " %.1f %.1f %.1f\n", b->elems,
		       (double)mst_hist_quantile(&h, 0.5) / 1e3,
		       (double)mst_hist_quantile(&h, 0.99) / 1e3, (double)h.min / 1e3);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct pusher b = { .servers = argc == 4 && strcmp(argv[3], "servers") == 0 };
	struct muster_options options = MUSTER_OPTIONS;

	if (argc >= 3)
		b.elems = strtoull(argv[1], NULL, 10), b.steps = strtoull(argv[2], NULL, 10);
	if (b.elems == 0 || b.steps == 0 || argc > 3 + b.servers) {
		fprintf(stderr, "usage: bench_step ELEMS STEPS [servers]\n");
		return 2;
	}
	options.elems = b.elems;
	options.owner = b.servers ? MUSTER_SERVERS_OWN : MUSTER_WORKERS_OWN;
	if (muster_open(&options, &b.m) != 0)
		return fail(NULL, "open");
	int status = run(&b);
	muster_close(b.m);
	return status;
}
