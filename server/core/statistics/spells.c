/* SPDX-License-Identifier: MIT */
#include "server/core/statistics/spells.h"

void mst_spells_begin(struct mst_spells *s, uint64_t since, const struct mst_rule *rule)
{
	bool had_window = s->count > 0 && mst_spells_now(s)->window > 0;

	s->count++;
	*mst_spells_now(s) = (struct mst_spell){ .since = since,
						 .window = rule->window,
						 .drops = had_window && rule->window == 0 };
}

void mst_spells_fill(const struct mst_spells *s, struct mst_status *out)
{
	uint32_t kept = s->count < MST_STATUS_POLICIES ? s->count : MST_STATUS_POLICIES;

	out->policy_count = kept;
	for (uint32_t i = 0; i < kept; i++) {
		const struct mst_spell *spell =
			&s->kept[(s->count - kept + i) % MST_STATUS_POLICIES];
		out->under[i].since = spell->since;
		out->under[i].versions = spell->versions;
		out->under[i].step_mean_ns = spell->steps > 0 ? spell->steps_ns / spell->steps : 0;
		out->under[i].counted = spell->verdict[MUSTER_COUNTED];
		out->under[i].late = spell->verdict[MUSTER_LATE];
		out->under[i].stale = spell->verdict[MUSTER_STALE];
		out->under[i].cancelled = spell->verdict[MUSTER_CANCELLED];
		out->under[i].refused = spell->verdict[MUSTER_REFUSED];
		out->under[i].outliers = spell->verdict[MUSTER_OUTLIER];
		out->under[i].damaged = spell->verdict[MUSTER_DAMAGED];
		out->under[i].dropped = spell->dropped;
	}
}
