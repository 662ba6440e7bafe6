/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/open_step.h"

#include "common/base/clock.h"

/* A micro-batch on version v that comes after the next commit is newest + 1 - v versions old. A
 * step that has as much as it can take is not held: its workers would stand still. Where workers
 * own, a worker that was given v needs v + 1 next, which is kept as long: so an ask for it is
 * answered before the commit. */
bool mst_step_is_held(const struct mst_ledger *l)
{
	if (!l->rule.by_micro || !l->overdue || l->unheld || l->end_due ||
	    l->phase != MST_PHASE_RUNNING)
		return false;
	struct mst_rule_step step = mst_step_view(l);
	uint64_t oldest = mst_counts_oldest_at_hand(&l->counts);
	return step.contributions < mst_rule_needed(&l->rule, &step) &&
	       oldest != MST_VERSION_NONE && oldest + l->rule.window < l->store.newest + 1;
}

uint64_t mst_step_held_until(const struct mst_ledger *l)
{
	uint64_t grace_ns = l->rule.grace_ns > 0 ? l->rule.grace_ns : l->rule.patience_ns;

	return l->overdue_ns + (grace_ns < l->rule.patience_ns ? grace_ns : l->rule.patience_ns);
}

/* When the job is about to end, what is counted is committed even if the rule still waits for more:
 * its workers were told "counted", and that is final. A job that fails or is stopped commits
 * nothing that the rule would not. */
bool mst_step_due(const struct mst_ledger *l)
{
	if (l->phase != MST_PHASE_RUNNING || l->entry_count == 0)
		return false;
	if (!mst_step_gathers(l))
		return !mst_finish_failed(l->end_why);
	struct mst_rule_step step = mst_step_view(l);
	return mst_rule_met(&l->rule, &step) && !mst_step_is_held(l);
}
