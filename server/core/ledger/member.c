/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/member.h"

#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"

void mst_member_init(struct mst_member *m, uint32_t rank, struct mst_verdicts *verdicts)
{
	*m = (struct mst_member){
		.rank = rank,
		.reads = MST_BUFFER_NONE,
		.copies = MST_BUFFER_NONE,
		.keeps = MST_BUFFER_NONE,
		.verdicts = verdicts,
	};
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

static void pending_clear(struct mst_pending_header *p, uint64_t epoch)
{
	p->full_count = p->abandoned_count = 0;
	p->full = p->abandoned = 0;
	p->squares = 0;
	p->damaged = false;
	p->epoch = epoch;
}

void mst_member_admit(struct mst_member *m, uint64_t lease_until)
{
	MST_ASSERT(m->reads == MST_BUFFER_NONE && m->copies == MST_BUFFER_NONE &&
		   m->keeps == MST_BUFFER_NONE);
	mst_member_enter(m, MST_MEMBER_JOINED);
	m->incarnation++;
	m->link_count = 0;
	m->linked = 0;
	m->start_called = m->offers = m->sends_state = m->comes_late = false;
	m->stateless = false;
	m->offered = 0;
	m->lease_until = lease_until;
	m->told = m->judged = m->excused = 0;
	m->rejected = m->recomputes = false;
	m->rostered = m->owes = m->asks = m->late = m->rests = m->until_asked = m->far = false;
	m->ask = (struct mst_lane_ask){ 0 };
	m->given = MST_VERSION_NONE;
	m->comes_back = false;
	m->took = m->strays = false;
	m->behind = MST_UP_TO_DATE;
	m->outrun = 0;
	m->asked_in = 0;
	m->unlinked = 0;
	m->batch_samples = 0;
	m->batch_full = (double)INFINITY;
	for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++)
		pending_clear(&m->pending[slot], 1);
}

void mst_member_begin_verdicts(struct mst_member *m)
{
	MST_ASSERT(m->state != MST_MEMBER_ABSENT && m->verdicts->incarnation <= m->incarnation);
	if (m->verdicts->incarnation != m->incarnation)
		mst_verdicts_begin(m->verdicts, m->incarnation);
}

void mst_member_end(struct mst_member *m)
{
	MST_ASSERT(m->reads == MST_BUFFER_NONE && m->copies == MST_BUFFER_NONE &&
		   m->keeps == MST_BUFFER_NONE);
	mst_member_enter(m, MST_MEMBER_ABSENT);
	m->behind = MST_UP_TO_DATE;
	m->rostered = m->asks = m->late = m->rests = m->far = false;
}

bool mst_member_link(struct mst_member *m, uint32_t shard, uint32_t shards)
{
	MST_ASSERT(shard < shards);
	if (!mst_bitset_test(&m->linked, shard)) {
		mst_bitset_add(&m->linked, shard);
		m->link_count++;
	}
	return m->link_count == shards;
}

/* Do two shards report the same header? */
static bool header_alike(const struct mst_lane_header *a, const struct mst_lane_header *b)
{
	return a->seq == b->seq && a->epoch == b->epoch && a->tag == b->tag &&
	       a->unheard == b->unheard && memcmp(&a->weight, &b->weight, sizeof(a->weight)) == 0 &&
	       memcmp(&a->clip, &b->clip, sizeof(a->clip)) == 0 && a->flags == b->flags;
}

/* Can the acknowledgement be true? A worker cannot have heard a verdict that has not been given,
 * and may have at most MUSTER_TICKETS_MAX tickets open. */
static bool unheard_fits(const struct mst_member *m, const struct mst_lane_header *h)
{
	return h->unheard < MUSTER_TICKETS_MAX && h->unheard < h->seq &&
	       h->seq - 1 - h->unheard <= m->judged;
}

bool mst_member_report_full(struct mst_member *m, uint32_t shard, uint32_t slots,
			    const struct mst_lane_header *h)
{
	if (h->slot >= slots || h->seq <= m->judged || h->seq > m->judged + slots ||
	    !unheard_fits(m, h))
		return false;
	if (shard == MST_SHARD_LEAD && h->seq != m->told + 1)
		return false;
	struct mst_pending_header *p = &m->pending[h->slot];
	if (h->epoch != p->epoch || p->abandoned_count > 0 || mst_bitset_test(&p->full, shard))
		return false;
	if (p->full_count > 0 && !header_alike(&p->header, h))
		return false;
	struct mst_pending_header *same = mst_member_pending(m, slots, h->seq);
	if (same != NULL && same != p)
		return false;
	if (p->full_count == 0) {
		p->header = *h;
		mst_member_begin_verdicts(m);
		mst_verdicts_heard(m->verdicts, h->seq - 1 - h->unheard);
	}
	if (shard == MST_SHARD_LEAD)
		m->told = h->seq;
	mst_bitset_add(&p->full, shard);
	p->full_count++;
	return true;
}

bool mst_member_report_abandoned(struct mst_member *m, uint32_t shard, uint32_t slot,
				 uint64_t epoch)
{
	struct mst_pending_header *p = &m->pending[slot];

	if (epoch != p->epoch || p->full_count > 0 || mst_bitset_test(&p->abandoned, shard))
		return false;
	mst_bitset_add(&p->abandoned, shard);
	p->abandoned_count++;
	return true;
}

struct mst_pending_header *mst_member_pending(struct mst_member *m, uint32_t slots, uint64_t seq)
{
	for (uint32_t slot = 0; slot < slots; slot++) {
		struct mst_pending_header *p = &m->pending[slot];
		if (p->full_count > 0 && p->header.seq == seq)
			return p;
	}
	return NULL;
}

struct mst_pending_header *mst_member_next(struct mst_member *m, uint32_t slots, uint32_t shards)
{
	struct mst_pending_header *p = mst_member_pending(m, slots, m->judged + 1);

	return p != NULL && p->full_count == shards ? p : NULL;
}

uint64_t mst_member_came(struct mst_member *m, uint32_t slots, uint32_t shards)
{
	const struct mst_pending_header *p;
	uint64_t seq = m->judged;

	while ((p = mst_member_pending(m, slots, seq + 1)) != NULL && p->full_count == shards)
		seq++;
	return seq;
}

bool mst_member_is_cut_off(struct mst_member *m, uint32_t slots)
{
	const struct mst_pending_header *p = mst_member_pending(m, slots, m->judged + 1);

	return (m->unlinked & ~(p != NULL ? p->full : 0)) != 0;
}

void mst_member_regrant(struct mst_member *m, uint32_t slot)
{
	MST_ASSERT(m->pending[slot].full_count == 0 || m->pending[slot].abandoned_count == 0);
	pending_clear(&m->pending[slot], m->pending[slot].epoch + 1);
}
