/* SPDX-License-Identifier: MIT */
/*
 * A worker that computes nothing: it pushes what lies in its gradient buffer and waits for the
 * result, step after step. Rank 0 prints elements, p50, p99 in us of a step. Every result is
 * checked in part: all workers push ones, so the mean is 1 (bsp, --owner workers).
 *
 * usage: muster run -n W --owner workers [--transport T] -- bench_step ELEMS STEPS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/hist.h"
#include "muster/muster.h"

static int fail(const struct muster *m, const char *what)
{
	fprintf(stderr, "bench_step: %s: %s\n", what, muster_error(m));
	return EXIT_FAILURE;
}

/* 0, or what failed. */
static const char *step(struct muster *m, uint64_t elems, struct muster_outcome *out)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1, .full = true };
	float *gradient = muster_gradient(m);

	if (gradient == NULL)
		return "no gradient buffer";
	gradient[0] = gradient[elems / 2] = gradient[elems - 1] = 1;
	if (muster_push(m, &c, NULL) != 0)
		return "push";
	if (muster_wait(m, out) < 0)
		return "wait";
	const float *result = out->result;
	if (result == NULL || result[0] != 1 || result[elems / 2] != 1 || result[elems - 1] != 1)
		return "a wrong sum";
	return NULL;
}

static int run(struct muster *m, uint64_t elems, uint64_t steps)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	const char *failed = NULL;
	struct mst_hist h;

	if (muster_start(m, NULL, &out) != 0)
		return fail(m, "start");
	mst_hist_init(&h);
	for (uint64_t i = 0; i < steps + steps / 10 && failed == NULL; i++) {
		uint64_t begin = mst_now_ns();
		failed = step(m, elems, &out);
		if (i >= steps / 10)
			mst_hist_add(&h, mst_now_ns() - begin);
	}
	if (failed != NULL)
		return fail(m, failed);
	if (muster_job(m)->rank == 0)
		printf("step %" PRIu64 " %.1f %.1f\n", elems,
		       (double)mst_hist_quantile(&h, 0.5) / 1e3,
		       (double)mst_hist_quantile(&h, 0.99) / 1e3);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	uint64_t elems = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t steps = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	struct muster_options options = MUSTER_OPTIONS;
	struct muster *m;

	if (elems == 0 || steps == 0) {
		fprintf(stderr, "usage: bench_step ELEMS STEPS\n");
		return 2;
	}
	options.elems = elems;
	options.owner = MUSTER_WORKERS_OWN;
	if (muster_open(&options, &m) != 0)
		return fail(NULL, "open");
	int status = run(m, elems, steps);
	muster_close(m);
	return status;
}
