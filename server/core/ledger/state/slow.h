/* SPDX-License-Identifier: MIT */
/*
 * Slow ranks, and what the ledger does about them for policies that look for stragglers
 * (Sync-Switch): it counts them, has them rest, and has them return.
 *
 * The judge (server/core/stragglers) looks at the ranks whenever as many gradients have been
 * counted as workers are live; and, for steps that stand still, each second or two. What it finds
 * is for people, and for the policies. Where a policy says so, it goes by the test of the paper
 * instead. In that test a window is over when as many gradients are counted as workers are live;
 * under bsp that is a commit. In each window a worker is slow if its throughput is some standard
 * deviations below the mean of all, and a straggler after some such windows in a row. The
 * throughput is one over the time that its last gradient took, or, if it has computed for longer
 * than that, over the time that it has.
 *
 * A rank that rests by the judge's verdict is looked at again: it is answered once in
 * MST_PROBE_STEPS versions, and no step waits for the gradient of that answer, a probe, which
 * counts if the rule takes it. Where workers own it is answered each time it asks, for it must not
 * lose touch with the versions. It returns when its probes were fast enough
 * (mst_speed_may_return()). At most half of the workers that are live rest so, the slowest ones.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_SLOW_H
#define MST_SERVER_CORE_LEDGER_STATE_SLOW_H

#include "server/core/ledger/state/state.h"

#define MST_PROBE_STEPS 20u

/* Looks, if nobody has looked for a second. */
void mst_slow_tick(struct mst_ledger *l);

/* A version has been made of @gradients, and @live workers are live: judges who is slow, if the
 * policy asks for that, and leaves in the ledger how many are. */
void mst_slow_look(struct mst_ledger *l, uint32_t gradients, uint32_t live);
/* Has slow ranks rest, or return, as the policy wants. */
void mst_slow_rest(struct mst_ledger *l);

/* The job is over: looks for the last time, for those who ask afterwards. Workers that test or save
 * then, or stand still, hold nobody up. */
void mst_slow_over(struct mst_ledger *l);

/* Is the ask of a member that rests to be answered all the same? */
static inline bool mst_slow_probes(const struct mst_ledger *l, const struct mst_member *m)
{
	return m->rests && l->stride[m->rank].probes;
}

#endif
