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
	t->sent++;
	*cell_of(t, t->sent) = (struct mst_ticket){ .number = t->sent,
						    .verdict = MUSTER_CANCELLED };
	return t->sent;
}

uint64_t mst_tickets_issue_pass(struct mst_tickets *t)
{
	uint64_t number = mst_tickets_issue(t);

	cell_of(t, number)->verdict = MUSTER_NONE;
	return number;
}

static bool is_pass(struct mst_tickets *t, uint64_t number)
{
	return cell_of(t, number)->verdict == MUSTER_NONE;
}

/* Skips passes, which have no verdict to hand out. */
static void skip_given(struct mst_tickets *t)
{
	while (t->given < t->judged && is_pass(t, t->given + 1))
		t->given++;
}

/* Passes up to @number have been judged, for a later ticket has been judged. */
static void skip_judged(struct mst_tickets *t, uint64_t number)
{
	while (t->judged < number && is_pass(t, t->judged + 1))
		t->judged++;
}

/* Some passes after the last judged ticket have their slots granted again. These passes have been
 * judged, and so have the passes before them. */
static void skip_granted(struct mst_tickets *t)
{
	for (uint64_t n = t->judged + 1; n <= t->sent && is_pass(t, n); n++) {
		if (cell_of(t, n)->granted)
			t->judged = n;
	}
}

/* If a ticket after the pass has been judged, so has the pass, and its cell may be another
 * ticket's. */
void mst_tickets_passed(struct mst_tickets *t, uint64_t number)
{
	MST_ASSERT(number <= t->sent);
	if (number <= t->judged)
		return;
	cell_of(t, number)->granted = true;
	skip_granted(t);
	skip_given(t);
}

int mst_tickets_judge(struct mst_tickets *t, const struct mst_ticket *verdict)
{
	bool counted = verdict->verdict == MUSTER_COUNTED;

	if (verdict->number <= t->judged || verdict->number > t->sent)
		return -EPROTO;
	skip_judged(t, verdict->number - 1);
	if (verdict->number != t->judged + 1 || is_pass(t, verdict->number))
		return -EPROTO;
	if (verdict->verdict <= MUSTER_NONE || verdict->verdict > MUSTER_DAMAGED ||
	    counted != (verdict->counted_in != 0))
		return -EPROTO;
	*cell_of(t, ++t->judged) = *verdict;
	skip_granted(t);
	skip_given(t);
	return 0;
}

/* Each cell has said so since it was issued. */
void mst_tickets_cancel_rest(struct mst_tickets *t)
{
	t->judged = t->sent;
	skip_given(t);
}

struct mst_ticket mst_tickets_give(struct mst_tickets *t)
{
	MST_ASSERT(mst_tickets_due(t));
	struct mst_ticket ticket = *cell_of(t, ++t->given);
	skip_given(t);
	return ticket;
}
