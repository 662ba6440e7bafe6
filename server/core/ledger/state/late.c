/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/late.h"

#include "common/base/clock.h"
#include "server/core/ledger/state/open_step.h"

/* Would a contribution that begins now come after the step's commit even if it took as little time
 * as any of the rank's last ones? Where times vary much, it might be quick, and to hold it would
 * lose what it may be worth. Without a history of both, nothing is known. */
static bool comes_too_late(const struct mst_ledger *l, const struct mst_member *m)
{
	uint64_t stride_ns = mst_durations_least(&l->stride[m->rank].durations);
	uint64_t step_ns = mst_durations_median(&l->steps);

	return stride_ns > 0 && step_ns > 0 && l->now_ns + stride_ns > l->opened_ns + step_ns;
}

/* Does the step get its quorum without the workers whose asks are held, and without @more
 * others? */
static bool spares(const struct mst_ledger *l, uint32_t more)
{
	struct mst_rule_step step = mst_step_view(l);
	uint32_t held = l->waits.set[MST_WAIT_LATE].count + more;

	return step.missing >= held &&
	       step.contributions + step.missing - held >= mst_rule_needed(&l->rule, &step);
}

/* Would the worker be answered with the newest version? Where workers own, a worker that is behind
 * has to catch up first. */
static bool is_due_newest(const struct mst_ledger *l, const struct mst_member *m)
{
	return l->cfg.owner == MUSTER_SERVERS_OWN ? m->ask.have != l->store.newest
						  : m->ask.have + 1 == l->store.newest;
}

/* A rank that the step counts on may stand still. Usually a step is over long before this many
 * steps. From then on no ask is held, because the step may need the workers whose asks are held. */
#define STEPS_HELD 2u

static uint64_t held_until(const struct mst_ledger *l)
{
	uint64_t step_ns = mst_durations_median(&l->steps);

	return step_ns > 0 ? l->opened_ns + STEPS_HELD * step_ns : MST_NEVER;
}

bool mst_late_holds(const struct mst_ledger *l, const struct mst_member *m)
{
	if (!m->late || l->rule.late_start == MST_LATE_START_NOW ||
	    l->rule.release != MST_RELEASE_COMMIT || !mst_member_missing(m) || l->overdue ||
	    !is_due_newest(l, m) || l->now_ns >= held_until(l))
		return false;
	if (l->rule.late_start == MST_LATE_START_AUTO && !comes_too_late(l, m))
		return false;
	return spares(l, 1);
}

/* Asks that are about to be tried may have been held until the event at hand. */
void mst_late_release_all(struct mst_ledger *l)
{
	static const enum mst_wait waits[] = { MST_WAIT_LATE, MST_WAIT_TRIAL };

	for (int i = 0; i < 2; i++) {
		const struct mst_ranks *set = &l->waits.set[waits[i]];
		for (uint32_t rank = mst_ranks_first(set); rank != MST_RANK_NONE;
		     rank = mst_ranks_next(set, rank + 1))
			l->member[rank].late = false;
	}
	mst_waits_over(&l->waits, l->member, MST_WAIT_LATE);
}

void mst_late_release_if_needed(struct mst_ledger *l)
{
	if (l->waits.set[MST_WAIT_LATE].count > 0 &&
	    (l->overdue || l->now_ns >= held_until(l) || !spares(l, 0)))
		mst_late_release_all(l);
}

uint64_t mst_late_deadline(const struct mst_ledger *l)
{
	return l->waits.set[MST_WAIT_LATE].count > 0 ? held_until(l) : MST_NEVER;
}
