/* SPDX-License-Identifier: MIT */
#include "server/tally.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "common/base/hist.h"

/* Commits remembered for the lateness of what comes after them. */
#define COMMITS 1024u

struct commit_time {
	uint64_t version;
	uint64_t at_ns;
	uint64_t late_ns; /* the latest gradient of its step came so long after it */
};

struct rank_tally {
	uint64_t counted, late, stale, cancelled, refused;
	uint64_t ready_count, ready_sum_ns, ready_max_ns;
	uint64_t behind_count, behind_sum_ns;
	enum mst_rank_state state;
	uint32_t incarnation;
};

struct mst_tally {
	uint32_t workers;
	struct rank_tally *rank;
	struct commit_time *commit; /* version % COMMITS */
	struct mst_hist step;
	uint64_t version, started_ns, ended_ns, last_commit_ns;
	uint64_t saved_ns;
	double samples, loss;
};

int mst_tally_new(uint32_t workers, struct mst_tally **out)
{
	struct mst_tally *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->workers = workers;
	t->loss = (double)NAN;
	t->rank = calloc(workers, sizeof(*t->rank));
	t->commit = calloc(COMMITS, sizeof(*t->commit));
	mst_hist_init(&t->step);
	if (t->rank == NULL || t->commit == NULL) {
		mst_tally_free(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < COMMITS; i++)
		t->commit[i].version = MST_VERSION_NONE;
	*out = t;
	return 0;
}

void mst_tally_free(struct mst_tally *t)
{
	if (t == NULL)
		return;
	free(t->rank);
	free(t->commit);
	free(t);
}

static struct commit_time *commit_of(struct mst_tally *t, uint64_t version)
{
	struct commit_time *c = &t->commit[version % COMMITS];

	return version <= t->version && c->version == version ? c : NULL;
}

/* How long after the version it was computed on it was ready. */
static void note_ready(struct mst_tally *t, struct rank_tally *r, uint64_t tag, uint64_t now_ns)
{
	const struct commit_time *from = commit_of(t, tag);
	uint64_t ready = from != NULL ? now_ns - from->at_ns : 0;

	if (from == NULL)
		return;
	r->ready_count++;
	r->ready_sum_ns += ready;
	if (ready > r->ready_max_ns)
		r->ready_max_ns = ready;
}

/* How long after the commit of its step it came; the longest of a step is what waiting for it would
 * have cost everybody. */
static void note_behind(struct mst_tally *t, struct rank_tally *r, uint64_t tag, uint64_t now_ns)
{
	struct commit_time *step = tag < t->version ? commit_of(t, tag + 1) : NULL;
	uint64_t behind = step != NULL ? now_ns - step->at_ns : 0;

	if (step == NULL)
		return;
	r->behind_count++;
	r->behind_sum_ns += behind;
	if (behind > step->late_ns) {
		t->saved_ns += behind - step->late_ns;
		step->late_ns = behind;
	}
}

static void note_version(struct mst_tally *t, uint64_t version, uint64_t now_ns)
{
	t->version = version;
	t->commit[version % COMMITS] = (struct commit_time){ .version = version, .at_ns = now_ns };
}

/* From commit to commit; the first commit has none before it. */
static void note_commit(struct mst_tally *t, const struct mst_record *record, uint64_t now_ns)
{
	if (record->version > 1)
		mst_hist_add(&t->step, now_ns - t->last_commit_ns);
	t->last_commit_ns = now_ns;
	t->samples += record->samples;
	if (isfinite(record->loss))
		t->loss = record->loss;
	note_version(t, record->version, now_ns);
}

static void note_verdict(struct rank_tally *r, enum muster_verdict verdict)
{
	switch (verdict) {
	case MUSTER_COUNTED:
		r->counted++;
		break;
	case MUSTER_LATE:
		r->late++;
		break;
	case MUSTER_STALE:
		r->stale++;
		break;
	case MUSTER_CANCELLED:
		r->cancelled++;
		break;
	case MUSTER_REFUSED:
		r->refused++;
		break;
	case MUSTER_NONE:
		break;
	}
}

void mst_tally_decided(struct mst_tally *t, const struct mst_decision *d,
		       const struct mst_record *record, uint64_t now_ns)
{
	struct rank_tally *r = &t->rank[d->who.rank];

	switch (d->kind) {
	case MST_DO_ADMIT:
		r->state = MST_RANK_JOINED;
		r->incarnation = d->who.incarnation;
		break;
	case MST_DO_START:
		t->started_ns = t->last_commit_ns = now_ns;
		note_version(t, 0, now_ns);
		break;
	case MST_DO_RELEASE:
		r->state = MST_RANK_LIVE;
		break;
	case MST_DO_COMMIT:
		note_commit(t, record, now_ns);
		break;
	case MST_DO_VERDICT:
		note_verdict(r, d->verdict.verdict);
		if (d->verdict.verdict <= MUSTER_STALE)
			note_ready(t, r, d->verdict.tag, now_ns);
		if (d->verdict.verdict == MUSTER_LATE || d->verdict.verdict == MUSTER_STALE)
			note_behind(t, r, d->verdict.tag, now_ns);
		break;
	case MST_DO_EVICT:
		r->state = d->evict == MST_EVICT_LEFT ? MST_RANK_LEFT : MST_RANK_LOST;
		break;
	case MST_DO_FINISH:
		t->ended_ns = now_ns;
		break;
	default:
		break;
	}
}

void mst_tally_job(const struct mst_tally *t, uint64_t now_ns, struct mst_status *out)
{
	uint64_t until = t->ended_ns != 0 ? t->ended_ns : now_ns;

	out->version = t->version;
	out->samples = t->samples;
	out->loss = t->loss;
	out->elapsed_ns = t->started_ns != 0 ? until - t->started_ns : 0;
	out->step_mean_ns = (uint64_t)mst_hist_mean(&t->step);
	out->step_p50_ns = mst_hist_quantile(&t->step, 0.5);
	out->step_p99_ns = mst_hist_quantile(&t->step, 0.99);
	out->step_max_ns = t->step.count > 0 ? t->step.max : 0;
	out->saved_ns = t->saved_ns;
}

void mst_tally_rank(const struct mst_tally *t, uint32_t rank, uint64_t now_ns,
		    struct mst_status_rank *out)
{
	MST_ASSERT(rank < t->workers);
	const struct rank_tally *r = &t->rank[rank];

	out->rank = rank;
	out->incarnation = r->incarnation;
	out->state = r->state;
	out->counted = r->counted;
	out->late = r->late;
	out->stale = r->stale;
	out->cancelled = r->cancelled;
	out->refused = r->refused;
	out->ready_mean_ns = r->ready_count > 0 ? r->ready_sum_ns / r->ready_count : 0;
	out->ready_max_ns = r->ready_max_ns;
	out->behind_mean_ns = r->behind_count > 0 ? r->behind_sum_ns / r->behind_count : 0;
	out->waiting_ns = out->awaited && t->last_commit_ns != 0 && t->ended_ns == 0
				  ? now_ns - t->last_commit_ns
				  : 0;
}
