/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/commit.h"

#include <string.h>

#include "common/base/assert.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/trigger.h"
#include "server/core/policy/factor.h"

/* Records the share of each rank, and the sums over all ranks. Return: the sum of base weights. */
static double record_shares(const struct mst_ledger *l, struct mst_record *r)
{
	const struct mst_counts *c = &l->counts;
	struct mst_step_sums all = { 0 };
	uint32_t counted = 0;

	r->share_count = 0;
	r->samples = 0;
	for (uint32_t rank = mst_counts_next(c, MST_STANDS_COUNTED, 0); rank != MST_RANK_NONE;
	     rank = mst_counts_next(c, MST_STANDS_COUNTED, rank + 1)) {
		const struct mst_member *m = &l->member[rank];
		r->share[r->share_count++] = (struct mst_lane_share){ .rank = rank,
								      .count = m->step_count,
								      .weight = m->step_samples };
		r->samples += m->step_samples;
		all.base += m->step_sums.base;
		all.loss += m->step_sums.loss;
		all.loss_samples += m->step_sums.loss_samples;
		counted += m->step_count;
	}
	MST_ASSERT(counted == l->entry_count);
	r->loss = mst_mean_loss(all.loss, all.loss_samples);
	r->loss_samples = all.loss_samples;
	return all.base;
}

/* Each figure is computed once in double and rounded once to f32 (PROTOCOL 5). */
static void record_fill(const struct mst_ledger *l, struct mst_record *r, uint64_t version)
{
	r->version = version;
	r->workers = l->cfg.workers;
	r->entry_count = l->entry_count;
	memcpy(r->entry, l->entry, l->entry_count * sizeof(*l->entry));
	r->divisor = mst_divisor(&l->rule, record_shares(l, r));
	r->total = mst_samples_add(l->samples_total, r->samples);
	r->rate = (struct mst_lr_scale_of){
		.linear = l->rule.linear,
		.batch = l->rule.batch,
		.schedule = &l->cfg.schedule,
		.contributions = l->rule.by_micro ? r->share_count : l->entry_count,
		.workers = l->cfg.workers,
		.counted = r->samples,
		.samples = r->total,
		.distance = l->cfg.distance,
		.lr = mst_optimizer_rate(&l->cfg.optimizer),
	};
	r->lr_scale = mst_lr_scale(&r->rate);
	mst_optimizer_scalars(&l->cfg.optimizer,
			      &(struct mst_optim_version){ version, r->lr_scale }, r->scalar);
	r->average = mst_average_rest(l->cfg.average, version);
}

static void commit(struct mst_ledger *l, uint32_t buffer)
{
	uint64_t version = l->store.newest;

	record_fill(l, &l->record[buffer], version);
	l->samples_total = l->record[buffer].total;
	struct mst_decision *d = mst_decide(l, MST_DO_COMMIT, NULL);
	d->commit.version = version;
	d->commit.buffer = buffer;
	d->commit.read = l->compared;
	mst_ask_let_go(l, &l->compared);
	mst_durations_add(&l->steps, l->now_ns - l->opened_ns);
}

const struct mst_record *mst_step_commit_if_due(struct mst_ledger *l)
{
	uint32_t buffer;

	if (!mst_step_due(l) || !mst_store_take(&l->store, l->store.newest + 1, &buffer))
		return NULL;
	commit(l, buffer);
	return &l->record[buffer];
}

/* A member that has no ask open computes; under a rule that preempts its gradient cannot count any
 * more. */
void mst_step_preempt(struct mst_ledger *l)
{
	const struct mst_counts *c = &l->counts;

	if (!l->rule.preempt)
		return;
	for (uint32_t rank = mst_counts_next(c, MST_STANDS_BUSY, 0); rank != MST_RANK_NONE;
	     rank = mst_counts_next(c, MST_STANDS_BUSY, rank + 1))
		mst_advise(l, &l->member[rank], false);
}
