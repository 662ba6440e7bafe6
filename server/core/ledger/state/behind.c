/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/behind.h"

#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/open_step.h"

/* The job may outrun a worker so many times in a row. The first may have been its donor's fault. */
#define OUTRUN_MAX 2u

void mst_behind_enter(struct mst_ledger *l, struct mst_member *m, enum mst_behind behind)
{
	m->behind = behind;
	m->behind_ns = l->now_ns;
	mst_changed(l, m);
}

void mst_behind_lacks(struct mst_ledger *l, struct mst_member *m)
{
	bool again = m->behind == MST_BEHIND_CATCHES;

	m->outrun += again;
	if (!m->comes_back || l->phase != MST_PHASE_RUNNING || l->end_due) {
		mst_life_lose(l, m, MST_EVICT_STALE);
		return;
	}
	if (m->outrun >= OUTRUN_MAX) {
		mst_life_lose(l, m, MST_EVICT_OUTRUN);
		return;
	}
	m->rostered = false;
	mst_behind_enter(l, m, MST_BEHIND_WAITS);
	mst_decide(l, MST_DO_BEHIND, m)->state.version = l->store.newest;
	mst_life_wake_if_alone(l);
}

void mst_behind_reached(struct mst_ledger *l, struct mst_member *m)
{
	if (m->behind != MST_BEHIND_CATCHES)
		return;
	m->behind = MST_UP_TO_DATE;
	m->outrun = 0;
	if (!m->rests)
		m->clock = mst_step_clock_min(l);
}
