/* SPDX-License-Identifier: MIT */
/*
 * A clock that runs only while this process listens to its peers. Silence is measured with it. A
 * peer is heard when what it sends is read. So time in which nothing was read is no silence of a
 * peer, whatever the reason: this process was stopped, paged out, or busy elsewhere.
 *
 * After everything has been read to its end, the clock runs on for `fresh_ns`. Then it stands still
 * until everything has been read again. Pure: times go in, times come out.
 */
#ifndef MST_COMMON_BASE_LISTENING_H
#define MST_COMMON_BASE_LISTENING_H

#include <stdint.h>

#include "common/base/clock.h"

struct mst_listening {
	uint64_t fresh_ns;
	uint64_t heard_ns;  /* everything was read to its end after this time */
	uint64_t looked_ns; /* when the clock was last looked at; 0: never */
	uint64_t clock_ns;  /* what it showed then */
	uint64_t read_ns;   /* what it showed at heard_ns */
};

/* Starts the clock, which shows @now_ns. */
static inline void mst_listening_start(struct mst_listening *l, uint64_t fresh_ns, uint64_t now_ns)
{
	*l = (struct mst_listening){ fresh_ns, now_ns, now_ns, now_ns, now_ns };
}

/* What the clock shows. */
static inline uint64_t mst_listening_now(struct mst_listening *l, uint64_t now_ns)
{
	uint64_t until = l->heard_ns + l->fresh_ns < now_ns ? l->heard_ns + l->fresh_ns : now_ns;

	if (until > l->looked_ns)
		l->clock_ns += until - l->looked_ns;
	if (now_ns > l->looked_ns)
		l->looked_ns = now_ns;
	return l->clock_ns;
}

/* Everything was read to its end after @heard_ns, which is @now_ns or earlier. */
static inline void mst_listening_heard(struct mst_listening *l, uint64_t heard_ns, uint64_t now_ns)
{
	uint64_t ago = now_ns > heard_ns ? now_ns - heard_ns : 0;
	uint64_t clock = mst_listening_now(l, now_ns);

	if (heard_ns > l->heard_ns)
		l->heard_ns = heard_ns;
	if (clock > l->read_ns + ago)
		l->read_ns = clock - ago;
}

/* When the clock will show @due_ns; MST_NEVER: not before mst_listening_heard() is called again. */
static inline uint64_t mst_listening_when(const struct mst_listening *l, uint64_t due_ns)
{
	uint64_t left = due_ns > l->clock_ns ? due_ns - l->clock_ns : 0;
	uint64_t until = l->heard_ns + l->fresh_ns;

	if (due_ns == MST_NEVER || l->looked_ns > until || left > until - l->looked_ns)
		return MST_NEVER;
	return l->looked_ns + left;
}

#endif
