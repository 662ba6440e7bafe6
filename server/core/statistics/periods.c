/* SPDX-License-Identifier: MIT */
#include "server/core/statistics/periods.h"

void mst_periods_begin(struct mst_periods *s, uint64_t since, const struct mst_rule *rule)
{
	bool had_window = s->count > 0 && mst_periods_now(s)->window > 0;

	s->count++;
	*mst_periods_now(s) = (struct mst_period){ .since = since,
						   .window = rule->window,
						   .drops = had_window && rule->window == 0 };
}

void mst_periods_fill(const struct mst_periods *s, struct mst_status *out)
{
	uint32_t kept = s->count < MST_STATUS_POLICIES ? s->count : MST_STATUS_POLICIES;

	out->policy_count = kept;
	for (uint32_t i = 0; i < kept; i++) {
		const struct mst_period *period =
			&s->kept[(s->count - kept + i) % MST_STATUS_POLICIES];
		out->under[i].since = period->since;
		out->under[i].versions = period->versions;
		out->under[i].step_mean_ns = period->steps > 0 ? period->steps_ns / period->steps
							       : 0;
		out->under[i].counted = period->verdict[MUSTER_COUNTED];
		out->under[i].late = period->verdict[MUSTER_LATE];
		out->under[i].stale = period->verdict[MUSTER_STALE];
		out->under[i].cancelled = period->verdict[MUSTER_CANCELLED];
		out->under[i].refused = period->verdict[MUSTER_REFUSED];
		out->under[i].outliers = period->verdict[MUSTER_OUTLIER];
		out->under[i].damaged = period->verdict[MUSTER_DAMAGED];
		out->under[i].dropped = period->dropped;
	}
}
