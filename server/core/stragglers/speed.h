/* SPDX-License-Identifier: MIT */
/*
 * The speed of one rank: how long its gradients took, and what they say against the supposition
 * that it is as fast as the fast ranks. Pure.
 *
 * The evidence is a product of bets. Each gradient multiplies it by K u^(K-1), where u is the share
 * of the fast ranks' gradients that took at least as long, and K is 0.4. While the rank is as fast
 * as they are, a factor is at most 1 on average, whatever the distribution (Vovk and Wang 2021,
 * "E-values: calibration, combination and applications", section 2). So a product reaches 1000
 * with a probability of a thousandth at most, however often somebody looks (Ville's inequality).
 * Evidence below 1 counts as 1, so that a rank that was fast for long is found as soon as a new
 * one (Page's CUSUM; Shin, Ramdas and Rinaldo 2022, "E-detectors").
 *
 * Evidence tells that a rank is slower, not by how much: a rank that takes 1.2 times as long each
 * time has very much. So a rank is slow if there is enough evidence, and its gradients since that
 * began have taken MST_SPEED_RATIO times as long as the fast ranks'.
 */
#ifndef MST_SERVER_CORE_STRAGGLERS_SPEED_H
#define MST_SERVER_CORE_STRAGGLERS_SPEED_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/stragglers/reference.h"

/* A rank is slow from this ratio to the fast ranks on; below it, it is so no more. */
#define MST_SPEED_RATIO 1.5
/* A gradient that lasts for so many of the fast ranks' is enough alone, if it is longer than
 * MST_SPEED_LONG_MS. */
#define MST_SPEED_STALLED 20u
/* A rank is at its gradient for long if that lasts longer than each of the fast ranks' that are
 * known, than so many of them on average, and than so many ms. That is worth a look, and not enough
 * for a verdict. */
#define MST_SPEED_LONG 3u
#define MST_SPEED_LONG_MS 10u
#define MST_SPEED_RECENT 32u /* durations that are kept of each kind */
#define MST_SPEED_AGAIN 16u  /* gradients that say that a slow rank is fast again */
/* A slow rank rests; it returns after so many probes that took less than MST_SPEED_BACK times as
 * long as the fast ranks' gradients on average. Three durations vary more than MST_SPEED_AGAIN do,
 * so the ratio is larger than MST_SPEED_RATIO. */
#define MST_SPEED_PROBES 3u
#define MST_SPEED_BACK 2.0

/* The last durations of a kind. */
struct mst_speed_recent {
	uint64_t ns[MST_SPEED_RECENT];
	uint32_t count; /* that were ever added */
};

/* All zero: nothing is known. */
struct mst_speed {
	/* By turns. One kind says whether the rank is among the fast ones, the other one how fast
	 * those are. If one kind said both, the fast ranks would be those that were lucky, and all
	 * others slow. */
	struct mst_speed_recent choice, sample;
	bool next_is_sample;
	uint64_t began_ns; /* of the present gradient; 0: there is none */

	double evidence; /* its logarithm, at least 0 */
	/* The gradients of that evidence: when the first one began, how long they took, each one
	 * cut, and how long steps waited for them. */
	uint64_t since_ns, sum_ns, waited_ns;
	uint32_t gradients;

	bool slow;
	struct mst_speed_recent last; /* since it is slow, or rests */
};

/* A gradient begins. */
void mst_speed_begin(struct mst_speed *p, uint64_t now_ns);
/* The present gradient is there, if there is one. @enough: the logarithm of the evidence from which
 * on a rank is slow. */
void mst_speed_end(struct mst_speed *p, const struct mst_reference *ref, double enough,
		   uint64_t now_ns);
/* The present gradient was given up: how long it would have taken is not known. */
void mst_speed_drop(struct mst_speed *p);
/* The present gradient of a rank that rests is there. It shows whether the rank may return, and is
 * not added to the evidence. */
void mst_speed_probed(struct mst_speed *p, uint64_t now_ns);

/* Was it found to be slow, or has its present gradient lasted for so long that it is? Without a
 * reference there is nobody that it is slower than. */
bool mst_speed_is_slow(const struct mst_speed *p, const struct mst_reference *ref, double enough,
		       uint64_t now_ns);
/* Has its present gradient lasted for so long that it is slow? */
bool mst_speed_is_stalled(const struct mst_speed *p, const struct mst_reference *ref,
			  uint64_t now_ns);
/* Is it at its present gradient for long? */
bool mst_speed_is_long(const struct mst_speed *p, const struct mst_reference *ref, uint64_t now_ns);
/* How long its gradients take, measured by the fast ranks': those since the evidence began. 1:
 * nothing is known. */
double mst_speed_ratio(const struct mst_speed *p, const struct mst_reference *ref, uint64_t now_ns);
/* Has a rank that rests shown that it is not slow any more? */
bool mst_speed_may_return(const struct mst_speed *p, const struct mst_reference *ref);

/* It rests from now on, or returns: what was known of its being slow is forgotten. */
void mst_speed_forget(struct mst_speed *p);

/* Has anything of the rank been told? */
static inline bool mst_speed_is_present(const struct mst_speed *p)
{
	return p->began_ns != 0 || p->choice.count > 0;
}

/* Return: the median of the durations that choose; 0: there are less than two of each kind. */
uint64_t mst_speed_choice(const struct mst_speed *p);

#endif
