/* SPDX-License-Identifier: MIT */
/*
 * A rank stands out in one of three ways, judged in this order: the job hangs on it right now; it
 * misses its steps; or, under a policy that waits for everybody, all others are done long before.
 */
#include "tools/straggler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "tools/figure.h"

/* An open step that takes this many mean steps, and this long, is waiting for somebody. */
#define HANGS_STEPS 3u
#define HANGS_NS (200 * MST_MS)
/* A rank this much slower than the median rank is slow, and one that misses so much more of its
 * steps than the median rank is late; less is the weather. */
#define SLOW_FACTOR 1.25
#define LATE_FACTOR 1.5

static double missed_share(const struct mst_status_rank *row)
{
	uint64_t came = mst_straggler_came(row);

	return came == 0 ? 0 : (double)mst_straggler_missed(row) / (double)came;
}

static double ready_ns(const struct mst_status_rank *row)
{
	return mst_straggler_came(row) == 0 ? 0 : (double)row->ready_mean_ns;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The lower median over those ranks that have handed anything in, so that of two ranks the worse
 * one can stand out. */
static double median(const struct mst_snapshot *s, double (*figure)(const struct mst_status_rank *))
{
	static double figures[MST_WORKERS_MAX]; /* tools have one thread */
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->row_count; i++)
		if (mst_straggler_came(&s->row[i]) > 0)
			figures[count++] = figure(&s->row[i]);
	if (count == 0)
		return 0;
	qsort(figures, count, sizeof(figures[0]), by_size);
	return figures[(count - 1) / 2];
}

/* The rank with the largest figure, if that is more than @bound. */
static const struct mst_status_rank *worst(const struct mst_snapshot *s,
					   double (*figure)(const struct mst_status_rank *),
					   double bound)
{
	const struct mst_status_rank *found = NULL;

	for (uint32_t i = 0; i < s->row_count; i++) {
		if (figure(&s->row[i]) > bound) {
			found = &s->row[i];
			bound = figure(found);
		}
	}
	return found;
}

static const struct mst_status_rank *longest_awaited(const struct mst_snapshot *s)
{
	const struct mst_status_rank *worst = NULL;

	for (uint32_t i = 0; i < s->row_count; i++) {
		const struct mst_status_rank *row = &s->row[i];

		if (row->awaited && (worst == NULL || row->waiting_ns > worst->waiting_ns))
			worst = row;
	}
	return worst;
}

static bool hangs(const struct mst_snapshot *s, const struct mst_status_rank *row)
{
	return s->job.state == MST_JOB_RUNNING && row->waiting_ns >= HANGS_NS &&
	       row->waiting_ns >= HANGS_STEPS * s->job.step_mean_ns;
}

struct mst_straggler mst_straggler_find(const struct mst_snapshot *s)
{
	double usual_ns = median(s, ready_ns);
	struct mst_straggler g = { .usual_ready_ns = (uint64_t)usual_ns };

	for (uint32_t i = 0; i < s->row_count; i++) {
		g.missed += mst_straggler_missed(&s->row[i]);
		g.came += mst_straggler_came(&s->row[i]);
	}
	g.row = longest_awaited(s);
	if (g.row != NULL && hangs(s, g.row)) {
		g.kind = MST_STRAGGLER_AWAITED;
		return g;
	}
	if (g.missed > 0) {
		g.row = worst(s, missed_share, LATE_FACTOR * median(s, missed_share));
		g.kind = g.row == NULL ? MST_STRAGGLER_NONE : MST_STRAGGLER_LATE;
	} else {
		g.row = worst(s, ready_ns, SLOW_FACTOR * usual_ns);
		g.kind = g.row == NULL ? MST_STRAGGLER_NONE : MST_STRAGGLER_SLOW;
	}
	return g;
}

void mst_straggler_words(const struct mst_straggler *g, char *out, size_t len)
{
	const struct mst_status_rank *row = g->row;

	switch (g->kind) {
	case MST_STRAGGLER_NONE:
		out[0] = '\0';
		return;
	case MST_STRAGGLER_AWAITED:
		(void)snprintf(out, len, "waiting %s for rank %u",
			       mst_figure_duration(row->waiting_ns).text, row->rank);
		return;
	case MST_STRAGGLER_LATE:
		(void)snprintf(
			out, len, "rank %u late %s", row->rank,
			mst_figure_share(mst_straggler_missed(row), mst_straggler_came(row)).text);
		return;
	case MST_STRAGGLER_SLOW:
		(void)snprintf(out, len, "rank %u slow, %s", row->rank,
			       mst_figure_duration(row->ready_mean_ns).text);
		return;
	}
}

static void nobody_sentence(const struct mst_straggler *g, char *out, size_t len)
{
	if (g->missed == 0)
		(void)snprintf(out, len, "nobody is late");
	else
		(void)snprintf(out, len,
			       "all are late about as often: %" PRIu64 " of %" PRIu64
			       " gradients (%s) came after their step's commit",
			       g->missed, g->came, mst_figure_share(g->missed, g->came).text);
}

static void awaited_sentence(const struct mst_status_rank *row, char *out, size_t len)
{
	(void)snprintf(out, len,
		       "the open step has been waiting %s for rank %u, which was late with %s of "
		       "its gradients so far",
		       mst_figure_duration(row->waiting_ns).text, row->rank,
		       mst_figure_share(mst_straggler_missed(row), mst_straggler_came(row)).text);
}

static void late_sentence(const struct mst_status_rank *row, char *out, size_t len)
{
	uint64_t missed = mst_straggler_missed(row), came = mst_straggler_came(row);

	(void)snprintf(out, len,
		       "rank %u is late: %s after its step's commit on average, in %" PRIu64
		       " of %" PRIu64 " gradients (%s)",
		       row->rank, mst_figure_duration(row->behind_mean_ns).text, missed, came,
		       mst_figure_share(missed, came).text);
}

void mst_straggler_sentence(const struct mst_straggler *g, char *out, size_t len)
{
	const struct mst_status_rank *row = g->row;

	switch (g->kind) {
	case MST_STRAGGLER_NONE:
		nobody_sentence(g, out, len);
		return;
	case MST_STRAGGLER_AWAITED:
		awaited_sentence(row, out, len);
		return;
	case MST_STRAGGLER_LATE:
		late_sentence(row, out, len);
		return;
	case MST_STRAGGLER_SLOW:
		(void)snprintf(out, len,
			       "nobody is late, but rank %u is slow: ready %s after a commit, and "
			       "half of the ranks within %s",
			       row->rank, mst_figure_duration(row->ready_mean_ns).text,
			       mst_figure_duration(g->usual_ready_ns).text);
		return;
	}
}
