/* SPDX-License-Identifier: MIT */
/*
 * muster as a peer of itself: a worker over the public API, measured as the others are. Started by
 * compare.py through `muster run`, see meter.h for the options.
 *
 * Workers own: a result is the mean of the step, every worker gets every version. Servers own
 * (mostly where a rank is delayed: whoever is behind gets the newest at once): a result is what is
 * left of the start after all steps, with sgd:lr=1,momentum=0, so the difference of two is checked.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster/muster.h"
#include "tests/bench/peers/meter.h"

struct allreduce_worker {
	struct meter *meter;
	struct muster *m;
	struct muster_outcome out;
	bool own_buffers, servers_own;
	uint64_t elems;
	float *gradient, *result; /* the caller's own; NULL in the slot */
	float *before;            /* servers own: the version at hand */
	uint64_t before_version;
};

static int fail(const struct allreduce_worker *w, const char *what)
{
	fprintf(stderr, "muster_allreduce: %s: %s\n", what, muster_error(w->m));
	return -1;
}

/* The call that is measured: push until the new result is readable. */
static int exchange(struct allreduce_worker *w)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1, .full = true };
	int rc = 0;

	if (w->own_buffers)
		rc = muster_push_range(w->m, 0, w->elems, w->gradient);
	if (rc == 0)
		rc = muster_push(w->m, &c, NULL);
	if (rc != 0)
		return fail(w, "push");
	rc = muster_wait(w->m, &w->out);
	if (rc < 0)
		return fail(w, "wait");
	if (w->own_buffers)
		memcpy(w->result, w->out.result, w->elems * sizeof(float));
	return 0;
}

static uint64_t ranks_in(const struct muster_outcome *out)
{
	uint64_t set = 0;

	for (uint32_t i = 0; i < out->set_len; i++)
		set |= UINT64_C(1) << out->set[i].rank;
	return set;
}

/* A version is computed on the one before it, whose number is its gradients' tag. */
static int check(struct allreduce_worker *w)
{
	const struct muster_job *job = muster_job(w->m);
	const float *result = w->own_buffers ? w->result : w->out.result;
	uint64_t tag = w->out.version - 1, set = ranks_in(&w->out);

	if (strcmp(job->policy, "bsp") == 0 && w->out.set_len != job->workers) {
		fprintf(stderr, "muster_allreduce: version %" PRIu64 " lacks a rank\n",
			w->out.version);
		return -1;
	}
	if (!w->servers_own) {
		meter_check(w->meter, result, tag, set, w->out.weight);
		return 0;
	}
	if (w->out.version == w->before_version + 1)
		meter_check_step(w->meter, result, w->before, tag, set);
	memcpy(w->before, result, w->elems * sizeof(float));
	w->before_version = w->out.version;
	return 0;
}

static int steps(struct allreduce_worker *w)
{
	int rc = 0;

	while (rc == 0 && !w->out.finished) {
		float *gradient = w->own_buffers ? w->gradient : muster_gradient(w->m);
		if (gradient == NULL)
			return fail(w, "no gradient buffer");
		meter_fill(w->meter, gradient, w->out.version);
		if (!meter_next(w->meter))
			break;
		rc = exchange(w);
		meter_done(w->meter);
		if (rc == 0)
			meter_meet(w->meter);
		if (rc == 0 && !w->out.finished)
			rc = check(w);
	}
	/* Else a straggler would go on alone. */
	if (rc == 0 && muster_job(w->m)->rank == 0 && muster_finish(w->m, "measured") != 0)
		rc = fail(w, "finish");
	return rc;
}

static int buffers_make(struct allreduce_worker *w)
{
	if (w->own_buffers) {
		w->gradient = calloc(w->elems, sizeof(float));
		w->result = calloc(w->elems, sizeof(float));
	}
	w->before = w->servers_own ? calloc(w->elems, sizeof(float)) : NULL;
	return (w->own_buffers && (w->gradient == NULL || w->result == NULL)) ||
			       (w->servers_own && w->before == NULL)
		       ? -ENOMEM
		       : 0;
}

static int run(struct allreduce_worker *w)
{
	struct muster_options options = MUSTER_OPTIONS;

	options.elems = w->elems;
	options.owner = w->servers_own ? MUSTER_SERVERS_OWN : MUSTER_WORKERS_OWN;
	if (muster_open(&options, &w->m) != 0)
		return fail(w, "open");
	if (buffers_make(w) != 0)
		return fail(w, "no memory");
	if (meter_join(w->meter, muster_job(w->m)->rank) != 0)
		return -1;
	if (muster_start(w->m, w->before, &w->out) != 0)
		return fail(w, "start");
	return steps(w);
}

int main(int argc, char **argv)
{
	struct allreduce_worker w = { .meter = meter_open(argc, argv), .out = MUSTER_OUTCOME };

	if (w.meter == NULL)
		return 2;
	w.elems = meter_course(w.meter)->elems;
	w.own_buffers = strcmp(meter_course(w.meter)->buffers, "own") == 0;
	w.servers_own = strcmp(meter_course(w.meter)->owner, "servers") == 0;
	int rc = run(&w);
	int status = meter_close(w.meter);
	muster_close(w.m);
	free(w.gradient);
	free(w.result);
	free(w.before);
	return rc == 0 ? status : EXIT_FAILURE;
}
