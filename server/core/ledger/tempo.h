/* SPDX-License-Identifier: MIT */
/*
 * How long something usually takes, and at the least: the median and the shortest of its last few
 * durations. One that is very long, as of a worker that stood still once, changes neither. Pure.
 */
#ifndef MST_SERVER_CORE_LEDGER_TEMPO_H
#define MST_SERVER_CORE_LEDGER_TEMPO_H

#include <stdbool.h>
#include <stdint.h>

#define MST_TEMPO_RECENT 9u
#define MST_TEMPO_KNOWN 3u /* fewer durations say nothing */

/* All zero: nothing is known. */
struct mst_tempo {
	uint64_t recent_ns[MST_TEMPO_RECENT];
	uint32_t count; /* that are known, at most MST_TEMPO_RECENT */
	uint32_t next;  /* the place of the next one, over the oldest */
};

void mst_tempo_add(struct mst_tempo *t, uint64_t ns);

/* Return: the median; of an even number of durations the lower one in the middle; 0: it is not
 * known yet. */
uint64_t mst_tempo_median(const struct mst_tempo *t);
/* Return: the shortest of them; 0: it is not known yet. */
uint64_t mst_tempo_least(const struct mst_tempo *t);

/* Return: the last of them; 0: there is none. */
uint64_t mst_tempo_last(const struct mst_tempo *t);

/* How long a rank usually computes. */
struct mst_stride {
	uint64_t answered_ns; /* when it was last answered; 0: its contribution has come since */
	struct mst_tempo tempo;
	uint32_t slow_windows; /* in a row: phases/control.h */
	bool put_to_rest;      /* it rests because it is a straggler */
};

#endif
