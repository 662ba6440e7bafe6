/* SPDX-License-Identifier: MIT */
/*
 * Birth and end of sessions and of the job, and the timers (PROTOCOL 2). Two clocks end a session:
 * the lease asks whether the process is alive, patience how long others wait for a live one.
 */
#include <errno.h>
#include <math.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "server/core/state.h"

static uint32_t count_started(const struct mst_ledger *l)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++)
		count += mst_member_takes_part(&l->member[rank]);
	return count;
}

/* The end that comes first stands. */
void mst_life_end(struct mst_ledger *l, enum mst_finish_why why)
{
	if (l->phase == MST_PHASE_ENDED || l->end_due)
		return;
	l->end_due = true;
	l->end_why = why;
}

void mst_life_server_lost(struct mst_ledger *l)
{
	if (l->phase == MST_PHASE_ENDED)
		return;
	l->end_due = true;
	l->end_why = MST_FINISH_SERVER;
}

void mst_life_finish_if_due(struct mst_ledger *l)
{
	if (l->phase == MST_PHASE_ENDED || !l->end_due)
		return;
	if (!mst_finish_failed(l->end_why) && l->entry_count > 0)
		return; /* the last commit waits for a buffer */
	l->phase = MST_PHASE_ENDED;
	struct mst_decision *d = mst_decide(l, MST_DO_FINISH, NULL);
	d->finish.why = l->end_why;
	d->finish.version = l->store.newest;
}

static bool anybody(const struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (l->member[rank].state != MST_MEMBER_ABSENT)
			return true;
	}
	return false;
}

/* Join. */

static int rank_for(const struct mst_ledger *l, int32_t wanted, uint32_t *rank)
{
	uint32_t buffer;

	if (l->phase == MST_PHASE_ENDED || l->end_due)
		return -ESHUTDOWN;
	if (l->phase == MST_PHASE_RUNNING && l->cfg.owner == MUSTER_WORKERS_OWN &&
	    !mst_store_find(&l->store, 0, &buffer))
		return -ESTALE;
	if (wanted >= 0) {
		if ((uint32_t)wanted >= l->cfg.workers)
			return -ERANGE;
		*rank = (uint32_t)wanted;
		return l->member[wanted].state == MST_MEMBER_ABSENT ? 0 : -EEXIST;
	}
	for (*rank = 0; *rank < l->cfg.workers; (*rank)++) {
		if (l->member[*rank].state == MST_MEMBER_ABSENT)
			return 0;
	}
	return -ENOSPC;
}

void mst_life_join(struct mst_ledger *l, uint64_t cookie, int32_t wanted)
{
	uint32_t rank = 0;
	int error = rank_for(l, wanted, &rank);

	if (error != 0) {
		struct mst_decision *d = mst_decide(l, MST_DO_REFUSE, NULL);
		d->join.cookie = cookie;
		d->join.error = error;
		return;
	}
	struct mst_member *m = &l->member[rank];
	if (!anybody(l))
		l->last_tick_ns = l->now_ns; /* with nobody there no tick was due */
	mst_member_admit(m, l->cfg.shards, l->now_ns + l->cfg.lease_ns);
	if (l->join_until == MST_NEVER && l->phase == MST_PHASE_GATHERING)
		l->join_until = l->now_ns + l->cfg.join_timeout_ns;
	struct mst_decision *d = mst_decide(l, MST_DO_ADMIT, m);
	d->join.cookie = cookie;
	d->join.error = 0;
}

/* Start. */

/* Version 0 is there, or every worker has an equal start of its own. */
static void start_job(struct mst_ledger *l)
{
	uint32_t buffer = 0;
	bool taken = mst_store_take(&l->store, 0, &buffer);

	MST_ASSERT(taken && buffer == 0); /* where SEND_STATE said it would be */
	l->phase = MST_PHASE_RUNNING;
	l->join_until = MST_NEVER;
	l->record[buffer].version = 0;
	l->record[buffer].loss = (double)NAN;
	l->record[buffer].divisor = 1.0f;
	l->record[buffer].lr_scale = 1.0;
	struct mst_decision *d = mst_decide(l, MST_DO_START, NULL);
	d->commit.version = 0;
	d->commit.buffer = buffer;
	mst_step_open(l);
}

static bool somebody_sends(const struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (l->member[rank].sends_state)
			return true;
	}
	return false;
}

static struct mst_member *lowest_that_offers(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (l->member[rank].offers)
			return &l->member[rank];
	}
	return NULL;
}

/* All have started: the lowest rank that offers a start state is told to send it; if nobody offers
 * one, it depends on who owns. *(Else: a worker dies while the state is sent, and the job starts
 * without it.)* So this is asked again when the state is there. */
static void start_if_all_have(struct mst_ledger *l)
{
	struct mst_member *m = lowest_that_offers(l);

	if (l->phase != MST_PHASE_GATHERING || count_started(l) < l->cfg.workers)
		return;
	if (l->has_start_state || (m == NULL && l->cfg.owner == MUSTER_WORKERS_OWN)) {
		start_job(l);
	} else if (m == NULL) {
		mst_life_end(l, MST_FINISH_NO_START);
	} else if (!somebody_sends(l)) {
		m->sends_state = true;
		struct mst_decision *d = mst_decide(l, MST_DO_SEND_STATE, m);
		d->commit.version = 0;
		d->commit.buffer = 0;
	}
}

void mst_life_state(struct mst_ledger *l, struct mst_member *m)
{
	if (!m->sends_state)
		return;
	m->sends_state = false;
	l->has_start_state = true;
	start_if_all_have(l);
}

static void start_if_ready(struct mst_ledger *l, struct mst_member *m)
{
	if (m->state != MST_MEMBER_JOINED || !m->start_called || m->link_count < l->cfg.shards)
		return;
	mst_member_enter(m, MST_MEMBER_STARTED);
	if (l->phase == MST_PHASE_RUNNING) {
		m->first_version = l->store.newest + 1;
		m->clock = mst_step_clock_min(l);
	} else {
		m->first_version = 0;
		m->clock = 0;
		start_if_all_have(l);
	}
}

void mst_life_linked(struct mst_ledger *l, struct mst_member *m, uint32_t shard)
{
	mst_member_link(m, shard, l->cfg.shards);
	start_if_ready(l, m);
}

void mst_life_start(struct mst_ledger *l, struct mst_member *m, bool offers)
{
	struct mst_lane_ask first = { .number = 1, .have = MST_VERSION_NONE };

	if (m->start_called || !mst_ask_take(l, m, &first)) {
		mst_life_lose(l, m, MST_EVICT_INVALID);
		return;
	}
	m->start_called = true;
	m->offers = offers;
	start_if_ready(l, m);
}

/* End of a session. */

static void end_session(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why)
{
	mst_judge_cancel(l, m);
	mst_ask_drop(l, m);
	mst_decide(l, MST_DO_EVICT, m)->evict = why;
	mst_member_end(m);
	m->offers = m->sends_state = false;
}

void mst_life_lose(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why)
{
	bool took_part = mst_member_takes_part(m);
	bool in_peace = why == MST_EVICT_LEFT || why == MST_EVICT_STALE ||
			m->state == MST_MEMBER_LEAVING;

	end_session(l, m, why);
	if (l->phase != MST_PHASE_RUNNING || !took_part)
		return;
	uint32_t live = count_started(l);
	if (in_peace && live == 0)
		mst_life_end(l, MST_FINISH_LEFT);
	else if (!in_peace && l->rule.on_loss == MST_LOSS_FAIL)
		mst_life_end(l, MST_FINISH_LOSS);
	else if (!in_peace && live < l->rule.min_workers)
		mst_life_end(l, MST_FINISH_TOO_FEW);
}

void mst_life_leave_if_judged(struct mst_ledger *l, struct mst_member *m)
{
	if (m->state == MST_MEMBER_LEAVING && m->judged >= m->leave_seq)
		mst_life_lose(l, m, MST_EVICT_LEFT);
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
	mst_life_leave_if_judged(l, m);
}

/* Timers. */

/* A server that was stopped must not evict everybody on waking: what it slept is nobody's fault. */
static void forgive_gap(struct mst_ledger *l)
{
	uint64_t gap = l->now_ns - l->last_tick_ns;

	if (l->last_tick_ns != 0 && gap > l->cfg.lease_ns / 2 && anybody(l)) {
		for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
			struct mst_member *m = &l->member[rank];
			m->lease_until += gap;
			m->asked_ns += gap;
			for (uint32_t slot = 0; slot < l->cfg.slots; slot++)
				m->pending[slot].since_ns += gap;
		}
		if (l->first_count_ns != 0)
			l->first_count_ns += gap;
		if (l->join_until != MST_NEVER)
			l->join_until += gap;
	}
	l->last_tick_ns = l->now_ns;
}

static bool is_over(const struct mst_ledger *l, uint64_t since_ns, uint64_t limit_ns)
{
	return l->now_ns >= since_ns && l->now_ns - since_ns >= limit_ns;
}

/* Is it for workers to move? Not if a commit is due and only a buffer is missing, or the end is. */
static bool workers_move(const struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);

	return l->phase == MST_PHASE_RUNNING && !l->end_due && !mst_rule_met(&l->rule, &step);
}

/* Is there a set, and does it wait for somebody? */
static bool step_waits(const struct mst_ledger *l)
{
	return l->entry_count > 0 && workers_move(l);
}

/* What is due of it has come to some servers, and not to others. One of those that is silent for a
 * lease is lost, and the job with it: from then on it is the worker who has not sent. */
static bool is_half_said(const struct mst_ledger *l, struct mst_member *m)
{
	const struct mst_pending *p = mst_member_pending(m, l->cfg.slots, m->judged + 1);

	return p != NULL && p->full_count < l->cfg.shards &&
	       !is_over(l, p->since_ns, l->cfg.lease_ns);
}

/* Whoever has asked waits for the servers themselves: for a buffer that another's link holds. */
static bool is_held_up(const struct mst_ledger *l, struct mst_member *m)
{
	return m->asks || is_half_said(l, m);
}

/* Live workers the open step has waited for too long. */
static void judge_patience(struct mst_ledger *l)
{
	if (!step_waits(l) || !is_over(l, l->first_count_ns, l->rule.patience_ns))
		return;
	l->first_count_ns = l->now_ns;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		if (mst_member_missing(m) && !is_held_up(l, m))
			mst_life_lose(l, m, MST_EVICT_PATIENCE);
	}
}

/* An ask that the clock bound has parked for too long: the slowest hold it, and go. Everybody's
 * patience then begins anew. *(Else the next slowest go in the same breath, one after the
 * other.)* */
static void judge_bound(struct mst_ledger *l, const struct mst_member *asker)
{
	uint64_t min = mst_step_clock_min(l);

	if (!mst_ask_bound_parks(l, asker, min) || !workers_move(l) ||
	    !is_over(l, asker->asked_ns, l->rule.patience_ns))
		return;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		m->asked_ns = l->now_ns;
		if (m->rostered && m != asker && m->clock == min && !is_held_up(l, m))
			mst_life_lose(l, m, MST_EVICT_PATIENCE);
	}
}

static void judge_leases(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		if (m->state != MST_MEMBER_ABSENT && l->now_ns >= m->lease_until)
			mst_life_lose(l, m, MST_EVICT_LEASE);
	}
}

void mst_life_tick(struct mst_ledger *l)
{
	forgive_gap(l);
	judge_leases(l);
	if (l->phase == MST_PHASE_GATHERING && l->now_ns >= l->join_until)
		mst_life_end(l, MST_FINISH_JOIN_TIMEOUT);
	judge_patience(l);
	if (l->rule.release != MST_RELEASE_BOUND)
		return;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++)
		judge_bound(l, &l->member[rank]);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When an ask parked by the clock bound runs out of patience. */
static uint64_t bound_deadline(const struct mst_ledger *l)
{
	uint64_t due = MST_NEVER, min = mst_step_clock_min(l);

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		if (mst_ask_bound_parks(l, m, min))
			due = earlier(due, m->asked_ns + l->rule.patience_ns);
	}
	return due;
}

uint64_t mst_life_deadline(const struct mst_ledger *l)
{
	uint64_t due = l->phase == MST_PHASE_GATHERING ? l->join_until : MST_NEVER;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (l->member[rank].state != MST_MEMBER_ABSENT)
			due = earlier(due, l->member[rank].lease_until);
	}
	/* Ticks must come often enough that a gap between them means something. */
	if (anybody(l))
		due = earlier(due, l->last_tick_ns + l->cfg.lease_ns / 4);
	if (l->rule.release == MST_RELEASE_BOUND && workers_move(l))
		due = earlier(due, bound_deadline(l));
	if (step_waits(l))
		due = earlier(due, l->first_count_ns + l->rule.patience_ns);
	return due;
}
