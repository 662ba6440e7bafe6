/* SPDX-License-Identifier: MIT */
/*
 * Start and end of sessions and of the job, and the timers (PROTOCOL 2). Two timers can end a
 * session: the lease, if the worker's process sends nothing; and patience, if other workers wait
 * for too long for a worker that is alive.
 */
#include <errno.h>
#include <math.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "server/core/ledger/state.h"

static uint32_t count_started(const struct mst_ledger *l)
{
	return mst_census_count(&l->census, MST_STANDS_IN);
}

/* Members that take part in the steps. A member that is behind does not rest. */
static uint32_t count_present(const struct mst_ledger *l)
{
	return count_started(l) - l->resting - mst_census_count(&l->census, MST_STANDS_BEHIND);
}

/* The first reason to end the job stays. If another one comes, what is counted is waited for no
 * longer. */
void mst_life_end(struct mst_ledger *l, enum mst_finish_why why)
{
	if (l->phase == MST_PHASE_ENDED)
		return;
	if (l->end_due) {
		l->end_whole &= l->end_why == MST_FINISH_STOPPED;
		return;
	}
	l->end_due = true;
	l->end_why = why;
}

/* Twice as long as a step usually takes, and a second more. */
static uint64_t patience_at_end(const struct mst_ledger *l)
{
	uint64_t ns = 2 * mst_tempo_median(&l->steps) + MST_SECOND;

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

/* A job that ends well already, and waits for no worker, does so. */
void mst_life_stop(struct mst_ledger *l)
{
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
	mst_ask_try_all(l);
	return true;
}

void mst_life_tell_finish(struct mst_ledger *l)
{
	struct mst_decision *d = mst_decide(l, MST_DO_FINISH, NULL);

	d->finish.why = l->end_why;
	d->finish.version = l->store.newest;
}

/* Join. */

static int rank_for(const struct mst_ledger *l, const struct mst_ledger_event *ev, uint32_t *rank)
{
	int32_t wanted = ev->join.rank;
	uint32_t buffer;

	if (l->phase == MST_PHASE_ENDED || l->end_due)
		return -ESHUTDOWN;
	if (l->phase == MST_PHASE_RUNNING && l->cfg.owner == MUSTER_WORKERS_OWN &&
	    !ev->join.comes_back && !mst_store_find(&l->store, l->store.first, &buffer))
		return -ESTALE;
	if (wanted >= 0) {
		if ((uint32_t)wanted >= l->cfg.workers)
			return -ERANGE;
		*rank = (uint32_t)wanted;
		return l->member[wanted].state == MST_MEMBER_ABSENT ? 0 : -EEXIST;
	}
	*rank = mst_census_next(&l->census, MST_STANDS_ABSENT, 0);
	return *rank != MST_RANK_NONE ? 0 : -ENOSPC;
}

void mst_life_join(struct mst_ledger *l, const struct mst_ledger_event *ev)
{
	uint64_t cookie = ev->join.cookie;
	uint32_t rank = 0;
	int error = rank_for(l, ev, &rank);

	if (error != 0) {
		struct mst_decision *d = mst_decide(l, MST_DO_REFUSE, NULL);
		d->join.cookie = cookie;
		d->join.error = error;
		return;
	}
	struct mst_member *m = &l->member[rank];
	mst_member_admit(m, l->now_ns + l->cfg.lease_ns);
	m->comes_back = ev->join.comes_back && l->cfg.owner == MUSTER_WORKERS_OWN;
	l->stride[rank].answered_ns = 0;
	mst_changed(l, m);
	struct mst_decision *d = mst_decide(l, MST_DO_ADMIT, m);
	d->join.cookie = cookie;
	d->join.error = 0;
}

/* Start. */

/* Clocks that a checkpoint has kept are not all alike. A rank that was ahead owes what it had
 * given: the bound holds for its first ask, too. */
void mst_life_bound(struct mst_ledger *l)
{
	uint64_t least = mst_step_clock_min(l);

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		m->owes = m->clock > least;
		mst_changed(l, m);
	}
}

bool mst_life_begin_if_due(struct mst_ledger *l)
{
	uint32_t buffer = 0;

	if (!l->begins)
		return false;
	l->begins = false;
	bool taken = mst_store_take(&l->store, l->store.first, &buffer);
	MST_ASSERT(l->phase == MST_PHASE_GATHERING);
	MST_ASSERT(taken && buffer == 0); /* SEND_STATE has named this buffer */
	l->phase = MST_PHASE_RUNNING;
	l->join_until = MST_NEVER;
	l->record[buffer].version = l->store.first;
	l->record[buffer].loss = (double)NAN;
	l->record[buffer].divisor = 1.0f;
	l->record[buffer].lr_scale = 1.0;
	struct mst_decision *d = mst_decide(l, MST_DO_START, NULL);
	d->commit.version = l->store.first;
	d->commit.buffer = buffer;
	return true;
}

static bool somebody_sends(const struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (l->member[rank].sends_state)
			return true;
	}
	return false;
}

static struct mst_member *lowest_that_offers(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (l->member[rank].offers)
			return &l->member[rank];
	}
	return NULL;
}

/* When all members have started, the lowest rank that offers a start state is told to send it. If
 * no rank offers one, the job starts without it if workers own, and fails if servers do. This is
 * asked again when the state has arrived, for a worker may die while it sends the state, and the
 * job must not start without it. */
static void start_if_all_have(struct mst_ledger *l)
{
	if (l->phase != MST_PHASE_GATHERING || count_started(l) < l->cfg.workers)
		return;
	struct mst_member *m = l->lacks_tensors ? &l->member[0] : lowest_that_offers(l);
	if ((l->has_start_state && !l->lacks_tensors) ||
	    (m == NULL && l->cfg.owner == MUSTER_WORKERS_OWN)) {
		l->begins = true; /* the first version is in its buffer, or with every worker */
	} else if (m == NULL) {
		mst_life_end(l, MST_FINISH_NO_START);
	} else if (!somebody_sends(l)) {
		m->sends_state = true;
		struct mst_decision *d = mst_decide(l, MST_DO_SEND_STATE, m);
		d->commit.version = l->store.first;
		d->commit.buffer = 0;
	}
}

void mst_life_state(struct mst_ledger *l, struct mst_member *m)
{
	if (!m->sends_state)
		return;
	m->sends_state = false;
	l->has_start_state = true;
	l->lacks_tensors = false;
	start_if_all_have(l);
}

static void start_if_ready(struct mst_ledger *l, struct mst_member *m)
{
	if (m->state != MST_MEMBER_JOINED || !m->start_called || m->link_count < l->cfg.shards)
		return;
	mst_member_enter(m, MST_MEMBER_STARTED);
	if (l->phase == MST_PHASE_RUNNING)
		m->clock = mst_step_clock_min(l);
	mst_changed(l, m);
	start_if_all_have(l);
}

void mst_life_linked(struct mst_ledger *l, struct mst_member *m, uint32_t shard)
{
	mst_member_link(m, shard, l->cfg.shards);
	start_if_ready(l, m);
}

void mst_life_start(struct mst_ledger *l, struct mst_member *m, bool offers)
{
	struct mst_lane_ask first = { .number = 1, .have = MST_VERSION_NONE };

	if (m->start_called || !mst_ask_take(l, m, &first, 0)) {
		mst_life_lose(l, m, MST_EVICT_INVALID);
		return;
	}
	m->start_called = true;
	m->offers = offers;
	mst_member_begin_fates(m);
	start_if_ready(l, m);
}

/* End of a session. */

static void end_session(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why)
{
	mst_judge_cancel(l, m);
	mst_ask_drop(l, m);
	l->resting -= m->rests;
	mst_decide(l, MST_DO_EVICT, m)->evict = why;
	mst_member_end(m);
	mst_stragglers_forget(l, m->rank);
	mst_outliers_forget(&l->outliers, m->rank);
	m->offers = m->sends_state = false;
	mst_changed(l, m);
}

/* With nobody left who takes part in the steps, those who rest have to. */
static void wake_all(struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers && l->resting > 0; rank++)
		mst_life_rest(l, &l->member[rank], false);
}

void mst_life_wake_if_alone(struct mst_ledger *l)
{
	if (l->phase == MST_PHASE_RUNNING && !l->end_due && count_present(l) == 0)
		wake_all(l);
}

void mst_life_lose(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why)
{
	bool took_part = mst_member_takes_part(m);
	bool in_peace = why == MST_EVICT_LEFT || mst_evict_error(why) == -ESTALE ||
			m->state == MST_MEMBER_LEAVING;

	end_session(l, m, why);
	if (l->phase != MST_PHASE_RUNNING || !took_part)
		return;
	uint32_t live = count_started(l);
	mst_life_wake_if_alone(l);
	if (in_peace && live == 0)
		mst_life_end(l, MST_FINISH_LEFT);
	else if (!in_peace && l->rule.on_loss == MST_LOSS_FAIL)
		mst_life_end(l, MST_FINISH_LOSS);
	else if (!in_peace && live < l->rule.min_workers)
		mst_life_end(l, MST_FINISH_TOO_FEW);
}

/* No job fails because somebody is evicted. The control side has refused it where any loss fails
 * the job; but the job may have started since, or got that rule. */
void mst_life_evict(struct mst_ledger *l, struct mst_member *m)
{
	bool goes_on = l->phase == MST_PHASE_RUNNING && !l->end_due;
	bool fails = l->rule.on_loss == MST_LOSS_FAIL || count_started(l) <= l->rule.min_workers;

	if (!goes_on || !fails || !mst_member_takes_part(m))
		mst_life_lose(l, m, MST_EVICT_ASKED);
}

void mst_life_leave_if_judged(struct mst_ledger *l, struct mst_member *m)
{
	if (m->state == MST_MEMBER_LEAVING && m->judged >= m->leave_seq)
		mst_life_lose(l, m, MST_EVICT_LEFT);
}

void mst_life_leave(struct mst_ledger *l, struct mst_member *m, uint64_t seq)
{
	if (m->state != MST_MEMBER_STARTED) {
		if (m->state == MST_MEMBER_JOINED)
			mst_life_lose(l, m, MST_EVICT_LEFT);
		return;
	}
	mst_member_enter(m, MST_MEMBER_LEAVING);
	m->leave_seq = seq;
	mst_changed(l, m);
	mst_life_leave_if_judged(l, m);
}

/* Rest. */

/* Another member has to be left that takes part in the steps. A member that returns takes part from
 * the next step on, as one that joins does. */
void mst_life_rest(struct mst_ledger *l, struct mst_member *m, bool rests)
{
	if (l->phase != MST_PHASE_RUNNING || !mst_member_takes_part(m) || m->rests == rests ||
	    m->behind != MST_UP_TO_DATE || (rests && count_present(l) <= 1))
		return;
	m->rests = rests;
	l->resting += rests ? 1 : UINT32_MAX;
	if (rests)
		m->rostered = false;
	else
		m->clock = mst_step_clock_min(l);
	mst_decide(l, MST_DO_REST, m)->rests = rests;
	mst_changed(l, m);
}

/* Timers. */

/* After the server has listened, the ledger's clock runs on for this part of a lease. */
#define FRESH_SHARE 4u

void mst_life_look(struct mst_ledger *l, uint64_t now_ns)
{
	if (l->listening.looked_ns == 0)
		mst_listening_start(&l->listening, l->cfg.lease_ns / FRESH_SHARE, now_ns);
	l->now_ns = mst_listening_now(&l->listening, now_ns);
}

void mst_life_heard(struct mst_ledger *l, uint64_t heard_ns, uint64_t now_ns)
{
	mst_listening_heard(&l->listening, heard_ns, now_ns);
	l->heard = true;
}

static bool is_over(const struct mst_ledger *l, uint64_t since_ns, uint64_t limit_ns)
{
	return l->now_ns >= since_ns && l->now_ns - since_ns >= limit_ns;
}

/* Does the job wait for workers? Not if a commit is due and lacks only a buffer, nor if the job is
 * about to end with what it has. */
static bool waits_for_workers(const struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);

	return mst_step_gathers(l) && !mst_rule_met(&l->rule, &step);
}

/* Has the member's next header come to some servers and not to all? Those that have not reported it
 * may only be late. The ledger's clock stands still while one of those servers is silent. So if
 * they have not reported it after a lease, the worker has not sent it. */
static bool is_half_reported(const struct mst_ledger *l, struct mst_member *m)
{
	const struct mst_pending_header *p = mst_member_pending(m, l->cfg.slots, m->judged + 1);

	return p != NULL && p->full_count < l->cfg.shards &&
	       !is_over(l, p->since_ns, l->cfg.lease_ns);
}

/* A header that is half reported excuses its member until that header is judged. Otherwise a worker
 * all of whose headers are refused would hold the step for ever, if one of them is half reported
 * whenever patience is over. */
static bool is_excused(const struct mst_ledger *l, struct mst_member *m)
{
	if (!is_half_reported(l, m))
		return false;
	m->excused = m->judged + 1;
	m->excused_in = l->store.newest;
	return true;
}

/* Does the member wait for the servers, now that patience is over? It does if its ask waits for a
 * buffer that another worker's link holds. An ask that comes after a header waits for that header
 * first, and is excused no longer than the header is. */
static bool is_held_up(const struct mst_ledger *l, struct mst_member *m)
{
	return mst_member_awaits_answer(m) || is_excused(l, m);
}

/* Does the open step wait for particular ranks? Otherwise any rank could go on: nothing is counted
 * yet, or every rank has contributed and the rule needs still more contributions. */
static bool step_has_missing(const struct mst_ledger *l)
{
	return l->entry_count > 0 && mst_step_view(l).missing > 0;
}

/* Until when the open step may wait. Ranks that are missing delay the others from the first
 * contribution of the set on. Where any rank could go on, the time counts in which none did.
 * There one server of several that stands still may hold up all workers. The ledger's clock
 * stands still only after up to a lease of that, so workers are given a lease more. Otherwise a
 * server that sleeps for longer than patience, and keeps the answers to all workers, would have
 * them evicted. */
static uint64_t step_waits_until(const struct mst_ledger *l)
{
	uint64_t server_ns = l->cfg.shards > 1 ? l->cfg.lease_ns : 0;

	if (step_has_missing(l))
		return mst_judged_at(l, l->first_count_ns + l->rule.patience_ns);
	return mst_judged_at(l, l->active_ns + l->rule.patience_ns + server_ns);
}

/* Where ranks contribute again, one whose slots all lie in the open step may have to wait for its
 * commit, as others do. */
static bool has_slot_left(const struct mst_ledger *l, const struct mst_member *m)
{
	return m->rostered && m->step_count < l->cfg.slots;
}

static bool somebody_has_slot_left(const struct mst_ledger *l)
{
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		if (has_slot_left(l, &l->member[rank]))
			return true;
	}
	return false;
}

/* Ends the sessions of live workers for which the open step has waited too long. For the other
 * workers patience begins again. Where any rank could go on, those that have contributed least hold
 * up the others. */
static void judge_patience(struct mst_ledger *l)
{
	bool missing_only = l->entry_count == 0 || step_has_missing(l);

	if (!waits_for_workers(l) || l->now_ns < step_waits_until(l))
		return;
	bool slots_count = !missing_only && somebody_has_slot_left(l);
	l->first_count_ns = l->active_ns = l->now_ns;
	mst_late_release_all(l);
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		bool awaited = missing_only  ? mst_member_missing(m)
			       : slots_count ? has_slot_left(l, m)
					     : m->rostered;
		if (awaited && !is_held_up(l, m))
			mst_life_lose(l, m, MST_EVICT_PATIENCE);
	}
}

/* If the clock bound has made @asker wait for too long, the slowest members are evicted. Then
 * patience begins again for all members. Otherwise the next slowest would be evicted at once, one
 * after the other. */
static void judge_bound(struct mst_ledger *l, const struct mst_member *asker)
{
	uint64_t min = mst_step_clock_min(l);

	if (!mst_ask_bound_parks(l, asker, min) || !waits_for_workers(l) ||
	    l->now_ns < mst_judged_at(l, asker->asked_ns + l->rule.patience_ns))
		return;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		struct mst_member *m = &l->member[rank];
		m->asked_ns = l->now_ns;
		mst_changed(l, m);
		if (m->rostered && m != asker && m->clock == min && !is_held_up(l, m))
			mst_life_lose(l, m, MST_EVICT_PATIENCE);
	}
}

/* Ends the sessions whose leases are over, in the order of ranks. Leases are compared with the time
 * up to which everything has been read: what is still unread may be a heartbeat of any worker. */
static void judge_leases(struct mst_ledger *l)
{
	struct mst_heap *leases = &l->census.leases;

	if (!l->heard)
		return;
	l->heard = false;
	while (leases->count > 0 && mst_heap_least(leases) <= l->listening.read_ns) {
		mst_ranks_add(&l->expired, mst_heap_first(leases));
		mst_heap_remove(leases, mst_heap_first(leases));
	}
	for (uint32_t rank; (rank = mst_ranks_first(&l->expired)) != MST_RANK_NONE;) {
		mst_ranks_remove(&l->expired, rank);
		mst_life_lose(l, &l->member[rank], MST_EVICT_LEASE);
	}
}

/* When patience runs out for the first ask that waits because of the clock bound. */
static uint64_t bound_deadline(const struct mst_ledger *l)
{
	if (l->rule.release != MST_RELEASE_BOUND || l->waits.since.count == 0 ||
	    !waits_for_workers(l))
		return MST_NEVER;
	return mst_judged_at(l, mst_heap_least(&l->waits.since) + l->rule.patience_ns);
}

/* When the step that is open is not waited for any more, though an operator has ended the job. */
static uint64_t end_deadline(const struct mst_ledger *l)
{
	bool waits = mst_step_gathers(l) && l->end_whole && l->end_why == MST_FINISH_ASKED;

	return waits ? mst_judged_at(l, l->end_whole_until) : MST_NEVER;
}

void mst_life_tick(struct mst_ledger *l)
{
	judge_leases(l);
	if (l->now_ns >= end_deadline(l))
		l->end_whole = false;
	if (l->phase == MST_PHASE_GATHERING && l->now_ns >= l->join_until)
		mst_life_end(l, MST_FINISH_JOIN_TIMEOUT);
	mst_trigger_tick(l); /* a step that is over waits for nobody */
	judge_patience(l);
	if (l->now_ns < bound_deadline(l))
		return;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++)
		judge_bound(l, &l->member[rank]);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Leases have no deadline, because they are judged at the next tick after each MST_EV_HEARD. */
uint64_t mst_life_deadline(const struct mst_ledger *l, uint64_t handing_ns)
{
	uint64_t due = l->phase == MST_PHASE_GATHERING ? l->join_until : MST_NEVER;

	if (l->heard)
		return l->listening.looked_ns;
	due = earlier(due, bound_deadline(l));
	due = earlier(due, end_deadline(l));
	due = earlier(due, mst_trigger_deadline(l));
	due = earlier(due, mst_late_deadline(l));
	due = earlier(due, handing_ns);
	if (waits_for_workers(l))
		due = earlier(due, step_waits_until(l));
	return mst_listening_when(&l->listening, due);
}
