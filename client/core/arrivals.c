/* SPDX-License-Identifier: MIT */
/*
 * Checks what servers tell a worker, and keeps it. All of it was written by a server and is checked
 * here, once: afterwards it can be trusted. A session that is over, lost or has failed listens to
 * nothing any more.
 */
#include <errno.h>
#include <string.h>

#include "client/core/worker_state.h"
#include "common/base/assert.h"

static bool has_ended(const struct mst_worker *w)
{
	return w->phase == MST_WORKER_OVER || w->phase == MST_WORKER_FAILED;
}

static bool is_deaf(const struct mst_worker *w)
{
	return has_ended(w) || w->adrift;
}

/* @set holds the servers that have said something so far; one more has said it. True: now all
 * have. */
static bool all_have(const struct mst_worker *w, uint32_t server, uint32_t *set)
{
	*set |= 1u << server;
	return *set == (1u << w->cfg.servers) - 1;
}

static bool has_said(uint32_t set, uint32_t server)
{
	return set >> server & 1u;
}

int mst_worker_granted(struct mst_worker *w, uint32_t server, uint32_t slot, uint64_t epoch)
{
	if (is_deaf(w))
		return 0;
	if (server >= w->cfg.servers || slot >= w->cfg.slots)
		return -EPROTO;
	struct mst_worker_slot *s = &w->slot[slot];
	if (s->state != MST_GRANT_SPENT || epoch <= s->epoch || has_said(s->granted, server) ||
	    (s->granted != 0 && epoch != s->granted_epoch))
		return -EPROTO;
	s->granted_epoch = epoch;
	if (!all_have(w, server, &s->granted))
		return 0;
	s->state = MST_GRANT_FREE;
	s->epoch = epoch;
	s->granted = 0;
	if (s->passed) /* a pass has no verdict: that it has been judged, its grant tells */
		mst_tickets_passed(&w->tickets, s->ticket);
	s->passed = false;
	return 0;
}

int mst_worker_judged(struct mst_worker *w, uint32_t server, uint32_t slot,
		      const struct mst_lane_verdict *v)
{
	struct mst_ticket verdict = { .number = w->base + v->ticket, .counted_in = v->counted_in };

	/* When the job has ended, every open ticket has been cancelled here already. For a push
	 * that the server reads after that, it sends the same verdict once more. */
	if (is_deaf(w) || w->last != MST_VERSION_NONE)
		return 0;
	if (server != 0 || slot >= w->cfg.slots || w->slot[slot].ticket != verdict.number ||
	    v->verdict > MUSTER_DAMAGED)
		return -EPROTO;
	verdict.verdict = (enum muster_verdict)v->verdict;
	return mst_tickets_judge(&w->tickets, &verdict);
}

/* ---- answers ---- */

static bool fits_order(const struct mst_worker *w, uint64_t version)
{
	if (w->held.version == MST_VERSION_NONE)
		return true;
	if (w->returned && !w->cfg.in_order) /* servers that are lost may have made newer ones */
		return true;
	if (w->cfg.in_order)
		return version == w->held.version || version == w->held.version + 1;
	return version >= w->held.version;
}

static bool fits_place(const struct mst_worker *w, const struct mst_lane_answer *a)
{
	switch (a->where) {
	case MST_WHERE_KEEP:
		return a->version == w->held.version;
	case MST_WHERE_IN_PLACE:
		return a->buffer < w->cfg.buffers;
	case MST_WHERE_COPIED:
		return true;
	case MST_WHERE_NOWHERE:
		return a->version == w->cfg.first && w->cfg.in_order;
	default:
		return false;
	}
}

static int take_shares(const struct mst_worker *w, const struct mst_lane_record *record,
		       const uint8_t *from, struct muster_share *into)
{
	if (record->share_count > w->cfg.workers)
		return -EPROTO;
	for (uint32_t i = 0; i < record->share_count; i++) {
		struct mst_lane_share share;
		memcpy(&share, from + i * sizeof(share), sizeof(share));
		if (share.rank >= w->cfg.workers)
			return -EPROTO;
		into[i] = (struct muster_share){ share.rank, share.count, share.weight };
	}
	return 0;
}

/* What one server says by itself, and beside those that have answered already: the parts of a
 * result are of one version, and lie in the same place of each server's. */
static bool fits_ask(const struct mst_worker *w, const struct mst_lane_answer *a)
{
	const struct mst_lane_answer *first = &w->answer;

	if (w->ask != MST_ASK_OUT || a->number != w->ask_number)
		return false;
	if (w->answered != 0 && (a->version != first->version || a->where != first->where ||
				 (a->where == MST_WHERE_IN_PLACE && a->buffer != first->buffer)))
		return false;
	return a->version != MST_VERSION_NONE && a->newest >= a->version &&
	       fits_order(w, a->version) && fits_place(w, a);
}

/* May this worker have the pace of the record? Under a pace it steps on a copy of parameters that
 * the servers own, and ends its batches itself. A micro-batch is not contributed in two ways. */
static bool fits_pace(const struct mst_worker *w, const struct mst_lane_record *r)
{
	bool paced = r->local_steps > 0 || r->push_every > 0;

	return r->alpha >= 0 && r->alpha <= 1 && (r->alpha == 0 || r->local_steps > 0) &&
	       (r->local_steps == 0 || r->push_every == 0) &&
	       (r->push_every == 0) == (r->fetch_every == 0) &&
	       (r->flags & ~MST_RECORD_UNTIL_ASKED) == 0 &&
	       !(paced && (r->flags != 0 || w->cfg.in_order)) &&
	       !(r->by_micro != 0 && (paced || r->flags != 0));
}

static void take_rule(struct mst_held *held, const struct mst_lane_record *r)
{
	held->window = r->window;
	held->until_asked = (r->flags & MST_RECORD_UNTIL_ASKED) != 0;
	held->by_micro = r->by_micro != 0;
	held->pace = (struct mst_pace){ .local_steps = r->local_steps,
					.push_every = r->push_every,
					.fetch_every = r->fetch_every,
					.alpha = r->alpha };
}

static void take_record(struct mst_held *held, const struct mst_lane_record *r)
{
	held->weight = r->weight;
	held->samples = r->samples;
	held->workers = r->workers;
	held->lr_scale = r->lr_scale;
	held->share_count = r->share_count;
	held->taken = held->earlier = false;
	take_rule(held, r);
}

static int read_record(struct mst_worker *w, uint64_t version)
{
	struct mst_lane_record copy;

	memcpy(&copy, w->record, sizeof(copy));
	if (!mst_lane_record_trim(&copy) || copy.version != version || !fits_pace(w, &copy))
		return -EPROTO;
	struct muster_share *into = mst_sets_place(&w->sets, version, w->given);
	int rc = take_shares(w, &copy, (const uint8_t *)w->record + sizeof(copy), into);
	if (rc != 0)
		return rc;
	take_record(&w->held, &copy);
	w->held.version = version;
	w->held.share = into;
	mst_sets_keep(&w->sets, &w->held);
	return 0;
}

/* The worker keeps a version whose record these servers do not have. They may have one that tells
 * the rule of the step. */
static int read_rule(struct mst_worker *w, uint64_t version)
{
	struct mst_lane_record copy;

	memcpy(&copy, w->record, sizeof(copy));
	if (!mst_lane_record_trim(&copy) || copy.version != version)
		return 0;
	if (!fits_pace(w, &copy))
		return -EPROTO;
	take_rule(&w->held, &copy);
	if (!w->held.taken)
		mst_sets_keep(&w->sets, &w->held);
	return 0;
}

/* The job has ended, and the servers have not kept what comes after the version that is held. They
 * do not keep its bytes, either. */
static bool lacks_last(const struct mst_worker *w, const struct mst_lane_answer *a)
{
	return a->where == MST_WHERE_KEEP && a->newest > a->version && w->cfg.in_order &&
	       w->last != MST_VERSION_NONE;
}

/* What a worker that has come back knew of later versions is void: so is, where servers own, that
 * it has had a version of this number. */
static void begin_anew(struct mst_worker *w, const struct mst_lane_answer *a)
{
	w->held.newest = a->newest;
	if (w->cfg.in_order || a->where == MST_WHERE_KEEP)
		return;
	w->afresh = true;
	(void)mst_sets_go_back(&w->sets, MST_VERSION_NONE);
}

/* All servers have answered. */
static int take_version(struct mst_worker *w)
{
	const struct mst_lane_answer *a = &w->answer;
	bool keeps = a->where == MST_WHERE_KEEP;

	w->answered = 0;
	if (w->returned)
		begin_anew(w, a);
	bool rule_only = keeps && (w->held.taken || w->held.earlier);
	int rc = rule_only ? read_rule(w, a->version) : read_record(w, a->version);
	if (rc != 0)
		return rc;

	if (!keeps) {
		w->held.where = (enum mst_where)a->where;
		w->held.buffer = a->buffer;
	}
	if (lacks_last(w, a)) {
		w->incomplete = true;
		w->held.where = MST_WHERE_NOWHERE;
	}
	w->held.version = a->version;
	if (a->newest > w->held.newest)
		w->held.newest = a->newest;
	w->ask = MST_ASK_ANSWERED;
	w->returned = false;
	return 0;
}

int mst_worker_answered(struct mst_worker *w, uint32_t server, const struct mst_lane_answer *a,
			const void *record)
{
	if (is_deaf(w))
		return 0;
	if (server >= w->cfg.servers || has_said(w->answered, server) || !fits_ask(w, a))
		return -EPROTO;
	if (w->answered == 0)
		w->answer = *a;
	if (server == 0) {
		w->record = record;
		w->answer.newest = a->newest;
	}
	return all_have(w, server, &w->answered) ? take_version(w) : 0;
}

/* ---- the state of another worker ---- */

int mst_worker_took(struct mst_worker *w, uint64_t version)
{
	bool has = w->held.version != MST_VERSION_NONE;

	if (is_deaf(w) || w->ask != MST_ASK_OUT || w->answered != 0 ||
	    version == MST_VERSION_NONE || (has && version < w->held.version && !w->returned))
		return -EPROTO;
	if (w->returned) { /* the versions that it had may have been of another line */
		(void)mst_sets_go_back(&w->sets, MST_VERSION_NONE);
		w->held.newest = version;
	}
	if (w->phase == MST_WORKER_STARTING)
		mst_worker_enter(w, MST_WORKER_WORKING);
	w->held.version = version;
	w->held.where = MST_WHERE_NOWHERE;
	w->held.taken = true;
	w->held.earlier = w->returned = false;
	w->held.share_count = w->held.workers = 0;
	w->held.weight = w->held.samples = 0;
	w->given = version;
	if (version > w->held.newest)
		w->held.newest = version;
	return 0;
}

/* ---- ends ---- */

int mst_worker_ended(struct mst_worker *w, uint64_t last)
{
	if (is_deaf(w) || w->last != MST_VERSION_NONE)
		return 0;
	if (w->held.version != MST_VERSION_NONE && last < w->held.version && !w->returned)
		return -EPROTO;
	w->last = last;
	if (!w->returned) /* else what was pushed in the session before has still to be judged */
		mst_tickets_cancel_rest(&w->tickets);
	return 0;
}

void mst_worker_fail(struct mst_worker *w, int error)
{
	MST_ASSERT(error < 0);
	if (has_ended(w))
		return;
	w->error = error;
	mst_worker_enter(w, MST_WORKER_FAILED);
}
