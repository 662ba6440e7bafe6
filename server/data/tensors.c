/* SPDX-License-Identifier: MIT */
/* The tensors of this server's part of the vector: their scales, and which of them its borders cut.
 * Neighbours with equal scales are one, unless the optimiser wants norms of each. */
#include "common/base/assert.h"
#include "server/data/aggregator_state.h"

uint32_t mst_scales_max(const struct mst_aggregator_cfg *cfg)
{
	if (!mst_optimizer_trusts(&cfg->optimizer))
		return cfg->table.runs;
	return cfg->table.tensors > 0 ? cfg->table.tensors : 1;
}

static void keep(struct mst_aggregator *a, const struct mst_run *run)
{
	uint64_t first = a->cfg.first, last = first + a->cfg.elems, end = run->first + run->count;

	if (end <= first || run->first >= last)
		return;
	MST_ASSERT(a->scales < mst_scales_max(&a->cfg));
	if (a->scales == 0)
		a->cut_left = run->first < first;
	a->cut_right = end > last;
	a->scale[a->scales++] = (struct mst_scale){
		.end = (end < last ? end : last) - first,
		.rate = run->lr_scale,
		.decay = run->decay_scale,
		.trust = 1,
	};
}

void mst_scales_init(struct mst_aggregator *a)
{
	struct mst_run all = { .count = a->cfg.vector, .lr_scale = 1, .decay_scale = 1 };

	if (!mst_optimizer_trusts(&a->cfg.optimizer))
		return;
	keep(a, &all);
	MST_ASSERT(a->scales == 1);
}

void mst_aggregator_tensors(struct mst_aggregator *a, const struct mst_tensor_table *tensors)
{
	const struct muster_tensor *tensor = mst_tensor_table_rows(tensors);
	bool each = mst_optimizer_trusts(&a->cfg.optimizer);
	uint32_t count = mst_tensor_table_count(tensors);
	struct mst_run run;

	a->scales = 0;
	if (a->scale == NULL)
		return;
	for (uint32_t at = 0; at < count;) {
		at = mst_run_of(tensor, each ? at + 1 : count, at, &run);
		keep(a, &run);
	}
}
