/* SPDX-License-Identifier: MIT */
#include "client/core/tickets.h"

#include <errno.h>

#include "common/base/assert.h"

static struct mst_ticket *cell_of(struct mst_tickets *t, uint64_t number)
{
	return &t->ring[number % MUSTER_TICKETS_MAX];
}

uint64_t mst_tickets_issue(struct mst_tickets *t)
{
	MST_ASSERT(!mst_tickets_full(t));
	return ++t->sent;
}

int mst_tickets_judge(struct mst_tickets *t, const struct mst_ticket *verdict)
{
	bool counted = verdict->verdict == MUSTER_COUNTED;

	if (t->judged == t->sent || verdict->number != t->judged + 1)
		return -EPROTO;
	if (verdict->verdict <= MUSTER_NONE || verdict->verdict > MUSTER_REFUSED ||
	    counted != (verdict->counted_in != 0))
		return -EPROTO;
	*cell_of(t, ++t->judged) = *verdict;
	return 0;
}

void mst_tickets_cancel_rest(struct mst_tickets *t)
{
	while (t->judged < t->sent) {
		t->judged++;
		*cell_of(t, t->judged) = (struct mst_ticket){ .number = t->judged,
							      .verdict = MUSTER_CANCELLED };
	}
}

struct mst_ticket mst_tickets_give(struct mst_tickets *t)
{
	MST_ASSERT(mst_tickets_due(t));
	return *cell_of(t, ++t->given);
}
