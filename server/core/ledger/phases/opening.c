/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/opening.h"

#include "common/base/assert.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/strides.h"
#include "server/core/ledger/state/trigger.h"

/* The member with this standing that has the lowest rank; NULL: there is none. */
static struct mst_member *first(struct mst_ledger *l, enum mst_standing standing)
{
	uint32_t rank = mst_counts_next(&l->counts, standing, 0);

	return rank != MST_RANK_NONE ? &l->member[rank] : NULL;
}

static void forget_passes(struct mst_ledger *l)
{
	for (struct mst_member *m; (m = first(l, MST_STANDS_PASSED)) != NULL;) {
		m->passed = false;
		mst_changed(l, m);
	}
}

static void roster_new(struct mst_ledger *l)
{
	for (struct mst_member *m; (m = first(l, MST_STANDS_NEW)) != NULL;) {
		m->rostered = true;
		mst_changed(l, m);
	}
}

/* All ranks begin anew at the slowest clock. Clocks count contributions. Contributions that were
 * made under a rule without a bound do not say which rank is ahead now: the fast workers would wait
 * until the slowest one had made as many. */
static void rebase_clocks(struct mst_ledger *l)
{
	uint64_t least = mst_step_clock_min(l);

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		l->member[rank].clock = least;
		mst_changed(l, &l->member[rank]);
	}
}

static void tell_rule(struct mst_ledger *l, bool whole)
{
	struct mst_decision *d = mst_decide(l, MST_DO_POLICY, NULL);

	d->policy.version = mst_store_version(&l->store) + 1;
	d->policy.whole = whole;
	d->policy.adapts = whole && l->rule_adapts;
}

/* Do contributions stay what they are: gradients, or what a worker gathers in so many steps? */
static bool alike(const struct mst_rule *a, const struct mst_rule *b)
{
	return a->deltas == b->deltas && a->pace.local_steps == b->pace.local_steps &&
	       a->pace.push_every == b->pace.push_every && a->pace.alpha == b->pace.alpha;
}

static void change_rule(struct mst_ledger *l)
{
	bool bounds = l->rule.release != MST_RELEASE_BOUND &&
		      l->next_rule.release == MST_RELEASE_BOUND;

	if (!alike(&l->rule, &l->next_rule))
		mst_outliers_forget_all(&l->outliers);
	struct mst_rule before = l->rule;
	l->rule = l->next_rule;
	mst_stride_rule(l, &before);
	l->counts.by_micro = l->rule.by_micro;
	l->controller = l->next_controller;
	l->rule_changes = false;
	if (bounds)
		rebase_clocks(l);
	mst_ask_try_all(l);
	tell_rule(l, true);
	mst_trigger_changed(l);
}

/* The version that the step is computed on says how. */
static void record_pace(struct mst_ledger *l)
{
	uint32_t buffer;

	if (!mst_store_find(&l->store, l->store.newest, &buffer))
		return;
	l->record[buffer].window = l->rule.window;
	l->record[buffer].until_asked = mst_rule_until_asked(&l->rule);
	l->record[buffer].by_micro = l->rule.by_micro;
	l->record[buffer].pace = l->rule.pace;
}

void mst_step_open(struct mst_ledger *l)
{
	struct mst_member *m;

	MST_ASSERT(l->phase == MST_PHASE_RUNNING);
	MST_ASSERT(l->counts.clocks.count == mst_counts_count(&l->counts, MST_STANDS_ROSTERED));
	/* Before the first step nobody was busy, as if everybody had been waited for. */
	mst_starts_open(&l->starts, l->store.newest,
			l->entry_count > 0 ? l->entry_count : l->cfg.workers, l->now_ns);
	l->entry_count = 0;
	l->active_ns = l->opened_ns = l->now_ns;
	l->collecting = l->overdue = l->unheld = false;
	while ((m = first(l, MST_STANDS_COUNTED)) != NULL) {
		m->step_count = 0;
		m->step_samples = 0;
		m->step_sums = (struct mst_step_sums){ 0 };
		mst_changed(l, m);
	}
	forget_passes(l);
	roster_new(l);
	if (l->rule_changes)
		change_rule(l);
	record_pace(l);
}

/* A step that has no contributions and misses none can only be committed if some member still
 * contributes to it. This may happen when the last member of the roster leaves while another one
 * joins, which would wait for a version that no member makes; or when all members pass, and all
 * wait for the commit of nothing. */
void mst_step_revive(struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);

	if (l->phase != MST_PHASE_RUNNING || l->end_due || step.contributions > 0 ||
	    step.missing > 0)
		return;
	if (step.roster == 0)
		roster_new(l);
	mst_trigger_again(l);
	forget_passes(l);
}

/* A change that only lowers the number of contributions needed takes effect at once, any other
 * change with the next version. */
void mst_step_policy(struct mst_ledger *l, const struct mst_rule *rule,
		     const struct mst_controller *controller)
{
	static const struct mst_controller none = { .kind = MST_CONTROLLER_NONE };

	l->rule_adapts = false;
	l->next_controller = controller != NULL ? *controller : none;
	if (l->phase != MST_PHASE_RUNNING) {
		l->rule = *rule;
		l->counts.by_micro = rule->by_micro;
		l->controller = l->next_controller;
		mst_ask_try_all(l);
		tell_rule(l, true);
		return;
	}
	l->next_rule = *rule;
	l->rule_changes = true;
	/* The numbers are compared under the release in force. Quorum 0, which is all workers, is
	 * never lower than a number. */
	struct mst_rule_step step = mst_step_view(l);
	struct mst_rule lowered = l->rule;
	lowered.quorum = rule->quorum;
	if (rule->quorum != 0 &&
	    mst_rule_needed(&lowered, &step) < mst_rule_needed(&l->rule, &step)) {
		l->rule.quorum = rule->quorum;
		tell_rule(l, false);
	}
}
