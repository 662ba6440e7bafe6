/* SPDX-License-Identifier: MIT */
#include "tools/sim/network/link.h"

#include <math.h>

#include "common/base/assert.h"
#include "common/base/clock.h"

/* Bytes per ns of each message now. */
static double share(const struct mst_sim_link *l)
{
	double equal = l->rate / l->queue.count;

	if (l->rate_each > 0 && (l->rate <= 0 || l->rate_each < equal))
		return l->rate_each;
	return equal;
}

static void advance(struct mst_sim_link *l, uint64_t now_ns)
{
	if (l->queue.count > 0)
		l->sent += share(l) * (double)(now_ns - l->at_ns);
	else
		l->sent = 0; /* begin again, so that the sum stays exact to the byte */
	l->at_ns = now_ns;
}

struct mst_sim_message *mst_sim_link_begin(struct mst_sim_link *l, uint64_t now_ns)
{
	MST_ASSERT(mst_sim_link_limits(l) && now_ns >= l->at_ns);
	advance(l, now_ns);
	struct mst_sim_message *m = mst_sim_queue_add(&l->queue);
	if (m != NULL)
		m->due_bytes = l->sent + l->bytes;
	return m;
}

uint64_t mst_sim_link_due(const struct mst_sim_link *l)
{
	if (l->queue.count == 0)
		return MST_NEVER;
	double left = mst_sim_queue_first(&l->queue)->due_bytes - l->sent;
	double ns = left > 0 ? ceil(left / share(l)) : 0;
	return ns < (double)(MST_NEVER / 2 - l->at_ns) ? l->at_ns + (uint64_t)ns : MST_NEVER;
}

void mst_sim_link_end(struct mst_sim_link *l, struct mst_sim_message *out, uint64_t now_ns)
{
	advance(l, now_ns);
	mst_sim_queue_take(&l->queue, out);
}
