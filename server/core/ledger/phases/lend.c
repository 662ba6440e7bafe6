/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/lend.h"

#include "common/base/assert.h"

/* Before the start there is no average, and without the option there never is. */
static bool has_average(const struct mst_ledger *l)
{
	return l->cfg.average > 0 && l->store.newest != MST_VERSION_NONE;
}

static void lend(struct mst_ledger *l)
{
	l->lending.version = l->store.newest;
	l->lending.reported = 0;
	l->lending.due = false;
	mst_decide(l, MST_DO_LEND, NULL)->commit.version = l->store.newest;
}

void mst_lend_asked(struct mst_ledger *l)
{
	if (!has_average(l))
		return;
	if (l->lending.version != MST_VERSION_NONE)
		l->lending.due = true;
	else
		lend(l);
}

/* A report that cannot be now is of a server that breaks the protocol, and changes nothing. */
void mst_lend_returned(struct mst_ledger *l, const struct mst_ledger_event *ev)
{
	uint64_t all = UINT64_MAX >> (64 - l->cfg.shards);

	MST_ASSERT(ev->lent.shard < l->cfg.shards);
	if (l->lending.version == MST_VERSION_NONE || ev->lent.version != l->lending.version)
		return;
	l->lending.reported |= UINT64_C(1) << ev->lent.shard;
	if (l->lending.reported != all)
		return;
	l->lending.version = MST_VERSION_NONE;
	if (l->lending.due)
		lend(l);
}
