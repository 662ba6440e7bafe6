/* SPDX-License-Identifier: MIT */
/*
 * What a step with a quorum of k gradients gains: the least by which the loss is expected to fall
 * (Xu, Neglia, Sebastianelli, arXiv 2004.14696). The gradient changes by at most L times the
 * distance, a step takes the rate r down the mean of k gradients, N is the squared norm of the
 * gradient of the loss, and V is the variance of a single gradient:
 *
 *     G(k) = (r - L r^2 / 2) N - L r^2 / 2 x V / k
 *
 * A step tells V by the norms of its gradients and that of their mean; N is the squared norm of
 * the mean less V / k. V is a mean over the last few steps, N one over some 20: near the end V / k
 * is many times N, and a mean of few steps would often be below 0; one of many more would still be
 * that of the beginning.
 *
 * If the bound were met, the loss would fall by r N and rise by L / 2 times the square of the
 * distance that a step moves. So the loss plus the sum of r N, over the sum of these squares, is a
 * straight line with the slope L / 2, whatever N and the rate were. L is fitted to it by least
 * squares, over some 100 steps. Pure.
 */
#ifndef MST_SERVER_CORE_POLICY_ADAPTIVE_QUORUM_GAIN_H
#define MST_SERVER_CORE_POLICY_ADAPTIVE_QUORUM_GAIN_H

#include <stdbool.h>
#include <stdint.h>

#define MST_QUORUM_WINDOW 5u

/* What is known of the gradients that a version was made of. p is the share of a gradient in their
 * mean: 1 / k if all have the same weight. */
struct mst_commit_norms {
	bool known;
	double mean_square;   /* of the mean: its squared norm */
	double square;        /* the sum of p x the squared norm of each gradient */
	double concentration; /* the sum of p^2 */
	double factor;        /* that the mean was multiplied by before the step, as a clip does */
};

struct mst_quorum_window {
	double recent[MST_QUORUM_WINDOW];
	uint32_t count, next;
};

/* A straight line through points, in which older ones fade. The newest point's x, and what has been
 * added to its loss, are the origin, so that nothing grows with time. */
struct mst_quorum_line {
	double weight, x, y;  /* of the points, and their means */
	double count, xx, xy; /* of the points, and their sums of products about the means */
};

/* All zero: nothing is known. */
struct mst_quorum_gain {
	struct mst_quorum_window variance; /* V */
	double squares, weight; /* N is squares / weight: both are sums in which older steps fade */
	uint32_t steps;         /* steps in these sums, up to a window */
	struct mst_quorum_line line;              /* L */
	struct mst_quorum_window losses, earlier; /* the last ones, and as many before them */
	double loss, rate; /* the mean of `losses`, and the rate of the last commit */
	bool rises;        /* the mean of `losses` rose for sure at the last commit */
};

/* What a commit tells. */
struct mst_quorum_step {
	struct mst_commit_norms norms; /* of the version that its gradients are computed on */
	double loss;                   /* at that version; NaN: not told */
	double rate;                   /* of the step that this commit makes */
};

void mst_quorum_gain_add(struct mst_quorum_gain *g, const struct mst_quorum_step *step);
/* Are all three known, of a whole window? */
bool mst_quorum_gain_known(const struct mst_quorum_gain *g);
/* N; below 0 where the noise is more than all there is. */
double mst_quorum_gain_square(const struct mst_quorum_gain *g);
/* As if every step so far had told this N. */
void mst_quorum_gain_fill_square(struct mst_quorum_gain *g, double square);
/* L, never below 0; 0 if there are too few points. */
double mst_quorum_gain_lipschitz(const struct mst_quorum_gain *g);
/* The gain of a step of @quorum gradients at the rate @rate. */
double mst_quorum_gain(const struct mst_quorum_gain *g, uint32_t quorum, double rate);

/* Return: 0 of an empty one. */
double mst_quorum_window_mean(const struct mst_quorum_window *w);
/* As if every value had been this one. */
void mst_quorum_window_fill(struct mst_quorum_window *w, double value);

#endif
