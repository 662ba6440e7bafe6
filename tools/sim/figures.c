/* SPDX-License-Identifier: MIT */
#include "tools/sim/figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/assert.h"

/* Versions whose arrivals are still counted, at the least. With many workers that all commit, the
 * gradients that arrive are as many versions old as there are workers. */
#define ROOM_MIN 1024u
#define ROOM_PER_WORKER 4u

static uint32_t room_for(uint32_t workers)
{
	uint32_t room = ROOM_MIN;

	while (room < ROOM_PER_WORKER * workers)
		room *= 2;
	return room;
}

uint64_t mst_sim_figures_bytes(uint32_t workers)
{
	return workers * (sizeof(struct mst_sim_rank) + sizeof(struct mst_sim_arrival)) +
	       room_for(workers) * sizeof(struct mst_sim_opened);
}

int mst_sim_figures_init(struct mst_sim_figures *f, uint32_t workers)
{
	*f = (struct mst_sim_figures){ .workers = workers, .room = room_for(workers) };
	f->rank = calloc(workers, sizeof(*f->rank));
	f->arrival = calloc(workers, sizeof(*f->arrival));
	f->opened = calloc(f->room, sizeof(*f->opened));
	mst_hist_init(&f->step);
	mst_hist_init(&f->staleness);
	return f->rank != NULL && f->arrival != NULL && f->opened != NULL ? 0 : -ENOMEM;
}

void mst_sim_figures_fini(struct mst_sim_figures *f)
{
	free(f->rank);
	free(f->arrival);
	free(f->opened);
	mst_sim_curve_fini(&f->curve);
	*f = (struct mst_sim_figures){ .workers = 0 };
}

/* ---- work ---- */

void mst_sim_figures_pushed(struct mst_sim_figures *f, uint32_t rank, double samples,
			    uint64_t took_ns)
{
	f->rank[rank].pushed = true;
	f->rank[rank].pushed_samples = samples;
	f->rank[rank].pushed_ns = took_ns;
}

void mst_sim_figures_given_up(struct mst_sim_figures *f, uint32_t rank, uint64_t spent_ns)
{
	f->rank[rank].given_up++;
	f->rank[rank].wasted_ns += spent_ns;
}

void mst_sim_figures_cut_off(struct mst_sim_figures *f, uint32_t rank, uint64_t spent_ns)
{
	f->rank[rank].lost++;
	f->rank[rank].wasted_ns += spent_ns;
}

/* ---- decisions ---- */

static void open_step(struct mst_sim_figures *f, uint64_t version, uint64_t now_ns)
{
	f->opened[version & (f->room - 1)] = (struct mst_sim_opened){ version, now_ns, 0 };
	f->last_commit_ns = now_ns;
	f->commits = version;
}

static void note_arrival(struct mst_sim_figures *f, uint64_t tag, uint64_t now_ns)
{
	struct mst_sim_opened *o = &f->opened[tag & (f->room - 1)];

	if (o->version != tag || o->arrivals == f->workers)
		return;
	struct mst_sim_arrival *a = &f->arrival[o->arrivals++];
	a->count++;
	a->sum_ns += (double)(now_ns - o->at_ns);
}

/* What was pushed and is not judged by the end of the session never will be. */
static void note_eviction(struct mst_sim_figures *f, uint32_t rank)
{
	if (f->rank[rank].pushed)
		mst_sim_figures_cut_off(f, rank, f->rank[rank].pushed_ns);
	f->rank[rank].pushed = false;
}

static void note_verdict(struct mst_sim_figures *f, const struct mst_decision *d, uint64_t now_ns)
{
	struct mst_sim_rank *r = &f->rank[d->who.rank];
	enum muster_verdict verdict = d->verdict.verdict;

	r->pushed = false;
	if (verdict == MUSTER_COUNTED) {
		r->counted++;
		r->samples += r->pushed_samples;
		r->useful_ns += r->pushed_ns;
		mst_hist_add(&f->staleness, d->verdict.counted_in - 1 - d->verdict.tag);
	} else {
		r->wasted_ns += r->pushed_ns;
		r->late += verdict == MUSTER_LATE;
		r->stale += verdict == MUSTER_STALE;
		r->lost += verdict == MUSTER_CANCELLED;
	}
	if (verdict != MUSTER_CANCELLED)
		note_arrival(f, d->verdict.tag, now_ns);
}

void mst_sim_figures_decided(struct mst_sim_figures *f, const struct mst_decision *d,
			     uint64_t now_ns)
{
	switch (d->kind) {
	case MST_DO_START:
		f->started = true;
		f->started_ns = now_ns;
		open_step(f, 0, now_ns);
		break;
	case MST_DO_COMMIT:
		mst_hist_add(&f->step, now_ns - f->last_commit_ns);
		open_step(f, d->commit.version, now_ns);
		break;
	case MST_DO_VERDICT:
		note_verdict(f, d, now_ns);
		break;
	case MST_DO_EVICT:
		note_eviction(f, d->who.rank);
		break;
	case MST_DO_FINISH:
		f->ended = true;
		f->why = d->finish.why;
		break;
	default:
		break;
	}
}

/* ---- what it comes to ---- */

struct mst_sim_rank mst_sim_figures_total(const struct mst_sim_figures *f)
{
	struct mst_sim_rank total = { 0 };

	for (uint32_t i = 0; i < f->workers; i++) {
		const struct mst_sim_rank *r = &f->rank[i];
		total.counted += r->counted;
		total.samples += r->samples;
		total.late += r->late;
		total.stale += r->stale;
		total.given_up += r->given_up;
		total.lost += r->lost;
		total.useful_ns += r->useful_ns;
		total.wasted_ns += r->wasted_ns;
	}
	return total;
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

double mst_sim_wasted_gradients(const struct mst_sim_rank *r)
{
	uint64_t wasted = r->late + r->stale + r->given_up + r->lost;

	return share((double)wasted, (double)(wasted + r->counted));
}

double mst_sim_wasted_time(const struct mst_sim_rank *r)
{
	return share((double)r->wasted_ns, (double)r->wasted_ns + (double)r->useful_ns);
}

uint64_t mst_sim_figures_elapsed_ns(const struct mst_sim_figures *f)
{
	return f->last_commit_ns - f->started_ns;
}

/* Simulated time for each sample that is in a version. */
static double cost(const struct mst_sim_figures *f)
{
	return (double)mst_sim_figures_elapsed_ns(f) / mst_sim_figures_total(f).samples;
}

double mst_sim_saved(const struct mst_sim_figures *f, const struct mst_sim_figures *base)
{
	double of_base = cost(base), own = cost(f);

	return of_base > 0 && isfinite(own) ? 1 - own / of_base : (double)NAN;
}
