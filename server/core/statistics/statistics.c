/* SPDX-License-Identifier: MIT */
#include "server/core/statistics/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/hist.h"
#include "server/core/statistics/periods.h"
#include "server/core/statistics/saved_time.h"

/* How many commits are remembered, for gradients that come after them. */
#define COMMITS 1024u
/* In place of a time: there is none. */
#define NONE UINT64_MAX

struct commit_time {
	uint64_t version;
	uint64_t at_ns;
	struct mst_saved_step saved;
};

/* A gradient that came, or that the worker gave up. */
struct recent {
	uint64_t ready_ns;  /* NONE: not known */
	uint64_t behind_ns; /* NONE: the gradient was in time */
	bool missed, given_up;
};

struct sum {
	uint64_t count, sum_ns, max_ns;
};

struct rank_statistics {
	uint64_t counted, late, stale, cancelled, refused, outliers, damaged, given_up;
	double samples_counted, samples_pushed;
	double norm, norm_max; /* of its contributions: the last, and the largest finite; or NaN */
	struct sum ready, behind;
	struct mst_hist staleness; /* zeroed memory is an empty histogram, except for its min */
	enum mst_rank_state state;
	uint32_t incarnation;
	uint64_t session_given_up; /* as the present session has reported it */
	uint64_t given, given_ns;  /* the last version that the rank was given; MST_VERSION_NONE */
	uint64_t heard_ns, handed_in_ns; /* NONE: never */
	uint64_t last_counted;           /* the newest version with a contribution of its */
	uint64_t gone_at;                /* MST_NOT_KNOWN, or as in figures.h */
	uint64_t recent_count;
	struct recent
		/* recent_count % MST_STATISTICS_RECENT is the next to write */
		recent[MST_STATISTICS_RECENT];
};

struct mst_statistics {
	uint32_t workers;
	struct rank_statistics *rank;
	struct commit_time *commit; /* version % COMMITS */
	struct mst_hist step;
	uint64_t recent_step_ns
		/* step.count % MST_STATISTICS_RECENT is the next to write */
		[MST_STATISTICS_RECENT];
	uint64_t first; /* the version that the job began with */
	uint64_t version, started_ns, ended_ns, last_commit_ns;
	struct mst_saved_time saved;
	double samples, loss;
	uint64_t refused; /* gradients in a row, the last ones */
	struct mst_periods periods;
};

/* Forgets what was known of the last session, when another one begins. */
static void session_init(struct rank_statistics *r)
{
	r->session_given_up = 0;
	r->given = MST_VERSION_NONE;
	r->heard_ns = r->handed_in_ns = NONE;
	r->gone_at = MST_NOT_KNOWN;
}

uint64_t mst_statistics_bytes(uint32_t workers)
{
	return sizeof(struct mst_statistics) + workers * (uint64_t)sizeof(struct rank_statistics) +
	       mst_saved_time_bytes(workers) + COMMITS * sizeof(struct commit_time);
}

static int alloc_tables(struct mst_statistics *t)
{
	int rc = mst_saved_time_init(&t->saved, t->workers);

	t->rank = calloc(t->workers, sizeof(*t->rank));
	t->commit = calloc(COMMITS, sizeof(*t->commit));
	return t->rank == NULL || t->commit == NULL ? -ENOMEM : rc;
}

static void rank_init(struct rank_statistics *r)
{
	r->norm = r->norm_max = (double)NAN;
	session_init(r);
}

int mst_statistics_new(uint32_t workers, struct mst_statistics **out)
{
	struct mst_statistics *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->workers = workers;
	t->loss = (double)NAN;
	mst_hist_init(&t->step);
	if (alloc_tables(t) != 0) {
		mst_statistics_free(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < COMMITS; i++)
		t->commit[i].version = MST_VERSION_NONE;
	for (uint32_t i = 0; i < workers; i++)
		rank_init(&t->rank[i]);
	*out = t;
	return 0;
}

void mst_statistics_free(struct mst_statistics *t)
{
	if (t == NULL)
		return;
	mst_saved_time_fini(&t->saved);
	free(t->rank);
	free(t->commit);
	free(t);
}

static void add(struct sum *s, uint64_t ns)
{
	s->count++;
	s->sum_ns += ns;
	if (ns > s->max_ns)
		s->max_ns = ns;
}

static uint64_t mean(const struct sum *s)
{
	return s->count > 0 ? s->sum_ns / s->count : 0;
}

static void remember(struct rank_statistics *r, struct recent one)
{
	r->recent[r->recent_count++ % MST_STATISTICS_RECENT] = one;
}

/* ---- steps ---- */

static struct commit_time *commit_of(struct mst_statistics *t, uint64_t version)
{
	struct commit_time *c = &t->commit[version % COMMITS];

	return version <= t->version && c->version == version ? c : NULL;
}

static void note_version(struct mst_statistics *t, uint64_t version, uint64_t now_ns)
{
	t->commit[version % COMMITS] = (struct commit_time){
		.version = version,
		.at_ns = now_ns,
	};
	t->version = version;
	t->last_commit_ns = now_ns;
}

/* A step lasts from commit to commit; the first commit has none before it, so it counts as no
 * step. */
static void note_commit(struct mst_statistics *t, const struct mst_statistics_decision *d,
			uint64_t now_ns)
{
	const struct mst_record *record = d->record;
	uint64_t step_ns = now_ns - t->last_commit_ns;

	MST_ASSERT(record != NULL && record->version == t->version + 1);
	mst_periods_version(&t->periods);
	if (record->version > t->first + 1) {
		t->recent_step_ns[t->step.count % MST_STATISTICS_RECENT] = step_ns;
		mst_hist_add(&t->step, step_ns);
		mst_periods_step(&t->periods, step_ns);
	}
	t->samples = mst_samples_add(t->samples, record->samples);
	if (isfinite(record->loss))
		t->loss = record->loss;
	note_version(t, record->version, now_ns);
	mst_saved_time_commit(&t->saved, d->rule, step_ns, &commit_of(t, record->version)->saved);
}

/* ---- gradients ---- */

/* How long the rank took for a gradient on @tag that has come now. NONE: that version was not the
 * last one that the rank was given. */
static uint64_t took(const struct rank_statistics *r, uint64_t tag, uint64_t now_ns)
{
	uint64_t since_ns = r->given_ns;

	if (r->given != tag)
		return NONE;
	if (r->handed_in_ns != NONE && r->handed_in_ns > since_ns)
		since_ns = r->handed_in_ns;
	return now_ns - since_ns;
}

static void note_late(struct mst_statistics *t, struct rank_statistics *r, uint64_t tag,
		      struct recent *one, uint64_t now_ns)
{
	struct commit_time *step = tag < t->version ? commit_of(t, tag + 1) : NULL;

	one->missed = true;
	if (step == NULL)
		return;
	one->behind_ns = now_ns - step->at_ns;
	add(&r->behind, one->behind_ns);
}

/* Notes a gradient that came, in time or not. */
static void note_gradient(struct mst_statistics *t, struct rank_statistics *r,
			  const struct mst_decision *d, uint64_t now_ns)
{
	uint64_t tag = d->verdict.tag;
	struct recent one = { .ready_ns = took(r, tag, now_ns), .behind_ns = NONE };
	struct commit_time *step = tag < t->version ? commit_of(t, tag + 1) : NULL;

	if (d->verdict.verdict == MUSTER_COUNTED)
		mst_hist_add(&r->staleness, d->verdict.counted_in - 1 - tag);
	else
		note_late(t, r, tag, &one, now_ns);
	if (one.ready_ns != NONE) {
		add(&r->ready, one.ready_ns);
		mst_saved_time_take(&t->saved, d->who.rank, one.ready_ns);
		if (step != NULL)
			mst_saved_time_note(&t->saved, &step->saved, one.ready_ns);
	}
	r->handed_in_ns = now_ns;
	remember(r, one);
}

static void note_norm(struct rank_statistics *r, double norm)
{
	if (isnan(norm))
		return;
	r->norm = norm;
	if (isfinite(norm) && !(norm <= r->norm_max))
		r->norm_max = norm;
}

static void note_refusal(struct mst_statistics *t, enum muster_verdict verdict)
{
	bool refused = verdict == MUSTER_REFUSED || verdict == MUSTER_OUTLIER ||
		       verdict == MUSTER_DAMAGED;

	if (refused)
		t->refused++;
	else if (verdict == MUSTER_COUNTED)
		t->refused = 0;
}

static void note_verdict(struct mst_statistics *t, struct rank_statistics *r,
			 const struct mst_decision *d, uint64_t now_ns)
{
	mst_periods_verdict(&t->periods, d->verdict.verdict, t->version);
	r->samples_pushed += d->verdict.samples;
	if (d->verdict.verdict == MUSTER_COUNTED)
		r->samples_counted += d->verdict.samples;
	note_norm(r, d->verdict.norm);
	note_refusal(t, d->verdict.verdict);
	switch (d->verdict.verdict) {
	case MUSTER_COUNTED:
		r->counted++;
		r->last_counted = d->verdict.counted_in;
		note_gradient(t, r, d, now_ns);
		break;
	case MUSTER_LATE:
		r->late++;
		note_gradient(t, r, d, now_ns);
		break;
	case MUSTER_STALE:
		r->stale++;
		note_gradient(t, r, d, now_ns);
		break;
	case MUSTER_CANCELLED:
		r->cancelled++;
		break;
	case MUSTER_REFUSED:
		r->refused++;
		break;
	case MUSTER_OUTLIER:
		r->outliers++;
		break;
	case MUSTER_DAMAGED:
		r->damaged++;
		break;
	case MUSTER_NONE:
		break;
	}
}

/* ---- what goes by ---- */

/* The session reports how many gradients it has given up so far. */
static void note_given_up(struct rank_statistics *r, uint64_t so_far)
{
	uint64_t more = so_far > r->session_given_up ? so_far - r->session_given_up : 0;

	r->session_given_up += more;
	r->given_up += more;
	for (uint64_t i = 0; i < more && i < MST_STATISTICS_RECENT; i++)
		remember(r, (struct recent){ .ready_ns = NONE,
					     .behind_ns = NONE,
					     .missed = true,
					     .given_up = true });
}

void mst_statistics_event(struct mst_statistics *t, const struct mst_ledger_event *ev,
			  uint64_t now_ns)
{
	bool of_worker = ev->kind == MST_EV_START || ev->kind == MST_EV_FULL ||
			 ev->kind == MST_EV_ABANDONED || ev->kind == MST_EV_ASK ||
			 ev->kind == MST_EV_HEARTBEAT;

	if (!of_worker || ev->who.rank >= t->workers ||
	    ev->who.incarnation != t->rank[ev->who.rank].incarnation)
		return;
	struct rank_statistics *r = &t->rank[ev->who.rank];
	r->heard_ns = now_ns;
	/* A gradient that is given up because the job has ended has missed no step. */
	if (ev->kind == MST_EV_ASK && t->ended_ns == 0)
		note_given_up(r, ev->given_up);
}

static void note_admit(struct rank_statistics *r, uint32_t incarnation, uint64_t now_ns)
{
	session_init(r);
	r->state = MST_RANK_JOINED;
	r->incarnation = incarnation;
	r->heard_ns = now_ns;
}

static void note_release(struct mst_statistics *t, uint32_t rank, uint64_t version, uint64_t now_ns)
{
	struct rank_statistics *r = &t->rank[rank];

	MST_ASSERT(version <= t->version);
	mst_saved_time_give(&t->saved, rank, version == t->version);
	r->state = MST_RANK_LIVE;
	r->given = version;
	r->given_ns = now_ns;
}

static enum mst_rank_state state_after(enum mst_evict_why why)
{
	switch (why) {
	case MST_EVICT_LEFT:
		return MST_RANK_LEFT;
	case MST_EVICT_ASKED:
		return MST_RANK_EVICTED;
	default:
		return MST_RANK_LOST;
	}
}

/* A worker may leave when its last contribution has been counted, before that version is made. */
static void note_end(struct mst_statistics *t, const struct mst_decision *d)
{
	struct rank_statistics *r = &t->rank[d->who.rank];

	mst_saved_time_end(&t->saved, d->who.rank);
	r->state = state_after(d->evict);
	if (t->ended_ns == 0)
		r->gone_at = r->last_counted > t->version ? r->last_counted : t->version;
}

void mst_statistics_decided(struct mst_statistics *t, const struct mst_statistics_decision *of,
			    uint64_t now_ns)
{
	const struct mst_decision *d = of->decision;
	struct rank_statistics *r = &t->rank[d->who.rank];

	MST_ASSERT(d->who.rank < t->workers);
	switch (d->kind) {
	case MST_DO_ADMIT:
		mst_saved_time_begin(&t->saved, d->who.rank);
		note_admit(r, d->who.incarnation, now_ns);
		break;
	case MST_DO_START:
		t->started_ns = t->last_commit_ns = now_ns;
		t->first = d->commit.version;
		note_version(t, t->first, now_ns);
		mst_periods_begin(&t->periods, t->first + 1, of->rule);
		break;
	case MST_DO_POLICY:
		if (d->policy.whole && t->periods.count > 0 && t->ended_ns == 0)
			mst_periods_begin(&t->periods, d->policy.version, of->rule);
		break;
	case MST_DO_RELEASE:
		note_release(t, d->who.rank, d->answer.version, now_ns);
		break;
	case MST_DO_COMMIT:
		note_commit(t, of, now_ns);
		break;
	case MST_DO_VERDICT:
		note_verdict(t, r, d, now_ns);
		break;
	case MST_DO_EVICT:
		note_end(t, d);
		break;
	case MST_DO_FINISH:
		t->ended_ns = now_ns;
		break;
	default:
		break;
	}
}

/* ---- figures ---- */

static uint64_t recent_step_ns(const struct mst_statistics *t)
{
	uint64_t count = t->step.count < MST_STATISTICS_RECENT ? t->step.count
							       : MST_STATISTICS_RECENT;
	uint64_t sum_ns = 0;

	for (uint64_t i = 0; i < count; i++)
		sum_ns += t->recent_step_ns[i];
	return count > 0 ? sum_ns / count : 0;
}

uint64_t mst_statistics_dropped(const struct mst_statistics *t)
{
	return mst_periods_dropped(&t->periods, t->version);
}

uint64_t mst_statistics_refused(const struct mst_statistics *t)
{
	return t->refused;
}

void mst_statistics_go_on(struct mst_statistics *t, double samples)
{
	t->samples = samples;
}

void mst_statistics_job(const struct mst_statistics *t, uint64_t now_ns, struct mst_status *out)
{
	uint64_t until = t->ended_ns != 0 ? t->ended_ns : now_ns;

	out->version = t->version;
	out->first_version = t->first;
	out->samples = t->samples;
	out->loss = t->loss;
	out->elapsed_ns = t->started_ns != 0 ? until - t->started_ns : 0;
	out->step_mean_ns = (uint64_t)mst_hist_mean(&t->step);
	out->step_p50_ns = mst_hist_quantile(&t->step, 0.5);
	out->step_p99_ns = mst_hist_quantile(&t->step, 0.99);
	out->step_max_ns = t->step.count > 0 ? t->step.max : 0;
	out->recent_step_ns = recent_step_ns(t);
	out->saved_ns = t->saved.defined ? t->saved.saved_ns : MST_NOT_KNOWN;
	mst_periods_fill(&t->periods, out);
}

static void fill_recent(const struct rank_statistics *r, struct mst_status_rank *out)
{
	uint64_t count = r->recent_count < MST_STATISTICS_RECENT ? r->recent_count
								 : MST_STATISTICS_RECENT;
	struct sum ready = { 0 }, behind = { 0 };

	out->recent_came = count;
	out->recent_missed = out->recent_given_up = 0;
	for (uint64_t i = 0; i < count; i++) {
		const struct recent *one = &r->recent[i];
		out->recent_missed += one->missed;
		out->recent_given_up += one->given_up;
		if (one->ready_ns != NONE)
			add(&ready, one->ready_ns);
		if (one->behind_ns != NONE)
			add(&behind, one->behind_ns);
	}
	out->recent_ready_ns = mean(&ready);
	out->recent_behind_ns = mean(&behind);
}

static uint64_t ago(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns == NONE ? MST_NEVER : now_ns - then_ns;
}

static void fill_now(const struct mst_statistics *t, const struct rank_statistics *r,
		     const struct mst_member_view *view, uint64_t now_ns,
		     struct mst_status_rank *out)
{
	bool has_version = view->started && r->given != MST_VERSION_NONE && t->ended_ns == 0;
	uint64_t since_ns = r->given_ns;

	if (r->handed_in_ns != NONE && r->handed_in_ns > since_ns)
		since_ns = r->handed_in_ns;
	out->busy_ns = has_version && !view->asks ? now_ns - since_ns : 0;
	out->behind_by = has_version && t->version > r->given ? t->version - r->given : 0;
	out->heard_ns = ago(r->heard_ns, now_ns);
	out->handed_in_ns = ago(r->handed_in_ns, now_ns);
	out->awaited = view->awaited && t->ended_ns == 0;
	out->rests = view->rests;
	out->held = view->held && t->ended_ns == 0;
	out->waiting_ns = out->awaited && t->last_commit_ns != 0 ? now_ns - t->last_commit_ns : 0;
}

void mst_statistics_rank(const struct mst_statistics *t, const struct mst_member_view *view,
			 uint64_t now_ns, struct mst_status_rank *out)
{
	MST_ASSERT(out->rank < t->workers);
	const struct rank_statistics *r = &t->rank[out->rank];

	out->incarnation = r->incarnation;
	out->state = r->state;
	out->counted = r->counted;
	out->late = r->late;
	out->stale = r->stale;
	out->cancelled = r->cancelled;
	out->refused = r->refused;
	out->outliers = r->outliers;
	out->damaged = r->damaged;
	out->samples_counted = r->samples_counted;
	out->samples_pushed = r->samples_pushed;
	out->gone_at = r->gone_at;
	out->norm = r->norm;
	out->norm_max = r->norm_max;
	out->given_up = r->given_up;
	out->ready_mean_ns = mean(&r->ready);
	out->ready_max_ns = r->ready.max_ns;
	out->behind_mean_ns = mean(&r->behind);
	out->staleness_mean = mst_hist_mean(&r->staleness);
	out->staleness_p99 = mst_hist_quantile(&r->staleness, 0.99);
	fill_recent(r, out);
	fill_now(t, r, view, now_ns, out);
}
