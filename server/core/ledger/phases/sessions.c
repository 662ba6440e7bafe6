/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/sessions.h"

#include <errno.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"
#include "common/base/clock.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/resized.h"
#include "server/core/ledger/state/returns.h"

/* Has another worker the rank? A worker that comes back takes the place of its own last session,
 * whose end has not been heard yet, and before the start that of a newcomer. */
static bool is_taken(const struct mst_ledger *l, const struct mst_ledger_event *ev)
{
	const struct mst_member *m = &l->member[ev->join.rank];
	bool newcomer = l->phase == MST_PHASE_GATHERING && !mst_claimed_takes_part(&m->claimed);

	if (m->state == MST_MEMBER_ABSENT)
		return false;
	bool itself = l->phase == MST_PHASE_GATHERING ? m->incarnation <= ev->join.incarnation
						      : m->incarnation == ev->join.incarnation;

	return !mst_claimed_takes_part(&ev->join.claimed) || (!itself && !newcomer);
}

static int rank_for(struct mst_ledger *l, const struct mst_ledger_event *ev, uint32_t *rank)
{
	int32_t wanted = ev->join.rank;
	uint32_t buffer;

	if (l->phase == MST_PHASE_ENDED || l->end_due)
		return mst_finish_word(l->end_why, l->cfg.generation_id != 0) == MST_AGAIN
			       ? MST_AGAIN
			       : -ESHUTDOWN;
	if (wanted >= 0 && (uint32_t)wanted >= l->cfg.workers)
		return mst_resized_outside(l, (uint32_t)wanted, &ev->join.claimed);
	if (l->phase == MST_PHASE_RUNNING && l->cfg.owner == MUSTER_WORKERS_OWN &&
	    !ev->join.comes_back && !mst_returns_is_on_line(l, &ev->join.claimed) &&
	    !mst_store_find(&l->store, l->store.first, &buffer))
		return -ESTALE;
	if (wanted >= 0) {
		*rank = (uint32_t)wanted;
		return is_taken(l, ev) ? -EEXIST : 0;
	}
	*rank = mst_counts_next(&l->counts, MST_STANDS_ABSENT, 0);
	return *rank != MST_RANK_NONE ? 0 : -ENOSPC;
}

/* A start that this worker took part in was that of another leader, and has the number that the
 * start at hand was to have, or a later one. So this start takes a later one, and who was told of
 * the other says hello again. A new process need not: it remembers nothing. */
static void take_later_number(struct mst_ledger *l, uint64_t seen)
{
	l->generation.next = seen + 1;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		if (m->state != MST_MEMBER_ABSENT && mst_claimed_takes_part(&m->claimed))
			mst_life_lose(l, m, MST_EVICT_OUTNUMBERED);
	}
	l->gathering.return_until = MST_NEVER;
}

/* From the first one on that comes back, the others are expected, too. */
static void await_returns(struct mst_ledger *l, const struct mst_claimed *claimed)
{
	struct mst_gathering *g = &l->gathering;

	if (l->phase != MST_PHASE_GATHERING || !mst_claimed_takes_part(claimed) ||
	    g->return_until != MST_NEVER)
		return;
	g->return_until = l->cfg.return_ns < MST_NEVER - l->now_ns ? l->now_ns + l->cfg.return_ns
								   : MST_NEVER;
}

/* A rank that this job leaves out has come back. It may be one of those that were waited for. */
static void hear_outside(struct mst_ledger *l, uint64_t seen)
{
	if (l->phase != MST_PHASE_GATHERING)
		return;
	if (l->cfg.generation_id != 0 && seen >= l->generation.next)
		take_later_number(l, seen);
	l->gathering.changed = true;
}

/* It has said START to a leader of a later generation. So there may be one that has more than half
 * of the ranks, and what this one would make is void. */
static bool is_superseded(const struct mst_ledger *l, uint64_t seen)
{
	return l->phase == MST_PHASE_RUNNING && l->generation.number > 0 &&
	       seen > l->generation.number;
}

void mst_life_join(struct mst_ledger *l, const struct mst_ledger_event *ev)
{
	uint64_t cookie = ev->join.cookie;
	uint64_t seen = mst_returns_seen(l, &ev->join.claimed);
	uint32_t rank = 0;

	if (is_superseded(l, seen))
		mst_life_end(l, MST_FINISH_SUPERSEDED);
	int error = rank_for(l, ev, &rank);

	if (error != 0) {
		struct mst_decision *d = mst_decide(l, MST_DO_REFUSE, NULL);
		d->join.cookie = cookie;
		d->join.error = error;
		if (error == MST_AGAIN)
			hear_outside(l, seen);
		return;
	}
	struct mst_member *m = &l->member[rank];
	if (m->state != MST_MEMBER_ABSENT)
		mst_life_lose(l, m, MST_EVICT_LOST);
	if (l->phase == MST_PHASE_GATHERING && l->cfg.generation_id != 0 &&
	    seen >= l->generation.next)
		take_later_number(l, seen);
	if (m->incarnation < ev->join.incarnation)
		m->incarnation = ev->join.incarnation;
	mst_member_admit(m, l->now_ns + l->cfg.lease_ns);
	m->joined_ns = l->now_ns;
	m->claimed = ev->join.claimed;
	await_returns(l, &m->claimed);
	mst_returns_join(l, m);
	m->comes_back = ev->join.comes_back && l->cfg.owner == MUSTER_WORKERS_OWN;
	m->comes_late = l->phase == MST_PHASE_RUNNING;
	l->stride[rank].answered_ns = 0;
	mst_changed(l, m);
	struct mst_decision *d = mst_decide(l, MST_DO_ADMIT, m);
	d->join.cookie = cookie;
	d->join.error = 0;
	d->join.number = l->phase == MST_PHASE_RUNNING ? l->generation.number : l->generation.next;
}

/* ---- the start of a session ---- */

static void start_if_ready(struct mst_ledger *l, struct mst_member *m)
{
	if (m->state != MST_MEMBER_JOINED || !m->start_called || m->link_count < l->cfg.shards)
		return;
	mst_member_enter(m, MST_MEMBER_STARTED);
	if (l->phase == MST_PHASE_RUNNING)
		m->clock = mst_step_clock_min(l);
	mst_changed(l, m);
	l->gathering.changed = true;
}

/* A member is not answered before it has started, and so not before this is known. */
static void note_network(struct mst_ledger *l, struct mst_member *m, bool far)
{
	l->far += far && !m->far;
	m->far |= far;
}

void mst_life_linked(struct mst_ledger *l, struct mst_member *m, const struct mst_ledger_event *ev)
{
	if (ev->shard == MST_SHARD_LEAD)
		note_network(l, m, ev->far);
	mst_member_link(m, ev->shard, l->cfg.shards);
	start_if_ready(l, m);
}

void mst_life_start(struct mst_ledger *l, struct mst_member *m, const struct mst_ledger_event *ev)
{
	struct mst_lane_ask first = { .number = 1, .have = m->given };

	if (m->start_called || !mst_ask_take(l, m, &first, 0)) {
		mst_life_lose(l, m, MST_EVICT_INVALID);
		return;
	}
	m->start_called = true;
	m->offers = ev->offers;
	m->stateless = ev->stateless;
	m->offered = ev->offered;
	mst_member_begin_verdicts(m);
	start_if_ready(l, m);
}

/* End of a session. */

/* An eviction never makes the job fail. The control side has refused it if any loss makes the job
 * fail. But since then the job may have started, or may have got that rule. */
void mst_life_evict(struct mst_ledger *l, struct mst_member *m)
{
	bool goes_on = l->phase == MST_PHASE_RUNNING && !l->end_due;
	bool fails = l->rule.on_loss == MST_LOSS_FAIL || mst_life_count(l) <= l->rule.min_workers;

	if (!goes_on || !fails || !mst_member_takes_part(m))
		mst_life_lose(l, m, MST_EVICT_ASKED);
}

void mst_life_leave(struct mst_ledger *l, struct mst_member *m, uint64_t seq)
{
	if (m->state != MST_MEMBER_STARTED) {
		if (m->state == MST_MEMBER_JOINED)
			mst_life_lose(l, m, MST_EVICT_LEFT);
		return;
	}
	mst_member_enter(m, MST_MEMBER_LEAVING);
	m->leave_seq = seq;
	mst_changed(l, m);
	mst_life_leave_if_over(l, m);
}

void mst_life_unlinked(struct mst_ledger *l, struct mst_member *m, uint32_t shard)
{
	MST_ASSERT(shard < l->cfg.shards);
	mst_bitset_add(&m->unlinked, shard);
	mst_life_leave_if_over(l, m);
}
