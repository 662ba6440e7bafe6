/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/resized.h"

#include <errno.h>

#include "common/base/bitset.h"
#include "server/core/policy/majority.h"

int mst_resized_outside(struct mst_ledger *l, uint32_t rank, const struct mst_claimed *claimed)
{
	struct mst_ledger_outside *out = &l->outside;

	if (!mst_claimed_takes_part(claimed) || rank >= MST_WORKERS_MAX)
		return -ERANGE;
	if (l->phase != MST_PHASE_GATHERING)
		return -EIDRM;
	mst_bitset_add(out->ranks, rank);
	if (claimed->number > out->newest.number)
		out->newest = *claimed;
	return MST_AGAIN;
}

/* A rank of this job that has only said hello may be gone before it says START. */
static bool has_started(const struct mst_ledger *l, uint32_t rank)
{
	return rank < l->cfg.workers ? mst_member_takes_part(&l->member[rank])
				     : mst_bitset_test(l->outside.ranks, rank);
}

uint32_t mst_resized_before(const struct mst_ledger *l, const struct mst_claimed *newest)
{
	bool outside = l->outside.newest.number > newest->number;
	uint32_t before = outside ? l->outside.newest.workers : newest->workers;

	return before > 0 ? before : l->cfg.workers;
}

uint32_t mst_resized_claims(const struct mst_ledger *l, uint32_t before)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < before; rank++) {
		bool outside = rank >= l->cfg.workers;
		count += has_started(l, rank) &&
			 (outside || mst_claimed_takes_part(&l->member[rank].claimed));
	}
	return count;
}

bool mst_resized_suffice(const struct mst_ledger *l, const struct mst_claimed *newest)
{
	uint32_t before = mst_resized_before(l, newest), there = 0;

	/* Only ranks that are left out have a version: the job does not begin anew without it. */
	if (l->cfg.owner == MUSTER_WORKERS_OWN && newest->number == 0 &&
	    l->outside.newest.number > 0)
		return false;
	/* If the number is the same, all are there. */
	if (before == l->cfg.workers)
		return true;
	for (uint32_t rank = 0; rank < before; rank++)
		there += has_started(l, rank);
	return there == before || mst_resized_claims(l, before) >= mst_majority(before);
}
