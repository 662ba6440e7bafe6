/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/sessions.h"

#include <errno.h>
#include <math.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"
#include "common/base/clock.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/resized.h"
#include "server/core/ledger/state/returns.h"

static void start_if_all_have(struct mst_ledger *l);

/* Has another worker the rank? A worker that comes back takes the place of its own last session,
 * whose end has not been heard yet, and before the start that of a newcomer. */
static bool is_taken(const struct mst_ledger *l, const struct mst_ledger_event *ev)
{
	const struct mst_member *m = &l->member[ev->join.rank];
	bool newcomer = l->phase == MST_PHASE_GATHERING && m->claimed.number == 0;

	if (m->state == MST_MEMBER_ABSENT)
		return false;
	bool itself = l->phase == MST_PHASE_GATHERING ? m->incarnation <= ev->join.incarnation
						      : m->incarnation == ev->join.incarnation;

	return ev->join.claimed.number == 0 || (!itself && !newcomer);
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

void mst_life_join(struct mst_ledger *l, const struct mst_ledger_event *ev)
{
	uint64_t cookie = ev->join.cookie;
	uint32_t rank = 0;
	int error = rank_for(l, ev, &rank);

	if (error != 0) {
		struct mst_decision *d = mst_decide(l, MST_DO_REFUSE, NULL);
		d->join.cookie = cookie;
		d->join.error = error;
		if (error == MST_AGAIN)
			start_if_all_have(l); /* it may be one of those that were waited for */
		return;
	}
	struct mst_member *m = &l->member[rank];
	if (m->state != MST_MEMBER_ABSENT)
		mst_life_lose(l, m, MST_EVICT_LOST);
	if (m->incarnation < ev->join.incarnation)
		m->incarnation = ev->join.incarnation;
	mst_member_admit(m, l->now_ns + l->cfg.lease_ns);
	m->claimed = ev->join.claimed;
	mst_returns_join(l, m);
	m->comes_back = ev->join.comes_back && l->cfg.owner == MUSTER_WORKERS_OWN;
	m->comes_late = l->phase == MST_PHASE_RUNNING;
	l->stride[rank].answered_ns = 0;
	mst_changed(l, m);
	struct mst_decision *d = mst_decide(l, MST_DO_ADMIT, m);
	d->join.cookie = cookie;
	d->join.error = 0;
}

/* Start. */

/* Clocks that a checkpoint has kept are not all alike. A rank that was ahead owes what it had
 * given: the bound holds for its first ask, too. */
void mst_life_bound(struct mst_ledger *l)
{
	uint64_t least = mst_step_clock_min(l);

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		m->owes = m->clock > least;
		mst_changed(l, m);
	}
}

/* The version was made of nothing, or of nothing that is known here. */
static void begin_record(struct mst_record *r)
{
	r->lr_scale = 1.0;
	r->samples = 0;
	r->workers = 0;
	r->share_count = 0;
}

static void begin_generation(struct mst_ledger *l)
{
	struct mst_claimed newest = mst_returns_newest(l);

	if (l->cfg.generation_id == 0)
		return;
	if (newest.number > 0 || l->saved.number > 0)
		mst_returns_begin(l, &newest);
	else
		l->generation = (struct mst_ledger_generation){ .number = 1,
								.began = l->store.first };
}

void mst_life_begin(struct mst_ledger *l)
{
	begin_generation(l);
	uint32_t buffer = 0;
	bool taken = mst_store_take(&l->store, l->store.first, &buffer);

	MST_ASSERT(l->phase == MST_PHASE_GATHERING);
	MST_ASSERT(taken && buffer == 0); /* SEND_STATE has named this buffer */
	l->begins = false;
	l->phase = MST_PHASE_RUNNING;
	l->join_until = MST_NEVER;
	l->record[buffer].version = l->store.first;
	l->record[buffer].total = l->samples_total;
	l->record[buffer].loss = (double)NAN;
	l->record[buffer].divisor = 1.0f;
	if (l->generation.number <= 1 || !l->has_start_state)
		begin_record(&l->record[buffer]);
	struct mst_decision *d = mst_decide(l, MST_DO_START, NULL);
	d->commit.version = l->store.first;
	d->commit.buffer = buffer;
}

static bool somebody_sends(const struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (l->member[rank].sends_state)
			return true;
	}
	return false;
}

/* The member that offers the newest start state, and of several such members the lowest rank. */
static struct mst_member *first_that_offers(struct mst_ledger *l)
{
	struct mst_member *first = NULL;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		if (m->offers && (first == NULL || m->offered > first->offered))
			first = m;
	}
	return first;
}

/* When all members have started, one that offers a start state is told to send it. If
 * no rank offers one, the job starts without it if workers own, and fails if servers do. This is
 * asked again when the state has arrived, for a worker may die while it sends the state, and the
 * job must not start without it. */
static void tell_to_send(struct mst_ledger *l, struct mst_member *m, uint64_t version)
{
	m->sends_state = true;
	struct mst_decision *d = mst_decide(l, MST_DO_SEND_STATE, m);
	d->commit.version = version;
	d->commit.buffer = 0;
}

/* Workers own, and some come back. What new ones offer does not count. A version that only some
 * have is sent by one of them. */
static void start_again(struct mst_ledger *l)
{
	struct mst_claimed newest = mst_returns_newest(l);
	/* who sends it may be the only one that needs nothing */
	if (somebody_sends(l) || !mst_resized_suffice(l, &newest))
		return;
	struct mst_member *donor = mst_returns_donor(l, &newest);
	bool has = l->has_brought && mst_claimed_same(&l->brought, &newest);

	if (donor == NULL || donor->stateless || has) {
		l->begins = true;
	} else {
		l->has_brought = l->has_start_state = false; /* what came before is written over */
		l->brought = newest;
		tell_to_send(l, donor, newest.version);
	}
}

static void start_if_all_have(struct mst_ledger *l)
{
	if (l->phase != MST_PHASE_GATHERING || mst_life_count(l) < l->cfg.workers)
		return;
	if (l->cfg.owner == MUSTER_WORKERS_OWN && mst_returns_any(l)) {
		start_again(l);
		return;
	}
	struct mst_claimed newest = mst_returns_newest(l);
	if (!l->resumes && newest.number > 0) /* what they had is nowhere */
		return;
	if (!mst_resized_suffice(l, &newest))
		return;
	struct mst_member *m = l->lacks_tensors ? &l->member[0] : first_that_offers(l);
	if ((l->has_start_state && !l->lacks_tensors) ||
	    (m == NULL && l->cfg.owner == MUSTER_WORKERS_OWN)) {
		l->begins = true; /* the first version is in its buffer, or with every worker */
	} else if (m == NULL) {
		mst_life_end(l, MST_FINISH_NO_START);
	} else if (!somebody_sends(l)) {
		tell_to_send(l, m, l->store.first);
	}
}

/* The record of the first version, which is in the first buffer. */
static void take_brought(struct mst_ledger *l, const struct mst_brought *b)
{
	struct mst_record *r = &l->record[0];

	r->samples = b->samples;
	r->workers = b->workers;
	r->lr_scale = b->lr_scale;
	r->share_count = b->share_count;
	for (uint32_t i = 0; i < b->share_count; i++)
		r->share[i] = b->share[i];
}

void mst_life_state(struct mst_ledger *l, struct mst_member *m, const struct mst_brought *brought)
{
	if (!m->sends_state)
		return;
	m->sends_state = false;
	l->has_brought = true;
	l->has_start_state = !brought->bare;
	take_brought(l, brought);
	l->lacks_tensors = false;
	start_if_all_have(l);
}

static void start_if_ready(struct mst_ledger *l, struct mst_member *m)
{
	if (m->state != MST_MEMBER_JOINED || !m->start_called || m->link_count < l->cfg.shards)
		return;
	mst_member_enter(m, MST_MEMBER_STARTED);
	if (l->phase == MST_PHASE_RUNNING)
		m->clock = mst_step_clock_min(l);
	mst_changed(l, m);
	start_if_all_have(l);
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
