/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/ledger/ledger_check.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/open_step.h"
#include "server/core/ledger/state/state.h"

static char complaint[160];

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	va_list args;

	if (complaint[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(complaint, sizeof(complaint), format, args);
	va_end(args);
}

/* Has every shard reported the header that is to be judged next? */
static bool judgeable(const struct mst_ledger *l, const struct mst_member *m)
{
	for (uint32_t slot = 0; slot < l->cfg.slots; slot++) {
		const struct mst_pending_header *p = &m->pending[slot];
		if (p->full_count == l->cfg.shards && p->header.seq == m->judged + 1)
			return m->state != MST_MEMBER_ABSENT;
	}
	return false;
}

static bool stands(const struct mst_ledger *l, const struct mst_member *m,
		   enum mst_standing standing)
{
	bool in = m->state == MST_MEMBER_STARTED || m->state == MST_MEMBER_LEAVING;

	switch (standing) {
	case MST_STANDS_ABSENT:
		return m->state == MST_MEMBER_ABSENT;
	case MST_STANDS_IN:
		return in;
	case MST_STANDS_NEW:
		return in && !m->rostered && !m->rests && m->behind == MST_UP_TO_DATE;
	case MST_STANDS_ROSTERED:
		return m->rostered;
	case MST_STANDS_MISSING:
		return m->rostered && m->step_count == 0 && !m->passed;
	case MST_STANDS_COUNTED:
		return m->step_count > 0;
	case MST_STANDS_PASSED:
		return m->passed;
	case MST_STANDS_JUDGEABLE:
		return judgeable(l, m);
	case MST_STANDS_BUSY:
		return m->state == MST_MEMBER_STARTED && !m->asks;
	case MST_STANDS_BEHIND:
		return m->behind != MST_UP_TO_DATE;
	case MST_STANDS_KEEPING:
		return m->asks && m->reads != MST_BUFFER_NONE;
	case MST_STANDINGS:
		break;
	}
	return false;
}

static void check_set(const struct mst_ranks *s, const char *what, int which, uint32_t expected)
{
	uint32_t found = 0;

	for (uint32_t rank = mst_ranks_first(s); rank != MST_RANK_NONE;
	     rank = mst_ranks_next(s, rank + 1))
		found++;
	if (s->count != expected || found != expected)
		complain("%s %d has %u members and finds %u; there are %u", what, which, s->count,
			 found, expected);
}

static void check_standings(const struct mst_ledger *l)
{
	for (int i = 0; i < MST_STANDINGS; i++) {
		const struct mst_ranks *set = &l->counts.set[i];
		uint32_t expected = 0;
		for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
			bool in = stands(l, &l->member[rank], (enum mst_standing)i);
			expected += in;
			if (mst_ranks_has(set, rank) != in)
				complain("rank %u: standing %d is %d, and noted otherwise", rank, i,
					 in);
		}
		check_set(set, "standing", i, expected);
	}
}

static void check_heap(const struct mst_heap *h, const char *what, uint32_t expected)
{
	if (h->count != expected)
		complain("%u %s for %u members", h->count, what, expected);
	for (uint32_t at = 2; at <= h->count; at++) {
		if (h->entry[at].key < h->entry[at / 2].key)
			complain("the %s are out of order at %u", what, at);
	}
}

static void check_key(const struct mst_heap *h, const char *what, uint32_t rank, bool in,
		      uint64_t key)
{
	if (mst_heap_has(h, rank) != in)
		complain("rank %u: of the %s is %d, and noted otherwise", rank, what, in);
	else if (in && h->entry[h->place[rank]].key != key)
		complain("rank %u: another of the %s is noted", rank, what);
	else if (in && h->entry[h->place[rank]].rank != rank)
		complain("rank %u: another rank has its place in the %s", rank, what);
}

/* The version that it computes on, or has pushed something on that is still to be judged. */
static uint64_t at_hand_key(const struct mst_ledger *l, const struct mst_member *m)
{
	bool waits = m->asks && m->judged >= m->ask_after && l->cfg.owner == MUSTER_SERVERS_OWN;

	return l->rule.by_micro && m->rostered && !waits ? m->given : MST_VERSION_NONE;
}

static void check_heaps(const struct mst_ledger *l)
{
	uint32_t rostered = 0, sessions = 0, parked = 0, computing = 0;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		bool session = m->state != MST_MEMBER_ABSENT, parks = m->waits == MST_WAIT_CLOCK;
		rostered += m->rostered;
		sessions += session;
		parked += parks;
		check_key(&l->counts.clocks, "clocks", rank, m->rostered, m->clock);
		check_key(&l->counts.leases, "leases", rank, session, m->lease_until);
		bool at_hand = at_hand_key(l, m) != MST_VERSION_NONE;
		computing += at_hand;
		check_key(&l->counts.at_hand, "versions at hand", rank, at_hand, m->given);
		check_key(&l->waits.clocks, "parked clocks", rank, parks, m->clock);
		check_key(&l->waits.since, "parked asks", rank, parks, m->asked_ns);
	}
	check_heap(&l->counts.clocks, "clocks", rostered);
	check_heap(&l->counts.leases, "leases", sessions);
	check_heap(&l->counts.at_hand, "versions at hand", computing);
	check_heap(&l->waits.clocks, "parked clocks", parked);
	check_heap(&l->waits.since, "parked asks", parked);
}

/* Every ask lies where it waits, none is still to be tried, and the clock bound parks those alone
 * that are said to wait for it. */
static void check_waits(const struct mst_ledger *l)
{
	bool open = l->phase == MST_PHASE_RUNNING && !l->end_due && !mst_step_due(l);
	uint64_t min = mst_step_clock_min(l);
	uint32_t waiting[MST_WAITS] = { 0 };

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		waiting[m->waits]++;
		if (m->waits != MST_WAIT_ITSELF && !mst_ranks_has(&l->waits.set[m->waits], rank))
			complain("rank %u waits for %d, and is not there", rank, m->waits);
		if (m->waits != MST_WAIT_ITSELF && !m->asks)
			complain("rank %u does not ask, and waits for %d", rank, m->waits);
		if (open && mst_ask_bound_parks(l, m, min) != (m->waits == MST_WAIT_CLOCK))
			complain("rank %u waits for %d, and the clock bound %s it", rank, m->waits,
				 m->waits == MST_WAIT_CLOCK ? "does not park" : "parks");
	}
	waiting[MST_WAIT_ITSELF] = 0;
	for (int i = 0; i < MST_WAITS; i++)
		check_set(&l->waits.set[i], "what is waited for", i, waiting[i]);
	if (waiting[MST_WAIT_TRIAL] > 0)
		complain("%u asks are still to be tried", waiting[MST_WAIT_TRIAL]);
}

/* A worker whose ask is held was late, and is missing in the step. The step gets its quorum without
 * any of the workers whose asks are held. */
static void check_held(const struct mst_ledger *l)
{
	struct mst_rule_step step = mst_step_view(l);
	uint32_t held = 0;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		held += m->waits == MST_WAIT_LATE;
		if (m->waits == MST_WAIT_LATE && (!m->late || !mst_member_missing(m)))
			complain("rank %u is held, late %d, missing %d", rank, m->late,
				 mst_member_missing(m));
		if (m->waits != MST_WAIT_LATE && m->late && l->phase == MST_PHASE_RUNNING)
			complain("rank %u is not held, and may be later", rank);
	}
	if (held > 0 && l->phase == MST_PHASE_RUNNING && !l->end_due &&
	    (l->overdue ||
	     step.contributions + step.missing - held < mst_rule_needed(&l->rule, &step)))
		complain("%u are held, and the step needs them", held);
}

/* Each far member is counted once, for as long as it is there. */
static void check_far(const struct mst_ledger *l)
{
	uint32_t far = 0;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		far += m->far;
		if (m->far && m->state == MST_MEMBER_ABSENT)
			complain("rank %u is far, and is not there", rank);
	}
	if (far != l->far)
		complain("%u are far; noted are %u", far, l->far);
}

/* A worker that rests is counted once. It has a part in the job, and none in the step. A trigger
 * comes once in a step, and only where the rule has one. */
static void check_step(const struct mst_ledger *l)
{
	uint32_t resting = 0;

	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		const struct mst_member *m = &l->member[rank];
		resting += m->rests;
		if (m->rests && (m->rostered || !mst_member_takes_part(m)))
			complain("rank %u rests, rostered %d, state %d", rank, m->rostered,
				 m->state);
	}
	if (resting != l->resting)
		complain("%u rest; noted are %u", resting, l->resting);
	if (l->phase != MST_PHASE_RUNNING)
		return;
	if ((l->collecting || l->overdue) && l->rule.trigger == MST_TRIGGER_NONE)
		complain("a step without a trigger has had it");
	if (l->collecting && !l->rule.collect)
		complain("a step collects under a rule that does not");
	if (l->collecting && l->overdue && l->rule.grace_ns == 0)
		complain("a collection without grace is over");
}

const char *ledger_check(const struct mst_ledger *l)
{
	complaint[0] = '\0';
	check_standings(l);
	check_heaps(l);
	check_waits(l);
	check_held(l);
	check_step(l);
	check_far(l);
	return complaint[0] != '\0' ? complaint : NULL;
}
