/* SPDX-License-Identifier: MIT */
/*
 * A worker fills its gradient, waits at the step's barrier, and then, timed, pushes and waits for
 * the result; after that it checks every element of it.
 *
 *	fill | barrier | start: push ... pushed ... end: result readable | barrier | check
 *
 * Before it checks, it waits until all have their results. With buffers of its own the copy in lies
 * after start and the copy out before end. A delay is slept between barrier and start. Every step
 * is checked, those of the warm-up too.
 */
#include "tools/bench/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/delay/delay.h"
#include "common/kernels/sum.h"
#include "muster/muster.h"
#include "tools/bench/plan.h"
#include "tools/bench/values.h"
#include "tools/command.h"

struct bench_worker {
	struct mst_bench_plan *plan;
	struct mst_bench_values values;
	struct muster *m;
	struct mst_delay *delay;
	uint32_t rank;
	void *own_gradient, *own_result; /* NULL: in the slot */
	struct muster_outcome out;
};

static int fail(const struct bench_worker *w, const char *what)
{
	mst_error("rank %u: %s: %s", w->rank, what, muster_error(w->m));
	return -EIO;
}

static bool job_is_gone(void *arg)
{
	const struct bench_worker *w = arg;

	return muster_check(w->m) == MUSTER_GIVE_UP;
}

static size_t vector_bytes(const struct mst_bench_plan *p)
{
	return (size_t)p->elems * mst_type_bytes(p->type);
}

/* A worker that pushes on a version has told the version's drift, so that of the version before is
 * known. */
static int64_t learn_drift(struct bench_worker *w, const struct mst_bench_expected *expected)
{
	struct mst_bench_step *now = mst_bench_step_of(w->plan, expected->version);
	const struct mst_bench_step *before = mst_bench_step_of(w->plan, expected->version - 1);
	int64_t drift = atomic_load_explicit(&before->drift, memory_order_acquire) +
			mst_bench_drift(&w->values, expected);

	atomic_store_explicit(&now->drift, drift, memory_order_release);
	return drift;
}

static uint32_t check(struct bench_worker *w)
{
	struct mst_bench_expected expected = {
		.version = w->out.version,
		.set = w->out.set,
		.set_len = w->out.set_len,
	};
	const void *result = w->own_result != NULL ? w->own_result : w->out.result;

	if (expected.version > w->plan->steps)
		return UINT32_MAX; /* a version that nobody can have pushed for */
	expected.drift = learn_drift(w, &expected);
	uint64_t wrong = mst_bench_wrong(&w->values, &expected, result, w->plan->elems);
	return wrong < UINT32_MAX ? (uint32_t)wrong : UINT32_MAX;
}

static int fill(struct bench_worker *w)
{
	void *gradient = w->own_gradient != NULL ? w->own_gradient : muster_gradient(w->m);

	if (gradient == NULL)
		return fail(w, "no gradient buffer");
	mst_bench_fill(&w->values, w->rank, w->out.version, gradient, w->plan->elems);
	return 0;
}

static int push(struct bench_worker *w)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1, .full = true };

	if (w->own_gradient != NULL &&
	    muster_push_range(w->m, 0, w->plan->elems, w->own_gradient) != 0)
		return fail(w, "muster_push_range()");
	return muster_push(w->m, &c, NULL) == 0 ? 0 : fail(w, "muster_push()");
}

/* The time of the result counts, and its bits: but they are looked at when all have theirs. */
static int take_result(struct bench_worker *w, struct mst_bench_record *r, uint64_t step)
{
	if (w->own_result != NULL)
		memcpy(w->own_result, w->out.result, vector_bytes(w->plan));
	r->end_ns = mst_now_ns();
	if (w->out.version == step + 1 && r->verdict == MUSTER_COUNTED &&
	    !mst_bench_step_leave(w->plan, step, job_is_gone, w))
		return fail(w, "the job has ended");
	uint32_t wrong = check(w);
	r->wrong = wrong > UINT32_MAX - r->wrong ? UINT32_MAX : r->wrong + wrong;
	return 0;
}

/* One outcome: a verdict at most, a result at most. Return: 1 there are more; 0; -errno. */
static int take_outcome(struct bench_worker *w, struct mst_bench_record *r, uint64_t step)
{
	int rc = muster_wait(w->m, &w->out);

	if (rc < 0)
		return rc == -EINTR ? 1 : fail(w, "muster_wait()");
	if (w->out.verdict != MUSTER_NONE) {
		r->verdict = (uint32_t)w->out.verdict;
		r->counted_in = w->out.counted_in;
	}
	if (w->out.finished)
		return fail(w, "the job has ended");
	if (w->out.fresh && take_result(w, r, step) < 0)
		return -EIO;
	return rc;
}

/* Return: false: the job has gone. */
static bool wait_for_turn(struct bench_worker *w, uint64_t step)
{
	uint64_t delay = mst_delay_next(w->delay);

	if (delay > 0)
		mst_sleep_ns(delay);
	if (!w->plan->last_alone || step % w->plan->workers != w->rank)
		return true;
	return mst_bench_step_settle(w->plan, step, job_is_gone, w);
}

/* Return: 1 go on; 0 over; -errno. */
static int make_step(struct bench_worker *w)
{
	uint64_t step = w->out.version;
	int rc = fill(w);

	if (rc < 0)
		return rc;
	enum mst_bench_state state = mst_bench_step_enter(w->plan, step, job_is_gone, w);
	if (state == MST_BENCH_OVER)
		return 0;
	if (state == MST_BENCH_SHUT || !wait_for_turn(w, step))
		return fail(w, "the job has ended");
	struct mst_bench_record *r = mst_bench_record_of(w->plan, w->rank, step);
	uint64_t start = mst_now_ns();
	rc = push(w);
	if (rc < 0)
		return rc;
	r->start_ns = start;
	r->pushed_ns = mst_now_ns();
	mst_bench_step_pushed(w->plan, step);
	do
		rc = take_outcome(w, r, step);
	while (rc > 0);
	return rc < 0 ? rc : 1;
}

static int start(struct bench_worker *w)
{
	bool offers = w->plan->owner == MUSTER_SERVERS_OWN && w->rank == 0;
	void *zeros = offers ? calloc(1, vector_bytes(w->plan)) : NULL;

	if (offers && zeros == NULL)
		return -ENOMEM;
	int rc = muster_start(w->m, zeros, &w->out);
	free(zeros);
	return rc == 0 ? 0 : fail(w, "muster_start()");
}

static int run(struct bench_worker *w)
{
	int rc = start(w);

	if (rc < 0)
		return rc;
	do
		rc = make_step(w);
	while (rc > 0);
	return rc;
}

static int open_delay(struct bench_worker *w)
{
	const char *spec[MST_BENCH_DELAYS];
	struct mst_reason why;
	struct mst_delay_options options = {
		.spec = spec,
		.spec_count = w->plan->delay_count,
		.rank = w->rank,
		.seed = w->plan->seed,
	};

	for (uint32_t i = 0; i < w->plan->delay_count; i++)
		spec[i] = w->plan->delay[i];
	int rc = mst_delay_new(&options, &w->delay, &why);
	if (rc < 0)
		mst_error("%s", why.text);
	return rc;
}

static int open_buffers(struct bench_worker *w)
{
	if (!w->plan->own_buffers)
		return 0;
	w->own_gradient = malloc(vector_bytes(w->plan));
	w->own_result = malloc(vector_bytes(w->plan));
	if (w->own_gradient == NULL || w->own_result == NULL) {
		mst_error("rank %u: no memory for two vectors of %zu bytes", w->rank,
			  vector_bytes(w->plan));
		return -ENOMEM;
	}
	return 0;
}

static int join(struct bench_worker *w)
{
	struct muster_options options = MUSTER_OPTIONS;

	options.elems = w->plan->elems;
	options.type = options.result_type = w->plan->type;
	options.owner = w->plan->owner;
	if (muster_open(&options, &w->m) != 0)
		return fail(w, "muster_open()");
	w->rank = muster_job(w->m)->rank;
	return 0;
}

static void close_all(struct bench_worker *w)
{
	muster_close(w->m);
	mst_delay_free(w->delay);
	free(w->own_gradient);
	free(w->own_result);
	mst_bench_plan_free(w->plan);
}

int mst_bench_worker(const char *plan_path)
{
	struct bench_worker w = { .out = MUSTER_OUTCOME };
	int rc = mst_bench_plan_map(plan_path, &w.plan);

	if (rc < 0) {
		mst_error("no plan of a benchmark at %s: %s", plan_path, strerror(-rc));
		return MST_EXIT_USAGE;
	}
	mst_bench_values_init(&w.values, w.plan->type, w.plan->owner, w.plan->quorum);
	rc = join(&w);
	if (rc == 0)
		rc = open_delay(&w);
	if (rc == 0)
		rc = open_buffers(&w);
	if (rc == 0)
		rc = run(&w);
	close_all(&w);
	return rc == 0 ? MST_EXIT_DONE : MST_EXIT_FAILED;
}
