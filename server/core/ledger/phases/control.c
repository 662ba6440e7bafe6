/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/control.h"

#include <math.h>

#include "server/core/ledger/state/life.h"

/* One of several equal workers is always the slowest one. So a worker is a straggler only if its
 * throughput is below the mean by more than this part of the mean. */
#define MARGIN 0.1

/* 0: not known. */
static double throughput(const struct mst_ledger *l, uint32_t rank)
{
	const struct mst_stride *s = &l->stride[rank];
	uint64_t took_ns = mst_durations_last(&s->durations);

	if (took_ns > 0 && s->answered_ns != 0 && l->now_ns - s->answered_ns > took_ns)
		took_ns = l->now_ns - s->answered_ns;
	return took_ns > 0 ? 1 / (double)took_ns : 0;
}

static uint32_t next(const struct mst_ledger *l, uint32_t from)
{
	return mst_counts_next(&l->counts, MST_STANDS_ROSTERED, from);
}

/* Below which throughput is a worker slow? */
static double limit_of(const struct mst_ledger *l, double deviations)
{
	double count = 0, sum = 0, squares = 0;

	for (uint32_t rank = next(l, 0); rank != MST_RANK_NONE; rank = next(l, rank + 1)) {
		double x = throughput(l, rank);
		count += x > 0;
		sum += x;
		squares += x * x;
	}
	if (count == 0)
		return 0;
	double mean = sum / count, variance = squares / count - mean * mean;
	double limit = mean - deviations * sqrt(variance > 0 ? variance : 0);
	double most = mean * (1 - MARGIN);
	return limit < most ? limit : most;
}

static void judge(struct mst_ledger *l, const struct mst_straggler_test *test)
{
	double limit = limit_of(l, test->deviations);

	l->stragglers = 0;
	for (uint32_t rank = next(l, 0); rank != MST_RANK_NONE; rank = next(l, rank + 1)) {
		struct mst_stride *s = &l->stride[rank];
		double x = throughput(l, rank);
		s->slow_windows = x > 0 && x < limit ? s->slow_windows + 1 : 0;
		l->stragglers += s->slow_windows >= test->windows;
	}
}

static void stop(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++)
		l->stride[rank].slow_windows = 0;
	l->stragglers = l->window = 0;
	l->watches = false;
}

/* A version has been made of @gradients, and @live workers are live. Judges which workers are slow,
 * if the policy asks for that and a window is over. */
static void look_for_stragglers(struct mst_ledger *l, uint32_t gradients, uint32_t live)
{
	struct mst_straggler_test test;

	if (!mst_controller_watches(&l->controller, &test)) {
		if (l->watches)
			stop(l);
		return;
	}
	l->watches = true;
	l->window += gradients;
	if (l->window < live)
		return;
	l->window = 0;
	judge(l, &test);
}

static void rest_all(struct mst_ledger *l, uint32_t windows)
{
	for (uint32_t rank = next(l, 0); rank != MST_RANK_NONE; rank = next(l, rank + 1)) {
		struct mst_stride *s = &l->stride[rank];
		if (s->slow_windows < windows)
			continue;
		mst_life_rest(l, &l->member[rank], true);
		s->put_to_rest = l->member[rank].rests;
		s->slow_windows = 0;
		l->put_to_rest |= s->put_to_rest;
	}
}

/* A worker that has joined again meanwhile, or was told to return, takes part already. */
static void return_all(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (l->stride[rank].put_to_rest)
			mst_life_rest(l, &l->member[rank], false);
		l->stride[rank].put_to_rest = false;
	}
	l->put_to_rest = false;
}

/* Has stragglers rest, or return, as the policy wants. */
static void rest_stragglers(struct mst_ledger *l)
{
	struct mst_straggler_test test;

	if (mst_controller_rests_stragglers(&l->controller, &test))
		rest_all(l, test.windows);
	else if (l->put_to_rest)
		return_all(l);
}

/* Members that the next step waits for. */
static uint32_t count_live(const struct mst_ledger *l)
{
	return mst_counts_count(&l->counts, MST_STANDS_ROSTERED) +
	       mst_counts_count(&l->counts, MST_STANDS_NEW);
}

void mst_control_next(struct mst_ledger *l, const struct mst_record *r)
{
	struct mst_commit_view view = {
		.gradients = r->entry_count,
		.live = count_live(l),
		.loss = r->loss,
		.loss_samples = r->loss_samples,
		.samples = r->samples,
		.samples_total = l->samples_total,
		.samples_max = l->cfg.samples_max,
		.workers = l->cfg.workers,
		.rate = (double)r->scalar[MST_SCALAR_RATE],
		.linear = l->rule.linear,
		.norms = l->norms,
	};

	l->norms.known = false;
	if (l->rule_changes || l->end_due || mst_has_commits(l) || mst_has_samples(l))
		return;
	look_for_stragglers(l, view.gradients, view.live);
	view.stragglers = l->stragglers;
	l->next_rule = l->rule;
	l->rule_changes = mst_controller_decide(&l->controller, &view, &l->next_rule);
	l->next_controller = l->controller;
	l->rule_adapts = l->rule_changes;
	rest_stragglers(l);
}
