/* SPDX-License-Identifier: MIT */
/* The scales of tensors, as far as they lie in this server's part of the vector. */
#include "common/base/assert.h"
#include "server/data/aggregator_state.h"

static void keep(struct mst_aggregator *a, const struct mst_run *run)
{
	uint64_t first = a->cfg.first, last = first + a->cfg.elems, end = run->first + run->count;

	if (end <= first || run->first >= last)
		return;
	MST_ASSERT(a->scales < a->cfg.table.runs);
	a->scale[a->scales++] = (struct mst_scale){
		.end = (end < last ? end : last) - first,
		.rate = run->lr_scale,
		.decay = run->decay_scale,
	};
}

void mst_aggregator_tensors(struct mst_aggregator *a, const struct mst_tensor_table *tensors)
{
	const struct muster_tensor *tensor = mst_tensor_table_rows(tensors);
	uint32_t count = mst_tensor_table_count(tensors);
	struct mst_run run;

	a->scales = 0;
	if (a->scale == NULL)
		return;
	for (uint32_t at = 0; at < count;) {
		at = mst_run_of(tensor, count, at, &run);
		keep(a, &run);
	}
}
