/* SPDX-License-Identifier: MIT */
#include "tools/straggler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "tools/figure.h"

#define HELD_FACTOR 3u
#define HELD_NS (10 * MST_MS)
#define LATE_FACTOR 1.5
#define GIVEN_UP_SHARE 0.5
#define SLOW_FACTOR 1.25
/* What is less than this part of a step holds nobody up. */
#define FLOOR 0.1

struct mst_gradients mst_straggler_gradients(const struct mst_status_rank *row, bool whole)
{
	if (!whole)
		return (struct mst_gradients){
			.came = row->recent_came,
			.missed = row->recent_missed,
			.given_up = row->recent_given_up,
			.ready_ns = row->recent_ready_ns,
			.behind_ns = row->recent_behind_ns,
		};
	uint64_t missed = row->late + row->stale + row->given_up;

	return (struct mst_gradients){
		.came = row->counted + missed,
		.missed = missed,
		.given_up = row->given_up,
		.ready_ns = row->ready_mean_ns,
		.behind_ns = row->behind_mean_ns,
	};
}

static double share(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : (double)part / (double)whole;
}

static double missed_share(const struct mst_gradients *g)
{
	return share(g->missed, g->came);
}

static double given_up_share(const struct mst_gradients *g)
{
	return share(g->given_up, g->came);
}

static double ready(const struct mst_gradients *g)
{
	return (double)g->ready_ns;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

typedef double figure_of(const struct mst_gradients *);

/* The lower median over those ranks that have handed anything in, so that of two ranks the worse
 * one can stand out. */
static double median(const struct mst_job_snapshot *s, bool whole, figure_of *figure)
{
	static double figures[MST_WORKERS_MAX]; /* tools have one thread */
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->row_count; i++) {
		struct mst_gradients g = mst_straggler_gradients(&s->row[i], whole);
		if (g.came > 0)
			figures[count++] = figure(&g);
	}
	if (count == 0)
		return 0;
	qsort(figures, count, sizeof(figures[0]), by_size);
	return figures[(count - 1) / 2];
}

/* ---- who is held now ---- */

static bool is_held(const struct mst_straggler *g, const struct mst_status_rank *row)
{
	uint64_t usual_ns = row->recent_ready_ns > g->usual_ready_ns ? row->recent_ready_ns
								     : g->usual_ready_ns;

	return row->state == MST_RANK_LIVE && usual_ns > 0 && row->busy_ns > HELD_NS &&
	       row->busy_ns / HELD_FACTOR > usual_ns;
}

static void find_held(const struct mst_job_snapshot *s, struct mst_straggler *g)
{
	uint32_t held = 0;

	for (uint32_t i = 0; i < s->row_count; i++) {
		const struct mst_status_rank *row = &s->row[i];
		if (!is_held(g, row))
			continue;
		held++;
		if (g->row == NULL || row->busy_ns > g->row->busy_ns)
			g->row = row;
	}
	if (held == 0)
		return;
	g->kind = MST_STRAGGLER_HELD;
	g->others = held - 1;
}

/* ---- who has been late, or slow ---- */

/* In a running job nobody waits for a worker whose session is over. */
static bool has_gone(const struct mst_straggler *g, const struct mst_status_rank *row)
{
	return !g->whole && (row->state == MST_RANK_LOST || row->state == MST_RANK_LEFT ||
			     row->state == MST_RANK_EVICTED);
}

static bool is_late(const struct mst_straggler *g, const struct mst_gradients *rank,
		    double usual_missed, double usual_given_up)
{
	if (given_up_share(rank) > GIVEN_UP_SHARE &&
	    given_up_share(rank) > LATE_FACTOR * usual_given_up)
		return true;
	return missed_share(rank) > LATE_FACTOR * usual_missed &&
	       (double)rank->behind_ns > FLOOR * (double)g->step_ns;
}

static void find_late(const struct mst_job_snapshot *s, struct mst_straggler *g)
{
	double usual_missed = median(s, g->whole, missed_share);
	double usual_given_up = median(s, g->whole, given_up_share), most = 0;

	for (uint32_t i = 0; i < s->row_count; i++) {
		struct mst_gradients rank = mst_straggler_gradients(&s->row[i], g->whole);
		if (has_gone(g, &s->row[i]) || missed_share(&rank) <= most ||
		    !is_late(g, &rank, usual_missed, usual_given_up))
			continue;
		most = missed_share(&rank);
		g->row = &s->row[i];
		g->kind = MST_STRAGGLER_LATE;
	}
}

static void find_slow(const struct mst_job_snapshot *s, struct mst_straggler *g)
{
	double usual = (double)g->usual_ready_ns, slowest = SLOW_FACTOR * usual;

	if (slowest < usual + FLOOR * (double)g->step_ns)
		slowest = usual + FLOOR * (double)g->step_ns;
	for (uint32_t i = 0; i < s->row_count; i++) {
		struct mst_gradients rank = mst_straggler_gradients(&s->row[i], g->whole);
		if (has_gone(g, &s->row[i]) || rank.came == 0 || ready(&rank) <= slowest)
			continue;
		slowest = ready(&rank);
		g->row = &s->row[i];
		g->kind = MST_STRAGGLER_SLOW;
	}
}

struct mst_straggler mst_straggler_find(const struct mst_job_snapshot *s)
{
	bool whole = mst_snapshot_ended(s);
	struct mst_straggler g = {
		.whole = whole,
		.usual_ready_ns = (uint64_t)median(s, whole, ready),
		.step_ns = whole ? s->job.step_mean_ns : s->job.recent_step_ns,
	};

	for (uint32_t i = 0; i < s->row_count; i++) {
		struct mst_gradients rank = mst_straggler_gradients(&s->row[i], whole);
		g.missed += rank.missed;
		g.came += rank.came;
		if (rank.behind_ns > g.behind_ns)
			g.behind_ns = rank.behind_ns;
	}
	if (s->job.state == MST_JOB_RUNNING)
		find_held(s, &g);
	if (g.kind == MST_STRAGGLER_NONE)
		find_late(s, &g);
	if (g.kind == MST_STRAGGLER_NONE)
		find_slow(s, &g);
	return g;
}

/* ---- words ---- */

void mst_straggler_words(const struct mst_straggler *g, char *out, size_t len)
{
	const struct mst_status_rank *row = g->row;
	struct mst_gradients rank;

	out[0] = '\0';
	if (g->kind == MST_STRAGGLER_NONE)
		return;
	rank = mst_straggler_gradients(row, g->whole);
	if (g->kind == MST_STRAGGLER_HELD)
		(void)snprintf(out, len, "rank %u at it for %s", row->rank,
			       mst_figure_duration(row->busy_ns).text);
	else if (g->kind == MST_STRAGGLER_LATE)
		(void)snprintf(out, len, "rank %u late %s", row->rank,
			       mst_figure_share(rank.missed, rank.came).text);
	else
		(void)snprintf(out, len, "rank %u slow, %s", row->rank,
			       mst_figure_duration(rank.ready_ns).text);
}

static void nobody_reason(const struct mst_straggler *g, char *out, size_t len)
{
	if (g->missed == 0)
		(void)snprintf(out, len, "nobody is late");
	else
		(void)snprintf(out, len,
			       "nobody stands out: %" PRIu64 " of %" PRIu64
			       " gradients (%s) missed "
			       "their step, at most %s after its commit on average by rank",
			       g->missed, g->came, mst_figure_share(g->missed, g->came).text,
			       mst_figure_duration(g->behind_ns).text);
}

/* Has the open step waited for this worker for most of its silence? If not, the others go on
 * without it. */
static bool holds_step(const struct mst_status_rank *row)
{
	return row->awaited && row->waiting_ns > row->busy_ns / 2;
}

static void held_reason(const struct mst_straggler *g, char *out, size_t len)
{
	const struct mst_status_rank *row = g->row;
	char others[48] = "";

	if (g->others > 0)
		(void)snprintf(others, sizeof(others), "; so have %" PRIu32 " more ranks",
			       g->others);
	(void)snprintf(out, len,
		       "%srank %u has been at its gradient for %s, where %s is usual, and was last "
		       "heard of %s ago%s",
		       holds_step(row) ? "the open step waits: " : "", row->rank,
		       mst_figure_duration(row->busy_ns).text,
		       mst_figure_duration(g->usual_ready_ns).text,
		       mst_figure_ago(row->heard_ns).text, others);
}

static void late_reason(const struct mst_straggler *g, char *out, size_t len)
{
	struct mst_gradients rank = mst_straggler_gradients(g->row, g->whole);
	const char *of = g->whole ? "of" : "of its last";

	if (rank.given_up == rank.missed)
		(void)snprintf(out, len,
			       "rank %u is late: it was told to give up %" PRIu64 " %s %" PRIu64
			       " gradients (%s)",
			       g->row->rank, rank.missed, of, rank.came,
			       mst_figure_share(rank.missed, rank.came).text);
	else
		(void)snprintf(out, len,
			       "rank %u is late: %s after its step's commit on average, in %" PRIu64
			       " %s %" PRIu64 " gradients (%s)",
			       g->row->rank, mst_figure_duration(rank.behind_ns).text, rank.missed,
			       of, rank.came, mst_figure_share(rank.missed, rank.came).text);
}

void mst_straggler_reason(const struct mst_straggler *g, char *out, size_t len)
{
	switch (g->kind) {
	case MST_STRAGGLER_NONE:
		nobody_reason(g, out, len);
		return;
	case MST_STRAGGLER_HELD:
		held_reason(g, out, len);
		return;
	case MST_STRAGGLER_LATE:
		late_reason(g, out, len);
		return;
	case MST_STRAGGLER_SLOW:
		(void)snprintf(
			out, len,
			"nobody is late, but rank %u is slow: it takes %s, and half of the ranks "
			"at most %s",
			g->row->rank,
			mst_figure_duration(mst_straggler_gradients(g->row, g->whole).ready_ns)
				.text,
			mst_figure_duration(g->usual_ready_ns).text);
		return;
	}
}
