/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/open_step.h"

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
	return mst_rule_met(&l->rule, &step);
}
