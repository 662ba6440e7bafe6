/* SPDX-License-Identifier: MIT */
/*
 * Finds the rank that holds a job up, if there is one worth naming, and the evidence. Pure.
 *
 * While a job runs, figures are the recent ones, and of a job that has ended those of all of it. In
 * this order:
 *
 *   HELD  it has been at its gradient for longer than 10 ms and three times as long as it usually
 *         takes, or as half of the ranks take if that is longer
 *   LATE  more than 1.5 times as many of its gradients miss their step as of the median rank's, and
 *         they come later than a tenth of a step after it on average; or more than half of them
 *         are given up, and so more than 1.5 times as many as the median rank's
 *   SLOW  it takes 1.25 times as long as the median rank, and a tenth of a step longer
 */
#ifndef MST_TOOLS_STRAGGLER_H
#define MST_TOOLS_STRAGGLER_H

#include <stddef.h>

#include "tools/watch.h"

enum mst_straggler_kind {
	MST_STRAGGLER_NONE,
	MST_STRAGGLER_HELD,
	MST_STRAGGLER_LATE,
	MST_STRAGGLER_SLOW
};

struct mst_straggler {
	enum mst_straggler_kind kind;
	const struct mst_status_rank *row; /* in the snapshot; NULL if none */
	bool whole;                        /* figures of the whole job, not the recent ones */
	uint64_t usual_ready_ns;           /* median over the ranks of their mean time to ready */
	uint64_t missed, came;             /* gradients of all ranks */
	uint64_t step_ns;
	uint64_t behind_ns; /* the longest that any rank's late gradients are, on average */
	uint32_t others;    /* HELD: the number of other ranks that are */
};

struct mst_straggler mst_straggler_find(const struct mst_job_snapshot *s);

/* Gradients of a rank: all that it finished or gave up; and those that missed their step. */
struct mst_gradients {
	uint64_t came, missed, given_up;
	uint64_t ready_ns, behind_ns; /* means */
};
/* @whole: since the start of the job; else the recent ones. */
struct mst_gradients mst_straggler_gradients(const struct mst_status_rank *row, bool whole);

/* A few words for a live line ("rank 3 late 45 %"); empty for NONE. */
void mst_straggler_words(const struct mst_straggler *g, char *out, size_t len);
/* The rank, by how much, how often: a whole sentence, for NONE too. */
void mst_straggler_reason(const struct mst_straggler *g, char *out, size_t len);

#endif
