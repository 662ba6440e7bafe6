/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/recomputing.h"

#include "server/core/ledger/state/open_step.h"

/* Does the rule in force have gradients computed again, one for each version? */
static bool has_them(const struct mst_rule *rule)
{
	return rule->late == MST_LATE_REJECT && rule->window != MST_WINDOW_MAX &&
	       rule->release == MST_RELEASE_PUSH && rule->quorum == 1;
}

static bool is_waited_for(const struct mst_member *m)
{
	return m->recomputes && m->rostered && m->state == MST_MEMBER_STARTED;
}

/* Drops those who are not waited for any more. */
static void tidy(struct mst_ledger *l)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->recomputing_count; i++) {
		uint32_t rank = l->recomputing[i];
		if (is_waited_for(&l->member[rank]))
			l->recomputing[kept++] = rank;
	}
	l->recomputing_count = kept;
}

void mst_recomputing_judged(struct mst_ledger *l, struct mst_member *m, enum muster_verdict verdict)
{
	m->recomputes = false;
	m->rejected = verdict == MUSTER_STALE && has_them(&l->rule);
	tidy(l);
}

/* Each that is waited for takes one of the versions that are left to the last one. So there are no
 * more of them than there are such versions. */
void mst_recomputing_answered(struct mst_ledger *l, struct mst_member *m)
{
	bool again = m->rejected && has_them(&l->rule);

	m->recomputes = m->rejected = false;
	tidy(l);
	if (!again || !m->rostered || l->recomputing_count > l->rule.window ||
	    l->recomputing_count == MST_RECOMPUTING_MAX)
		return;
	m->recomputes = true;
	l->recomputing[l->recomputing_count++] = m->rank;
}

/* If @m makes the next version, will @other still be in time, after all of these whose versions are
 * as old or older? */
static bool spoils(const struct mst_ledger *l, const struct mst_member *m,
		   const struct mst_member *other)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < l->recomputing_count; i++) {
		const struct mst_member *o = &l->member[l->recomputing[i]];
		before += o != m && is_waited_for(o) && o->given <= other->given;
	}
	return l->store.newest + before > other->given + l->rule.window;
}

bool mst_recomputing_holds(const struct mst_ledger *l, const struct mst_member *m,
			   const struct mst_lane_header *h)
{
	if (l->recomputing_count == 0 || !has_them(&l->rule) || !mst_step_gathers(l) ||
	    (h->flags & MST_HEADER_PASS) || l->store.newest - h->tag > l->rule.window)
		return false;
	for (uint32_t i = 0; i < l->recomputing_count; i++) {
		const struct mst_member *other = &l->member[l->recomputing[i]];
		if (other != m && is_waited_for(other) && spoils(l, m, other))
			return true;
	}
	return false;
}

bool mst_recomputing_give_up(struct mst_ledger *l)
{
	tidy(l);
	if (l->recomputing_count == 0 || !has_them(&l->rule))
		return false;
	for (uint32_t i = 0; i < l->recomputing_count; i++)
		l->member[l->recomputing[i]].recomputes = false;
	l->recomputing_count = 0;
	return true;
}
