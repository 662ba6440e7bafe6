/* SPDX-License-Identifier: MIT */
/*
 * acked <= put <= said <= acked + window: cells in (acked, said] are kept, those in (acked, put]
 * are on the link, or lost with it.
 */
#include "server/core/relay.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/assert.h"

struct mst_relay {
	uint32_t window;
	uint64_t said, put, acked; /* numbers of the last */
	uint64_t taken, told;      /* of the other direction */
	struct mst_peer_cell cell[];
};

int mst_relay_new(uint32_t window, struct mst_relay **out)
{
	struct mst_relay *r = calloc(1, sizeof(*r) + window * sizeof(r->cell[0]));

	if (r == NULL)
		return -ENOMEM;
	r->window = window;
	*out = r;
	return 0;
}

void mst_relay_free(struct mst_relay *r)
{
	free(r);
}

static struct mst_peer_cell *cell_of(struct mst_relay *r, uint64_t number)
{
	return &r->cell[(number - 1) % r->window];
}

uint32_t mst_relay_room(const struct mst_relay *r)
{
	return r->window - (uint32_t)(r->said - r->acked);
}

void mst_relay_say(struct mst_relay *r, const struct mst_peer_cell *cell)
{
	MST_ASSERT(mst_relay_room(r) > 0);
	struct mst_peer_cell *kept = cell_of(r, ++r->said);
	*kept = *cell;
	kept->number = r->said;
}

const struct mst_peer_cell *mst_relay_next(struct mst_relay *r)
{
	if (r->put == r->said)
		return NULL;
	struct mst_peer_cell *cell = cell_of(r, r->put + 1);
	cell->ack = r->taken;
	return cell;
}

void mst_relay_put(struct mst_relay *r)
{
	MST_ASSERT(r->put < r->said);
	r->told = cell_of(r, ++r->put)->ack;
}

uint64_t mst_relay_unput(const struct mst_relay *r)
{
	return r->said - r->put;
}

int mst_relay_acked(struct mst_relay *r, uint64_t ack)
{
	if (ack > r->put)
		return -EPROTO;
	if (ack > r->acked)
		r->acked = ack;
	return 0;
}

int mst_relay_take(struct mst_relay *r, const struct mst_peer_cell *cell)
{
	if (cell->number == 0 || cell->number > r->taken + 1)
		return -EPROTO;
	int rc = mst_relay_acked(r, cell->ack);
	if (rc != 0 || cell->number <= r->taken)
		return rc;
	r->taken++;
	return 1;
}

uint64_t mst_relay_taken(const struct mst_relay *r)
{
	return r->taken;
}

bool mst_relay_owes(const struct mst_relay *r, bool now)
{
	uint64_t untold = r->taken - r->told;

	return r->put == r->said && (untold >= r->window / 2 || (now && untold > 0));
}

void mst_relay_told(struct mst_relay *r)
{
	r->told = r->taken;
}

int mst_relay_resume(struct mst_relay *r, uint64_t ack)
{
	if (ack < r->acked || ack > r->said)
		return -EPROTO;
	r->acked = r->put = ack;
	return 0;
}
