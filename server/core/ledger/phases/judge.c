/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/judge.h"

#include <math.h>

#include "common/base/assert.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/recomputing.h"
#include "server/core/ledger/state/strides.h"
#include "server/core/ledger/state/trigger.h"
#include "server/core/ledger/state/verdict.h"
#include "server/core/policy/factor.h"

static void regrant(struct mst_ledger *l, struct mst_member *m, uint32_t slot)
{
	mst_member_regrant(m, slot);
	l->active_ns = l->now_ns;
	struct mst_decision *d = mst_decide(l, MST_DO_REGRANT, m);
	d->grant.slot = slot;
	d->grant.epoch = m->pending[slot].epoch;
	mst_changed(l, m);
}

static enum muster_verdict verdict_outside(const struct mst_ledger *l)
{
	return l->rule.late == MST_LATE_DROP ? MUSTER_LATE : MUSTER_STALE;
}

/* A worker shortens its own gradients, and no differences of parameters. */
static bool clips_wrongly(const struct mst_ledger *l, const struct mst_lane_header *h)
{
	return (h->flags & MST_HEADER_CLIPPED) &&
	       (l->rule.deltas || !(h->clip > 0 && h->clip <= 1));
}

/* The verdict on a contribution that the rule would count: its data may be damaged, or an
 * outlier. */
static enum muster_verdict verdict_on_data(struct mst_ledger *l, const struct mst_member *m,
					   const struct mst_pending_header *p)
{
	if (p->damaged)
		return MUSTER_DAMAGED;
	return mst_outliers_judge(&l->outliers, m->rank, mst_verdict_norm(l, p)) ? MUSTER_OUTLIER
										 : MUSTER_COUNTED;
}

static enum muster_verdict verdict_of(struct mst_ledger *l, const struct mst_member *m,
				      const struct mst_pending_header *p)
{
	const struct mst_lane_header *h = &p->header;

	if (l->phase == MST_PHASE_ENDED || l->settling)
		return MUSTER_CANCELLED;
	if (h->flags & MST_HEADER_EMPTY)
		return verdict_outside(l);
	if (!mst_weight_is_sane(h->weight) || clips_wrongly(l, h) || h->tag > l->store.newest ||
	    l->phase == MST_PHASE_GATHERING)
		return MUSTER_REFUSED;
	if (l->store.newest - h->tag > l->rule.window)
		return verdict_outside(l);
	/* of older versions than its last the parameters are not kept */
	if (l->cfg.distance > 0 && h->tag != m->given)
		return MUSTER_STALE;
	/* Where ranks wait for the commit, each may contribute once to it, over all its
	 * incarnations. And a set has room for its quorum and every slot of every rank; if it is
	 * full, something is wrong. */
	if ((!mst_rule_repeats(&l->rule) && m->step_count > 0) || l->entry_count == l->entry_max)
		return MUSTER_LATE;
	return verdict_on_data(l, m, p);
}

/* A loss that is not finite counts as one that was not given. */
static void add_to_sums(struct mst_step_sums *sums, const struct mst_entry *e)
{
	sums->base += e->base;
	if (!isfinite(e->loss))
		return;
	sums->loss += mst_loss_share(e->loss, e->samples);
	sums->loss_samples += e->samples;
}

/* Measures the batches of a session, whatever becomes of their parts. */
static void measure_batch(struct mst_member *m, const struct mst_lane_header *h)
{
	if (!mst_weight_is_sane(h->weight))
		return;
	m->batch_samples += h->weight;
	if (h->flags & MST_HEADER_PART)
		return;
	m->batch_full = m->batch_samples;
	m->batch_samples = 0;
}

/* Has the contribution that was counted now ended the batch that the step waits for? Where batches
 * come in parts, the rank must have handed over as much as its last batch within this step.
 * Otherwise there would be a version for each batch of each rank, and nothing in it but what was
 * finished since the version before. */
static bool is_full(const struct mst_ledger *l, const struct mst_member *m,
		    const struct mst_lane_header *h)
{
	return l->rule.by_micro ? m->step_samples >= m->batch_full
				: (h->flags & MST_HEADER_FULL) != 0;
}

/* Puts a contribution into the set of the open step. It stays there, whatever happens to its
 * worker. */
static void count(struct mst_ledger *l, struct mst_member *m, const struct mst_lane_header *h)
{
	uint64_t staleness = l->store.newest - h->tag;
	double clip = h->flags & MST_HEADER_CLIPPED ? (double)h->clip : 1;
	struct mst_factor f = mst_factor(&(struct mst_factor_of){
		.rule = &l->rule,
		.workers = l->cfg.workers,
		.staleness = staleness,
		.samples = h->weight,
		.is_sum = h->flags & MST_HEADER_SUM,
		.clip = clip,
	});

	MST_ASSERT(l->entry_count < l->entry_max && h->tag <= l->store.newest);
	MST_ASSERT(l->phase == MST_PHASE_RUNNING && mst_member_takes_part(m));
	l->entry[l->entry_count++] = (struct mst_entry){
		.who = { m->rank, m->incarnation },
		.seq = h->seq,
		.tag = h->tag,
		.samples = h->weight,
		.loss = h->flags & MST_HEADER_LOSS ? h->loss : (double)NAN,
		.norm = h->flags & MST_HEADER_NORM ? h->norm : (double)NAN,
		.base = f.base,
		.coefficient = f.coefficient,
		.slot = h->slot,
	};
	if (l->entry_count == 1)
		l->first_count_ns = l->now_ns;
	if (l->entry_count == 1 && l->cfg.distance > 0) {
		l->compared = m->keeps;
		mst_store_hold(&l->store, l->compared, MST_HOLD_LASTING);
	}
	l->counted_last = m->rank;
	m->step_count++;
	m->step_samples += h->weight;
	add_to_sums(&m->step_sums, &l->entry[l->entry_count - 1]);
	m->clock++;
	m->owes = true;
	struct mst_decision *d = mst_decide(l, MST_DO_COUNT, m);
	d->count.seq = h->seq;
	d->count.slot = h->slot;
	d->count.coefficient = f.coefficient;
	d->count.repeats = mst_rule_repeats(&l->rule);
	mst_changed(l, m);
	if (is_full(l, m, h))
		mst_trigger_full(l);
}

/* Was patience with the member over, but for the header that has been judged now? A worker that has
 * left with this header is not waited for any more. */
static bool outstays(const struct mst_ledger *l, const struct mst_member *m,
		     enum muster_verdict verdict)
{
	return m->excused == m->judged && m->excused_in == l->store.newest &&
	       l->phase == MST_PHASE_RUNNING && m->rostered && !mst_member_has_left(m) &&
	       verdict != MUSTER_COUNTED && verdict != MUSTER_CANCELLED && !m->passed;
}

/* A gradient on this version has arrived, whatever its verdict. */
static void arrived(struct mst_ledger *l, uint64_t version)
{
	struct mst_arrival arrival;

	if (l->phase == MST_PHASE_RUNNING && mst_controller_by_times(&l->controller) &&
	    mst_starts_add(&l->starts, version, l->now_ns, &arrival))
		mst_controller_arrived(&l->controller, &arrival, l->cfg.workers);
}

/* Judges one contribution: gives its verdict, grants its slot again, and takes the ask that came
 * with it. */
static void judge(struct mst_ledger *l, struct mst_member *m, const struct mst_pending_header *p)
{
	const struct mst_lane_header *h = &p->header;
	enum muster_verdict verdict = MUSTER_NONE;
	bool takes_part = mst_member_takes_part(m);

	MST_ASSERT(h->seq == m->judged + 1 && h->seq <= m->told);
	m->judged = h->seq;
	if (m->asks && m->judged == m->ask_after)
		m->asked_ns = l->now_ns; /* until now the ask waited for servers, not for workers */
	if (h->flags & MST_HEADER_PASS) {
		mst_verdicts_add(m->verdicts, h->seq, MUSTER_NONE, 0);
		m->passed = takes_part && l->phase == MST_PHASE_RUNNING;
	} else {
		if (takes_part)
			arrived(l, h->tag);
		measure_batch(m, h);
		verdict = takes_part ? verdict_of(l, m, p) : MUSTER_REFUSED;
		if (verdict == MUSTER_COUNTED)
			count(l, m, h);
		mst_verdict_tell(l, m, p, verdict);
		mst_stride_judged(l, m, h->tag, verdict, p->since_ns);
	}
	if (h->flags & MST_HEADER_ASK)
		m->late = verdict == MUSTER_LATE;
	mst_recomputing_judged(l, m, verdict);
	regrant(l, m, h->slot);
	if (outstays(l, m, verdict))
		mst_life_lose(l, m, MST_EVICT_PATIENCE);
	else if ((h->flags & MST_HEADER_ASK) && !mst_ask_take(l, m, &h->ask, h->seq))
		mst_life_lose(l, m, MST_EVICT_INVALID);
	else
		mst_life_leave_if_over(l, m);
}

void mst_judge_full(struct mst_ledger *l, struct mst_member *m, const struct mst_ledger_event *ev)
{
	const struct mst_lane_header *h = &ev->full.header;

	if (!mst_member_report_full(m, ev->full.shard, l->cfg.slots, h)) {
		mst_life_lose(l, m, MST_EVICT_INVALID);
		return;
	}
	struct mst_pending_header *p = &m->pending[h->slot];
	p->squares += ev->full.squares;
	p->damaged |= ev->full.damaged;
	if (p->full_count == 1) {
		p->since_ns = l->now_ns;
		mst_stride_came(l, m, h);
	}
	mst_changed(l, m);
}

/* A commit that is due comes before any other contribution is judged. Otherwise a set would grow
 * beyond its quorum while its commit waits for a buffer. */
bool mst_judge_next(struct mst_ledger *l)
{
	const struct mst_counts *c = &l->counts;
	uint32_t rank = mst_counts_next(c, MST_STANDS_JUDGEABLE, 0);

	if (rank == MST_RANK_NONE || mst_step_due(l))
		return false;
	for (; rank != MST_RANK_NONE; rank = mst_counts_next(c, MST_STANDS_JUDGEABLE, rank + 1)) {
		struct mst_member *m = &l->member[rank];
		/* A copy, for the slot is granted again. */
		struct mst_pending_header next = *mst_member_next(m, l->cfg.slots, l->cfg.shards);
		if (mst_recomputing_holds(l, m, &next.header))
			continue;
		judge(l, m, &next);
		return true;
	}
	return false;
}

void mst_judge_abandoned(struct mst_ledger *l, struct mst_member *m, uint32_t shard, uint32_t slot,
			 uint64_t epoch)
{
	if (slot >= l->cfg.slots || !mst_member_report_abandoned(m, shard, slot, epoch)) {
		mst_life_lose(l, m, MST_EVICT_INVALID);
		return;
	}
	if (m->pending[slot].abandoned_count == l->cfg.shards)
		regrant(l, m, slot);
}
