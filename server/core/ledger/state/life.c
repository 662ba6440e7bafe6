/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/life.h"

#include <errno.h>

#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/strides.h"
#include "server/core/ledger/state/verdict.h"

/* Members that take part in the steps. A member that is behind does not rest. */
static uint32_t count_present(const struct mst_ledger *l)
{
	return mst_life_count(l) - l->resting - mst_counts_count(&l->counts, MST_STANDS_BEHIND);
}

/* The first reason to end the job stays. If another one comes, what is counted is waited for no
 * longer. */
void mst_life_end(struct mst_ledger *l, enum mst_finish_why why)
{
	if (l->phase == MST_PHASE_ENDED)
		return;
	if (l->end_due) {
		l->end_whole &= l->end_why == MST_FINISH_STOPPED;
		return;
	}
	l->end_due = true;
	l->end_why = why;
}

static void decide_end(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why)
{
	struct mst_decision *d = mst_decide(l, MST_DO_EVICT, m);

	d->evict = why;
	if (m->state != MST_MEMBER_LEAVING)
		return;
	d->announced = m->leave_seq;
	d->came = mst_member_came(m, l->cfg.slots, l->cfg.shards);
}

static void end_session(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why)
{
	mst_judge_cancel(l, m);
	mst_ask_drop(l, m);
	mst_stride_gone(l, m);
	l->resting -= m->rests;
	l->far -= m->far;
	decide_end(l, m, why);
	mst_member_end(m);
	mst_outliers_forget(&l->outliers, m->rank);
	m->offers = m->sends_state = false;
	mst_changed(l, m);
}

/* Another member has to be left that takes part in the steps. A member that returns takes part from
 * the next step on, as one that joins does. */
void mst_life_rest(struct mst_ledger *l, struct mst_member *m, bool rests)
{
	if (l->phase != MST_PHASE_RUNNING || !mst_member_takes_part(m) || m->rests == rests ||
	    m->behind != MST_UP_TO_DATE || (rests && count_present(l) <= 1))
		return;
	m->rests = rests;
	l->resting += rests ? 1 : UINT32_MAX;
	if (rests)
		m->rostered = false;
	else
		m->clock = mst_step_clock_min(l);
	mst_decide(l, MST_DO_REST, m)->rests = rests;
	mst_changed(l, m);
}

/* If no worker is left that takes part in the steps, the workers that rest have to return. */
static void wake_all(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers && l->resting > 0; rank++)
		mst_life_rest(l, &l->member[rank], false);
}

void mst_life_wake_if_alone(struct mst_ledger *l)
{
	if (l->phase == MST_PHASE_RUNNING && !l->end_due && count_present(l) == 0)
		wake_all(l);
}

void mst_life_lose(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why)
{
	bool took_part = mst_member_takes_part(m);
	bool in_peace = why == MST_EVICT_LEFT || mst_evict_error(why) == -ESTALE ||
			m->state == MST_MEMBER_LEAVING;

	end_session(l, m, why);
	l->gathering.changed = true;
	if (l->phase != MST_PHASE_RUNNING || !took_part)
		return;
	uint32_t live = mst_life_count(l);
	mst_life_wake_if_alone(l);
	if (in_peace && live == 0)
		mst_life_end(l, MST_FINISH_LEFT);
	else if (!in_peace && l->rule.on_loss == MST_LOSS_FAIL)
		mst_life_end(l, MST_FINISH_LOSS);
	else if (!in_peace && live < l->rule.min_workers)
		mst_life_end(l, MST_FINISH_TOO_FEW);
}

void mst_life_leave_if_over(struct mst_ledger *l, struct mst_member *m)
{
	if (mst_member_has_left(m))
		mst_life_lose(l, m, MST_EVICT_LEFT);
	else if (m->state == MST_MEMBER_LEAVING && mst_member_is_cut_off(m, l->cfg.slots))
		mst_life_lose(l, m, MST_EVICT_LOST);
}
