/* SPDX-License-Identifier: MIT */
/*
 * The open step: whom it waits for, when it commits, and what the commit records (PROTOCOL 2, 5).
 */
#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/core/state.h"

/* Empties the set and rosters everybody who takes part. */
void mst_step_open(struct mst_ledger *l)
{
	l->entry_count = 0;
	l->first_count_ns = 0;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		m->rostered = mst_member_takes_part(m);
		m->step_count = 0;
		m->step_samples = 0;
		m->passed = false;
	}
	if (l->rule_changes) {
		l->rule = l->next_rule;
		l->rule_changes = false;
		mst_decide(l, MST_DO_POLICY, NULL);
	}
}

/* Without a set nothing will commit this step unless somebody still contributes to it.
 * *(Else: the last rostered worker leaves while another one joins, and waits for a version that
 * nobody is left to make. Or: all pass, and all wait for the commit of nothing.)* */
void mst_step_revive(struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);

	if (l->phase != MST_PHASE_RUNNING || step.contributions > 0 || step.missing > 0)
		return;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		if (step.roster == 0 && mst_member_takes_part(m)) {
			m->rostered = true;
			m->first_version = l->store.newest;
		}
		m->passed = false;
	}
}

uint64_t mst_step_clock_min(const struct mst_ledger *l)
{
	uint64_t min = UINT64_MAX;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		if (m->rostered && m->clock < min)
			min = m->clock;
	}
	return min == UINT64_MAX ? 0 : min;
}

struct mst_rule_step mst_step_view(const struct mst_ledger *l)
{
	struct mst_rule_step step = { .contributions = l->entry_count };

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		step.roster += l->member[rank].rostered;
		step.missing += mst_member_missing(&l->member[rank]);
	}
	return step;
}

/* Shares by rank, and the means over samples. */
static void record_shares(const struct mst_ledger *l, struct mst_record *r)
{
	r->share_count = 0;
	r->samples = 0;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		if (m->step_count == 0)
			continue;
		r->share[r->share_count++] = (struct mst_lane_share){ .rank = rank,
								      .count = m->step_count,
								      .weight = m->step_samples };
		r->samples += m->step_samples;
	}
}

static double mean_loss(const struct mst_record *r)
{
	double loss = 0, samples = 0;

	for (uint32_t i = 0; i < r->entry_count; i++) {
		if (!isfinite(r->entry[i].loss))
			continue;
		loss += r->entry[i].loss * r->entry[i].samples;
		samples += r->entry[i].samples;
	}
	return samples > 0 ? loss / samples : (double)NAN;
}

/* Each figure once in double, rounded once to f32 (PROTOCOL 5). */
static void record_fill(const struct mst_ledger *l, struct mst_record *r, uint64_t version)
{
	double base = 0;

	r->version = version;
	r->entry_count = l->entry_count;
	memcpy(r->entry, l->entry, l->entry_count * sizeof(*l->entry));
	for (uint32_t i = 0; i < r->entry_count; i++)
		base += r->entry[i].base;
	r->divisor = l->rule.divide ? (float)base : 1.0f;
	r->lr_scale = l->cfg.lr_linear ? (double)l->entry_count / l->cfg.workers : 1.0;
	r->rate = l->cfg.owner == MUSTER_SERVERS_OWN ? (float)(l->cfg.lr * r->lr_scale) : 0.0f;
	r->loss = mean_loss(r);
	record_shares(l, r);
}

/* Whoever has no ask out is busy, and under a rule that preempts busy with what cannot count. */
static void advise(struct mst_ledger *l, uint64_t version)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		if (m->state == MST_MEMBER_STARTED && !m->asks)
			mst_decide(l, MST_DO_ADVISE, m)->version = version;
	}
}

static void commit(struct mst_ledger *l, uint32_t buffer)
{
	uint64_t version = l->store.newest;

	record_fill(l, &l->record[buffer], version);
	l->samples_total += l->record[buffer].samples;
	struct mst_decision *d = mst_decide(l, MST_DO_COMMIT, NULL);
	d->commit.version = version;
	d->commit.buffer = buffer;
	mst_step_open(l);
	if (l->rule.preempt)
		advise(l, version);
}

/* With the end of the job due, what is counted is committed whatever the rule still waits for: it
 * was told "counted", and that is final. A job that fails commits nothing more. */
bool mst_step_due(const struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);

	if (l->phase != MST_PHASE_RUNNING || l->entry_count == 0)
		return false;
	return l->end_due ? !mst_finish_failed(l->end_why) : mst_rule_met(&l->rule, &step);
}

void mst_step_commit_if_due(struct mst_ledger *l)
{
	uint32_t buffer;

	if (mst_step_due(l) && mst_store_take(&l->store, l->store.newest + 1, &buffer))
		commit(l, buffer);
}

/* What only lowers what is awaited takes effect at once, the rest with the next version. */
void mst_step_policy(struct mst_ledger *l, const struct mst_rule *rule)
{
	if (l->phase != MST_PHASE_RUNNING) {
		l->rule = *rule;
		mst_decide(l, MST_DO_POLICY, NULL);
		return;
	}
	l->next_rule = *rule;
	l->rule_changes = true;
	/* Compared under the release in force; "everybody" is never less than a number. */
	struct mst_rule_step step = mst_step_view(l);
	struct mst_rule lowered = l->rule;
	lowered.quorum = rule->quorum;
	if (rule->quorum != 0 &&
	    mst_rule_needed(&lowered, &step) < mst_rule_needed(&l->rule, &step)) {
		l->rule.quorum = rule->quorum;
		mst_decide(l, MST_DO_POLICY, NULL);
	}
}
