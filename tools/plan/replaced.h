/* SPDX-License-Identifier: MIT */
/*
 * What a job would be with other ranks in the place of its stragglers, all of them. Pure.
 *
 * The times of a rank that takes a straggler's place are drawn from those of the ranks that are no
 * stragglers; if all are, from the times of all ranks outside of their periods. So the job still
 * waits for as many ranks as before.
 *
 * Some steps may be longer than others for all ranks. So a time is drawn in proportion to the
 * length of its step: the mean of the fast ranks in that step, as far as the steps differ more than
 * their ranks let expect. If a step's length is m with the variance b, and times in a step have the
 * variance v, that part of the logarithm of m is 1 - v / (m b), and never below 0 (a random effect,
 * as its best linear predictor; Searle, Casella and McCulloch 1992, chapter 7).
 */
#ifndef MST_TOOLS_PLAN_REPLACED_H
#define MST_TOOLS_PLAN_REPLACED_H

#include "tools/plan/slow.h"

/* Finds the longest time of each step: the mean of some draws. @out: one for each step.
 * Return: 0 or -ENOMEM. */
int mst_replaced_fill(const struct mst_arrivals *a, const struct mst_slow *slow, uint64_t seed,
		      double *out);

#endif
