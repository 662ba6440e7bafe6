/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/trigger.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "server/core/ledger/state/open_step.h"

void mst_advise(struct mst_ledger *l, const struct mst_member *m, bool hand_in)
{
	uint64_t newest = l->store.newest;
	struct mst_decision *d = mst_decide(l, MST_DO_ADVISE, m);

	d->advice.version = newest > l->rule.window ? newest - l->rule.window : 0;
	d->advice.hand_in = hand_in;
}

/* Does the step wait for this worker, which computes? One that has an ask open has handed in, or
 * waits itself. */
static bool is_awaited(const struct mst_member *m)
{
	return m->state == MST_MEMBER_STARTED && !m->asks && mst_member_missing(m);
}

static void advise_all(struct mst_ledger *l, bool hand_in)
{
	const struct mst_counts *c = &l->counts;

	for (uint32_t rank = mst_counts_next(c, MST_STANDS_MISSING, 0); rank != MST_RANK_NONE;
	     rank = mst_counts_next(c, MST_STANDS_MISSING, rank + 1)) {
		if (is_awaited(&l->member[rank]))
			mst_advise(l, &l->member[rank], hand_in);
	}
}

static void pull(struct mst_ledger *l)
{
	MST_ASSERT(l->phase == MST_PHASE_RUNNING && !l->collecting && !l->overdue);
	if (!l->rule.collect) {
		l->overdue = true;
		l->overdue_ns = l->now_ns;
		return;
	}
	l->collecting = true;
	l->collecting_ns = l->now_ns;
	advise_all(l, true);
}

void mst_trigger_full(struct mst_ledger *l)
{
	if (l->rule.trigger == MST_TRIGGER_FULL && !l->collecting && !l->overdue)
		pull(l);
}

static uint64_t due_at(const struct mst_ledger *l)
{
	if (mst_step_is_held(l))
		return mst_step_held_until(l);
	if (!mst_step_gathers(l) || l->overdue)
		return MST_NEVER;
	if (l->collecting)
		return l->rule.grace_ns > 0 ? l->collecting_ns + l->rule.grace_ns : MST_NEVER;
	return l->rule.trigger == MST_TRIGGER_DEADLINE ? l->opened_ns + l->rule.deadline_ns
						       : MST_NEVER;
}

uint64_t mst_trigger_deadline(const struct mst_ledger *l)
{
	return mst_judged_at(l, due_at(l));
}

void mst_trigger_tick(struct mst_ledger *l)
{
	if (l->now_ns < mst_trigger_deadline(l))
		return;
	if (l->overdue)
		l->unheld = true;
	else if (l->collecting)
		l->overdue = true;
	else
		pull(l);
}

/* The worker looks at a request only if it names the version that the worker has. It need not be
 * taken back: there is a newer version, with which the worker will be answered. */
static void request_hand_in(struct mst_ledger *l, const struct mst_member *m)
{
	struct mst_decision *d = mst_decide(l, MST_DO_ADVISE, m);

	d->advice.version = m->given;
	d->advice.hand_in = true;
}

/* Does the worker compute a contribution that grows until it is asked for, though the rule in force
 * asks for none? */
static bool is_never_asked(const struct mst_ledger *l, const struct mst_member *m)
{
	return m->state == MST_MEMBER_STARTED && m->until_asked && !m->asks &&
	       !mst_rule_until_asked(&l->rule);
}

/* Workers that rest are asked, too: when they return, nobody else asks them. */
void mst_trigger_changed(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (is_never_asked(l, &l->member[rank]))
			request_hand_in(l, &l->member[rank]);
	}
}

/* Where workers own, the version may be one of a rule that has gone. */
void mst_trigger_answered(struct mst_ledger *l, const struct mst_member *m)
{
	if (l->phase != MST_PHASE_RUNNING)
		return;
	if (l->collecting && is_awaited(m))
		mst_advise(l, m, true);
	else if (is_never_asked(l, m))
		request_hand_in(l, m);
}

/* The advice is taken back before the workers are answered: otherwise each of them would pass again
 * at once, and the step would go round for ever. A worker that was advised, in this collection or
 * in one before, and has rested since, may be on the roster again. */
void mst_trigger_again(struct mst_ledger *l)
{
	const struct mst_counts *c = &l->counts;

	l->opened_ns = l->now_ns;
	l->collecting = l->overdue = false;
	for (uint32_t rank = mst_counts_next(c, MST_STANDS_ROSTERED, 0);
	     l->rule.collect && rank != MST_RANK_NONE;
	     rank = mst_counts_next(c, MST_STANDS_ROSTERED, rank + 1)) {
		if (l->member[rank].state == MST_MEMBER_STARTED)
			mst_advise(l, &l->member[rank], false);
	}
}
