/* SPDX-License-Identifier: MIT */
#include "server/core/stragglers/stragglers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int mst_stragglers_init(struct mst_stragglers *s, uint32_t ranks)
{
	*s = (struct mst_stragglers){ .ranks = ranks,
				      .enough = log(MST_STRAGGLERS_RARE * ranks),
				      .scale = 1 };
	s->speed = calloc(ranks, sizeof(*s->speed));
	s->misses = calloc(ranks, sizeof(*s->misses));
	s->found = calloc(ranks, sizeof(*s->found));
	s->came_ns = calloc(ranks, sizeof(*s->came_ns));
	s->choice = calloc(ranks, sizeof(*s->choice));
	s->sorted = calloc(ranks, sizeof(*s->sorted));
	bool all = s->speed != NULL && s->misses != NULL && s->found != NULL &&
		   s->came_ns != NULL && s->choice != NULL && s->sorted != NULL;
	return all ? 0 : -ENOMEM;
}

void mst_stragglers_fini(struct mst_stragglers *s)
{
	free(s->speed);
	free(s->misses);
	free(s->found);
	free(s->came_ns);
	free(s->choice);
	free(s->sorted);
}

uint64_t mst_stragglers_bytes(uint32_t ranks)
{
	return ranks * (sizeof(struct mst_speed) + sizeof(struct mst_missing_rate) +
			sizeof(struct mst_straggler) + 3 * sizeof(uint64_t));
}

/* ---- the fast ranks ---- */

/* Return: how long a fast rank takes at most; 0: of most ranks it is not known. Out: each rank's
 * median. */
static uint64_t most_of_the_fast(struct mst_stragglers *s)
{
	uint32_t present = 0, count = 0;

	for (uint32_t rank = 0; rank < s->ranks; rank++) {
		s->choice[rank] = mst_speed_choice(&s->speed[rank]);
		present += mst_speed_is_present(&s->speed[rank]);
		if (s->choice[rank] > 0)
			s->sorted[count++] = s->choice[rank];
	}
	if (count < 2 || 2 * count < present)
		return 0;
	mst_reference_sort(s->sorted, count);
	return (uint64_t)(MST_SPEED_RATIO * (double)s->sorted[(count - 1) / 4]);
}

static bool is_fast(const struct mst_stragglers *s, uint32_t rank, uint64_t most_ns)
{
	return s->choice[rank] > 0 && s->choice[rank] <= most_ns;
}

static uint32_t samples(const struct mst_speed *p)
{
	return p->sample.count < MST_SPEED_RECENT ? p->sample.count : MST_SPEED_RECENT;
}

/* A reference has room for so many durations. If there are more, every second is taken, or every
 * third. */
static void make_reference(struct mst_stragglers *s)
{
	uint64_t most_ns = most_of_the_fast(s), ns[MST_REFERENCE_MOST];
	uint32_t total = 0, seen = 0, taken = 0;

	for (uint32_t rank = 0; rank < s->ranks; rank++)
		total += is_fast(s, rank, most_ns) ? samples(&s->speed[rank]) : 0;
	uint32_t every = total / MST_REFERENCE_MOST + 1;
	for (uint32_t rank = 0; rank < s->ranks; rank++) {
		const struct mst_speed *p = &s->speed[rank];
		uint32_t count = is_fast(s, rank, most_ns) ? samples(p) : 0;
		for (uint32_t i = 0; i < count; i++)
			if (seen++ % every == 0)
				ns[taken++] = p->sample.ns[i];
	}
	mst_reference_make(&s->fast, ns, taken);
}

/* The share of a rank that is late already says nothing of what is usual. */
static void share_of_misses(struct mst_stragglers *s)
{
	uint32_t missed = 0, known = 0;

	for (uint32_t rank = 0; rank < s->ranks; rank++) {
		if (s->misses[rank].late)
			continue;
		missed += mst_misses_recent(&s->misses[rank]);
		known += s->misses[rank].known;
	}
	s->missed_share = known > 0 ? (double)missed / known : 0;
}

static void compare_anew(struct mst_stragglers *s)
{
	make_reference(s);
	share_of_misses(s);
	s->fresh = 0;
}

/* ---- events ---- */

void mst_stragglers_began(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns)
{
	mst_speed_begin(&s->speed[rank], now_ns);
}

/* To make a reference takes as long as to judge its durations does. So it is made anew after as
 * many gradients. */
static void count_fresh(struct mst_stragglers *s)
{
	if (++s->fresh >= s->ranks && s->fresh >= s->fast.count)
		compare_anew(s);
}

void mst_stragglers_came(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns)
{
	mst_speed_end(&s->speed[rank], &s->fast, s->enough, now_ns);
	count_fresh(s);
}

void mst_stragglers_gave_up(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns)
{
	mst_speed_drop(&s->speed[rank]);
	count_fresh(s);
	mst_stragglers_missed(s, rank, &(struct mst_miss){ .given_up = true }, now_ns);
}

void mst_stragglers_missed(struct mst_stragglers *s, uint32_t rank, const struct mst_miss *miss,
			   uint64_t now_ns)
{
	mst_misses_add(&s->misses[rank], miss, s->missed_share, s->enough + log(MST_MISSES_RARE),
		       now_ns);
}

void mst_stragglers_counted(struct mst_stragglers *s, uint32_t rank, uint64_t came_ns)
{
	if (s->found[rank].now)
		s->came_ns[rank] = s->waiting.straggler_ns = came_ns;
	else
		mst_waiting_came(&s->waiting, rank, came_ns);
}

/* How long the step waited for its last rank, if that is no straggler: perhaps it will be found to
 * have been one. */
static void note_wait(struct mst_stragglers *s, uint64_t opened_ns)
{
	const struct mst_waiting *w = &s->waiting;
	uint64_t before_ns = w->before_ns > opened_ns ? w->before_ns : opened_ns;

	s->speed[w->last_rank].waited_ns += mst_waiting_after(w->last_ns, before_ns);
}

static void note_waits_for_stragglers(struct mst_stragglers *s, uint64_t opened_ns)
{
	uint64_t others_ns = s->waiting.last_ns > opened_ns ? s->waiting.last_ns : opened_ns;

	for (uint32_t rank = 0; rank < s->ranks; rank++) {
		s->found[rank].waited_ns += mst_waiting_after(s->came_ns[rank], others_ns);
		s->came_ns[rank] = 0;
	}
}

void mst_stragglers_step(struct mst_stragglers *s, uint64_t opened_ns)
{
	if (s->waiting.last_ns > s->waiting.straggler_ns)
		note_wait(s, opened_ns);
	if (s->waiting.straggler_ns != 0)
		note_waits_for_stragglers(s, opened_ns);
	s->waiting = (struct mst_waiting){ 0 };
}

void mst_stragglers_probed(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns)
{
	mst_speed_probed(&s->speed[rank], now_ns);
}

void mst_stragglers_gone(struct mst_stragglers *s, uint32_t rank, bool awaited, uint64_t now_ns)
{
	struct mst_straggler *found = &s->found[rank];

	if (found->now) {
		if (awaited)
			s->came_ns[rank] = s->waiting.straggler_ns = now_ns;
		mst_straggler_end(found, now_ns);
	}
	s->speed[rank] = (struct mst_speed){ 0 };
	s->misses[rank] = (struct mst_missing_rate){ 0 };
}

void mst_stragglers_over(struct mst_stragglers *s, uint64_t now_ns)
{
	for (uint32_t rank = 0; rank < s->ranks; rank++) {
		mst_speed_drop(&s->speed[rank]);
		if (s->found[rank].now)
			mst_straggler_end(&s->found[rank], now_ns);
	}
}

void mst_stragglers_forget(struct mst_stragglers *s, uint32_t rank)
{
	mst_speed_forget(&s->speed[rank]);
}

void mst_stragglers_stay_slow(struct mst_stragglers *s, uint32_t rank)
{
	bool slow = s->found[rank].now && !mst_stragglers_may_return(s, rank);

	mst_speed_forget(&s->speed[rank]);
	s->speed[rank].slow = slow;
}

void mst_stragglers_compare_anew(struct mst_stragglers *s)
{
	for (uint32_t rank = 0; rank < s->ranks; rank++)
		s->speed[rank] = (struct mst_speed){ .began_ns = s->speed[rank].began_ns };
	mst_reference_make(&s->fast, NULL, 0);
	s->fresh = 0;
	s->scale = 1;
}

/* ---- verdicts ---- */

uint64_t mst_stragglers_scaled(const struct mst_stragglers *s, uint32_t rank, uint64_t now_ns)
{
	uint64_t began_ns = s->speed[rank].began_ns;

	if (began_ns == 0 || s->scale == 1)
		return now_ns;
	return began_ns +
	       (uint64_t)fmin((double)(now_ns - began_ns) * s->scale, MST_STRAGGLERS_MOST_NS);
}

static enum mst_straggler_kind kind_of(const struct mst_stragglers *s, uint32_t rank,
				       uint64_t now_ns)
{
	const struct mst_speed *p = &s->speed[rank];

	if (mst_speed_is_stalled(p, &s->fast, mst_stragglers_scaled(s, rank, now_ns)))
		return MST_STRAGGLER_STALLED;
	if (mst_stragglers_is_slow(s, rank, now_ns))
		return MST_STRAGGLER_SLOW;
	return s->misses[rank].late ? MST_STRAGGLER_LATE : MST_STRAGGLER_NONE;
}

static double ratio_of(const struct mst_stragglers *s, uint32_t rank, enum mst_straggler_kind kind,
		       uint64_t now_ns)
{
	if (kind == MST_STRAGGLER_STALLED)
		return (double)(now_ns - s->speed[rank].began_ns) * s->scale /
		       (double)s->fast.mean_ns;
	return mst_stragglers_ratio(s, rank, now_ns);
}

static uint64_t since(const struct mst_stragglers *s, uint32_t rank, enum mst_straggler_kind kind)
{
	const struct mst_speed *p = &s->speed[rank];

	if (kind == MST_STRAGGLER_LATE)
		return s->misses[rank].since_ns;
	return p->evidence > 0 ? p->since_ns : p->began_ns;
}

uint64_t mst_stragglers_fast_ns(const struct mst_stragglers *s)
{
	return (uint64_t)fmin((double)s->fast.mean_ns / s->scale, MST_STRAGGLERS_MOST_NS);
}

bool mst_stragglers_look(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns)
{
	struct mst_straggler *found = &s->found[rank];
	enum mst_straggler_kind kind = kind_of(s, rank, now_ns);
	enum mst_straggler_kind was = found->now ? found->kind : MST_STRAGGLER_NONE;

	if (kind != MST_STRAGGLER_NONE)
		found->ratio = ratio_of(s, rank, kind, now_ns);
	if (kind == was)
		return false;
	if (kind == MST_STRAGGLER_NONE) {
		mst_straggler_end(found, now_ns);
		return true;
	}
	mst_straggler_begin(found, kind, since(s, rank, kind), s->speed[rank].waited_ns);
	s->speed[rank].waited_ns = 0; /* it is charged */
	return true;
}

struct mst_straggler mst_stragglers_of(const struct mst_stragglers *s, uint32_t rank,
				       uint64_t now_ns)
{
	struct mst_straggler of = s->found[rank];

	uint64_t scaled_ns = mst_stragglers_scaled(s, rank, now_ns);

	if (of.now &&
	    of.kind == MST_STRAGGLER_STALLED) { /* its gradient may have come since the look */
		if (mst_speed_is_stalled(&s->speed[rank], &s->fast, scaled_ns))
			of.ratio = ratio_of(s, rank, MST_STRAGGLER_STALLED, now_ns);
		else
			mst_straggler_end(&of, now_ns);
	}
	if (of.now || !mst_speed_is_long(&s->speed[rank], &s->fast, scaled_ns))
		return of;
	of.kind = MST_STRAGGLER_STALLED;
	of.now = true;
	of.sure = false;
	of.ratio = ratio_of(s, rank, MST_STRAGGLER_STALLED, now_ns);
	of.since_ns = s->speed[rank].began_ns;
	return of;
}
