/* SPDX-License-Identifier: MIT */
/*
 * Replays a trace under backup:N (Chen et al. 2016): a worker that is late first finishes its
 * gradient, which is dropped, and then begins with the newest version. Pure.
 *
 * The n-th gradient that a rank begins takes the n-th time of that rank in the trace, and after the
 * last time the first follows, as in `muster sim --delay trace:FILE`. So no time is left out: a
 * rank that is slow for twenty gradients is slow until it has made them, however many steps the
 * others make meanwhile. If each step took the times of its own row instead, a rank that misses
 * steps would leave its slow phase sooner, and slow phases of several ranks, which come one after
 * the other in the trace, would never meet.
 *
 * A worker whose gradient was late begins at once, or, if it would be late again by its last times,
 * at the next commit: the server's rule (`--late-start auto`, server/core/ledger/state/late.h).
 */
#ifndef MST_TOOLS_PLAN_REPLAY_H
#define MST_TOOLS_PLAN_REPLAY_H

#include "server/core/ledger/durations.h"
#include "tools/plan/arrivals.h"

/* A replay ends when as many gradients are counted as in so many steps of all ranks, or, with many
 * ranks, so many gradients; of a longer trace when as many are as the trace has. Of a small quorum
 * of many ranks that would be many steps. It also ends after so many times, or as many as the trace
 * has. */
#define MST_REPLAY_STEPS 1000u
#define MST_REPLAY_GRADIENTS 64000u
#define MST_REPLAY_TIMES 5e5

/* What a run of the policy came to. */
struct mst_replay {
	double us;            /* in all */
	double steps;         /* versions that were made */
	double counted, late; /* gradients that were finished, and in time or not */
};

/* Room that a replay needs. */
struct mst_replay_scratch {
	/* by rank: */
	double *busy;    /* until when it makes the gradient that it began in an earlier step */
	double *begin;   /* when it begins its gradient of the step */
	double *arrival; /* and ends it */
	double *order;
	uint32_t *next; /* the number of its next time in the trace */
	struct mst_durations *took;

	struct mst_durations steps; /* how long the last ones took */
};
/* Return: 0 or -ENOMEM. */
int mst_replay_scratch_init(struct mst_replay_scratch *s, uint32_t ranks);
void mst_replay_scratch_fini(struct mst_replay_scratch *s); /* accepts zeroed memory */

/* @step: which steps, in which order, as many as the trace has; NULL: those of the trace. */
void mst_replay_backup(const struct mst_arrivals *a, uint32_t quorum, const uint32_t *step,
		       struct mst_replay_scratch *s, struct mst_replay *out);
/* How many steps of all ranks a replay is as long as. */
uint32_t mst_replay_length(const struct mst_arrivals *a);
/* The mean time of so many steps that wait for all. */
double mst_replay_all(const struct mst_arrivals *a, const uint32_t *step);

#endif
