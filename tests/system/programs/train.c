/* SPDX-License-Identifier: MIT */
/*
 * A worker of muster_train(): checks every call of its hooks, and each result against the set that
 * the outcome names.
 *
 *	muster run -n W [--policy P] [--owner O] -- train servers|workers LAST
 *
 * Rank r's gradient is r + 1 everywhere, as a sum over the two samples of a batch. Rank 0 has
 * enough at version LAST (0: never; the job ends by itself).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <muster/muster.h>

#define ELEMS 777
#define BATCH 2

struct train_worker {
	struct muster *muster;
	bool workers_own;
	uint64_t last;    /* rank 0 ends the job there */
	uint64_t version; /* applied last */
	unsigned batches, applied;
};

static int complain(const struct train_worker *w, const char *what)
{
	fprintf(stderr, "train: rank %u at version %llu: %s\n", muster_job(w->muster)->rank,
		(unsigned long long)w->version, what);
	return -1;
}

static int compute(void *ctx, void *grad, struct muster_contribution *c)
{
	struct train_worker *w = ctx;
	float *g = grad, mine = (float)(muster_job(w->muster)->rank + 1);

	for (int i = 0; i < ELEMS; i++)
		g[i] = c->weight == 0 ? mine : g[i] + mine;
	if (c->weight == 0)
		w->batches++;
	c->sum = true;
	c->weight++;
	c->loss = 0.5;
	c->has_loss = true;
	c->full = c->weight == BATCH;
	return c->weight > BATCH ? complain(w, "called after the batch was full") : 0;
}

/* Contributions that the outcome names. */
static unsigned count_of(const struct muster_outcome *out)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < out->set_len; i++)
		count += out->set[i].count;
	return count;
}

/* The mean gradient of exactly those. */
static double mean_of(const struct muster_outcome *out)
{
	double sum = 0;

	for (uint32_t i = 0; i < out->set_len; i++)
		sum += (double)out->set[i].count * (out->set[i].rank + 1);
	return sum / count_of(out);
}

static int apply(void *ctx, const struct muster_outcome *out)
{
	struct train_worker *w = ctx;
	const float *result = out->result;

	w->applied++;
	if (!out->fresh || out->version <= w->version)
		return complain(w, "apply() got a version it has had");
	if (w->workers_own && out->version != w->version + 1)
		return complain(w, "apply() missed a version");
	w->version = out->version;
	if (out->set_len == 0 || out->weight != BATCH * (double)count_of(out))
		return complain(w, "the set and the weight do not fit");
	for (int i = 0; w->workers_own && i < ELEMS; i++) {
		if (fabs(result[i] - mean_of(out)) > 1e-6)
			return complain(w, "the mean is wrong");
	}
	return muster_job(w->muster)->rank == 0 && out->version == w->last;
}

/* The job is over: the last outcome can be had again, and rank 0 had enough where it said. What the
 * others had pushed by then still counts, so there may be one version more. */
static int check_end(struct train_worker *w)
{
	struct muster_outcome out = MUSTER_OUTCOME;

	if (muster_wait(w->muster, &out) != 0 || !out.finished || out.version != w->version)
		return complain(w, "the last outcome is another than was applied");
	if (w->last != 0 && w->version != w->last && w->version != w->last + 1)
		return complain(w, "the job went on after rank 0 had enough");
	if (w->last != 0 && (w->batches == 0 || w->applied == 0))
		return complain(w, "a hook was never called");
	return 0;
}

static int work(struct train_worker *w)
{
	static const float start[ELEMS];
	struct muster_hooks hooks = {
		.size = sizeof(hooks), .ctx = w, .compute = compute, .apply = apply
	};
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = muster_start(w->muster, start, &out);

	w->version = out.version;
	if (rc == 0)
		rc = muster_train(w->muster, &hooks);
	if (rc == 0)
		return check_end(w);
	fprintf(stderr, "train: %s\n", muster_error(w->muster));
	return rc;
}

int main(int argc, char **argv)
{
	struct muster_options options = MUSTER_OPTIONS;
	struct train_worker w = { .workers_own = argc == 3 && strcmp(argv[1], "workers") == 0 };

	if (argc != 3)
		return 2;
	w.last = strtoull(argv[2], NULL, 10);
	options.elems = ELEMS;
	options.owner = w.workers_own ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN;
	if (muster_open(&options, &w.muster) != 0) {
		fprintf(stderr, "train: %s\n", muster_error(NULL));
		return EXIT_FAILURE;
	}
	int rc = work(&w);
	muster_close(w.muster);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
