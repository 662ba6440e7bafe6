/* SPDX-License-Identifier: MIT */
/* A worker's part of the job: samples in, gradients out, versions applied; and what goes before it
 * and comes after it. */
#ifndef DIGITS_WORKER_H
#define DIGITS_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rand.h"
#include "common/config/option.h"
#include "common/delay/delay.h"
#include "common/digits/learner.h"
#include "muster/muster.h"

/* ---- settings.c ---- */

/* In the order of the option's choices. */
enum product { PRODUCT_AUTO, PRODUCT_BLAS, PRODUCT_PLAIN };

struct settings {
	struct mst_options source; /* owns the strings */
	const char *data;          /* directory; NULL: drawn digits */
	const char *json;          /* file for the result; NULL: none */
	uint32_t batch, micro;     /* samples per contribution, and per step of computing */
	uint32_t hidden;
	uint64_t seed;
	uint32_t product;    /* enum product; PRODUCT_BLAS only where it is built in */
	uint32_t owner;      /* enum muster_owner */
	double lr, momentum; /* workers own */
	uint32_t test_every; /* versions; 0: at the end only */
	struct mst_option_list delay;
	bool help;
};

/* Return: 0; 1: help was asked for, and has been printed; -EINVAL: what is wrong has been printed
 * on stderr; -ENOMEM. */
int settings_init(struct settings *s, int argc, char **argv);
void settings_fini(struct settings *s);

/* ---- worker.c ---- */

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
		struct mst_reason *why);
/* Leaves the job. Fine for a zeroed or half-made one. */
void worker_fini(struct worker *w);

/* Trains until the job is finished. Return: 0 or what muster.h says; muster_error() has words. */
int worker_learn(struct worker *w);

/* Over all test samples. */
struct mst_test_result worker_test(struct worker *w);
/* Tells the servers, so that `muster status` and `muster run` show it.
 * Return: 0 or what muster.h says; muster_error() has words. */
int worker_report(struct worker *w, const struct mst_test_result *test);

/* ---- report.c ---- */

struct report {
	uint32_t rank;
	uint64_t versions;
	double loss, accuracy;
	uint32_t train, test; /* samples */
	uint64_t parameters;
	const char *data;    /* directory; NULL: drawn */
	const char *product; /* blas or plain: what multiplied */
};

/* One line on stdout. */
void report_print(const struct report *r);

/* One JSON object to @file, in which the first %r stands for the rank. @why: on failure a sentence.
 * Return: 0 or a negative errno. */
int report_write(const struct report *r, const char *file, struct mst_reason *why);

#endif
