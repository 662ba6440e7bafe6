/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/timers.h"

#include "common/base/clock.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/late.h"
#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/recomputing.h"
#include "server/core/ledger/state/returns.h"
#include "server/core/ledger/state/slow.h"
#include "server/core/ledger/state/trigger.h"

/* After the server has listened, the ledger's clock runs on for this part of a lease. */
#define FRESH_SHARE 4u

void mst_timers_look(struct mst_ledger *l, uint64_t now_ns)
{
	if (l->listening.looked_ns == 0)
		mst_listening_start(&l->listening, l->cfg.lease_ns / FRESH_SHARE, now_ns);
	else if (l->cfg.stands_ns != 0 && now_ns >= l->listening.heard_ns + l->cfg.stands_ns)
		l->stood_ns = now_ns;
	l->now_ns = mst_listening_now(&l->listening, now_ns);
}

void mst_timers_heard(struct mst_ledger *l, uint64_t heard_ns, uint64_t now_ns)
{
	mst_listening_heard(&l->listening, heard_ns, now_ns);
	l->heard = true;
}

static bool is_over(const struct mst_ledger *l, uint64_t since_ns, uint64_t limit_ns)
{
	return l->now_ns >= since_ns && l->now_ns - since_ns >= limit_ns;
}

/* Does the job wait for workers? Not if a commit is due and lacks only a buffer, nor if the job is
 * about to end with what it has. */
static bool waits_for_workers(const struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);

	return mst_step_gathers(l) && !mst_rule_met(&l->rule, &step);
}

/* Has the member's next header come to some servers and not to all? The servers that have not
 * reported the header may only be late. The ledger's clock stands still while one of these servers
 * is silent. So if they have not reported the header after a lease, the worker has not sent it to
 * them. */
static bool is_half_reported(const struct mst_ledger *l, struct mst_member *m)
{
	const struct mst_pending_header *p = mst_member_pending(m, l->cfg.slots, m->judged + 1);

	return p != NULL && p->full_count < l->cfg.shards &&
	       !is_over(l, p->since_ns, l->cfg.lease_ns);
}

/* A header that is half reported excuses its member until that header is judged. Otherwise a worker
 * all of whose headers are refused would hold the step for ever, if one of them is half reported
 * whenever patience is over. */
static bool is_excused(const struct mst_ledger *l, struct mst_member *m)
{
	if (!is_half_reported(l, m))
		return false;
	m->excused = m->judged + 1;
	m->excused_in = l->store.newest;
	return true;
}

/* Does the member wait for the servers, now that patience is over? It does if its ask waits for a
 * buffer that another worker's link holds. An ask that comes after a header waits for that header
 * first, and is excused no longer than the header is. */
static bool is_held_up(const struct mst_ledger *l, struct mst_member *m)
{
	return mst_member_awaits_answer(m) || is_excused(l, m);
}

/* Does the open step wait for particular ranks? Otherwise any rank could go on: nothing is counted
 * yet, or every rank has contributed and the rule needs still more contributions. */
static bool step_has_missing(const struct mst_ledger *l)
{
	return l->entry_count > 0 && mst_step_view(l).missing > 0;
}

/* Until when the open step may wait. Ranks that are missing delay the others from the first
 * contribution of the set on. Where any rank could go on, the time counts in which none did.
 * There one server of several that stands still may hold up all workers. The ledger's clock
 * stands still only after up to a lease of that, so workers are given a lease more. Otherwise a
 * server that sleeps for longer than patience, and keeps the answers to all workers, would have
 * them evicted. */
static uint64_t step_waits_until(const struct mst_ledger *l)
{
	uint64_t server_ns = l->cfg.shards > 1 ? l->cfg.lease_ns : 0;

	if (step_has_missing(l))
		return mst_judged_at(l, l->first_count_ns + l->rule.patience_ns);
	return mst_judged_at(l, l->active_ns + l->rule.patience_ns + server_ns);
}

/* If ranks may contribute again, a rank whose slots all lie in the open step may have to wait for
 * its commit, as other ranks do. */
static bool has_slot_left(const struct mst_ledger *l, const struct mst_member *m)
{
	return m->rostered && m->step_count < l->cfg.slots;
}

static bool somebody_has_slot_left(const struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (has_slot_left(l, &l->member[rank]))
			return true;
	}
	return false;
}

/* Ends the sessions of live workers for which the open step has waited too long. For the other
 * workers patience begins again. If any rank could go on, the ranks that have contributed least
 * hold up the others. */
static void judge_patience(struct mst_ledger *l)
{
	bool missing_only = l->entry_count == 0 || step_has_missing(l);

	if (!waits_for_workers(l) || l->now_ns < step_waits_until(l))
		return;
	if (mst_recomputing_give_up(l)) {
		l->active_ns = l->now_ns; /* the others waited for that, and are not to blame */
		return;
	}
	bool slots_count = !missing_only && somebody_has_slot_left(l);
	l->first_count_ns = l->active_ns = l->now_ns;
	mst_late_release_all(l);
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		bool awaited = missing_only  ? mst_member_missing(m)
			       : slots_count ? has_slot_left(l, m)
					     : m->rostered;
		if (awaited && !is_held_up(l, m))
			mst_life_lose(l, m, MST_EVICT_PATIENCE);
	}
}

/* If the clock bound has made @requester wait for too long, the slowest members are evicted. Then
 * patience begins again for all members. Otherwise the next slowest would be evicted at once, one
 * after the other. */
static void judge_bound(struct mst_ledger *l, const struct mst_member *requester)
{
	uint64_t min = mst_step_clock_min(l);

	if (!mst_ask_bound_parks(l, requester, min) || !waits_for_workers(l) ||
	    l->now_ns < mst_judged_at(l, requester->asked_ns + l->rule.patience_ns))
		return;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		m->asked_ns = l->now_ns;
		mst_changed(l, m);
		if (m->rostered && m != requester && m->clock == min && !is_held_up(l, m))
			mst_life_lose(l, m, MST_EVICT_PATIENCE);
	}
}

/* Ends the sessions whose leases are over, in the order of ranks. Leases are compared with the time
 * up to which everything has been read: what is still unread may be a heartbeat of any worker. */
static void judge_leases(struct mst_ledger *l)
{
	struct mst_heap *leases = &l->counts.leases;

	if (!l->heard)
		return;
	l->heard = false;
	while (leases->count > 0 && mst_heap_least(leases) <= l->listening.read_ns) {
		mst_ranks_add(&l->expired, mst_heap_first(leases));
		mst_heap_remove(leases, mst_heap_first(leases));
	}
	for (uint32_t rank; (rank = mst_ranks_first(&l->expired)) != MST_RANK_NONE;) {
		mst_ranks_remove(&l->expired, rank);
		mst_life_lose(l, &l->member[rank], MST_EVICT_LEASE);
	}
}

/* When patience runs out for the first ask that waits because of the clock bound. */
static uint64_t bound_deadline(const struct mst_ledger *l)
{
	if (l->rule.release != MST_RELEASE_BOUND || l->waits.since.count == 0 ||
	    !waits_for_workers(l))
		return MST_NEVER;
	return mst_judged_at(l, mst_heap_least(&l->waits.since) + l->rule.patience_ns);
}

/* When the step that is open is not waited for any more, though an operator has ended the job. */
static uint64_t end_deadline(const struct mst_ledger *l)
{
	bool waits = mst_step_gathers(l) && l->end_whole && l->end_why == MST_FINISH_ASKED;

	return waits ? mst_judged_at(l, l->end_whole_until) : MST_NEVER;
}

void mst_timers_tick(struct mst_ledger *l)
{
	judge_leases(l);
	if (l->now_ns >= end_deadline(l))
		l->end_whole = false;
	if (l->phase == MST_PHASE_GATHERING && l->now_ns >= mst_returns_until(l))
		mst_life_end(l, mst_returns_are_here(l) ? MST_FINISH_NOT_BEGUN
							: MST_FINISH_JOIN_TIMEOUT);
	mst_slow_tick(l);
	mst_trigger_tick(l); /* a step that is over waits for nobody */
	judge_patience(l);
	if (l->now_ns < bound_deadline(l))
		return;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++)
		judge_bound(l, &l->member[rank]);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Leases have no deadline, because they are judged at the next tick after each MST_EV_HEARD. */
uint64_t mst_timers_deadline(const struct mst_ledger *l, uint64_t handing_ns)
{
	uint64_t due = l->phase == MST_PHASE_GATHERING ? mst_returns_until(l) : MST_NEVER;

	if (l->heard)
		return l->listening.looked_ns;
	due = earlier(due, l->phase == MST_PHASE_GATHERING ? l->gathering.look_ns : MST_NEVER);
	due = earlier(due, bound_deadline(l));
	due = earlier(due, end_deadline(l));
	due = earlier(due, mst_trigger_deadline(l));
	due = earlier(due, mst_late_deadline(l));
	due = earlier(due, handing_ns);
	if (waits_for_workers(l))
		due = earlier(due, step_waits_until(l));
	return mst_listening_when(&l->listening, due);
}
