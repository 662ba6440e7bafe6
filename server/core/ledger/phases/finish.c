/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/finish.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/slow.h"

/* Twice as long as a step usually takes, and a second more. */
static uint64_t patience_at_end(const struct mst_ledger *l)
{
	uint64_t ns = 2 * mst_durations_median(&l->steps) + MST_SECOND;

	return ns < l->rule.patience_ns ? ns : l->rule.patience_ns;
}

void mst_life_end_whole(struct mst_ledger *l)
{
	if (l->phase == MST_PHASE_ENDED || l->end_due)
		return;
	mst_life_end(l, MST_FINISH_ASKED);
	l->end_whole = true;
	l->end_whole_until = l->now_ns + patience_at_end(l);
}

/* Each worker that gives a version is answered: what it pushes next is judged under it. One that
 * has been made already ends the job before the open step is looked at, so that it commits what is
 * counted. */
void mst_life_goal(struct mst_ledger *l, const struct mst_member *m, uint64_t version)
{
	bool least = l->goal.version == 0 || version < l->goal.version;

	if (least && l->phase != MST_PHASE_ENDED)
		l->goal = (struct mst_goal){ version, m->rank };
	struct mst_decision *d = mst_decide(l, MST_DO_GOAL, m);
	d->goal.of_job = l->goal;
	d->goal.asked = version;
	if (l->phase == MST_PHASE_RUNNING && mst_has_commits(l))
		mst_life_end(l, MST_FINISH_COMMITS);
}

/* A job that ends well already, and waits for no worker, does so. */
void mst_life_stop(struct mst_ledger *l, bool for_good)
{
	l->for_good = for_good;
	if (l->phase == MST_PHASE_ENDED || (l->end_due && !mst_step_gathers(l)))
		return;
	l->end_due = l->end_whole = true;
	l->end_why = MST_FINISH_STOPPED;
}

void mst_life_fail(struct mst_ledger *l, enum mst_finish_why why)
{
	MST_ASSERT(mst_finish_failed(why));
	if (l->phase == MST_PHASE_ENDED)
		return;
	if (l->end_due && mst_finish_failed(l->end_why) && l->end_why != MST_FINISH_STOPPED)
		return;
	l->end_why = why;
	l->end_due = true;
	l->end_whole = false;
}

void mst_life_settled(struct mst_ledger *l, uint32_t shard)
{
	if (l->settling && shard < l->cfg.shards)
		l->settled |= UINT64_C(1) << shard;
}

/* Only the shards know whether the newest version can be published, and only when they have made
 * it. Before that no worker may be told that the job has ended well. */
static bool is_settled(struct mst_ledger *l)
{
	uint64_t all = UINT64_MAX >> (64 - l->cfg.shards);

	if (l->store.newest == MST_VERSION_NONE || l->store.newest == l->store.first)
		return true;
	if (!l->settling)
		mst_decide(l, MST_DO_SETTLE, NULL);
	l->settling = true;
	return l->settled == all;
}

/* Is there a version to be made before the job ends? The last commit may wait for a buffer, and for
 * contributions; or it is being made. */
static bool makes_last_version(struct mst_ledger *l)
{
	bool stopped = l->end_why == MST_FINISH_STOPPED;

	if (mst_finish_failed(l->end_why) && !stopped)
		return false;
	return (stopped ? mst_step_due(l) : l->entry_count > 0) || !is_settled(l);
}

bool mst_life_finish_if_due(struct mst_ledger *l)
{
	if (l->phase == MST_PHASE_ENDED || !l->end_due || makes_last_version(l))
		return false;
	MST_ASSERT(!l->settling || mst_finish_failed(l->end_why) || l->entry_count == 0);
	l->phase = MST_PHASE_ENDED;
	mst_slow_over(l);
	mst_ask_try_all(l);
	return true;
}

/* For so many leases after this server stood still, the loss of workers is laid to that. */
#define STOOD_LEASES 2u

static bool stood_still(const struct mst_ledger *l)
{
	return l->stood_ns != 0 &&
	       l->listening.looked_ns - l->stood_ns <= STOOD_LEASES * l->cfg.lease_ns;
}

/* What others are told, where that is more than what decides how the job ends. */
static enum mst_finish_why why_told(const struct mst_ledger *l)
{
	bool workers_lost = l->end_why == MST_FINISH_TOO_FEW || l->end_why == MST_FINISH_LOSS;

	if (l->end_why == MST_FINISH_STOPPED && l->for_good)
		return MST_FINISH_CLOSED;
	return workers_lost && stood_still(l) ? MST_FINISH_STOOD : l->end_why;
}

void mst_life_tell_finish(struct mst_ledger *l)
{
	struct mst_decision *d = mst_decide(l, MST_DO_FINISH, NULL);

	d->finish.why = why_told(l);
	d->finish.version = l->store.newest;
}
