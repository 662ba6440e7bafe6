/* SPDX-License-Identifier: MIT */
/* How many threads a server starts, and whether it may start all of them. This is checked before
 * the first one starts. */
#ifndef MST_SERVER_THREADS_H
#define MST_SERVER_THREADS_H

#include "server/plan/plan.h"

/* All threads except the main thread. If the length of the vector is not known yet, and for a
 * follower, the shortest vector is assumed. The terms of @cfg are not used. */
uint32_t mst_threads_of(const struct mst_plan_cfg *cfg);

/* To be called before any thread is started.
 * Return: 0; -EAGAIN: fewer are allowed, @why says the numbers. */
int mst_threads_check(const struct mst_plan_cfg *cfg, struct mst_reason *why);

#endif
