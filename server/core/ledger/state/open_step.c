/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/open_step.h"

uint64_t mst_step_clock_min(const struct mst_ledger *l)
{
	return l->census.clocks.count > 0 ? mst_heap_least(&l->census.clocks) : 0;
}

/* Contributions keep their slots until the commit, except that partial sums are planned for the
 * quorum that the job starts with. */
static uint32_t room(const struct mst_ledger *l, uint32_t roster)
{
	const struct mst_rule *first = &l->cfg.rule;
	uint32_t slots = roster * l->cfg.slots;
	bool planned = mst_rule_repeats(first) && first->quorum > 0;

	return planned && (uint32_t)first->quorum > slots ? (uint32_t)first->quorum : slots;
}

struct mst_rule_step mst_step_view(const struct mst_ledger *l)
{
	uint32_t roster = mst_census_count(&l->census, MST_STANDS_ROSTERED);

	return (struct mst_rule_step){
		.roster = roster,
		.room = room(l, roster),
		.missing = mst_census_count(&l->census, MST_STANDS_MISSING),
		.contributions = l->entry_count,
		.overdue = l->overdue,
	};
}

/* When the job is about to end, what is counted is committed even if the rule still waits for more:
 * its workers were told "counted", and that is final. A job that fails or is stopped commits
 * nothing that the rule would not. */
bool mst_step_due(const struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);

	if (l->phase != MST_PHASE_RUNNING || l->entry_count == 0)
		return false;
	if (mst_step_gathers(l))
		return mst_rule_met(&l->rule, &step);
	return !mst_finish_failed(l->end_why);
}
