/* SPDX-License-Identifier: MIT */
#include "client/core/tickets.h"

#include <errno.h>

#include "common/base/assert.h"

static struct mst_ticket *cell_of(struct mst_tickets *t, uint64_t number)
{
	return &t->ring[number % MUSTER_TICKETS_MAX];
}

uint64_t mst_tickets_issue(struct mst_tickets *t, uint64_t tag)
{
	MST_ASSERT(!mst_tickets_full(t));
	t->sent++;
	*cell_of(t, t->sent) = (struct mst_ticket){ .number = t->sent,
						    .tag = tag,
						    .verdict = MUSTER_CANCELLED };
	return t->sent;
}

uint64_t mst_tickets_issue_pass(struct mst_tickets *t)
{
	uint64_t number = mst_tickets_issue(t, 0);

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
	struct mst_ticket *cell = cell_of(t, ++t->judged);
	cell->verdict = verdict->verdict;
	cell->counted_in = verdict->counted_in;
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

/* ---- after the loss of a server ---- */

static void count_in(struct mst_tickets *t, uint64_t number, uint64_t version)
{
	cell_of(t, number)->verdict = MUSTER_COUNTED;
	cell_of(t, number)->counted_in = version;
	t->judged = number;
}

/* How many tickets are known to have been counted in the version. A verdict stays in its cell until
 * the cell is another ticket's. */
static uint32_t known_in(struct mst_tickets *t, uint64_t version)
{
	uint32_t known = 0;

	for (uint64_t n = t->judged; n > 0 && t->sent - n < MUSTER_TICKETS_MAX; n--)
		known += cell_of(t, n)->counted_in == version;
	return known;
}

/* A tag from later wraps round, to what is beyond every window. */
static bool fits(const struct mst_ticket *ticket, const struct mst_tickets_part *part)
{
	return part->version - 1 - ticket->tag <= part->window;
}

void mst_tickets_counted(struct mst_tickets *t, const struct mst_tickets_part *part)
{
	MST_ASSERT(part->version > 0);
	uint32_t known = known_in(t, part->version);

	for (uint64_t n = t->judged + 1; n <= t->sent && n <= part->sent && known < part->count;
	     n++) {
		if (is_pass(t, n) || !fits(cell_of(t, n), part))
			continue;
		count_in(t, n, part->version);
		known++;
	}
	skip_given(t);
}

void mst_tickets_withdraw(struct mst_tickets *t, uint64_t newest)
{
	for (uint64_t n = t->given + 1; n <= t->judged; n++) {
		struct mst_ticket *cell = cell_of(t, n);
		if (cell->counted_in <= newest)
			continue;
		cell->verdict = MUSTER_CANCELLED;
		cell->counted_in = 0;
	}
}

void mst_tickets_reopen(struct mst_tickets *t, uint64_t newest)
{
	uint64_t first = t->given + 1;

	while (first <= t->judged && cell_of(t, first)->counted_in <= newest)
		first++;
	for (uint64_t n = first; n <= t->judged; n++) {
		if (!is_pass(t, n))
			cell_of(t, n)->verdict = MUSTER_CANCELLED;
		cell_of(t, n)->counted_in = 0;
	}
	if (t->judged >= first)
		t->judged = first - 1;
}

struct mst_ticket mst_tickets_give(struct mst_tickets *t)
{
	MST_ASSERT(mst_tickets_due(t));
	struct mst_ticket ticket = *cell_of(t, ++t->given);
	skip_given(t);
	return ticket;
}
