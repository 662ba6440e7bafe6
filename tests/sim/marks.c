/* SPDX-License-Identifier: MIT */
/* What a worker takes for whole by the marks alone, as it would if all its servers were killed this
 * moment, is whole: looked at whenever something may have been written where it reads. */
#include <inttypes.h>

#include "tests/sim/actors.h"
#include "tests/sim/expect.h"

/* It has links, and they have not been freed. */
static bool is_linked(const struct muster *m)
{
	for (uint32_t k = 0; k < m->links.count; k++) {
		if (m->links.part[k].link == NULL)
			return false;
	}
	return m->links.count > 0;
}

void marks_look_at(const struct sim_worker *w)
{
	const struct muster *m = w->m;

	if (m == NULL || w->process->dead || w->seen.rogue || !is_linked(m))
		return;
	const struct mst_held *held = &m->worker.held;
	if (obs_is_apart(&w->seen) || !mst_contiguous_whole(&m->contiguous, held))
		return;
	int64_t at = expect_differs(held->version, mst_contiguous_arrived(&m->contiguous, held));
	if (at >= 0)
		obs_violated("rank %" PRIu32 " would take version %" PRIu64
			     " for whole, and element %" PRId64 " is another's",
			     w->seen.rank, held->version, at);
}

void marks_look(const struct sim_plan *plan)
{
	for (uint32_t rank = 0; plan->marks && rank < plan->workers; rank++) {
		if (actors_worker(rank) != NULL)
			marks_look_at(actors_worker(rank));
	}
}
