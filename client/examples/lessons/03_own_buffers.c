/* SPDX-License-Identifier: MIT */
/*
 * Lesson 3: workers own. Results are mean gradients, which each worker applies, version by version.
 * Its own comes piece by piece out of a buffer of the program; each is sent while the next is made.
 * The buffer is registered: over RDMA it is not copied, and is the program's again after the wait.
 *
 *	muster run -n 3 --owner workers -- ./03_own_buffers
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <muster/muster.h>

#define ELEMS 1000
#define PIECE 300 /* the last piece is shorter */
#define ROUNDS 10

static float parameters[ELEMS], gradient[ELEMS];
static uint64_t version; /* of the parameters */

/* Rank r's gradient for version v is (r + 1) v everywhere. */
static int push_pieces(struct muster *m)
{
	struct muster_contribution mine = MUSTER_CONTRIBUTION;

	mine.weight = 1; /* samples in it */
	mine.full = true;
	mine.keep = true; /* the last result stays readable: the wait asks, not this push */

	for (uint64_t first = 0; first < ELEMS; first += PIECE) {
		uint64_t count = ELEMS - first < PIECE ? ELEMS - first : PIECE;
		float *piece = gradient + first;
		for (uint64_t i = 0; i < count; i++)
			piece[i] = (float)((muster_job(m)->rank + 1) * (version + 1));
		int rc = muster_push_range(m, first, count, piece); /* lent until the wait */
		if (rc)
			return rc;
	}
	return muster_push(m, &mine, NULL);
}

/* One version: the next in order, and the mean of exactly those in its set. */
static int apply(const struct muster_outcome *out)
{
	const float *mean = out->result;
	double want = 0;

	for (uint32_t i = 0; i < out->set_len; i++)
		want += (out->set[i].rank + 1.0) * out->set[i].weight / out->weight;
	want *= (double)(version + 1);
	for (int i = 0; i < ELEMS; i++) {
		if (out->version != version + 1 || fabs(mean[i] - want) > 1e-4) {
			fprintf(stderr, "version %llu: mean[%d] is %g; version %llu has %g\n",
				(unsigned long long)out->version, i, mean[i],
				(unsigned long long)version + 1, want);
			return -1;
		}
		parameters[i] -= 0.1f * (float)out->orders.lr_scale * mean[i];
	}
	version = out->version;
	return 0;
}

/* muster_wait() brings one version at a time, and says 1 while more are there. */
static int wait_and_apply(struct muster *m, struct muster_outcome *out)
{
	int more;

	do {
		more = muster_wait(m, out);
		if (more >= 0 && out->fresh && apply(out))
			return -1;
	} while (more == 1);
	return more;
}

int main(void)
{
	struct muster_options options = MUSTER_OPTIONS;
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster *m;

	options.elems = ELEMS;
	options.owner = MUSTER_WORKERS_OWN;
	if (muster_open(&options, &m)) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return EXIT_FAILURE;
	}
	int rc = muster_register(m, gradient, sizeof(gradient)); /* muster_close() unregisters */
	if (rc == 0)
		rc = muster_start(m, parameters, &out);
	while (rc == 0 && !out.finished && version < ROUNDS) {
		rc = push_pieces(m);
		if (rc == 0)
			rc = wait_and_apply(m, &out);
	}
	if (rc)
		fprintf(stderr, "%s\n", muster_error(m));
	else if (muster_job(m)->rank == 0)
		muster_finish(m, "the lesson is over");
	printf("version %llu, parameter 0 is %g\n", (unsigned long long)version, parameters[0]);
	muster_close(m);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
