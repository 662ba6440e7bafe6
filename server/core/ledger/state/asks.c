/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/asks.h"

static void let_go(struct mst_ledger *l, uint32_t *buffer, enum mst_hold hold)
{
	if (*buffer != MST_BUFFER_NONE && mst_store_let_go(&l->store, *buffer, hold))
		mst_waits_over(&l->waits, l->member, MST_WAIT_ROOM);
	*buffer = MST_BUFFER_NONE;
}

void mst_ask_let_go(struct mst_ledger *l, uint32_t *buffer)
{
	let_go(l, buffer, MST_HOLD_LASTING);
}

enum mst_hold mst_ask_hold_of_copy(const struct mst_ledger *l, const struct mst_member *m)
{
	return mst_is_far(l, m) ? MST_HOLD_LASTING : MST_HOLD_PASSING;
}

void mst_ask_copied(struct mst_ledger *l, struct mst_member *m)
{
	let_go(l, &m->copies, mst_ask_hold_of_copy(l, m));
}

/* A member with an ask may be told to keep the version that it reads in place, if that version is
 * still the newest when the ask is answered. So the ask goes on holding that buffer until it is
 * answered or another version is the newest. Otherwise others could be given more to read in place
 * after the buffer was let go, and one buffer too many would be held when it is held again. */
static void let_go_of_old(struct mst_ledger *l, struct mst_member *m)
{
	if (m->asks && m->ask.have != l->store.newest)
		mst_ask_let_go(l, &m->reads);
}

bool mst_ask_take(struct mst_ledger *l, struct mst_member *m, const struct mst_lane_ask *ask,
		  uint64_t after)
{
	/* The ledger knows which version the worker has. A worker that claims another one might be
	 * told to keep a version that it does not have. */
	if (m->asks || ask->number != m->ask.number + 1 || ask->have != m->given)
		return false;
	m->ask = *ask;
	m->asks = true;
	m->ask_after = after;
	m->asked_ns = l->now_ns;
	let_go_of_old(l, m);
	/* the worker has gone on, so it does not wait for that copy any more */
	mst_ask_copied(l, m);
	mst_changed(l, m);
	return true;
}

void mst_ask_new_version(struct mst_ledger *l)
{
	const struct mst_counts *c = &l->counts;

	for (uint32_t rank = mst_counts_next(c, MST_STANDS_KEEPING, 0); rank != MST_RANK_NONE;
	     rank = mst_counts_next(c, MST_STANDS_KEEPING, rank + 1)) {
		let_go_of_old(l, &l->member[rank]);
		mst_changed(l, &l->member[rank]);
	}
	mst_waits_over(&l->waits, l->member, MST_WAIT_COMMIT);
	mst_waits_over(&l->waits, l->member, MST_WAIT_ROOM);
}

void mst_ask_try_all(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++)
		mst_changed(l, &l->member[rank]);
}

bool mst_ask_bound_parks(const struct mst_ledger *l, const struct mst_member *m, uint64_t clock_min)
{
	return l->phase == MST_PHASE_RUNNING && l->rule.release == MST_RELEASE_BOUND &&
	       m->rostered && mst_member_awaits_answer(m) && m->owes &&
	       m->clock > clock_min + (uint64_t)l->rule.bound;
}

void mst_ask_drop(struct mst_ledger *l, struct mst_member *m)
{
	mst_ask_let_go(l, &m->reads);
	mst_ask_copied(l, m);
	mst_ask_let_go(l, &m->keeps);
}
