/* SPDX-License-Identifier: MIT */
/*
 * The numbers keep this order: acked <= put <= said <= acked + window. Entries in (acked, said] are
 * kept; those in (acked, put] are on the link, or were lost with it.
 */
#include "server/cluster/resend.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/assert.h"

struct mst_resend {
	uint32_t window;
	uint64_t said, put, acked; /* the last number of each */
	/* of the other direction: last executed here, and last acknowledged */
	uint64_t taken, told;
	struct mst_peer_entry entry[];
};

int mst_resend_new(uint32_t window, struct mst_resend **out)
{
	struct mst_resend *r = calloc(1, sizeof(*r) + window * sizeof(r->entry[0]));

	if (r == NULL)
		return -ENOMEM;
	r->window = window;
	*out = r;
	return 0;
}

void mst_resend_free(struct mst_resend *r)
{
	free(r);
}

static struct mst_peer_entry *entry_of(struct mst_resend *r, uint64_t number)
{
	return &r->entry[(number - 1) % r->window];
}

uint32_t mst_resend_room(const struct mst_resend *r)
{
	return r->window - (uint32_t)(r->said - r->acked);
}

void mst_resend_say(struct mst_resend *r, const struct mst_peer_entry *entry)
{
	MST_ASSERT(mst_resend_room(r) > 0);
	struct mst_peer_entry *kept = entry_of(r, ++r->said);
	*kept = *entry;
	kept->number = r->said;
}

const struct mst_peer_entry *mst_resend_next(struct mst_resend *r)
{
	if (r->put == r->said)
		return NULL;
	struct mst_peer_entry *entry = entry_of(r, r->put + 1);
	entry->ack = r->taken;
	return entry;
}

void mst_resend_put(struct mst_resend *r)
{
	MST_ASSERT(r->put < r->said);
	r->told = entry_of(r, ++r->put)->ack;
}

uint64_t mst_resend_unput(const struct mst_resend *r)
{
	return r->said - r->put;
}

int mst_resend_acked(struct mst_resend *r, uint64_t ack)
{
	if (ack > r->put)
		return -EPROTO;
	if (ack > r->acked)
		r->acked = ack;
	return 0;
}

int mst_resend_take(struct mst_resend *r, const struct mst_peer_entry *entry)
{
	if (entry->number == 0 || entry->number > r->taken + 1)
		return -EPROTO;
	int rc = mst_resend_acked(r, entry->ack);
	if (rc != 0 || entry->number <= r->taken)
		return rc;
	r->taken++;
	return 1;
}

uint64_t mst_resend_taken(const struct mst_resend *r)
{
	return r->taken;
}

bool mst_resend_owes(const struct mst_resend *r, bool now)
{
	uint64_t untold = r->taken - r->told;

	return r->put == r->said && (untold >= r->window / 2 || (now && untold > 0));
}

void mst_resend_told(struct mst_resend *r)
{
	r->told = r->taken;
}

int mst_resend_resume(struct mst_resend *r, uint64_t ack)
{
	if (ack < r->acked || ack > r->said)
		return -EPROTO;
	r->acked = r->put = ack;
	return 0;
}
