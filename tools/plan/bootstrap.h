/* SPDX-License-Identifier: MIT */
/*
 * How far a trace can be trusted: blocks of its steps are drawn again, as many steps as it has, and
 * each figure is computed from each such sample. This is the circular block bootstrap of Politis
 * and Romano 1992; with blocks of one step it is the bootstrap of Efron 1979. How long a block is
 * says blocks.h. The same seed gives the same intervals. Pure.
 *
 * The interval of a figure is where the middle 95 % of its values lie, with three corrections. The
 * values are centred on the figure: where blocks meet, samples differ from the trace in a way that
 * shifts the values of all of them (Lahiri 1991). Values whose distribution is skewed vary more
 * where they are large, or where they are small: the quantiles are moved by that (Efron 1987,
 * acceleration). And the interval is wider by a factor, as a sample of m blocks varies less than
 * the truth: by the root of m / (m - 1), and by Student's quantile of m - 1 degrees of freedom to
 * the normal one. All is done with logarithms, as a figure is a ratio. So an interval contains its
 * figure.
 *
 * Missing times are not estimated again.
 */
#ifndef MST_TOOLS_PLAN_BOOTSTRAP_H
#define MST_TOOLS_PLAN_BOOTSTRAP_H

#include "tools/plan/quorum.h"
#include "tools/plan/replay.h"

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

/* How samples are drawn. */
struct mst_bootstrap_cfg {
	uint32_t block;   /* steps in a row, from 1 on */
	uint32_t samples; /* 0: as many as fit */
	uint64_t seed;
};

/* What the trace itself says of a quorum: the figures that the intervals are about. */
struct mst_quorum_figures {
	uint32_t quorum;
	double speedup, gain;
};

/* @figures: of @count quorums; the last is all ranks. @best: the index of the best one.
 * Return: the number of samples, or -ENOMEM. */
int mst_bootstrap_quorums(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			  const struct mst_quorum_figures *figures, uint32_t count, uint32_t best,
			  struct mst_quorum_interval *out);

/* The same of the gain of one quorum under backup, where steps depend on those before.
 * Return: the number of samples, or -ENOMEM. */
int mst_bootstrap_backup(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			 const struct mst_quorum_figures *figures, struct mst_interval *gain);

/* The same of @speedup: mean step of waiting for all / mean of @replaced, the longest time of each
 * step with other times in the place of the stragglers'. */
int mst_bootstrap_replaced(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *cfg,
			   const double *replaced, double speedup, struct mst_interval *out);

#endif
