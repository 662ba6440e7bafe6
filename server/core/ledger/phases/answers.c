/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/answers.h"

#include "common/base/assert.h"
#include "common/base/bitset.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/behind.h"
#include "server/core/ledger/state/late.h"
#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/recomputing.h"
#include "server/core/ledger/state/returns.h"
#include "server/core/ledger/state/slow.h"
#include "server/core/ledger/state/strides.h"
#include "server/core/ledger/state/trigger.h"

/* What all asks are judged by. It stays valid while nothing changes. */
struct view {
	uint64_t clock_min;
	bool commit_due; /* the condition is met, and only a buffer is missing */
};

/* Does this member go on because of a contribution in the open step? That is a contribution of its
 * own; under a clock bound it may be any contribution, since the clocks of all other members let
 * this member go on. */
static bool rests_on_open_step(const struct mst_ledger *l, const struct mst_member *m)
{
	return m->step_count > 0 || (l->rule.release == MST_RELEASE_BOUND && m->owes);
}

/* What does this ask wait for, buffers aside? TRIAL: for nothing.
 *
 * An ask is not answered before everything that its worker pushed earlier has been judged.
 * Otherwise the answer would overtake a header that some servers have not read yet, or that waits
 * for a commit that is due. That judgement always comes, or the job or the session ends. After it
 * only those ranks wait that have something in the open step, or that start with the version that
 * the open step makes; all others go on at once, under every rule.
 *
 * Where the rule releases at the push, a rank whose contribution is in a step that is due waits for
 * that commit, which lacks only a buffer. Under a clock bound every rank does that has had
 * something counted since its last answer, for the version must have all that the bound relies on.
 * That commit never waits for a worker or for a link:
 *
 * - A buffer is held for long (MST_HOLD_LASTING) only if it is read in place, or sent to a far
 *   member. Both holds begin in hold() alone, and only while two buffers are spare: besides all
 *   that are held for long and as many as are kept, one more than the version that is given needs
 *   (must_wait()). A reader in place leaves room for copies of shards, too (may_read_in_place()).
 *   So the buffers held for long and the kept ones together are never more than all but one.
 * - This stays true: a worker that keeps what it reads has not let go of it (let_go_of_old()), so
 *   KEEP adds no hold; a copy that was sent cannot be kept, since it is in the worker's own memory;
 *   and the hold of a copy does not change its kind, since a session has one network.
 * - So a commit finds no buffer only while shards copy, and shards finish their copies without
 *   anybody's help. Where each member is far no shard copies, so a commit finds one.
 * - Where the rate depends on a distance there is a buffer more for each member, which keep()
 *   holds, and one for the open step. No ask waits for room there, since each member holds at most
 *   the buffer that it keeps.
 *
 * Only an ask of a far member waits for room to send its answer (must_wait()). It waits until other
 * buffers are held for long no more:
 *
 * - A version that is sent to another far member holds its buffer until the link is done or fails.
 *   The ask of a far member lets go of what was being sent to that member, so a far member that
 *   asks holds nothing.
 * - A version that near workers read in place was given to them before the first far member came,
 *   for nobody begins to read in place while one is there. A near worker lets go of an old version
 *   with its next ask. While that ask waits it can hold the newest version alone, which is one
 *   buffer for all near workers. Where servers own, the far member wants the same. Where workers
 *   own, one buffer leaves two spare, as there are three besides the history. So an ask that waits
 *   for room does not wait for an ask of a near worker, and asks cannot wait for each other in a
 *   circle. A near worker that waits for a slot alone is in no circle either: the slot is in the
 *   open step, so the worker has the newest version.
 * - Copies that shards make it does not wait for, and near workers never wait for room. So a slow
 *   link holds up no near worker, and however much near workers are copied to, a far one is
 *   answered.
 * - Where servers own, the first such buffer that is let go of is enough: all who wait want the
 *   newest version, and holds for long always leave one buffer spare. */
static enum mst_wait waits_for(const struct mst_ledger *l, const struct mst_member *m,
			       const struct view *view)
{
	if (l->phase == MST_PHASE_ENDED && mst_member_takes_part(m)) {
		/* what comes after the state that it is being sent is kept, as no commit follows */
		bool waits = m->behind == MST_BEHIND_TAKES || l->store.newest == MST_VERSION_NONE;
		return waits ? MST_WAIT_ITSELF : MST_WAIT_TRIAL;
	}
	if (l->phase != MST_PHASE_RUNNING || mst_behind_holds(m) || !mst_member_awaits_answer(m))
		return MST_WAIT_ITSELF;
	if (m->behind == MST_BEHIND_CATCHES) /* no step waits for it, and it waits for none */
		return l->settling ? MST_WAIT_ITSELF : MST_WAIT_TRIAL;
	if (l->settling) /* the worker is to hear of the end together with the last version */
		return MST_WAIT_ITSELF;
	if (!m->rostered) /* no step waits for a probe, and it waits for none */
		return mst_slow_probes(l, m) ? MST_WAIT_TRIAL : MST_WAIT_ITSELF;
	if (l->rule.release == MST_RELEASE_COMMIT && !mst_member_missing(m))
		return MST_WAIT_COMMIT;
	if (l->rule.release == MST_RELEASE_COMMIT)
		return mst_late_holds(l, m) ? MST_WAIT_LATE : MST_WAIT_TRIAL;
	if (view->commit_due && rests_on_open_step(l, m))
		return MST_WAIT_COMMIT;
	return mst_ask_bound_parks(l, m, view->clock_min) ? MST_WAIT_CLOCK : MST_WAIT_TRIAL;
}

/* The version that answers this ask: the newest, or the next in order where workers own. */
static uint64_t version_due(const struct mst_ledger *l, const struct mst_member *m)
{
	if (l->cfg.owner == MUSTER_SERVERS_OWN || m->ask.have == l->store.newest)
		return l->store.newest;
	return m->ask.have == MST_VERSION_NONE ? l->store.first : m->ask.have + 1;
}

/* While a far member is there nobody begins to read in place. Otherwise a near worker that computes
 * for long on an old version would hold room that a far one's answer waits for. */
static bool may_read_in_place(const struct mst_ledger *l, uint32_t buffer)
{
	return l->cfg.in_place && l->far == 0 && mst_store_spare(&l->store, buffer) >= 2;
}

/* Where the worker finds the bytes of the version, if @buffer can be held for it. */
static enum mst_where place_of(const struct mst_ledger *l, const struct mst_member *m,
			       uint64_t version, uint32_t buffer)
{
	/* A version that came with a state is not in the memory where results and their records
	 * are. */
	bool keeps = m->ask.have == version && !m->took;

	if (version == l->store.first && !l->has_start_state)
		return keeps ? MST_WHERE_KEEP : MST_WHERE_NOWHERE;
	if (keeps)
		return MST_WHERE_KEEP;
	return may_read_in_place(l, buffer) ? MST_WHERE_IN_PLACE : MST_WHERE_COPIED;
}

/* A commit may wait for a copy that a shard makes, since the shard finishes it without anybody's
 * help. A copy that is sent lasts as long as the worker's link takes. So, like a reader in place,
 * it must leave two buffers spare, and waits if it cannot. Copies that shards make do not count
 * here: they end, and others begin at once, so that an ask might wait for their end for ever. After
 * the last commit a copy that is sent holds up nothing. */
static bool must_wait(const struct mst_ledger *l, const struct mst_member *m, enum mst_where where,
		      uint32_t buffer)
{
	return where == MST_WHERE_COPIED && mst_is_far(l, m) && l->phase != MST_PHASE_ENDED &&
	       mst_store_spare_later(&l->store, buffer) < 2;
}

/* Holds the buffer until the worker has read it. A worker that is told to keep a version holds its
 * buffer already. */
static void hold(struct mst_ledger *l, struct mst_member *m, enum mst_where where, uint32_t buffer)
{
	if (where == MST_WHERE_IN_PLACE) {
		MST_ASSERT(m->reads == MST_BUFFER_NONE);
		m->reads = buffer;
		mst_store_hold(&l->store, buffer, MST_HOLD_LASTING);
	} else if (where == MST_WHERE_COPIED) {
		MST_ASSERT(m->copies == MST_BUFFER_NONE);
		m->copies = buffer;
		m->copy_number = m->ask.number;
		m->copy_count = 0;
		m->copied = 0;
		mst_store_hold(&l->store, buffer, mst_ask_hold_of_copy(l, m));
	}
}

/* Where the rate depends on a distance, the version stays until the member is given another one:
 * its next gradient is computed on it. */
static void keep(struct mst_ledger *l, struct mst_member *m, uint32_t buffer)
{
	if (l->cfg.distance > 0) {
		mst_store_hold(&l->store, buffer, MST_HOLD_LASTING);
		mst_ask_let_go(l, &m->keeps);
		m->keeps = buffer;
	}
}

static bool somebody_gives(const struct mst_ledger *l, const struct mst_member *but)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		if (m != but && mst_behind_may_give(m))
			return true;
	}
	return false;
}

/* It has joined a running job, and has not all of the state that the others began with: their
 * optimisers may have moments, which are in no version. Or it has another state than the others. */
static bool lacks_state(const struct mst_ledger *l, const struct mst_member *m)
{
	bool joins = m->given == MST_VERSION_NONE && m->comes_late && m->comes_back && !m->took;

	return l->phase == MST_PHASE_RUNNING && (m->strays || (joins && somebody_gives(l, m)));
}

/* The job has ended, and the version that the member needs next is gone: it keeps what it has, and
 * is told of the newest, so that it knows. One that has no version has nothing to keep. */
static void answer_without(struct mst_ledger *l, struct mst_member *m)
{
	uint32_t buffer;

	if (m->ask.have == MST_VERSION_NONE) {
		mst_life_lose(l, m, MST_EVICT_TOO_LATE);
		return;
	}
	bool found = mst_store_find(&l->store, l->store.newest, &buffer);
	MST_ASSERT(found);
	struct mst_decision *d = mst_decide(l, MST_DO_RELEASE, m);
	d->answer.number = m->ask.number;
	d->answer.version = m->ask.have;
	d->answer.newest = l->store.newest;
	d->answer.buffer = buffer; /* nothing of it is given */
	d->answer.where = MST_WHERE_KEEP;
	m->asks = false;
	m->owes = false;
	m->behind = MST_UP_TO_DATE;
	mst_changed(l, m);
}

static void answer(struct mst_ledger *l, struct mst_member *m)
{
	uint64_t version = version_due(l, m);
	uint32_t buffer;

	if (m->strays && !somebody_gives(l, m))
		m->strays = false; /* its state is the only one, and so the job's */
	MST_ASSERT(m->asks && (m->judged >= m->ask_after || l->phase == MST_PHASE_ENDED));
	bool apart = mst_returns_lacks_first(l, m, version);
	if (mst_behind_holds(m) || lacks_state(l, m) || apart ||
	    !mst_store_find(&l->store, version, &buffer)) {
		if (l->phase == MST_PHASE_ENDED)
			answer_without(l, m);
		else
			mst_behind_lacks(l, m, apart ? MST_EVICT_APART : MST_EVICT_STALE);
		return;
	}
	enum mst_where where = place_of(l, m, version, buffer);
	if (must_wait(l, m, where, buffer)) {
		mst_waits_for(&l->waits, m, MST_WAIT_ROOM);
		return;
	}
	hold(l, m, where, buffer);
	keep(l, m, buffer);
	l->active_ns = l->now_ns;
	struct mst_decision *d = mst_decide(l, MST_DO_RELEASE, m);
	d->answer.number = m->ask.number;
	d->answer.version = version;
	d->answer.newest = l->store.newest;
	d->answer.buffer = buffer;
	d->answer.where = where;
	m->asks = false;
	m->owes = false;
	m->given = version;
	m->took = false;
	m->until_asked = l->record[buffer].until_asked;
	if (version == l->store.newest)
		mst_behind_reached(m);
	mst_changed(l, m);
	mst_stride_answered(l, m);
	mst_recomputing_answered(l, m);
	mst_trigger_answered(l, m);
}

static void try(struct mst_ledger *l, struct mst_member *m, const struct view *view)
{
	enum mst_wait what = waits_for(l, m, view);

	m->late = what == MST_WAIT_LATE; /* else it is not held later either */
	if (what == MST_WAIT_TRIAL && m->behind == MST_BEHIND_CATCHES &&
	    m->ask.have == l->store.newest && l->phase == MST_PHASE_RUNNING) {
		mst_behind_reached(m); /* it waits for the next step, as one that joins does */
		mst_changed(l, m);
		what = MST_WAIT_ITSELF;
	}
	if (what == MST_WAIT_TRIAL)
		answer(l, m);
	else
		mst_waits_for(&l->waits, m, what);
}

/* Asks are tried in the order of ranks, beginning with the rank that was counted last: it has
 * computed until now while most others have waited, and the next step is going to wait for it. */
void mst_ask_judge_all(struct mst_ledger *l)
{
	const struct mst_ranks *tried = &l->waits.set[MST_WAIT_TRIAL];
	struct view view = { mst_step_clock_min(l), mst_step_due(l) };
	uint32_t first = l->counted_last, rank;

	mst_waits_clock(&l->waits, l->member, view.clock_min + (uint64_t)l->rule.bound);
	if (tried->count == 0)
		return;
	for (rank = mst_ranks_next(tried, first); rank != MST_RANK_NONE;
	     rank = mst_ranks_next(tried, rank + 1))
		try(l, &l->member[rank], &view);
	for (rank = mst_ranks_first(tried); rank < first; rank = mst_ranks_next(tried, rank + 1))
		try(l, &l->member[rank], &view);
}

void mst_ask_answered(struct mst_ledger *l, struct mst_member *m, uint32_t shard, uint64_t number)
{
	MST_ASSERT(shard < l->cfg.shards);
	if (m->copies == MST_BUFFER_NONE || number != m->copy_number ||
	    mst_bitset_test(&m->copied, shard))
		return;
	mst_bitset_add(&m->copied, shard);
	if (++m->copy_count < l->cfg.shards)
		return;
	mst_ask_copied(l, m);
	l->active_ns = l->now_ns;
}
