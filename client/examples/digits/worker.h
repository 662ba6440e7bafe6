/* SPDX-License-Identifier: MIT */
/* A worker's part of the job: samples in, gradients out, versions applied. */
#ifndef DIGITS_WORKER_H
#define DIGITS_WORKER_H

#include <stddef.h>
#include <stdint.h>

#include "client/examples/digits/settings.h"
#include "common/base/rand.h"
#include "common/delay/delay.h"
#include "common/digits/learner.h"
#include "muster/muster.h"

struct worker {
	struct muster *muster; /* opened, or NULL */
	const struct settings *settings;
	uint32_t rank;
	uint64_t version; /* of the parameters */
	struct mst_learner learner;
	struct mst_rand chance; /* picks samples */
	uint32_t done;          /* samples of the batch at hand */
	struct mst_delay *delay;
	uint64_t delay_ns;   /* of the batch at hand */
	uint64_t nap_ns;     /* how long a delayed worker does not look at hints */
	float *own;          /* start parameters to offer; workers own: the parameters */
	float *momentum;     /* workers own */
	const float *newest; /* parameters: the last version */
};

/**
 * worker_init - join the job with room for everything; the loop allocates nothing.
 * @settings, @data: must outlive the worker.
 * @why: on failure a sentence.
 * Return: 0; -EINVAL a delay model is wrong; -ENOMEM; the errors of muster_open().
 */
int worker_init(struct worker *w, const struct settings *settings, const struct mst_dataset *data,
		char *why, size_t why_len);
/* Leaves the job. Fine for a zeroed or half-made one. */
void worker_fini(struct worker *w);

/* Trains until the job is finished. Return: 0 or what muster.h says; muster_error() has words. */
int worker_learn(struct worker *w);

/* Over all test samples. */
struct mst_test_result worker_test(struct worker *w);
/* Tells the servers, so that `muster status` and `muster run` show it.
 * Return: 0 or what muster.h says; muster_error() has words. */
int worker_report(struct worker *w, const struct mst_test_result *test);

#endif
