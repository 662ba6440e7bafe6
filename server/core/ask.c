/* SPDX-License-Identifier: MIT */
/*
 * Asks: who goes on, when, and with which version (PROTOCOL 7). An ask also says that the worker
 * reads no more what it had; so it moves the holds on version buffers too.
 */
#include "common/base/assert.h"
#include "common/base/bitset.h"
#include "server/core/state.h"

static void let_go(struct mst_ledger *l, uint32_t *buffer)
{
	if (*buffer != MST_BUFFER_NONE)
		mst_store_let_go(&l->store, *buffer);
	*buffer = MST_BUFFER_NONE;
}

bool mst_ask_take(struct mst_ledger *l, struct mst_member *m, const struct mst_lane_ask *ask)
{
	/* What it has is known here: a worker that says otherwise would get back what is not
	 * its. */
	if (m->asks || ask->number != m->ask.number + 1 || ask->have != m->given)
		return false;
	m->ask = *ask;
	m->asks = true;
	m->asked_ns = l->now_ns;
	m->read_before = m->reads;
	let_go(l, &m->reads);
	let_go(l, &m->copies); /* it has gone on, so it cannot be waiting for those bytes */
	return true;
}

bool mst_ask_bound_parks(const struct mst_ledger *l, const struct mst_member *m, uint64_t clock_min)
{
	return l->phase == MST_PHASE_RUNNING && l->rule.release == MST_RELEASE_BOUND && m->asks &&
	       m->owes && (m->step_count > 0 || m->clock > clock_min + (uint64_t)l->rule.bound);
}

/* May this ask be answered now? Only a rank that has something in the open step, or that starts
 * with what the open step makes, waits; everybody else goes on at once, under every rule. */
static bool may_go_on(const struct mst_ledger *l, const struct mst_member *m, uint64_t clock_min)
{
	if (!mst_member_takes_part(m))
		return false;
	if (l->phase == MST_PHASE_ENDED)
		return l->store.newest != MST_VERSION_NONE;
	if (l->phase == MST_PHASE_GATHERING || m->first_version > l->store.newest)
		return false;
	if (l->rule.release == MST_RELEASE_COMMIT)
		return m->step_count == 0 && !m->passed;
	return !mst_ask_bound_parks(l, m, clock_min);
}

/* The version this ask is answered with: the newest, or the next in order where workers own. */
static uint64_t version_due(const struct mst_ledger *l, const struct mst_member *m)
{
	if (l->cfg.owner == MUSTER_SERVERS_OWN || m->ask.have == l->store.newest)
		return l->store.newest;
	return m->ask.have == MST_VERSION_NONE ? 0 : m->ask.have + 1;
}

/* Where its bytes are to be, if any buffer can be held for it. */
static enum mst_where place_of(const struct mst_ledger *l, const struct mst_member *m,
			       uint64_t version, uint32_t buffer)
{
	if (version == 0 && !l->has_start_state)
		return m->ask.have == 0 ? MST_WHERE_KEEP : MST_WHERE_NOWHERE;
	if (m->ask.have == version)
		return MST_WHERE_KEEP;
	return l->cfg.in_place && mst_store_spare(&l->store, buffer) >= 2 ? MST_WHERE_IN_PLACE
									  : MST_WHERE_COPIED;
}

/* A copy that the shard makes ends by itself, so that a commit may wait for it. One that is sent
 * lasts as long as its worker's link takes: like a reader in place it must leave two buffers, and
 * waits where it cannot. After the last commit there is nothing to hold up. */
static bool must_wait(const struct mst_ledger *l, enum mst_where where, uint32_t buffer)
{
	return where == MST_WHERE_COPIED && l->cfg.sent && l->phase != MST_PHASE_ENDED &&
	       mst_store_spare(&l->store, buffer) < 2;
}

/* Holds the buffer for as long as it takes. */
static void hold(struct mst_ledger *l, struct mst_member *m, enum mst_where where, uint32_t buffer)
{
	if (where == MST_WHERE_KEEP) {
		m->reads = m->read_before;
		if (m->reads != MST_BUFFER_NONE)
			mst_store_hold(&l->store, m->reads);
	} else if (where == MST_WHERE_IN_PLACE) {
		m->reads = buffer;
		mst_store_hold(&l->store, buffer);
	} else if (where == MST_WHERE_COPIED) {
		m->copies = buffer;
		m->copy_number = m->ask.number;
		m->copy_count = 0;
		for (size_t i = 0; i < mst_bitset_words(l->cfg.shards); i++)
			m->copied[i] = 0;
		mst_store_hold(&l->store, buffer);
	}
}

static void answer(struct mst_ledger *l, struct mst_member *m)
{
	uint64_t version = version_due(l, m);
	uint32_t buffer;

	if (!mst_store_find(&l->store, version, &buffer)) {
		mst_life_lose(l, m, MST_EVICT_STALE);
		return;
	}
	enum mst_where where = place_of(l, m, version, buffer);
	if (must_wait(l, where, buffer))
		return;
	hold(l, m, where, buffer);
	struct mst_decision *d = mst_decide(l, MST_DO_RELEASE, m);
	d->answer.number = m->ask.number;
	d->answer.version = version;
	d->answer.newest = l->store.newest;
	d->answer.buffer = buffer;
	d->answer.where = where;
	m->asks = false;
	m->owes = false;
	m->given = version;
	m->read_before = MST_BUFFER_NONE;
}

/* From who was counted last on, round and round: it has been computing until now, while most others
 * have waited, and the next step is going to wait for it. */
void mst_ask_judge_all(struct mst_ledger *l)
{
	uint64_t clock_min = mst_step_clock_min(l);

	for (uint32_t i = 0; i < l->cfg.workers; i++) {
		struct mst_member *m = &l->member[(l->counted_last + i) % l->cfg.workers];
		if (m->asks && may_go_on(l, m, clock_min))
			answer(l, m);
	}
}

void mst_ask_answered(struct mst_ledger *l, struct mst_member *m, uint32_t shard, uint64_t number)
{
	MST_ASSERT(shard < l->cfg.shards);
	if (m->copies == MST_BUFFER_NONE || number != m->copy_number ||
	    mst_bitset_test(m->copied, shard))
		return;
	mst_bitset_add(m->copied, shard);
	if (++m->copy_count == l->cfg.shards)
		let_go(l, &m->copies);
}

void mst_ask_drop(struct mst_ledger *l, struct mst_member *m)
{
	let_go(l, &m->reads);
	let_go(l, &m->copies);
	m->read_before = MST_BUFFER_NONE;
}
