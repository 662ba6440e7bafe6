/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/settle.h"

#include "common/base/assert.h"
#include "server/core/ledger/phases/answers.h"
#include "server/core/ledger/phases/commit.h"
#include "server/core/ledger/phases/control.h"
#include "server/core/ledger/phases/finish.h"
#include "server/core/ledger/phases/opening.h"
#include "server/core/ledger/phases/reduce.h"
#include "server/core/ledger/phases/save.h"
#include "server/core/ledger/phases/start.h"
#include "server/core/ledger/phases/transfer.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/late.h"
#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/state.h"

/* Ends the job if it has reached its number of commits or samples. */
static void judge_end(struct mst_ledger *l)
{
	if (l->phase != MST_PHASE_RUNNING)
		return;
	if (mst_has_commits(l))
		mst_life_end(l, MST_FINISH_COMMITS);
	else if (mst_has_samples(l))
		mst_life_end(l, MST_FINISH_SAMPLES);
}

/* The job starts, and with it its first step. */
static void begin_if_due(struct mst_ledger *l)
{
	if (!l->begins)
		return;
	mst_start_begin(l);
	mst_save_started(l);
	mst_step_open(l);
	mst_start_bound(l);
	mst_ask_try_all(l);
}

/* Commits if that is due, and does what follows from a commit, in this order. The controller is
 * asked while the roster is still that of the step that has been committed. */
static void commit_if_due(struct mst_ledger *l)
{
	/* A version whose rate depends on a distance starts from one that is known: so there is
	 * one at a time, and its record stays until its rate is in it. */
	if (l->cfg.distance > 0 && mst_reduce_is_due(l))
		return;
	const struct mst_record *record = mst_step_commit_if_due(l);
	if (record == NULL)
		return;
	mst_save_committed(l);
	mst_late_release_all(l);
	mst_control_next(l, record);
	mst_step_open(l);
	mst_ask_new_version(l);
	mst_step_preempt(l);
}

/* What is saved at the end is decided before the end is told. */
static void finish_if_due(struct mst_ledger *l)
{
	if (!mst_life_finish_if_due(l))
		return;
	mst_save_at_end(l, !mst_reduce_is_due(l));
	mst_life_tell_finish(l);
}

/* One thing may follow from another, so this repeats until nothing is decided any more. For
 * example: answering an ask may end a session that is behind the history, which may meet the
 * condition of a commit, which lets other workers go on. */
void mst_settle(struct mst_ledger *l)
{
	uint32_t before;

	mst_start_settle(l);
	begin_if_due(l);
	do {
		before = l->queue_count;
		mst_step_revive(l);
		commit_if_due(l);
		mst_late_release_if_needed(l);
		judge_end(l);
		finish_if_due(l);
		mst_transfer_settle(l);
		mst_ask_judge_all(l);
	} while (l->queue_count != before);
	MST_ASSERT(l->waits.set[MST_WAIT_TRIAL].count == 0);
}
