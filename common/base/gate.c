/* SPDX-License-Identifier: MIT */
#include "common/base/gate.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

void mst_gate_shut(struct mst_gate *g)
{
	atomic_store_explicit(&g->is_shut, 1, memory_order_relaxed);
	/* Pairs with the fence in mst_gate_open(): of the two looks that follow, one finds. */
	atomic_thread_fence(memory_order_seq_cst);
}

void mst_gate_leave(struct mst_gate *g)
{
	atomic_store_explicit(&g->is_shut, 0, memory_order_relaxed);
}

void mst_gate_wait(struct mst_gate *g, uint64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ns / MST_SECOND),
				    .tv_nsec = (long)(timeout_ns % MST_SECOND) };

	/* Returns at once if it has been opened; errors and interruptions are early returns. */
	(void)syscall(SYS_futex, &g->is_shut, FUTEX_WAIT_PRIVATE, 1, &timeout, NULL, 0);
	mst_gate_leave(g);
}

void mst_gate_open(struct mst_gate *g)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&g->is_shut, memory_order_relaxed) == 0)
		return;
	atomic_store_explicit(&g->is_shut, 0, memory_order_relaxed);
	(void)syscall(SYS_futex, &g->is_shut, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
