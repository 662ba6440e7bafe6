/* SPDX-License-Identifier: MIT */
/* The scales of tensors, as far as they lie in a server's part of the vector. */
#include "common/base/assert.h"
#include "server/data/aggregator_state.h"

void mst_aggregator_scale(struct mst_aggregator *a, const struct mst_run *run)
{
	uint64_t first = a->cfg.first, last = first + a->cfg.elems, end = run->first + run->count;

	if (run->first == 0)
		a->scales = 0;
	if (end <= first || run->first >= last)
		return;
	MST_ASSERT(a->scales < a->cfg.runs);
	a->scale[a->scales++] = (struct mst_scale){
		.end = (end < last ? end : last) - first,
		.rate = run->lr_scale,
		.decay = run->decay_scale,
	};
}
