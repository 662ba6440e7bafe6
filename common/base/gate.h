/* SPDX-License-Identifier: MIT */
/*
 * A gate: where one thread sleeps until others have something for it. Opening it costs a fence and
 * a load while nobody sleeps, a system call only when somebody does.
 *
 * The sleeper: shut it, look once more, and wait if there is still nothing; it is open afterwards.
 *
 *	mst_gate_shut(&gate);
 *	if (there is something)
 *		mst_gate_leave(&gate);
 *	else
 *		mst_gate_wait(&gate, timeout_ns);
 *
 * The others: make it visible, then mst_gate_open(). Either the look finds it, or the opening finds
 * the gate shut.
 */
#ifndef MST_BASE_GATE_H
#define MST_BASE_GATE_H

#include <stdatomic.h>
#include <stdint.h>

struct mst_gate {
	_Atomic uint32_t is_shut; /* zeroed: open */
};

void mst_gate_shut(struct mst_gate *g);
void mst_gate_leave(struct mst_gate *g);
/* Returns when it is opened, when the time is over, or early. */
void mst_gate_wait(struct mst_gate *g, uint64_t timeout_ns);
void mst_gate_open(struct mst_gate *g); /* any thread */

#endif
