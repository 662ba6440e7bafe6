/* SPDX-License-Identifier: MIT */
/*
 * An eventcount: one thread sleeps until other threads have work for it. While that thread does not
 * sleep, mst_eventcount_open() costs a fence and a load; only if it sleeps, a system call.
 *
 * The sleeper shuts the eventcount, looks once more, and waits if there is still nothing.
 * Afterwards the eventcount is open.
 *
 *	mst_eventcount_shut(&e);
 *	if (there is something)
 *		mst_eventcount_leave(&e);
 *	else
 *		mst_eventcount_wait(&e, timeout_ns);
 *
 * The others first make the work visible, then call mst_eventcount_open(). Either the sleeper sees
 * the work when it looks, or mst_eventcount_open() sees that the eventcount is shut.
 */
#ifndef MST_BASE_EVENTCOUNT_H
#define MST_BASE_EVENTCOUNT_H

#include <stdatomic.h>
#include <stdint.h>

struct mst_eventcount {
	_Atomic uint32_t is_shut; /* zeroed: open */
};

void mst_eventcount_shut(struct mst_eventcount *g);
void mst_eventcount_leave(struct mst_eventcount *g);
/* Returns when the eventcount is opened or when the time is over; it may return earlier. */
void mst_eventcount_wait(struct mst_eventcount *g, uint64_t timeout_ns);
void mst_eventcount_open(struct mst_eventcount *g); /* any thread */

#endif
