/* SPDX-License-Identifier: MIT */
/* Threads that look at something for a moment, which its owner may only free when none does. Takes
 * no lock: a signal's handler may be one of them. */
#ifndef MST_CLIENT_LOCAL_READERS_H
#define MST_CLIENT_LOCAL_READERS_H

#include <sched.h>
#include <stdatomic.h>

struct mst_readers {
	_Atomic unsigned count;
};

/* Between these two calls the reader loads what the owner has published, and uses it. */
static inline void mst_readers_enter(struct mst_readers *r)
{
	/* Sequentially consistent, as the owner's store and mst_readers_drain() are: either the
	 * reader finds that there is nothing any more, or the owner finds the reader. */
	(void)atomic_fetch_add(&r->count, 1);
}
static inline void mst_readers_leave(struct mst_readers *r)
{
	(void)atomic_fetch_sub_explicit(&r->count, 1, memory_order_release);
}

/* The owner has published that there is nothing any more, by a sequentially consistent store. Waits
 * until no reader is left that may have seen what was there before. */
static inline void mst_readers_drain(struct mst_readers *r)
{
	while (atomic_load(&r->count) != 0)
		sched_yield();
}

#endif
