/* SPDX-License-Identifier: MIT */
/* Late starts in the reference ledger (PROTOCOL 7, "Late starts"). */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/server/core/ledger/reference_state.h"

void span_add(struct spans *spans, uint64_t ns)
{
	spans->ns = reference_room(spans->ns, spans->count, sizeof(*spans->ns));
	spans->ns[spans->count++] = ns;
}

static int by_length(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median of the last nine spans; of an even number, the lower one of the two in the middle; 0:
 * fewer than three are known. */
uint64_t span_median(const struct spans *spans)
{
	size_t count = spans->count < 9 ? spans->count : 9;
	uint64_t last[9];

	if (count < 3)
		return 0;
	memcpy(last, spans->ns + spans->count - count, count * sizeof(*last));
	qsort(last, count, sizeof(*last), by_length);
	return last[(count + 1) / 2 - 1];
}

/* The shortest of the last nine spans; 0: fewer than three are known. */
static uint64_t shortest(const struct spans *spans)
{
	size_t count = spans->count < 9 ? spans->count : 9;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < count; i++) {
		uint64_t ns = spans->ns[spans->count - 1 - i];
		least = ns < least ? ns : least;
	}
	return count < 3 ? 0 : least;
}

static bool would_be_late(const struct reference *r, const struct session *s)
{
	uint64_t stride = shortest(&r->stride[s->who.rank]), step = span_median(&r->steps);

	return stride != 0 && step != 0 && r->now_ns + stride > open_step(r)->opened_ns + step;
}

/* From then on nobody is held: the step has taken twice as long as usual. UINT64_MAX: what is usual
 * is not known. */
static uint64_t late_until(const struct reference *r)
{
	uint64_t step = span_median(&r->steps);

	return step != 0 ? open_step(r)->opened_ns + 2 * step : UINT64_MAX;
}

/* An ask that is held is one of a rank that the step lacks. */
static bool is_held(const struct reference *r, const struct session *s)
{
	return s != NULL && s->held && is_missing(r, s->who.rank);
}

static uint32_t held_count(const struct reference *r)
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < r->cfg.workers; rank++)
		count += is_held(r, session_of(r, rank));
	return count;
}

/* Will the step get what it needs from the others, if so many are held? */
static bool spares(const struct reference *r, uint32_t held)
{
	uint32_t missing = missing_count(r);

	return missing >= held &&
	       open_step(r)->made.entry_count + missing - held >= step_needed(r, r->rule.quorum);
}

/* Is it due the newest version, which it does not have? */
static bool lacks_newest_alone(const struct reference *r, const struct session *s)
{
	uint64_t newest = reference_newest(r);

	if (r->cfg.owner == MUSTER_WORKERS_OWN)
		return s->ask.have + 1 == newest;
	return s->ask.have != newest;
}

/* When the job is about to end, asks wait for its end, and not for a timer. */
uint64_t late_due(const struct reference *r)
{
	return !r->finished && !r->settling && held_count(r) > 0 ? late_until(r) : UINT64_MAX;
}

bool late_holds(struct reference *r, struct session *s)
{
	enum mst_late_start start = r->rule.late_start;

	if (s->held || !s->late)
		return s->held;
	bool wanted = start == MST_LATE_START_COMMIT ||
		      (start == MST_LATE_START_AUTO && would_be_late(r, s));
	s->held = wanted && r->rule.release == MST_RELEASE_COMMIT && is_missing(r, s->who.rank) &&
		  !open_step(r)->overdue && r->now_ns < late_until(r) && lacks_newest_alone(r, s) &&
		  spares(r, held_count(r) + 1);
	return s->held;
}

void late_release(struct reference *r)
{
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s != NULL)
			s->held = s->late = false;
	}
}

void late_look(struct reference *r)
{
	for (uint32_t rank = 0; rank < r->cfg.workers; rank++) {
		struct session *s = session_of(r, rank);
		if (s != NULL && !is_missing(r, rank))
			s->held = false;
	}
	if (held_count(r) > 0 &&
	    (open_step(r)->overdue || r->now_ns >= late_until(r) || !spares(r, held_count(r))))
		late_release(r);
}
