/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/resized.h"

#include <errno.h>

#include "common/base/bitset.h"

int mst_resized_outside(struct mst_ledger *l, uint32_t rank, const struct mst_claimed *claimed)
{
	struct mst_ledger_outside *out = &l->outside;

	if (claimed->number == 0 || rank >= MST_WORKERS_MAX)
		return -ERANGE;
	if (l->phase != MST_PHASE_GATHERING)
		return -EIDRM;
	mst_bitset_add(out->ranks, rank);
	if (claimed->number > out->newest.number)
		out->newest = *claimed;
	return MST_AGAIN;
}

uint64_t mst_resized_number(const struct mst_ledger *l)
{
	return l->outside.newest.number;
}

/* How many ranks below @before have said hello; @claims: how many of these claim something. */
static uint32_t count(const struct mst_ledger *l, uint32_t before, uint32_t *claims)
{
	uint32_t there = 0;

	*claims = 0;
	for (uint32_t rank = 0; rank < before; rank++) {
		bool inside = rank < l->cfg.workers;
		bool is = inside ? l->member[rank].state != MST_MEMBER_ABSENT
				 : mst_bitset_test(l->outside.ranks, rank);
		there += is;
		*claims += is && (!inside || l->member[rank].claimed.number > 0);
	}
	return there;
}

bool mst_resized_suffice(const struct mst_ledger *l, const struct mst_claimed *newest)
{
	bool outside = l->outside.newest.number > newest->number;
	uint32_t before = outside ? l->outside.newest.workers : newest->workers;
	uint32_t claims;

	/* If the number is the same, all are there. */
	if (newest->number == 0 || before == 0 || before == l->cfg.workers)
		return true;
	return count(l, before, &claims) == before || 2 * claims > before;
}
