/* SPDX-License-Identifier: MIT */
/* Gifts that are computed again, in the reference ledger. */
#include "tests/unit/server/core/ledger/reference_ledger.h"
#include "tests/unit/server/core/ledger/reference_state.h"

#define MOST 16

static bool rejects(const struct reference *r)
{
	return r->rule.late == MST_LATE_REJECT && r->rule.window < MST_WINDOW_MAX &&
	       r->rule.release == MST_RELEASE_PUSH && r->rule.quorum == 1;
}

static bool counts(const struct reference *r, const struct session *s)
{
	return s != NULL && s->awaited && s->started && !s->leaving &&
	       open_step(r)->rostered[s->who.rank];
}

static uint64_t how_many(const struct reference *r)
{
	uint64_t count = 0;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		count += counts(r, session_of(r, rank));
	return count;
}

void again_judged(struct reference *r, struct session *s, enum muster_verdict verdict)
{
	s->awaited = false;
	s->rejected = verdict == MUSTER_STALE && rejects(r);
}

void again_answered(struct reference *r, struct session *s)
{
	bool again = s->rejected && rejects(r) && open_step(r)->rostered[s->who.rank];

	s->rejected = s->awaited = false;
	s->awaited = again && how_many(r) <= r->rule.window && how_many(r) < MOST;
}

/* One version after the other: all that are waited for, the oldest first, have to be in time after
 * one more version of this session. */
bool again_holds(const struct reference *r, const struct session *s, const struct gift *g)
{
	uint64_t newest = reference_newest(r);

	if (!rejects(r) || !r->born || !still_gathers(r) || (g->header.flags & MST_HEADER_PASS) ||
	    newest - g->header.tag > r->rule.window)
		return false;
	for (uint64_t given = 0, in_turn = 0; given <= newest; given++) {
		bool some = false;
		for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
			const struct session *o = session_of(r, rank);
			bool waits = o != s && counts(r, o) && o->given == given;
			in_turn += waits;
			some |= waits;
		}
		if (some && newest + in_turn - given > r->rule.window)
			return true;
	}
	return false;
}

bool again_given_up(struct reference *r)
{
	if (!rejects(r) || how_many(r) == 0)
		return false;
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		if (session_of(r, rank) != NULL)
			session_of(r, rank)->awaited = false;
	return true;
}
