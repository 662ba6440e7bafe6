/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/waits.h"

#include "common/base/assert.h"

int mst_waits_init(struct mst_waits *w, uint32_t workers)
{
	int rc = 0;

	*w = (struct mst_waits){ 0 };
	for (int i = 0; i < MST_WAITS && rc == 0; i++)
		rc = mst_ranks_init(&w->set[i], workers);
	if (rc == 0)
		rc = mst_heap_init(&w->clocks, workers);
	if (rc == 0)
		rc = mst_heap_init(&w->since, workers);
	return rc;
}

uint64_t mst_waits_bytes(uint32_t workers)
{
	return MST_WAITS * mst_ranks_bytes(workers) + 2 * mst_heap_bytes(workers);
}

void mst_waits_fini(struct mst_waits *w)
{
	for (int i = 0; i < MST_WAITS; i++)
		mst_ranks_fini(&w->set[i]);
	mst_heap_fini(&w->clocks);
	mst_heap_fini(&w->since);
}

void mst_waits_for(struct mst_waits *w, struct mst_member *m, enum mst_wait what)
{
	MST_ASSERT(m->asks || what == MST_WAIT_ITSELF);
	if (m->waits == what && what != MST_WAIT_CLOCK)
		return; /* only a clock may have changed meanwhile */
	if (m->waits == MST_WAIT_CLOCK) {
		mst_heap_remove(&w->clocks, m->rank);
		mst_heap_remove(&w->since, m->rank);
	}
	mst_ranks_remove(&w->set[m->waits], m->rank);
	m->waits = what;
	if (what == MST_WAIT_CLOCK) {
		mst_heap_set(&w->clocks, m->rank, m->clock);
		mst_heap_set(&w->since, m->rank, m->asked_ns);
	}
	if (what != MST_WAIT_ITSELF)
		mst_ranks_add(&w->set[what], m->rank);
}

void mst_waits_over(struct mst_waits *w, struct mst_member *member, enum mst_wait what)
{
	while (w->set[what].count > 0)
		mst_waits_for(w, &member[mst_ranks_first(&w->set[what])], MST_WAIT_TRIAL);
}

void mst_waits_clock(struct mst_waits *w, struct mst_member *member, uint64_t most)
{
	MST_ASSERT(w->clocks.count == w->set[MST_WAIT_CLOCK].count);
	while (w->clocks.count > 0 && mst_heap_least(&w->clocks) <= most)
		mst_waits_for(w, &member[mst_heap_first(&w->clocks)], MST_WAIT_TRIAL);
}
