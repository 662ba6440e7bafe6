/* SPDX-License-Identifier: MIT */
#include "common/base/eventcount.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

void mst_eventcount_shut(struct mst_eventcount *g)
{
	atomic_store_explicit(&g->is_shut, 1, memory_order_relaxed);
	/* Pairs with the fence in mst_eventcount_open(). After the two fences this thread looks for
	 * work, and the other thread looks whether the eventcount is shut; at least one of them
	 * sees what the other has written. */
	atomic_thread_fence(memory_order_seq_cst);
}

void mst_eventcount_leave(struct mst_eventcount *g)
{
	atomic_store_explicit(&g->is_shut, 0, memory_order_relaxed);
}

void mst_eventcount_wait(struct mst_eventcount *g, uint64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ns / MST_SECOND),
				    .tv_nsec = (long)(timeout_ns % MST_SECOND) };

	/* Returns at once if the eventcount has been opened meanwhile. An error or a signal makes
	 * it return early, which is allowed. */
	(void)syscall(SYS_futex, &g->is_shut, FUTEX_WAIT_PRIVATE, 1, &timeout, NULL, 0);
	mst_eventcount_leave(g);
}

void mst_eventcount_open(struct mst_eventcount *g)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&g->is_shut, memory_order_relaxed) == 0)
		return;
	atomic_store_explicit(&g->is_shut, 0, memory_order_relaxed);
	(void)syscall(SYS_futex, &g->is_shut, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
