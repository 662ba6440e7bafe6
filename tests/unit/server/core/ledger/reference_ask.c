/* SPDX-License-Identifier: MIT */
/* Asks of the reference ledger: who goes on, when, and with what. */
#include "tests/unit/server/core/ledger/reference_state.h"

uint64_t last_gift(const struct session *s)
{
	uint64_t last = 0;

	for (size_t i = 0; i < s->gift_count; i++) {
		if ((s->gift[i].shards & 1) != 0)
			last = i + 1;
	}
	return last;
}

bool ask_is_in_turn(const struct session *s)
{
	for (size_t i = 0; i < s->after; i++) {
		if (!s->gift[i].judged)
			return false;
	}
	return true;
}

void ask_heard(struct reference *r, struct session *s, struct mst_lane_ask ask, uint64_t after)
{
	if (s->asking || ask.number != s->ask.number + 1 || ask.have != s->given) {
		session_end(r, s, MST_EVICT_INVALID);
		return;
	}
	s->asking = true;
	s->ask = ask;
	s->after = after;
	s->asked_ns = r->now_ns;
	/* It has gone on, so it waits for none of those bytes. */
	s->copy_count = 0;
}

uint64_t least_clock(const struct reference *r)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		if (open_step(r)->rostered[rank] && s->clock < least)
			least = s->clock;
	}
	return least == UINT64_MAX ? 0 : least;
}

bool held_by_bound(const struct reference *r, const struct session *s)
{
	return s->asking && s->started && !s->rests && ask_is_in_turn(s) &&
	       r->rule.release == MST_RELEASE_BOUND && reference_newest(r) >= s->first &&
	       s->counted_since_answer && s->clock > least_clock(r) + r->rule.bound;
}

static bool may_go_on(struct reference *r, struct session *s)
{
	const struct reference_step *step = open_step(r);
	uint32_t rank = s->who.rank;

	if (!s->started || !r->born)
		return false;
	if (r->finished)
		return true;
	if (s->rests || reference_newest(r) < s->first || r->settling || !ask_is_in_turn(s))
		return false;
	switch (r->rule.release) {
	case MST_RELEASE_COMMIT:
		return !step->counted[rank] && !step->passed[rank] && !late_holds(r, s);
	case MST_RELEASE_PUSH:
		/* Its version is decided, and only a buffer is missing. */
		return !(step->counted[rank] && step_due(r));
	case MST_RELEASE_BOUND:
		/* What others had counted in that version may be what lets it go on. */
		return !((step->counted[rank] || s->counted_since_answer) && step_due(r)) &&
		       !held_by_bound(r, s);
	}
	return false;
}

static void await_copy(struct session *s, uint64_t version)
{
	s->copy = reference_room(s->copy, s->copy_count, sizeof(*s->copy));
	s->copy[s->copy_count++] = (struct copy){ .number = s->ask.number, .version = version };
}

static bool somebody_is_far(const struct reference *r)
{
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		const struct session *s = session_of(r, rank);
		if (s != NULL && s->far)
			return true;
	}
	return false;
}

static enum mst_where deliver(struct reference *r, struct session *s, uint64_t version)
{
	if (s->ask.have == version)
		return MST_WHERE_KEEP;
	s->in_place = false;
	if (version == 0 && !r->has_state)
		return MST_WHERE_NOWHERE;
	if (r->cfg.in_place && !somebody_is_far(r) && leaves_two(r, version)) {
		s->in_place = true;
		s->reads = version;
		return MST_WHERE_IN_PLACE;
	}
	await_copy(s, version);
	return MST_WHERE_COPIED;
}

/* What is sent may be slow to arrive, so that it needs as much room as a reader in place. */
static bool waits_for_room(const struct reference *r, const struct session *s, uint64_t version)
{
	bool moves = s->ask.have != version && (version > 0 || r->has_state);

	return is_sent_to(r, s) && moves && !r->finished && !leaves_two_later(r, version);
}

/* The version that it needs is gone. Return: the job has ended, and it keeps what it has. */
static bool lacks(struct reference *r, struct session *s)
{
	if (!is_ending(r))
		session_end(r, s, MST_EVICT_STALE);
	else if (r->finished && s->ask.have == MST_VERSION_NONE)
		session_end(r, s, MST_EVICT_TOO_LATE);
	s->in_place = false; /* it let go of that when it asked */
	return r->finished && !s->ended;
}

static void answer(struct reference *r, struct session *s)
{
	uint64_t newest = reference_newest(r), version = newest;

	if (r->cfg.owner == MUSTER_WORKERS_OWN) {
		version = s->ask.have == MST_VERSION_NONE ? 0
			  : s->ask.have < newest          ? s->ask.have + 1
							  : newest;
		if (!version_held(r, version) && !lacks(r, s))
			return;
		if (!version_held(r, version))
			version = s->ask.have;
	}
	if (waits_for_room(r, s, version))
		return;
	enum mst_where where = deliver(r, s, version);
	struct mst_decision *d = decide(r, MST_DO_RELEASE, s->who);
	d->answer.number = s->ask.number;
	d->answer.version = version;
	d->answer.newest = newest;
	d->answer.where = where;
	s->given = version;
	s->asking = false;
	s->counted_since_answer = false;
	s->computes = true;
	s->answer_ns = r->moved_ns = r->now_ns;
	again_answered(r, s);
	trigger_answered(r, s);
}

void answer_all(struct reference *r)
{
	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		struct session *s = session_of(r, (r->last + i) % r->cfg.workers);
		if (s == NULL)
			continue;
		bool goes_on = s->asking && may_go_on(r, s);
		s->late = false; /* it has been looked at */
		if (goes_on)
			answer(r, s);
	}
}
