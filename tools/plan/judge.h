/* SPDX-License-Identifier: MIT */
/*
 * Has the server's judge of who is slow (server/core/stragglers) judge a trace, so that the plan
 * names whom the server would name. Pure.
 *
 * The judge is told of every step as of one that waits for all: all ranks begin together, and each
 * ends after its time. At the server the judge knows nothing at the beginning. Here the first
 * steps are told twice, as all of the trace is known: so a rank that is slow from the first step
 * on is slow in the first step, too.
 *
 * A period is a row of steps in which a rank is slow. It begins with the first slow step, not when
 * the judge has enough evidence, and ends with the last one, not when the judge is sure.
 */
#ifndef MST_TOOLS_PLAN_JUDGE_H
#define MST_TOOLS_PLAN_JUDGE_H

#include "tools/plan/arrivals.h"

/* Marks the times of periods. @slow: [step * ranks + rank], all false. Return: 0 or -ENOMEM. */
int mst_judge_trace(const struct mst_arrivals *a, bool *slow);

#endif
