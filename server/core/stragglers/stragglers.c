/* SPDX-License-Identifier: MIT */
#include "server/core/stragglers/stragglers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int mst_stragglers_init(struct mst_stragglers *s, uint32_t ranks)
{
	*s = (struct mst_stragglers){ .ranks = ranks, .enough = log(MST_STRAGGLERS_RARE * ranks) };
	s->speed = calloc(ranks, sizeof(*s->speed));
	s->choice = calloc(ranks, sizeof(*s->choice));
	s->sorted = calloc(ranks, sizeof(*s->sorted));
	return s->speed != NULL && s->choice != NULL && s->sorted != NULL ? 0 : -ENOMEM;
}

void mst_stragglers_fini(struct mst_stragglers *s)
{
	free(s->speed);
	free(s->choice);
	free(s->sorted);
}

uint64_t mst_stragglers_bytes(uint32_t ranks)
{
	return ranks * (sizeof(struct mst_speed) + 2 * sizeof(uint64_t));
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
	s->fresh = 0;
}

/* ---- events ---- */

void mst_stragglers_began(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns)
{
	mst_speed_begin(&s->speed[rank], now_ns);
}

/* To make a reference takes as long as to judge its durations does. So it is made anew after as
 * many gradients. */
void mst_stragglers_came(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns)
{
	mst_speed_end(&s->speed[rank], &s->fast, s->enough, now_ns);
	if (++s->fresh >= s->ranks && s->fresh >= s->fast.count)
		make_reference(s);
}

void mst_stragglers_probed(struct mst_stragglers *s, uint32_t rank, uint64_t now_ns)
{
	mst_speed_probed(&s->speed[rank], now_ns);
}

void mst_stragglers_gone(struct mst_stragglers *s, uint32_t rank)
{
	s->speed[rank] = (struct mst_speed){ 0 };
}

void mst_stragglers_forget(struct mst_stragglers *s, uint32_t rank)
{
	mst_speed_forget(&s->speed[rank]);
}
