/* SPDX-License-Identifier: MIT */
/*
 * Checks the decisions that a leader sends to a follower, since they come from another process. A
 * leader of this release orders only what its follower has reported, in an order in which it can be
 * done; what else comes is its mistake, and is to end the follower's part in the job, not its
 * process.
 */
#include "common/base/assert.h"
#include "server/data/aggregator_state.h"

static const struct mst_session *session_of(const struct mst_aggregator *a, struct mst_identity who)
{
	const struct mst_session *session = a->session[who.rank];

	return session != NULL && session->who.incarnation == who.incarnation ? session : NULL;
}

/* The slot has been reported full, its session is still there, and it is counted once. */
static bool validates_count(const struct mst_aggregator *a, const struct mst_decision *d)
{
	const struct mst_session *session = session_of(a, d->who);

	if (session == NULL || a->open.entries >= a->cfg.entries_max)
		return false;
	const struct mst_slot *slot = &session->slot[d->count.slot];
	return slot->state == MST_SLOT_FULL && !slot->read;
}

/* It has been used, and the next grant is the one after it. */
static bool validates_regrant(const struct mst_aggregator *a, const struct mst_decision *d)
{
	const struct mst_session *session = session_of(a, d->who);

	if (session == NULL)
		return true; /* nobody is granted anything */
	const struct mst_slot *slot = &session->slot[d->grant.slot];
	return slot->state == MST_SLOT_FULL && slot->next_epoch == 0 &&
	       d->grant.epoch == slot->epoch + 1;
}

/* A commit makes the next version, and counts something, so that the queue holds no more commits
 * than there are slots. It does not write to the buffer that it starts from, or is compared
 * with. */
static bool validates_commit(const struct mst_aggregator *a, const struct mst_decision *d)
{
	return a->open.entries > 0 && a->newest_buffer != MST_BUFFER_NONE &&
	       a->newest_buffer != d->commit.buffer && d->commit.version == a->newest + 1 &&
	       (!a->cfg.distances ||
		(d->commit.read != MST_BUFFER_NONE && d->commit.read != d->commit.buffer));
}

/* One version is saved after the other, and each is the newest when its save is decided. */
static bool validates_save(const struct mst_aggregator *a, const struct mst_decision *d)
{
	return a->cfg.saves && !a->saving && a->newest_buffer == d->commit.buffer &&
	       a->newest == d->commit.version;
}

/* One reader after the other. */
static bool validates_lend(const struct mst_aggregator *a)
{
	return a->cfg.averages && a->average_lent == MST_AVERAGES_MAX &&
	       a->newest_buffer != MST_BUFFER_NONE;
}

/* The end of an older session of the rank comes first. */
static bool validates_evict(const struct mst_aggregator *a, const struct mst_decision *d)
{
	const struct mst_session *session = a->session[d->who.rank];

	return session == NULL || session->who.incarnation >= d->who.incarnation;
}

bool mst_aggregator_validates(const struct mst_aggregator *a, const struct mst_decision *d)
{
	bool runs = a->finished.state == MST_SESSION_RUNNING;

	MST_ASSERT(a->cfg.follower);
	switch (d->kind) {
	case MST_DO_START:
		return runs && a->newest_buffer == MST_BUFFER_NONE;
	case MST_DO_COUNT:
		return runs && validates_count(a, d);
	case MST_DO_COMMIT:
		return validates_commit(a, d); /* after the end nothing is counted */
	case MST_DO_REGRANT:
		return validates_regrant(a, d);
	case MST_DO_EVICT:
		return validates_evict(a, d);
	case MST_DO_APPLY:
		return mst_task_waits(a, d->apply.version);
	case MST_DO_SAVE:
		return validates_save(a, d);
	case MST_DO_LEND:
		return validates_lend(a);
	case MST_DO_SETTLE:
		return runs && !a->settles;
	case MST_DO_FINISH:
		return runs;
	default:
		return true;
	}
}
