/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/control.h"

#include "server/core/ledger/state/slow.h"
#include "server/core/ledger/state/strides.h"

/* Members that the next step waits for. */
static uint32_t count_live(const struct mst_ledger *l)
{
	return mst_counts_count(&l->counts, MST_STANDS_ROSTERED) +
	       mst_counts_count(&l->counts, MST_STANDS_NEW);
}

void mst_control_next(struct mst_ledger *l, const struct mst_record *r)
{
	struct mst_commit_view view = {
		.gradients = r->entry_count,
		.live = count_live(l),
		.loss = r->loss,
		.loss_samples = r->loss_samples,
		.samples = r->samples,
		.samples_total = l->samples_total,
		.samples_max = l->cfg.samples_max,
		.workers = l->cfg.workers,
		.rate = (double)r->scalar[MST_SCALAR_RATE],
		.linear = l->rule.linear || l->rule.batch > 0,
		.norms = l->norms,
	};

	l->norms.known = false;
	mst_stride_step(l);
	if (l->rule_changes || l->end_due || mst_has_commits(l) || mst_has_samples(l))
		return;
	mst_slow_look(l, view.gradients, view.live);
	view.stragglers = l->stragglers;
	l->next_rule = l->rule;
	l->rule_changes = mst_controller_decide(&l->controller, &view, &l->next_rule);
	l->next_controller = l->controller;
	l->rule_adapts = l->rule_changes;
	mst_slow_rest(l);
}
