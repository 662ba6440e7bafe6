/* SPDX-License-Identifier: MIT */
#include "tools/straggler.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "tools/figure.h"

/* A rank that was a straggler for less than this part of a job that has ended is not worth a
 * sentence. */
#define WHOLE_SHARE 0.1
/* An open step waits for long if it does so for so many steps, or, before there are steps, for so
 * many ns. */
#define LONG_STEPS 3u
#define LONG_NS MST_SECOND

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

const char *mst_straggler_kind_word(uint32_t kind)
{
	static const char *const words[] = {
		[MST_STRAGGLER_NONE] = "none",
		[MST_STRAGGLER_SLOW] = "slow",
		[MST_STRAGGLER_LATE] = "late",
		[MST_STRAGGLER_STALLED] = "stalled",
	};

	return kind < sizeof(words) / sizeof(words[0]) ? words[kind] : "unknown";
}

/* ---- who is named ---- */

/* The larger, the more it is worth naming. */
static double weight_now(const struct mst_status_rank *row)
{
	struct mst_gradients g = mst_straggler_gradients(row, false);

	switch (row->straggler) {
	case MST_STRAGGLER_STALLED:
		return (double)row->busy_ns;
	case MST_STRAGGLER_SLOW:
		return row->straggler_ratio;
	default:
		return g.came > 0 ? (double)g.missed / (double)g.came : 0;
	}
}

static bool is_now(const struct mst_status_rank *row)
{
	return row->straggler != MST_STRAGGLER_NONE && row->straggler <= MST_STRAGGLER_STALLED &&
	       row->straggler_ns != MST_NOT_KNOWN && row->state == MST_RANK_LIVE;
}

/* Kinds are in the order in which they are named, the last first. */
static bool comes_first(const struct mst_status_rank *row, const struct mst_status_rank *other)
{
	if (other == NULL || row->straggler != other->straggler)
		return other == NULL || row->straggler > other->straggler;
	return weight_now(row) > weight_now(other);
}

static void find_now(struct mst_named_straggler *g)
{
	uint32_t all = 0, stalled = 0;

	for (uint32_t i = 0; i < g->job->row_count; i++) {
		const struct mst_status_rank *row = &g->job->row[i];
		if (!is_now(row))
			continue;
		all++;
		stalled += row->straggler == MST_STRAGGLER_STALLED;
		if (comes_first(row, g->row))
			g->row = row;
	}
	if (g->row != NULL)
		g->others = (stalled > 0 ? stalled : all) - 1;
}

static bool was_for_long(const struct mst_job_snapshot *s, const struct mst_status_rank *row)
{
	double least = WHOLE_SHARE * (double)s->job.elapsed_ns;

	return row->straggler != MST_STRAGGLER_NONE && row->straggler <= MST_STRAGGLER_STALLED &&
	       row->straggler_total_ns != MST_NOT_KNOWN && row->waited_ns != MST_NOT_KNOWN &&
	       ((double)row->straggler_total_ns >= least || (double)row->waited_ns >= least);
}

static void find_of_all(struct mst_named_straggler *g)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i < g->job->row_count; i++) {
		const struct mst_status_rank *row = &g->job->row[i];
		if (!was_for_long(g->job, row))
			continue;
		all++;
		if (g->row == NULL || row->waited_ns > g->row->waited_ns ||
		    (row->waited_ns == g->row->waited_ns &&
		     row->straggler_total_ns > g->row->straggler_total_ns))
			g->row = row;
	}
	if (g->row != NULL)
		g->others = all - 1;
}

struct mst_named_straggler mst_straggler_find(const struct mst_job_snapshot *s)
{
	struct mst_named_straggler g = { .job = s, .whole = mst_snapshot_ended(s) };

	if (g.whole)
		find_of_all(&g);
	else if (s->job.state == MST_JOB_RUNNING)
		find_now(&g);
	if (g.row != NULL)
		g.kind = (enum mst_straggler_kind)g.row->straggler;
	return g;
}

/* ---- a few words ---- */

void mst_straggler_words(const struct mst_named_straggler *g, char *out, size_t len)
{
	const struct mst_status_rank *row = g->row;

	out[0] = '\0';
	if (g->kind == MST_STRAGGLER_NONE)
		return;
	struct mst_gradients rank = mst_straggler_gradients(row, g->whole);
	if (g->kind == MST_STRAGGLER_STALLED)
		(void)snprintf(out, len, "rank %u at it for %s", row->rank,
			       mst_figure_duration(row->busy_ns).text);
	else if (g->kind == MST_STRAGGLER_LATE)
		(void)snprintf(out, len, "rank %u late %s", row->rank,
			       mst_figure_share(rank.missed, rank.came).text);
	else
		(void)snprintf(out, len, "rank %u slow, %.3g times", row->rank,
			       row->straggler_ratio);
}

/* ---- nobody ---- */

/* The rank that the open step waits for, if it does so for long, and for less than half of the
 * ranks; NULL: there is none. */
static const struct mst_status_rank *awaited(const struct mst_job_snapshot *s)
{
	uint64_t long_ns = s->job.recent_step_ns > 0 ? LONG_STEPS * s->job.recent_step_ns : LONG_NS;
	const struct mst_status_rank *longest = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->row_count; i++) {
		const struct mst_status_rank *row = &s->row[i];
		if (!row->awaited || row->busy_ns == 0 || row->waiting_ns < long_ns)
			continue;
		count++;
		if (longest == NULL || row->busy_ns > longest->busy_ns)
			longest = row;
	}
	return s->job.state == MST_JOB_RUNNING && 2 * count < s->job.live ? longest : NULL;
}

static void nobody_reason(const struct mst_named_straggler *g, char *out, size_t len)
{
	const struct mst_status_rank *row = awaited(g->job);
	uint64_t missed = 0, came = 0, behind_ns = 0;

	for (uint32_t i = 0; i < g->job->row_count; i++) {
		struct mst_gradients r = mst_straggler_gradients(&g->job->row[i], g->whole);
		missed += r.missed;
		came += r.came;
		if (r.behind_ns > behind_ns)
			behind_ns = r.behind_ns;
	}
	if (row != NULL)
		(void)snprintf(out, len,
			       "the open step waits: rank %u has been at its gradient for %s, and "
			       "was last heard of %s ago",
			       row->rank, mst_figure_duration(row->busy_ns).text,
			       mst_figure_ago(row->heard_ns).text);
	else if (missed == 0)
		(void)snprintf(out, len, "nobody is late");
	else
		(void)snprintf(out, len,
			       "nobody stands out: %" PRIu64 " of %" PRIu64
			       " gradients (%s) missed "
			       "their step, at most %s after its commit on average by rank",
			       missed, came, mst_figure_share(missed, came).text,
			       mst_figure_duration(behind_ns).text);
}

/* ---- somebody ---- */

/* Has the open step waited for this worker for most of its silence? If not, the others go on
 * without it. */
static bool holds_step(const struct mst_status_rank *row)
{
	return row->awaited && row->waiting_ns > row->busy_ns / 2;
}

static struct mst_figure fast_ready(const struct mst_named_straggler *g)
{
	return mst_figure_duration(g->job->job.fast_ready_ns);
}

static int tell_stalled(const struct mst_named_straggler *g, char *out, size_t len)
{
	const struct mst_status_rank *row = g->row;

	return snprintf(out, len,
			"%srank %u has been at its gradient for %s, where the fast ranks take %s, "
			"and was last heard of %s ago",
			holds_step(row) ? "the open step waits: " : "", row->rank,
			mst_figure_duration(row->busy_ns).text, fast_ready(g).text,
			mst_figure_ago(row->heard_ns).text);
}

static int tell_late(const struct mst_named_straggler *g, char *out, size_t len)
{
	struct mst_gradients rank = mst_straggler_gradients(g->row, g->whole);
	const char *is = g->whole ? "was" : "is", *of = g->whole ? "of" : "of its last";

	if (2 * rank.given_up > rank.missed)
		return snprintf(out, len,
				"rank %u %s late: it was told to give up %" PRIu64 " %s %" PRIu64
				" gradients (%s)",
				g->row->rank, is, rank.given_up, of, rank.came,
				mst_figure_share(rank.given_up, rank.came).text);
	return snprintf(out, len,
			"rank %u %s late: %s after its step's commit on average, in %" PRIu64
			" %s %" PRIu64 " gradients (%s)",
			g->row->rank, is, mst_figure_duration(rank.behind_ns).text, rank.missed, of,
			rank.came, mst_figure_share(rank.missed, rank.came).text);
}

static int tell_slow(const struct mst_named_straggler *g, char *out, size_t len)
{
	return snprintf(out, len,
			"rank %u %s: its gradients %s %.3g times as long as those of the fast "
			"ranks, which %s %s",
			g->row->rank, g->whole ? "was slow" : "is slow", g->whole ? "took" : "take",
			g->row->straggler_ratio, g->whole ? "took" : "take", fast_ready(g).text);
}

/* A job that has ended has no gradient under way. */
static int tell_stood(const struct mst_named_straggler *g, char *out, size_t len)
{
	return snprintf(out, len,
			"rank %u stood still: it was at one gradient for %.3g times as long as "
			"the fast ranks take, which is %s",
			g->row->rank, g->row->straggler_ratio, fast_ready(g).text);
}

static int tell(const struct mst_named_straggler *g, char *out, size_t len)
{
	if (g->kind == MST_STRAGGLER_STALLED)
		return g->whole ? tell_stood(g, out, len) : tell_stalled(g, out, len);
	return g->kind == MST_STRAGGLER_LATE ? tell_late(g, out, len) : tell_slow(g, out, len);
}

/* For how long it has been so, what that has cost, and who else. */
static void tell_more(const struct mst_named_straggler *g, char *out, size_t len)
{
	const struct mst_status_rank *row = g->row;
	int used = 0;

	if (g->whole)
		used = snprintf(out, len, "; that was so for %s of %s",
				mst_figure_duration(row->straggler_total_ns).text,
				mst_figure_duration(g->job->job.elapsed_ns).text);
	else if (g->kind != MST_STRAGGLER_STALLED)
		used = snprintf(out, len, "; that has been so for %s",
				mst_figure_duration(row->straggler_ns).text);
	if (row->waited_ns > 0 && used < (int)len)
		used += snprintf(out + used, len - (size_t)used, "; steps %s %s for it",
				 g->whole ? "waited" : "have waited",
				 mst_figure_duration(row->waited_ns).text);
	if (row->rests && !g->whole && used < (int)len)
		used += snprintf(out + used, len - (size_t)used, "; it rests");
	if (g->others > 0 && used < (int)len)
		(void)snprintf(out + used, len - (size_t)used, "; %" PRIu32 " more rank%s %s",
			       g->others, g->others > 1 ? "s" : "",
			       g->kind == MST_STRAGGLER_STALLED && !g->whole
				       ? g->others > 1 ? "stand still" : "stands still"
			       : g->others > 1 ? g->whole ? "were stragglers" : "are stragglers"
			       : g->whole      ? "was a straggler"
					       : "is a straggler");
}

void mst_straggler_reason(const struct mst_named_straggler *g, char *out, size_t len)
{
	if (g->kind == MST_STRAGGLER_NONE) {
		nobody_reason(g, out, len);
		return;
	}
	int used = tell(g, out, len);
	if (used >= 0 && used < (int)len)
		tell_more(g, out + used, len - (size_t)used);
}
