/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/behind.h"

#include "server/core/ledger/state/life.h"

void mst_behind_enter(struct mst_ledger *l, struct mst_member *m, enum mst_behind behind)
{
	m->behind = behind;
	m->behind_ns = l->now_ns;
	mst_changed(l, m);
}

void mst_behind_lacks(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why)
{
	if (l->end_due) { /* it is answered when the job has ended, as all are */
		mst_waits_for(&l->waits, m, MST_WAIT_ITSELF);
		return;
	}
	if (!m->comes_back) {
		mst_life_lose(l, m, why);
		return;
	}
	m->outrun += m->behind == MST_BEHIND_CATCHES;
	m->rostered = false;
	mst_behind_enter(l, m, MST_BEHIND_WAITS);
	struct mst_decision *d = mst_decide(l, MST_DO_BEHIND, m);
	d->state.version = l->store.newest;
	d->state.number = m->outrun;
	mst_life_wake_if_alone(l);
}

void mst_behind_reached(struct mst_member *m)
{
	if (m->behind != MST_BEHIND_CATCHES)
		return;
	m->behind = MST_UP_TO_DATE;
	m->outrun = 0;
}
