/* SPDX-License-Identifier: MIT */
/*
 * How long something usually takes, and at the least: the median and the shortest of its last few
 * durations. One that is very long, as of a worker that stood still once, changes neither. Pure.
 */
#ifndef MST_SERVER_CORE_LEDGER_DURATIONS_H
#define MST_SERVER_CORE_LEDGER_DURATIONS_H

#include <stdbool.h>
#include <stdint.h>

#define MST_DURATIONS_RECENT 9u
#define MST_DURATIONS_KNOWN 3u /* fewer durations say nothing */

/* All zero: nothing is known. */
struct mst_durations {
	uint64_t recent_ns[MST_DURATIONS_RECENT];
	uint32_t count; /* that are known, at most MST_DURATIONS_RECENT */
	uint32_t next;  /* the place of the next one, over the oldest */
};

void mst_durations_add(struct mst_durations *t, uint64_t ns);

/* Return: the median; of an even number of durations the lower one in the middle; 0: it is not
 * known yet. */
uint64_t mst_durations_median(const struct mst_durations *t);
/* Return: the shortest of them; 0: it is not known yet. */
uint64_t mst_durations_least(const struct mst_durations *t);

/* Return: the last of them; 0: there is none. */
uint64_t mst_durations_last(const struct mst_durations *t);

/* How long a rank usually computes. */
struct mst_stride {
	uint64_t answered_ns; /* when it was last answered; 0: its contribution has come since */
	struct mst_durations durations;
	uint32_t slow_windows; /* in a row: state/slow.h */
	bool put_to_rest;      /* it rests because it is a straggler, */
	uint64_t rested_at;    /* since that version, or was looked at again at that version */
	bool probes;           /* its next ask is to be answered although it rests */
	bool goes_on;          /* it has passed, and goes on with what it has begun */
	uint64_t given_up;     /* gradients that its session has given up, as it has reported */
};

#endif
