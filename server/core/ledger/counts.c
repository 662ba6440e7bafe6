/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/counts.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"

int mst_counts_init(struct mst_counts *c, uint32_t workers)
{
	*c = (struct mst_counts){ 0 };
	c->noted = calloc(workers, sizeof(*c->noted));
	int rc = c->noted == NULL ? -ENOMEM : 0;
	for (uint32_t rank = 0; rank < workers && rc == 0; rank++)
		c->noted[rank].clock = c->noted[rank].lease = c->noted[rank].at_hand = MST_NEVER;
	for (int i = 0; i < MST_STANDINGS && rc == 0; i++)
		rc = mst_ranks_init(&c->set[i], workers);
	if (rc == 0)
		rc = mst_heap_init(&c->clocks, workers);
	if (rc == 0)
		rc = mst_heap_init(&c->leases, workers);
	if (rc == 0)
		rc = mst_heap_init(&c->at_hand, workers);
	return rc;
}

uint64_t mst_counts_bytes(uint32_t workers)
{
	return workers * sizeof(struct mst_noted) + MST_STANDINGS * mst_ranks_bytes(workers) +
	       3 * mst_heap_bytes(workers);
}

void mst_counts_fini(struct mst_counts *c)
{
	for (int i = 0; i < MST_STANDINGS; i++)
		mst_ranks_fini(&c->set[i]);
	mst_heap_fini(&c->clocks);
	mst_heap_fini(&c->leases);
	mst_heap_fini(&c->at_hand);
	free(c->noted);
}

static uint32_t standing_of(struct mst_member *m, uint32_t slots, uint32_t shards)
{
	bool absent = m->state == MST_MEMBER_ABSENT;
	bool in = mst_member_takes_part(m);

	return (uint32_t)absent << MST_STANDS_ABSENT | (uint32_t)in << MST_STANDS_IN |
	       (uint32_t)(in && !m->rostered && !m->rests && m->behind == MST_UP_TO_DATE)
		       << MST_STANDS_NEW |
	       (uint32_t)m->rostered << MST_STANDS_ROSTERED |
	       (uint32_t)mst_member_missing(m) << MST_STANDS_MISSING |
	       (uint32_t)(m->step_count > 0) << MST_STANDS_COUNTED |
	       (uint32_t)m->passed << MST_STANDS_PASSED |
	       (uint32_t)(!absent && mst_member_next(m, slots, shards) != NULL)
		       << MST_STANDS_JUDGEABLE |
	       (uint32_t)(m->state == MST_MEMBER_STARTED && !m->asks) << MST_STANDS_BUSY |
	       (uint32_t)(m->behind != MST_UP_TO_DATE) << MST_STANDS_BEHIND |
	       (uint32_t)(m->asks && m->reads != MST_BUFFER_NONE) << MST_STANDS_KEEPING;
}

/* MST_NEVER means that the rank has no key. */
static void order(struct mst_heap *h, uint64_t *noted, uint32_t rank, uint64_t key)
{
	if (*noted == key)
		return;
	*noted = key;
	if (key != MST_NEVER)
		mst_heap_set(h, rank, key);
	else
		mst_heap_remove(h, rank);
}

void mst_counts_note(struct mst_counts *c, struct mst_member *m, uint32_t slots, uint32_t shards)
{
	struct mst_noted *noted = &c->noted[m->rank];
	uint32_t standing = standing_of(m, slots, shards);

	for (uint32_t left = standing ^ noted->standing; left != 0; left &= left - 1) {
		int changed = __builtin_ctz(left);
		if (standing >> changed & 1u)
			mst_ranks_add(&c->set[changed], m->rank);
		else
			mst_ranks_remove(&c->set[changed], m->rank);
	}
	noted->standing = standing;
	order(&c->clocks, &noted->clock, m->rank, m->rostered ? m->clock : MST_NEVER);
	order(&c->leases, &noted->lease, m->rank,
	      m->state != MST_MEMBER_ABSENT ? m->lease_until : MST_NEVER);
	bool at_hand = c->by_micro && m->rostered && (c->in_order || !mst_member_awaits_answer(m));
	order(&c->at_hand, &noted->at_hand, m->rank, at_hand ? m->given : MST_NEVER);
}
