/* SPDX-License-Identifier: MIT */
/*
 * Which quorum serves best by a trace, and whether the trace is long enough to say so. Pure.
 *
 * The objective is the time per counted gradient, so a quorum is better if more gradients are
 * counted in a second. The gain of a quorum is that rate, of the rate of waiting for all: (N / P)
 * x (mean step of P / mean step of N). A quorum is recommended if its interval lies above 1;
 * otherwise waiting for all is, which drops nothing. Of fewer than ten steps none is recommended:
 * an interval that is drawn from so few says nothing.
 *
 * Only quorums whose times are known, and not 0, are candidates. If the last gradients of some
 * steps are only known to be later than the step, the gains of the candidates are at least so much,
 * and a gain that is not above 1 says nothing.
 */
#ifndef MST_TOOLS_PLAN_ADVICE_H
#define MST_TOOLS_PLAN_ADVICE_H

#include "tools/plan/bootstrap.h"
#include "tools/plan/slow.h"

/* With more ranks than this only some quorums are compared: all near the number of ranks, and fewer
 * of those further away. */
#define MST_QUORUMS_ALL 64u
#define MST_QUORUMS_MAX 96u
/* The share of steps whose last gradient may be unknown without a consequence. */
#define MST_UNKNOWN_SHARE 0.01
#define MST_ADVICE_STEPS_MIN 10u

/* What a quorum brings. */
struct mst_quorum_row {
	uint32_t quorum;
	struct mst_arrival_figures arrival;
	double speedup, gain; /* where late workers are told at once; dropped: 1 - quorum / ranks */
	struct mst_quorum_interval interval;
	/* The same where late workers first finish their gradient. */
	double backup_us, backup_speedup, backup_gain, backup_dropped;
};

enum mst_choice_kind {
	MST_CHOICE_ALL,     /* no quorum is better than waiting for all */
	MST_CHOICE_UNSURE,  /* a quorum seems better, but the trace is too short to be sure */
	MST_CHOICE_UNKNOWN, /* how long it takes to wait for all is not in the trace */
	MST_CHOICE_QUORUM,
};

struct mst_choice {
	enum mst_choice_kind kind;
	uint32_t index; /* of the best row */
	double speedup, gain, dropped;
	struct mst_interval interval; /* of the gain */
	double saved_us;              /* by the trace's steps, with as many counted gradients */
	double saved_steps_us;        /* by the trace's steps, with as many steps */
};

struct mst_advice {
	uint32_t count, samples;
	uint32_t block;                             /* steps in a row that samples are made of */
	struct mst_quorum_row row[MST_QUORUMS_MAX]; /* by quorum; the last is all ranks */
	struct mst_choice told;                     /* where late workers are told: ksync */
	struct mst_choice untold;                   /* where they are not: backup */
	struct mst_slow slow;
	/* With others in the place of all stragglers: */
	double replaced_us;           /* the mean step */
	double replaced_speedup;      /* mean step of waiting for all / that */
	struct mst_interval replaced; /* of replaced_speedup */
};

/* @samples: that the intervals are taken from; block 0: as long as the trace asks for.
 * Return: 0 or -ENOMEM. */
int mst_plan_advise(const struct mst_arrivals *a, const struct mst_bootstrap_cfg *samples,
		    struct mst_advice *out);
void mst_advice_fini(struct mst_advice *advice); /* accepts zeroed memory */

/* Is this row as good as the best one, as far as the trace can tell? */
bool mst_advice_ties(const struct mst_advice *advice, uint32_t index);

#endif
