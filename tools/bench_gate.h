/* SPDX-License-Identifier: MIT */
/*
 * Gates: workers begin a step together. A gate opens when as many stand at it as the policy needs
 * for a version; whoever comes later walks through. The one who opens it decides for all whether
 * there is a step behind it. All waiting here lies between the timed spans.
 *
 * It waits as muster does: yields while the others are about to come, then sleeps.
 */
#ifndef MST_TOOLS_BENCH_GATE_H
#define MST_TOOLS_BENCH_GATE_H

#include "tools/bench_plan.h"

/* Stands at the gate of @step until it is open. @gone tells now and then whether the wait is in
 * vain. Return: MST_BENCH_GO or MST_BENCH_OVER; MST_BENCH_SHUT: in vain. */
enum mst_bench_state mst_bench_gate_pass(struct mst_bench_plan *p, uint64_t step,
					 bool (*gone)(void *arg), void *arg);

/* Has the result of @step, in which its gradient was counted: waits until all who were have theirs.
 * Return: false: in vain. */
bool mst_bench_gate_leave(struct mst_bench_plan *p, uint64_t step, bool (*gone)(void *arg),
			  void *arg);

/* A worker's gradient is handed in. */
void mst_bench_gate_pushed(struct mst_bench_plan *p, uint64_t step);
/* Waits until all but one are, and then as long as the plan says. Return: false: in vain. */
bool mst_bench_gate_settle(struct mst_bench_plan *p, uint64_t step, bool (*gone)(void *arg),
			   void *arg);

#endif
