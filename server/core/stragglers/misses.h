/* SPDX-License-Identifier: MIT */
/*
 * The gradients of one rank that miss their step: late, too old, or given up because they could not
 * count any more. How long such a gradient would have taken is often not known; how many there are
 * is. Pure.
 *
 * The evidence is a product of bets, as that of durations is (speed.h). A share q of all ranks'
 * gradients misses its step. A bet says that of this rank's it is a share of a, the larger one of
 * 2 q and q + 0.25: a gradient that misses its step multiplies the evidence by a / q, another one
 * by (1 - a) / (1 - q). While the rank is as the others are, a factor is 1 on average.
 */
#ifndef MST_SERVER_CORE_STRAGGLERS_MISSES_H
#define MST_SERVER_CORE_STRAGGLERS_MISSES_H

#include <stdbool.h>
#include <stdint.h>

#define MST_MISSES_RECENT 32u
/* So many times the evidence that is enough for durations has to be there: a rank that was late
 * once is late again more easily, and each bet supposes that it is not. */
#define MST_MISSES_RARE 10.0
/* A rank is late if it misses this many times as many steps as the ranks do on average. */
#define MST_MISSES_RATIO 1.5
/* And if its gradients come later than this part of a step after their step, on average, or most
 * are given up. What is less holds nobody up: where one of equal ranks is not needed, one is always
 * the last. */
#define MST_MISSES_FLOOR 0.1
#define MST_MISSES_AGAIN 16u /* gradients that say that a late rank is late no more */

/* A gradient that missed its step. */
struct mst_miss {
	bool given_up;
	uint64_t behind_ns; /* not given up: how long after the commit of its step it came */
	uint64_t step_ns;   /* how long a step takes; 0: not known */
};

/* All zero: nothing is known. */
struct mst_missing_rate {
	uint32_t recent; /* a bit for each of the last gradients: it missed its step */
	uint32_t known;  /* of how many that is known, at most MST_MISSES_RECENT */

	double evidence; /* its logarithm, at least 0 */
	uint64_t since_ns;
	/* The gradients of that evidence. How long after their steps they came, and how long these
	 * took: while the rank is late the older ones fade. */
	uint32_t gradients, missed, given_up;
	uint64_t behind_ns, step_ns;

	bool late;
	uint32_t after; /* gradients since it is late */
};

/* A gradient of the rank has its verdict. @miss: NULL: it did not miss its step. @share: of all
 * ranks' gradients that miss theirs. @enough: the logarithm of the evidence from which on the rank
 * is late. */
void mst_misses_add(struct mst_missing_rate *m, const struct mst_miss *miss, double share,
		    double enough, uint64_t now_ns);

/* Return: how many of the last gradients missed their step. */
uint32_t mst_misses_recent(const struct mst_missing_rate *m);

#endif
