/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/lent.h"

void mst_lent_take(struct mst_lent *l, const struct mst_notice *notice)
{
	l->is_here = true;
	l->version = notice->lent.version;
	l->average = notice->lent.average;
}

void mst_lent_done(struct mst_lent *l)
{
	l->is_here = false;
	l->average = NULL;
	l->return_due = true;
}

void mst_lent_give_back(struct mst_lent *l)
{
	struct mst_ledger_event ev = { .kind = MST_EV_RETURNED };

	ev.lent.shard = l->base->job.plan.server.aggregator.index;
	ev.lent.version = l->version;
	if (l->return_due && mst_requests_event(&l->base->job.requests, &ev))
		l->return_due = false;
}

struct mst_handed mst_lent_piece(const struct mst_lent *l, uint64_t offset, uint64_t most)
{
	uint64_t length = most < MST_TAKE_CHUNK ? most : MST_TAKE_CHUNK;

	return (struct mst_handed){ .version = l->version,
				    .piece = { .offset = offset,
					       .length = (uint32_t)length,
					       .data = (const char *)l->average + offset } };
}
