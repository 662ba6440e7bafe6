/* SPDX-License-Identifier: MIT */
#include "server/core/member.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"

/* Shard sets: linked, copied, and two per slot. */
enum { SETS = 2 + 2 * MST_SLOTS_MAX };

size_t mst_member_words(uint32_t shards)
{
	return SETS * mst_bitset_words(shards);
}

void mst_member_init(struct mst_member *m, uint32_t rank, uint32_t shards, uint64_t *words)
{
	size_t step = mst_bitset_words(shards);

	*m = (struct mst_member){ .rank = rank, .reads = MST_BUFFER_NONE };
	m->read_before = MST_BUFFER_NONE;
	m->copies = MST_BUFFER_NONE;
	m->linked = words;
	m->copied = words + step;
	for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++) {
		m->pending[slot].full = words + (2 + 2 * slot) * step;
		m->pending[slot].abandoned = words + (3 + 2 * slot) * step;
	}
}

static const unsigned next_legal[] = {
	[MST_MEMBER_ABSENT] = 1u << MST_MEMBER_JOINED,
	[MST_MEMBER_JOINED] = 1u << MST_MEMBER_STARTED | 1u << MST_MEMBER_ABSENT,
	[MST_MEMBER_STARTED] = 1u << MST_MEMBER_LEAVING | 1u << MST_MEMBER_ABSENT,
	[MST_MEMBER_LEAVING] = 1u << MST_MEMBER_ABSENT,
};

void mst_member_enter(struct mst_member *m, enum mst_member_state next)
{
	MST_ASSERT(next_legal[m->state] & 1u << next);
	m->state = next;
}

static void set_clear(uint64_t *set, uint32_t shards)
{
	memset(set, 0, mst_bitset_words(shards) * sizeof(*set));
}

static void pending_clear(struct mst_pending *p, uint64_t epoch, uint32_t shards)
{
	p->full_count = 0;
	p->abandoned_count = 0;
	p->epoch = epoch;
	set_clear(p->full, shards);
	set_clear(p->abandoned, shards);
}

void mst_member_admit(struct mst_member *m, uint32_t shards, uint64_t lease_until)
{
	mst_member_enter(m, MST_MEMBER_JOINED);
	m->incarnation++;
	m->link_count = 0;
	set_clear(m->linked, shards);
	m->start_called = m->offers = m->sends_state = false;
	m->lease_until = lease_until;
	m->judged = 0;
	m->rostered = m->owes = m->asks = false;
	m->ask = (struct mst_lane_ask){ 0 };
	m->given = MST_VERSION_NONE;
	m->first_version = 0;
	memset(m->fate, 0, sizeof(m->fate));
	for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++)
		pending_clear(&m->pending[slot], 1, shards);
}

void mst_member_end(struct mst_member *m)
{
	MST_ASSERT(m->reads == MST_BUFFER_NONE && m->copies == MST_BUFFER_NONE);
	mst_member_enter(m, MST_MEMBER_ABSENT);
	m->rostered = m->asks = false;
	if (!m->start_called)
		return; /* nothing was pushed: the fates of the session before still stand */
	m->past_fate_count = 0;
	for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++) {
		if (m->fate[slot].verdict != MUSTER_NONE)
			m->past_fate[m->past_fate_count++] = m->fate[slot];
	}
}

bool mst_member_link(struct mst_member *m, uint32_t shard, uint32_t shards)
{
	MST_ASSERT(shard < shards);
	if (!mst_bitset_test(m->linked, shard)) {
		mst_bitset_add(m->linked, shard);
		m->link_count++;
	}
	return m->link_count == shards;
}

/* What all shards must have read alike. */
static bool header_alike(const struct mst_lane_header *a, const struct mst_lane_header *b)
{
	return a->seq == b->seq && a->epoch == b->epoch && a->tag == b->tag &&
	       memcmp(&a->weight, &b->weight, sizeof(a->weight)) == 0 && a->flags == b->flags;
}

bool mst_member_report_full(struct mst_member *m, uint32_t shard, uint32_t slots,
			    const struct mst_lane_header *h)
{
	if (h->slot >= slots || h->seq <= m->judged || h->seq > m->judged + slots)
		return false;
	struct mst_pending *p = &m->pending[h->slot];
	if (h->epoch != p->epoch || p->abandoned_count > 0 || mst_bitset_test(p->full, shard))
		return false;
	if (p->full_count > 0 && !header_alike(&p->header, h))
		return false;
	struct mst_pending *same = mst_member_pending(m, slots, h->seq);
	if (same != NULL && same != p)
		return false;
	if (p->full_count == 0) {
		p->header = *h;
		m->fate[h->slot] = (struct muster_fate){
			0
		}; /* it uses the next grant: it has heard */
	}
	mst_bitset_add(p->full, shard);
	p->full_count++;
	return true;
}

bool mst_member_report_abandoned(struct mst_member *m, uint32_t shard, uint32_t slot,
				 uint64_t epoch)
{
	struct mst_pending *p = &m->pending[slot];

	if (epoch != p->epoch || p->full_count > 0 || mst_bitset_test(p->abandoned, shard))
		return false;
	mst_bitset_add(p->abandoned, shard);
	p->abandoned_count++;
	return true;
}

struct mst_pending *mst_member_pending(struct mst_member *m, uint32_t slots, uint64_t seq)
{
	for (uint32_t slot = 0; slot < slots; slot++) {
		struct mst_pending *p = &m->pending[slot];
		if (p->full_count > 0 && p->header.seq == seq)
			return p;
	}
	return NULL;
}

struct mst_pending *mst_member_next(struct mst_member *m, uint32_t slots, uint32_t shards)
{
	struct mst_pending *p = mst_member_pending(m, slots, m->judged + 1);

	return p != NULL && p->full_count == shards ? p : NULL;
}

void mst_member_regrant(struct mst_member *m, uint32_t slot, uint32_t shards)
{
	pending_clear(&m->pending[slot], m->pending[slot].epoch + 1, shards);
}
