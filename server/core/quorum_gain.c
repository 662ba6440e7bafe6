/* SPDX-License-Identifier: MIT */
#include "server/core/quorum_gain.h"

#include <math.h>

/* ---- windows ---- */

static void add(struct mst_quorum_window *w, double value)
{
	if (!isfinite(value))
		return;
	w->recent[w->next] = value;
	w->next = (w->next + 1) % MST_QUORUM_WINDOW;
	w->count += w->count < MST_QUORUM_WINDOW;
}

double mst_quorum_window_mean(const struct mst_quorum_window *w)
{
	double sum = 0;

	for (uint32_t i = 0; i < w->count; i++)
		sum += w->recent[i];
	return w->count > 0 ? sum / w->count : 0;
}

void mst_quorum_window_fill(struct mst_quorum_window *w, double value)
{
	for (uint32_t i = 0; i < MST_QUORUM_WINDOW; i++)
		add(w, value);
}

/* ---- estimates ---- */

/* A single gradient tells no variance; then that of the steps before holds. */
static void add_variance(struct mst_quorum_gain *g, const struct mst_commit_norms *n)
{
	double left = 1 - n->concentration;

	if (left > 1e-6)
		add(&g->variance, fmax(0, (n->square - n->mean_square) / left));
}

/* What is kept of the sums for N and L at each step. */
#define KEPT 0.99
/* A mean loss has risen if it is larger than the one before by this part of it, and by so many
 * standard errors of the difference. */
#define RISE 0.01
#define ERRORS 3

static void add_square(struct mst_quorum_gain *g, double square)
{
	if (!isfinite(square))
		return;
	g->squares = KEPT * g->squares + square;
	g->weight = KEPT * g->weight + 1;
	g->steps += g->steps < MST_QUORUM_WINDOW;
}

double mst_quorum_gain_square(const struct mst_quorum_gain *g)
{
	return g->weight > 0 ? g->squares / g->weight : 0;
}

void mst_quorum_gain_fill_square(struct mst_quorum_gain *g, double square)
{
	g->weight = 1 / (1 - KEPT);
	g->squares = g->weight * square;
	g->steps = MST_QUORUM_WINDOW;
}

/* The square of the standard error of the mean of a full window. */
static double error_square(const struct mst_quorum_window *w)
{
	double mean = mst_quorum_window_mean(w), sum = 0;

	for (uint32_t i = 0; i < w->count; i++)
		sum += (w->recent[i] - mean) * (w->recent[i] - mean);
	return sum / (MST_QUORUM_WINDOW - 1) / MST_QUORUM_WINDOW;
}

static bool rises(const struct mst_quorum_gain *g)
{
	double before = mst_quorum_window_mean(&g->earlier), rise = g->loss - before;

	return g->earlier.count == MST_QUORUM_WINDOW && rise > RISE * fabs(before) &&
	       rise > ERRORS * sqrt(error_square(&g->earlier) + error_square(&g->losses));
}

/* @fall: of the loss over the step that made the version. */
static void add_fall(struct mst_quorum_gain *g, double rate, double square, double noise,
		     double fall)
{
	double moved = rate * rate * (square + noise);

	if (!isfinite(moved) || !isfinite(fall) || !(rate > 0))
		return;
	g->short_of = KEPT * g->short_of + rate * square - fall;
	g->moved = KEPT * g->moved + moved;
	g->has_falls = true;
}

/* Means of as many losses differ by the fall of the loss. Return: can they be told? */
static bool take_loss(struct mst_quorum_gain *g, double loss, double *fall)
{
	bool full = g->losses.count == MST_QUORUM_WINDOW;
	double before = g->loss;

	if (!isfinite(loss)) {
		g->losses = g->earlier = (struct mst_quorum_window){ .count = 0 };
		g->rises = false;
		return false;
	}
	if (full)
		add(&g->earlier, g->losses.recent[g->losses.next]);
	add(&g->losses, loss);
	g->loss = mst_quorum_window_mean(&g->losses);
	*fall = before - g->loss;
	g->rises = rises(g);
	return full;
}

void mst_quorum_gain_add(struct mst_quorum_gain *g, const struct mst_quorum_step *step)
{
	const struct mst_commit_norms *n = &step->norms;
	double fall = 0;
	bool has_fall = take_loss(g, step->loss, &fall);

	if (n->known) {
		add_variance(g, n);
		double noise = mst_quorum_window_mean(&g->variance) * n->concentration;
		double square = n->mean_square - noise;
		add_square(g, square);
		if (has_fall)
			add_fall(g, g->rate * n->factor, square, noise, fall);
	}
	g->rate = step->rate;
}

bool mst_quorum_gain_known(const struct mst_quorum_gain *g)
{
	return g->steps == MST_QUORUM_WINDOW && g->variance.count == MST_QUORUM_WINDOW &&
	       g->has_falls;
}

double mst_quorum_gain_lipschitz(const struct mst_quorum_gain *g)
{
	return g->moved > 0 ? fmax(0, 2 * g->short_of / g->moved) : 0;
}

double mst_quorum_gain(const struct mst_quorum_gain *g, uint32_t quorum, double rate)
{
	double curve = mst_quorum_gain_lipschitz(g) * rate * rate / 2;

	return (rate - curve) * fmax(0, mst_quorum_gain_square(g)) -
	       curve * mst_quorum_window_mean(&g->variance) / quorum;
}
