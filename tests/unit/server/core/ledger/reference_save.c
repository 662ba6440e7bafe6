/* SPDX-License-Identifier: MIT */
/* Which versions the reference ledger has saved, and whose averages it has lent. */
#include "tests/unit/server/core/ledger/reference_state.h"

static void save(struct reference *r)
{
	r->saving = r->saved_last = reference_newest(r);
	r->saved = 0;
	r->saved_ever = true;
	r->saved_ns = r->now_ns;
	r->save_failed = r->save_again = false;
	decide(r, MST_DO_SAVE, (struct mst_identity){ 0 })->commit.version = r->saving;
}

void save_every(struct reference *r)
{
	bool rests = r->saved_ever && r->now_ns < r->saved_ns + r->cfg.saves.pause_ns;

	if (r->cfg.saves.wanted && r->saving == MST_VERSION_NONE && !rests &&
	    reference_newest(r) >= r->saved_last + r->cfg.saves.commits)
		save(r);
}

void save_newest(struct reference *r)
{
	if (!r->cfg.saves.wanted || !r->born || reference_newest(r) == r->saved_last)
		return;
	if (r->saving == MST_VERSION_NONE)
		save(r);
	else
		r->save_again = true;
}

void save_reported(struct reference *r, const struct mst_ledger_event *ev)
{
	if (r->saving == MST_VERSION_NONE || ev->saved.version != r->saving)
		return;
	r->saved |= UINT64_C(1) << ev->saved.shard;
	r->save_failed |= ev->saved.failed;
	if (r->saved != all_shards(r))
		return;
	struct mst_decision *d = decide(r, MST_DO_SAVED, (struct mst_identity){ 0 });
	d->saved.version = r->saving;
	d->saved.failed = r->save_failed;
	d->saved.again = r->save_again;
	r->saving = MST_VERSION_NONE;
	if (r->save_again)
		save(r);
}

static void lend(struct reference *r)
{
	r->lent = reference_newest(r);
	r->returned = 0;
	r->lend_again = false;
	decide(r, MST_DO_LEND, (struct mst_identity){ 0 })->commit.version = r->lent;
}

void lend_asked(struct reference *r)
{
	if (r->cfg.average == 0 || !r->born)
		return;
	if (r->lent == MST_VERSION_NONE)
		lend(r);
	else
		r->lend_again = true;
}

void lend_returned(struct reference *r, const struct mst_ledger_event *ev)
{
	if (r->lent == MST_VERSION_NONE || ev->lent.version != r->lent)
		return;
	r->returned |= UINT64_C(1) << ev->lent.shard;
	if (r->returned != all_shards(r))
		return;
	r->lent = MST_VERSION_NONE;
	if (r->lend_again)
		lend(r);
}
