/* SPDX-License-Identifier: MIT */
/*
 * How far a trace can be trusted: its steps are drawn again, with replacement, as many as it has
 * (Efron 1979, the bootstrap), and each figure is computed from each such sample. The interval of a
 * figure holds the middle 95 % of its values. The same seed gives the same intervals. Pure.
 *
 * The steps are taken for independent of each other, and missing times are not estimated again.
 */
#ifndef MST_TOOLS_PLAN_BOOTSTRAP_H
#define MST_TOOLS_PLAN_BOOTSTRAP_H

#include "tools/plan/quorum.h"

#define MST_BOOTSTRAP_INTERVAL 0.95
#define MST_BOOTSTRAP_SAMPLES 2000u    /* as many as this, */
#define MST_BOOTSTRAP_SAMPLES_MIN 100u /* but of a long trace fewer: */
#define MST_BOOTSTRAP_LOOKS 1e8        /* times are looked at, about */

struct mst_interval {
	double low, high;
};

/* How a quorum compares with others, in samples. */
struct mst_quorum_interval {
	struct mst_interval speedup; /* mean step of waiting for all / mean step */
	struct mst_interval gain;    /* counted gradients a second, of those of waiting for all */
	struct mst_interval behind;  /* gain / gain of the quorum that is best by the trace */
	double best;                 /* the share of samples in which it is the best one */
};

/* @quorum: @count quorums; the last is all ranks. @best: the index of the best one by the trace.
 * Return: the number of samples, or -ENOMEM. */
struct mst_bootstrap_cfg {
	const uint32_t *quorum;
	uint32_t count, best;
	uint64_t seed;
};
int mst_bootstrap_quorums(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			  struct mst_quorum_interval *out);

/* The same of the gain of one quorum under backup, where steps depend on those before.
 * Return: the number of samples, or -ENOMEM. */
int mst_bootstrap_backup(const struct mst_arrivals *a, uint32_t quorum, uint64_t seed,
			 struct mst_interval *gain);

#endif
