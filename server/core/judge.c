/* SPDX-License-Identifier: MIT */
/*
 * Contributions: reported by every shard, judged once, in seq order, by the rule in force when the
 * last shard reports (PROTOCOL 3 and 4).
 */
#include "common/base/assert.h"
#include "server/core/state.h"

static void tell(struct mst_ledger *l, struct mst_member *m, const struct mst_lane_header *h,
		 enum muster_verdict verdict)
{
	uint64_t counted_in = verdict == MUSTER_COUNTED ? l->store.newest + 1 : 0;
	struct mst_decision *d = mst_decide(l, MST_DO_VERDICT, m);

	d->verdict.seq = h->seq;
	d->verdict.tag = h->tag;
	d->verdict.slot = h->slot;
	d->verdict.verdict = verdict;
	d->verdict.counted_in = counted_in;
	m->fate[h->slot] = (struct muster_fate){ .ticket = h->seq,
						 .verdict = verdict,
						 .counted_in = counted_in };
}

static void regrant(struct mst_ledger *l, struct mst_member *m, uint32_t slot)
{
	mst_member_regrant(m, slot, l->cfg.shards);
	struct mst_decision *d = mst_decide(l, MST_DO_REGRANT, m);
	d->grant.slot = slot;
	d->grant.epoch = m->pending[slot].epoch;
}

static enum muster_verdict verdict_outside(const struct mst_ledger *l)
{
	return l->rule.late == MST_LATE_DROP ? MUSTER_LATE : MUSTER_STALE;
}

static enum muster_verdict verdict_of(const struct mst_ledger *l, const struct mst_member *m,
				      const struct mst_lane_header *h)
{
	if (l->phase == MST_PHASE_ENDED)
		return MUSTER_CANCELLED;
	if (h->flags & MST_HEADER_EMPTY)
		return verdict_outside(l);
	if (!(h->weight > 0 && h->weight <= MST_WEIGHT_MAX) || h->tag > l->store.newest ||
	    l->phase == MST_PHASE_GATHERING)
		return MUSTER_REFUSED;
	if (l->store.newest - h->tag > l->rule.window)
		return verdict_outside(l);
	/* A rank that waits for the commit has one voice in it, whatever its incarnation; and a set
	 * has room for every slot of every rank beyond its quorum, more can only be a mistake. */
	if ((!mst_rule_repeats(&l->rule) && m->step_count > 0) || l->entry_count == l->entry_max)
		return MUSTER_LATE;
	return MUSTER_COUNTED;
}

/* For good in the set of the open step, whatever becomes of its worker. */
static void count(struct mst_ledger *l, struct mst_member *m, const struct mst_lane_header *h)
{
	uint64_t staleness = l->store.newest - h->tag;
	struct mst_rule_share share = mst_rule_share(&l->rule, staleness, h->weight,
						     h->flags & MST_HEADER_SUM);

	MST_ASSERT(l->entry_count < l->entry_max);
	l->entry[l->entry_count++] = (struct mst_entry){
		.who = { m->rank, m->incarnation },
		.seq = h->seq,
		.tag = h->tag,
		.samples = h->weight,
		.loss = h->loss,
		.base = share.base,
		.coefficient = share.coefficient,
		.slot = h->slot,
	};
	if (l->entry_count == 1)
		l->first_count_ns = l->now_ns;
	l->counted_last = m->rank;
	m->step_count++;
	m->step_samples += h->weight;
	m->clock++;
	m->owes = true;
	struct mst_decision *d = mst_decide(l, MST_DO_COUNT, m);
	d->count.seq = h->seq;
	d->count.slot = h->slot;
	d->count.coefficient = share.coefficient;
}

/* One contribution: its verdict, its slot back, its ask. */
static void judge(struct mst_ledger *l, struct mst_member *m, const struct mst_lane_header *h)
{
	bool takes_part = mst_member_takes_part(m);

	m->judged = h->seq;
	if (h->flags & MST_HEADER_PASS) {
		m->passed = takes_part && l->phase == MST_PHASE_RUNNING;
	} else {
		enum muster_verdict verdict = takes_part ? verdict_of(l, m, h) : MUSTER_REFUSED;
		if (verdict == MUSTER_COUNTED)
			count(l, m, h);
		tell(l, m, h, verdict);
	}
	regrant(l, m, h->slot);
	if ((h->flags & MST_HEADER_ASK) && !mst_ask_take(l, m, &h->ask))
		mst_life_lose(l, m, MST_EVICT_INVALID);
	else
		mst_life_leave_if_judged(l, m);
}

void mst_judge_full(struct mst_ledger *l, struct mst_member *m, uint32_t shard,
		    const struct mst_lane_header *h)
{
	if (!mst_member_report_full(m, shard, l->cfg.slots, h)) {
		mst_life_lose(l, m, MST_EVICT_INVALID);
		return;
	}
	struct mst_pending *p = &m->pending[h->slot];
	if (p->full_count == 1)
		p->since_ns = l->now_ns;
}

/* A commit that is due comes before whatever else has arrived: else a set would grow beyond its
 * quorum while its commit waits for a buffer. */
bool mst_judge_next(struct mst_ledger *l)
{
	if (mst_step_due(l))
		return false;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		struct mst_pending *p = mst_member_next(m, l->cfg.slots, l->cfg.shards);
		if (m->state == MST_MEMBER_ABSENT || p == NULL)
			continue;
		struct mst_lane_header header = p->header;
		judge(l, m, &header);
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

void mst_judge_cancel(struct mst_ledger *l, struct mst_member *m)
{
	for (uint64_t seq = m->judged + 1; seq <= m->judged + l->cfg.slots; seq++) {
		const struct mst_pending *p = mst_member_pending(m, l->cfg.slots, seq);
		if (p != NULL && !(p->header.flags & MST_HEADER_PASS))
			tell(l, m, &p->header, MUSTER_CANCELLED);
	}
}
