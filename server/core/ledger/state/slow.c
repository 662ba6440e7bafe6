/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/slow.h"

#include <math.h>

#include "common/base/clock.h"
#include "server/core/ledger/state/life.h"

static uint32_t next(const struct mst_ledger *l, uint32_t from)
{
	return mst_counts_next(&l->counts, MST_STANDS_ROSTERED, from);
}

/* ---- the test of the paper ---- */

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

static void look_by_paper(struct mst_ledger *l, const struct mst_straggler_test *test)
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

/* ---- who is slow ---- */

static bool is_slow(const struct mst_ledger *l, const struct mst_straggler_test *test,
		    uint32_t rank)
{
	return test->paper ? l->stride[rank].slow_windows >= test->windows
			   : mst_stragglers_is_slow(&l->judge, rank, l->now_ns);
}

static void count_by_judge(struct mst_ledger *l)
{
	l->stragglers = 0;
	for (uint32_t rank = next(l, 0); rank != MST_RANK_NONE; rank = next(l, rank + 1))
		l->stragglers += mst_stragglers_is_slow(&l->judge, rank, l->now_ns);
}

/* What the judge finds is told; nothing is decided by it here. */
static void look(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++)
		if (!l->stride[rank].put_to_rest && mst_stragglers_look(&l->judge, rank, l->now_ns))
			mst_ranks_add(&l->found, rank);
	l->unjudged = 0;
	l->judged_ns = l->now_ns;
}

void mst_slow_tick(struct mst_ledger *l)
{
	if (l->phase == MST_PHASE_RUNNING && l->now_ns - l->judged_ns >= MST_SECOND)
		look(l);
}

void mst_slow_over(struct mst_ledger *l)
{
	look(l);
	mst_stragglers_over(&l->judge, l->now_ns);
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++)
		mst_ranks_remove(&l->found, rank); /* the log has no more to say of them */
}

static void stop(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++)
		l->stride[rank].slow_windows = 0;
	l->stragglers = l->window = 0;
	l->watches = false;
}

void mst_slow_look(struct mst_ledger *l, uint32_t gradients, uint32_t live)
{
	struct mst_straggler_test test;

	l->unjudged += gradients;
	if (l->unjudged >= live)
		look(l);
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
	if (test.paper)
		look_by_paper(l, &test);
	else
		count_by_judge(l);
}

/* ---- rest ---- */

static void put_to_rest(struct mst_ledger *l, uint32_t rank)
{
	struct mst_stride *s = &l->stride[rank];

	mst_life_rest(l, &l->member[rank], true);
	if (!l->member[rank].rests)
		return;
	s->put_to_rest = l->put_to_rest = true;
	s->slow_windows = 0;
	s->rested_at = l->store.newest;
	s->probes = false;
	mst_stragglers_forget(&l->judge, rank);
}

static uint32_t count_put_to_rest(const struct mst_ledger *l)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; l->put_to_rest && rank < l->cfg.workers; rank++)
		count += l->stride[rank].put_to_rest;
	return count;
}

/* So many are put to rest after a look, for to find each takes a look at all. More of them are put
 * to rest after the next look. */
#define AT_ONCE 8u

/* Return: the slowest of the ranks that are slow; MST_RANK_NONE: none is. */
static uint32_t slowest(const struct mst_ledger *l, const struct mst_straggler_test *test)
{
	uint32_t slowest = MST_RANK_NONE;
	double most = 0;

	for (uint32_t rank = next(l, 0); rank != MST_RANK_NONE; rank = next(l, rank + 1)) {
		double ratio = mst_stragglers_ratio(&l->judge, rank, l->now_ns);
		if (is_slow(l, test, rank) && ratio > most) {
			most = ratio;
			slowest = rank;
		}
	}
	return slowest;
}

static void rest_slowest(struct mst_ledger *l, const struct mst_straggler_test *test)
{
	uint32_t resting = count_put_to_rest(l), live = mst_life_count(l), left = AT_ONCE, rank;

	while (resting < live / 2 && left-- > 0 && (rank = slowest(l, test)) != MST_RANK_NONE) {
		put_to_rest(l, rank);
		if (!l->stride[rank].put_to_rest)
			return;
		resting++;
	}
}

static void rest_by_paper(struct mst_ledger *l, const struct mst_straggler_test *test)
{
	for (uint32_t rank = next(l, 0); rank != MST_RANK_NONE; rank = next(l, rank + 1))
		if (is_slow(l, test, rank))
			put_to_rest(l, rank);
}

static void have_return(struct mst_ledger *l, uint32_t rank)
{
	mst_life_rest(l, &l->member[rank], false);
	l->stride[rank].put_to_rest = l->stride[rank].probes = false;
}

/* A worker that has joined again meanwhile, or was told to return, takes part already. */
static void return_all(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (!l->stride[rank].put_to_rest)
			continue;
		have_return(l, rank);
		mst_stragglers_stay_slow(&l->judge, rank);
	}
	l->put_to_rest = false;
}

static void probe(struct mst_ledger *l, uint32_t rank)
{
	struct mst_stride *s = &l->stride[rank];
	bool due = l->store.newest - s->rested_at >= MST_PROBE_STEPS;

	if (s->probes || !(due || l->cfg.owner != MUSTER_SERVERS_OWN))
		return;
	s->probes = true;
	s->rested_at = l->store.newest;
	mst_changed(l, &l->member[rank]);
}

static void look_again(struct mst_ledger *l)
{
	bool some = false;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (!l->stride[rank].put_to_rest)
			continue;
		if (!l->member[rank].rests || mst_stragglers_may_return(&l->judge, rank)) {
			have_return(l, rank);
			mst_stragglers_forget(&l->judge, rank);
		} else {
			probe(l, rank);
		}
		some |= l->stride[rank].put_to_rest;
	}
	l->put_to_rest = some;
}

void mst_slow_rest(struct mst_ledger *l)
{
	struct mst_straggler_test test;

	if (!mst_controller_rests_stragglers(&l->controller, &test)) {
		if (l->put_to_rest)
			return_all(l);
	} else if (test.paper) {
		rest_by_paper(l, &test);
	} else {
		if (l->put_to_rest)
			look_again(l);
		if (l->stragglers > 0)
			rest_slowest(l, &test);
	}
}
