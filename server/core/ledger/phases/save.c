/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/save.h"

#include "common/base/assert.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/open_step.h"

static bool in_flight(const struct mst_ledger *l)
{
	return l->save.version != MST_VERSION_NONE;
}

/* Is the newest version saved, or being saved? The version that a job starts with was never
 * made, or is a checkpoint already. */
static bool has_newest(const struct mst_ledger *l)
{
	return l->store.newest == MST_VERSION_NONE || l->store.newest == l->save.last;
}

static void finish(struct mst_ledger *l)
{
	struct mst_ledger_save *s = &l->save;
	struct mst_decision *d = mst_decide(l, MST_DO_SAVED, NULL);

	d->saved.version = s->version;
	d->saved.failed = s->failed;
	d->saved.again = s->final_due;
	mst_store_saved(&l->store, s->buffer);
	s->version = MST_VERSION_NONE;
}

static void save(struct mst_ledger *l)
{
	struct mst_ledger_save *s = &l->save;

	if (!mst_store_find(&l->store, l->store.newest, &s->buffer))
		return;
	mst_store_save(&l->store, s->buffer);
	s->version = s->last = l->store.newest;
	s->last_ns = l->now_ns;
	s->pause_until = l->now_ns + l->cfg.saves.pause_ns;
	s->samples = l->samples_total;
	s->reported = 0;
	s->failed = s->final_due = false;
	struct mst_decision *d = mst_decide(l, MST_DO_SAVE, NULL);
	d->commit.version = s->version;
	d->commit.buffer = s->buffer;
}

void mst_save_started(struct mst_ledger *l)
{
	l->save.last = l->store.newest;
	l->save.last_ns = l->now_ns;
}

void mst_save_committed(struct mst_ledger *l)
{
	const struct mst_saves *when = &l->cfg.saves;
	bool commits = when->commits > 0 && l->store.newest - l->save.last >= when->commits;
	bool time = when->every_ns > 0 && l->now_ns - l->save.last_ns >= when->every_ns;

	if (when->wanted && !in_flight(l) && l->now_ns >= l->save.pause_until && (commits || time))
		save(l);
}

/* Saves the newest version, if it is not saved yet. */
static void save_newest(struct mst_ledger *l)
{
	if (!l->cfg.saves.wanted || has_newest(l))
		return;
	if (in_flight(l))
		l->save.final_due = true;
	else
		save(l);
}

/* The newest version of a job that has failed is saved too, except in three cases: this version is
 * why the job has failed, a part of the version is lost, or the version will never be made. */
void mst_save_at_end(struct mst_ledger *l, bool made)
{
	bool lost = l->end_why == MST_FINISH_SPOILT || l->end_why == MST_FINISH_SERVER;

	if (!lost && (made || !mst_finish_failed(l->end_why)))
		save_newest(l);
}

/* Shards that are gone are not waited for. The other shards still read the buffer until they have
 * reported. */
static void finish_if_reported(struct mst_ledger *l)
{
	struct mst_ledger_save *s = &l->save;
	uint64_t all = UINT64_MAX >> (64 - l->cfg.shards);

	if ((s->reported | s->gone) != all)
		return;
	s->failed |= s->reported != all;
	finish(l);
	mst_ask_try_all(l);
	if (s->final_due)
		save(l);
}

void mst_save_server_lost(struct mst_ledger *l, uint32_t shard)
{
	MST_ASSERT(shard < l->cfg.shards);
	l->save.gone |= UINT64_C(1) << shard;
	if (in_flight(l))
		finish_if_reported(l);
}

/* A report that cannot be now is of a server that breaks the protocol, and changes nothing. */
void mst_save_reported(struct mst_ledger *l, const struct mst_ledger_event *ev)
{
	struct mst_ledger_save *s = &l->save;

	MST_ASSERT(ev->saved.shard < l->cfg.shards);
	if (!in_flight(l) || ev->saved.version != s->version)
		return;
	s->reported |= UINT64_C(1) << ev->saved.shard;
	s->failed |= ev->saved.failed;
	finish_if_reported(l);
}

/* A clock says how far a rank is ahead, but only under a rule with a bound, and only of ranks that
 * take part. The clock of any other rank is that of the slowest one, as when a rank joins. */
static uint64_t clock_of(const struct mst_ledger *l, const struct mst_member *m)
{
	uint64_t least = mst_step_clock_min(l);
	bool counts = l->rule.release == MST_RELEASE_BOUND && m->rostered && m->clock > least;

	return counts ? m->clock : least;
}

/* Where servers own, workers that come back are told their verdicts from it. Nobody asks for those
 * of a session before the last one any more. */
static bool goes_on_from_checkpoint(const struct mst_ledger *l)
{
	return l->cfg.generation_id != 0 && l->cfg.owner == MUSTER_SERVERS_OWN;
}

static void keep_verdicts(const struct mst_ledger *l, uint32_t rank, struct mst_kept_rank *out)
{
	struct muster_push_verdict list[MUSTER_TICKETS_MAX];
	const struct mst_verdicts *of = &l->verdicts[rank];
	bool asked = goes_on_from_checkpoint(l) && of->incarnation == out->incarnation;
	uint32_t count = asked ? mst_verdicts_list(of, list) : 0;

	out->verdicts = 0;
	for (uint32_t i = 0; i < count && out->verdicts < MST_KEPT_VERDICTS; i++) {
		if (list[i].counted_in > l->save.version)
			return;
		out->verdict[out->verdicts++] = (struct mst_kept_verdict){ list[i].ticket,
									   list[i].counted_in,
									   list[i].verdict };
	}
}

void mst_save_keep(const struct mst_ledger *l, struct mst_kept *out)
{
	const struct mst_record *r = &l->record[l->save.buffer];

	MST_ASSERT(in_flight(l) && r->version == l->save.version);
	out->version = l->save.version;
	out->samples = l->save.samples;
	out->ranks = l->cfg.workers;
	out->figures = mst_controller_keep(&l->controller, out->figure);
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_kept_rank *kept = &out->rank[rank];
		kept->incarnation = l->member[rank].incarnation;
		kept->clock = clock_of(l, &l->member[rank]);
		kept->contributions = 0;
		keep_verdicts(l, rank, kept);
	}
	for (uint32_t i = 0; i < r->share_count && r->share[i].rank < out->ranks; i++)
		out->rank[r->share[i].rank].contributions = r->share[i].count;
}

/* As of a session that has ended. Only a worker that comes back has these tickets. */
static void resume_verdicts(struct mst_ledger *l, uint32_t rank, const struct mst_kept_rank *kept)
{
	struct mst_verdicts *to = &l->verdicts[rank];

	if (kept->verdicts == 0 || !goes_on_from_checkpoint(l))
		return;
	mst_verdicts_resume(to, kept->incarnation, kept->verdict[0].ticket - 1);
	for (uint32_t i = 0; i < kept->verdicts; i++)
		mst_verdicts_add(to, kept->verdict[i].ticket, kept->verdict[i].verdict,
				 kept->verdict[i].counted_in);
}

/* Clocks compare ranks with each other: with another number of workers all begin anew. */
void mst_save_resume(struct mst_ledger *l)
{
	const struct mst_kept *kept = l->cfg.kept;

	if (kept == NULL)
		return;
	l->resumes = true;
	if (l->cfg.owner == MUSTER_SERVERS_OWN) {
		l->saved = (struct mst_claimed){ .number = kept->generation,
						 .version = kept->version,
						 .made = kept->made,
						 .samples = kept->samples };
		l->generation.next = kept->generation + 1;
	}
	l->samples_total = kept->samples;
	l->reduction.applied = kept->version;
	l->has_start_state = l->cfg.owner == MUSTER_SERVERS_OWN;
	l->lacks_tensors = l->has_start_state && l->cfg.tensors;
	for (uint32_t rank = 0; rank < l->cfg.workers && rank < kept->ranks; rank++) {
		resume_verdicts(l, rank, &kept->rank[rank]);
		l->member[rank].incarnation = kept->rank[rank].incarnation;
		l->member[rank].clock = kept->ranks == l->cfg.workers ? kept->rank[rank].clock : 0;
		mst_changed(l, &l->member[rank]);
	}
}
