/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/start.h"

#include <math.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/resized.h"
#include "server/core/ledger/state/returns.h"

/* ---- the beginning ---- */

/* Clocks that a checkpoint has kept are not all alike. A rank that was ahead owes what it had
 * given: the bound holds for its first ask, too. */
void mst_start_bound(struct mst_ledger *l)
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
		l->generation = (struct mst_ledger_generation){ .number = l->generation.next,
								.next = l->generation.next,
								.began = l->store.first };
}

void mst_start_begin(struct mst_ledger *l)
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
	if (somebody_sends(l)) /* who sends it may be the only one that needs nothing */
		return;
	struct mst_claimed newest = mst_returns_newest(l);
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

/* The first member that has started: without some ranks it need not be rank 0. */
static struct mst_member *first_started(struct mst_ledger *l)
{
	uint32_t rank = 0;

	while (rank < l->cfg.workers && !mst_member_takes_part(&l->member[rank]))
		rank++;
	return rank < l->cfg.workers ? &l->member[rank] : NULL;
}

/* One that offers a start state is told to send it. If no rank offers one, the job starts without
 * it if workers own, and fails if servers do. This is asked again when the state has arrived, for a
 * worker may die while it sends the state, and the job must not start without it. */
static void start_with_what_is_there(struct mst_ledger *l)
{
	if (l->cfg.owner == MUSTER_WORKERS_OWN && mst_returns_any(l)) {
		start_again(l);
		return;
	}
	if (!l->resumes && mst_returns_any(l)) /* what they had is nowhere */
		return;
	struct mst_member *m = l->lacks_tensors ? first_started(l) : first_that_offers(l);
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

void mst_start_state(struct mst_ledger *l, struct mst_member *m, const struct mst_brought *brought)
{
	if (!m->sends_state)
		return;
	m->sends_state = false;
	l->has_brought = true;
	l->has_start_state = !brought->bare;
	take_brought(l, brought);
	l->lacks_tensors = false;
	l->gathering.changed = true;
}

/* ---- who is waited for ---- */

/* Where the job stands, though nobody that is there has had an outcome: only a checkpoint tells. */
static bool is_known(const struct mst_ledger *l, const struct mst_claimed *newest)
{
	return newest->number > 0 || (l->cfg.owner == MUSTER_SERVERS_OWN && l->resumes);
}

static struct mst_gathered gathered(const struct mst_ledger *l, const struct mst_claimed *newest)
{
	struct mst_gathered g = { .workers = mst_resized_before(l, newest),
				  .least = l->rule.min_workers,
				  .started = mst_life_count(l) };

	g.claims = mst_resized_claims(l, g.workers);
	return g;
}

void mst_start_gathered(struct mst_ledger *l, struct mst_gathered *out)
{
	struct mst_claimed newest = mst_returns_newest(l);

	*out = gathered(l, &newest);
}

/* May the generation start with those that have started? Where any loss fails the job, a start
 * without a rank would be one. */
static bool may_lack_some(struct mst_ledger *l)
{
	if (l->cfg.generation_id == 0 || l->rule.on_loss == MST_LOSS_FAIL ||
	    mst_life_count(l) < l->rule.min_workers)
		return false;
	struct mst_claimed newest = mst_returns_newest(l);
	if (!is_known(l, &newest))
		return false;
	struct mst_gathered g = gathered(l, &newest);
	return mst_majority_starts(&g);
}

static bool are_there(struct mst_ledger *l)
{
	uint64_t until = 0;

	l->gathering.look_ns = MST_NEVER;
	if (mst_life_count(l) == l->cfg.workers) {
		struct mst_claimed newest = mst_returns_newest(l);
		return mst_resized_suffice(l, &newest);
	}
	if (!may_lack_some(l))
		return false;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		uint64_t one = mst_returns_awaited_until(l, &l->member[rank]);
		until = one > until ? one : until;
	}
	if (l->now_ns < until)
		l->gathering.look_ns = until;
	return l->now_ns >= until;
}

void mst_start_settle(struct mst_ledger *l)
{
	struct mst_gathering *g = &l->gathering;

	if (l->phase != MST_PHASE_GATHERING || (!g->changed && l->now_ns < g->look_ns))
		return;
	g->changed = false;
	if (are_there(l))
		start_with_what_is_there(l);
}
