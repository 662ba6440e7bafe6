/* SPDX-License-Identifier: MIT */
/* What a wait of a worker still misses, and what its outcome brings (PROTOCOL 7). */
#include "client/core/worker_state.h"
#include "common/base/assert.h"

static bool has_slot(const struct mst_worker *w)
{
	return w->filling >= 0 || mst_worker_find_fillable(w) >= 0;
}

/* Is memory still lent to a push that is not later than the last ask, or, after the end of the job,
 * to any push? Memory that is lent to a lost link is not waited for: it comes back when the link is
 * freed. */
static unsigned misses_source(const struct mst_worker *w)
{
	for (uint32_t i = 0; i < w->cfg.slots && !w->cut; i++) {
		const struct mst_worker_slot *slot = &w->slot[i];
		bool due = w->last != MST_VERSION_NONE || slot->lender <= w->asking;
		if (slot->lent > 0 && slot->lender != 0 && due)
			return MST_MISSES_SOURCE;
	}
	return 0;
}

unsigned mst_worker_misses(const struct mst_worker *w)
{
	bool answered = w->ask == MST_ASK_ANSWERED && (!w->renew || mst_worker_holds_next(w));
	unsigned verdict = w->tickets.judged >= w->asking ? 0 : MST_MISSES_VERDICT;

	if (w->adrift) /* what the session that is lost has brought is given out no more */
		return MST_MISSES_ANSWER;
	if (w->more) /* the rest of the verdicts; a slot comes back without an ask */
		return has_slot(w) || w->last != MST_VERSION_NONE ? 0 : MST_MISSES_SLOT;
	if (w->phase == MST_WORKER_STARTING)
		return (w->ask == MST_ASK_ANSWERED ? 0 : MST_MISSES_ANSWER) | verdict;
	if (w->last != MST_VERSION_NONE)
		return (w->held.version == w->last || mst_worker_holds_next(w)
				? 0
				: MST_MISSES_ANSWER) |
		       misses_source(w);
	if (w->finishing && !mst_worker_holds_next(w))
		return MST_MISSES_END;
	return (answered ? 0 : MST_MISSES_ANSWER) | verdict | (has_slot(w) ? 0 : MST_MISSES_SLOT) |
	       misses_source(w);
}

bool mst_worker_awaits(const struct mst_worker *w)
{
	return w->ask != MST_ASK_NONE || w->renew || w->more || w->abandoned || w->finishing ||
	       w->adrift || w->returned;
}

const struct mst_held *mst_worker_set_of(const struct mst_worker *w, uint64_t version)
{
	if (w->given == MST_VERSION_NONE || version > w->given)
		return NULL;
	return mst_sets_find(&w->sets, version);
}

/* A server may be lost before the version is there that has the contribution: then it has not
 * counted. So nothing is said of it before. */
static bool is_verdict_due(const struct mst_worker *w, uint64_t version)
{
	bool withheld = w->cfg.withholds && w->cfg.in_order && w->last == MST_VERSION_NONE;

	return mst_tickets_due(&w->tickets) &&
	       !(withheld && mst_tickets_next(&w->tickets)->counted_in > version);
}

static void give_verdict(struct mst_worker *w, struct muster_outcome *out)
{
	if (w->abandoned) {
		w->abandoned = false;
		out->verdict = MUSTER_CANCELLED;
	} else if (is_verdict_due(w, w->held.version)) {
		struct mst_ticket t = mst_tickets_give(&w->tickets);
		out->verdict = t.verdict;
		out->ticket = t.number;
		out->counted_in = t.counted_in;
		if (t.verdict == MUSTER_COUNTED)
			w->refused = 0;
	}
}

static void give_version(struct mst_worker *w, struct muster_outcome *out)
{
	out->version = w->held.version;
	out->newest = w->held.newest > out->version ? w->held.newest : out->version;
	out->fresh = mst_worker_is_fresh(w);
	out->set = w->held.share;
	out->set_len = w->held.share_count;
	out->weight = w->held.weight;
	out->workers = w->held.workers;
	out->orders = (struct muster_orders){
		.lr_scale = w->held.lr_scale,
		.alpha = w->held.pace.alpha,
		.local_steps = w->held.pace.local_steps,
		.push_every = w->held.pace.push_every,
		.fetch_every = w->held.pace.fetch_every,
		.by_micro = w->held.by_micro,
	};
	w->given = w->held.version;
	w->afresh = false;
	if (w->ask == MST_ASK_ANSWERED)
		w->ask = MST_ASK_NONE;
}

int mst_worker_take(struct mst_worker *w, struct muster_outcome *out)
{
	MST_ASSERT(w->phase == MST_WORKER_OVER || mst_worker_misses(w) == 0);
	*out = (struct muster_outcome){ .verdict = MUSTER_NONE };
	give_verdict(w, out);
	give_version(w, out);

	bool ended = w->last != MST_VERSION_NONE;
	w->more = is_verdict_due(w, w->given);
	out->finished = ended && !w->more && (w->given == w->last || w->incomplete);
	if (w->phase == MST_WORKER_STARTING)
		mst_worker_enter(w, MST_WORKER_WORKING);
	if (out->finished && w->phase == MST_WORKER_WORKING)
		mst_worker_enter(w, MST_WORKER_OVER);
	if (out->finished)
		return 0;
	if (w->more || ended)
		return 1;
	return w->cfg.in_order && (w->held.newest > w->given || w->renew || w->finishing);
}
