/* SPDX-License-Identifier: MIT */
/* The search as it goes: which shares of bsp have been tried, and what came of it. */
#ifndef MST_TOOLS_TUNE_SEARCH_H
#define MST_TOOLS_TUNE_SEARCH_H

#include "tools/tune/bisection.h"
#include "tools/tune/trial.h"

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
};

struct mst_search {
	const struct mst_tune_line *line;
	struct mst_tune_share tried[1 + MST_TUNE_TRIES_MAX]; /* bsp first */
	uint32_t count;
	struct mst_bisection bisection; /* once bsp is whole */
	double samples;                 /* of each run */
	int status;                     /* MST_EXIT_DONE, _FAILED, or 128 + a signal */
	char why[1024];                 /* FAILED: a sentence */
};

/* Is all that musterd would be told in order? @why: a sentence. Return: 0 or -errno. */
int mst_search_check(const struct mst_tune_line *line, char *why, size_t why_len);
/* @line must outlive the search. Return: its status. */
int mst_search_run(struct mst_search *s, const struct mst_tune_line *line,
		   struct mst_signals *signals);

/* The share that is the answer, or so far; NULL: not even bsp is whole. */
const struct mst_tune_share *mst_search_answer(const struct mst_search *s);

#endif
