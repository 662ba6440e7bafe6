/* SPDX-License-Identifier: MIT */
/* The search as it goes: which shares of bsp have been tried, and what came of it. */
#ifndef MST_TOOLS_TUNE_SEARCH_H
#define MST_TOOLS_TUNE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "tools/tune/noise.h"
#include "tools/tune/trial.h"

/*
 * The search of Li et al. 2021 for the smallest share of bsp that keeps what bsp reaches: the
 * interval from no bsp to nothing else is halved again and again. It is taken for granted that a
 * share that is enough is enough for all larger ones, too. Pure.
 */
struct mst_bisection {
	double low;    /* a share that is not enough, or 0, which is not tried */
	double high;   /* the smallest share known to be enough: the answer so far */
	double wanted; /* what the mean of a share has to reach */
	bool lower;    /* less is better */
};

/* @bsp: the mean of bsp alone. @tolerance: how much worse a share may be. */
struct mst_bisection mst_bisection_begin(double bsp, double tolerance, bool lower);
/* The share to try next. */
double mst_bisection_next(const struct mst_bisection *b);
/* The share that was to be tried next has this mean. Return: it is enough. */
bool mst_bisection_take(struct mst_bisection *b, double mean);

/* The runs of one share. */
struct mst_tune_share {
	double share;
	char policy[MST_POLICY_LEN];
	struct mst_trial trial[MST_TUNE_RUNS_MAX];
	uint32_t trials;          /* that have ended well */
	bool whole;               /* all of them have; else the rest is not known: */
	struct mst_spread spread; /* of their values */
	uint64_t mean_ns;
	bool kept;
	struct mst_noise noise; /* of what decided that; bsp is always kept */
};

struct mst_search {
	const struct mst_tune_line *line;
	struct mst_tune_share tried[1 + MST_TUNE_TRIES_MAX]; /* bsp first */
	uint32_t count;
	struct mst_bisection bisection; /* once bsp is whole */
	double samples;                 /* of each run */
	int status;                     /* MST_EXIT_DONE, _FAILED, or 128 + a signal */
	struct mst_reason why;          /* FAILED: a sentence */
};

/* Is all that musterd would be told in order? @why: a sentence. Return: 0 or -errno. */
int mst_search_check(const struct mst_tune_line *line, struct mst_reason *why);
/* @line must outlive the search. Return: its status. */
int mst_search_run(struct mst_search *s, const struct mst_tune_line *line,
		   struct mst_signals *signals);

/* Return: how many of the decisions chance may have made. @runs: of each share, that would tell;
 * 0: it is not known, as one run of each says nothing of chance. */
uint32_t mst_search_unsure(const struct mst_search *s, uint32_t *runs);
/* The share that is the answer, or so far; NULL: not even bsp is whole. */
const struct mst_tune_share *mst_search_answer(const struct mst_search *s);

#endif
