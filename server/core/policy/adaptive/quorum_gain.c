/* SPDX-License-Identifier: MIT */
#include "server/core/policy/adaptive/quorum_gain.h"

#include <math.h>

/* ---- windows ---- */

/* Norms of f32 gradients, and losses that can be compared with others, are far below this. Their
 * squares are within the range of a double. What is beyond counts as not told. */
#define MOST 1e150

/* False for a NaN. */
static bool is_sane(double value)
{
	return fabs(value) <= MOST;
}

static void add(struct mst_quorum_window *w, double value)
{
	if (!is_sane(value))
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

/* At each step this part of the sums for N is kept, and this part of the sums for L. */
#define KEPT_SQUARES 0.95
#define KEPT_POINTS 0.99
/* The slope of fewer points is chance. */
#define LINE_POINTS 3
/* No point is farther from the mean of the losses before it than so many of their standard
 * deviations. */
#define REACH 10
/* A mean loss has risen if it is larger than the one before by this part of it, and by so many
 * standard errors of the difference. */
#define RISE 0.01
#define ERRORS 3

static void add_square(struct mst_quorum_gain *g, double square)
{
	if (!is_sane(square))
		return;
	g->squares = KEPT_SQUARES * g->squares + square;
	g->weight = KEPT_SQUARES * g->weight + 1;
	g->steps += g->steps < MST_QUORUM_WINDOW;
}

double mst_quorum_gain_square(const struct mst_quorum_gain *g)
{
	return g->weight > 0 ? g->squares / g->weight : 0;
}

void mst_quorum_gain_fill_square(struct mst_quorum_gain *g, double square)
{
	g->weight = 1 / (1 - KEPT_SQUARES);
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

/* The step that made the version whose loss is told next. */
static void shift_line(struct mst_quorum_line *l, double fall, double distance_square)
{
	if (!is_sane(fall) || !is_sane(distance_square))
		return;
	l->x -= distance_square;
	l->y -= fall;
}

static void add_point(struct mst_quorum_line *l, double loss)
{
	double dx = -l->x;

	l->weight = KEPT_POINTS * l->weight + 1;
	l->count = KEPT_POINTS * l->count + 1;
	l->x += dx / l->weight;
	l->y += (loss - l->y) / l->weight;
	l->xx = KEPT_POINTS * l->xx + dx * -l->x;
	l->xy = KEPT_POINTS * l->xy + dx * (loss - l->y);
	if (!isfinite(l->y) || !isfinite(l->xx) || !isfinite(l->xy))
		*l = (struct mst_quorum_line){ 0 }; /* no slope could come of it any more */
}

/* A loss far from those before it, such as that of a damaged batch, would bend the line for as long
 * as it is one of its points. */
static double within_reach(const struct mst_quorum_window *w, double loss)
{
	double mean = mst_quorum_window_mean(w);
	double reach = REACH * sqrt(error_square(w) * MST_QUORUM_WINDOW);

	if (w->count < MST_QUORUM_WINDOW)
		return loss;
	return fmin(fmax(loss, mean - reach), mean + reach);
}

static void take_loss(struct mst_quorum_gain *g, double loss)
{
	if (!is_sane(loss)) {
		g->losses = g->earlier = (struct mst_quorum_window){ .count = 0 };
		g->rises = false;
		return;
	}
	add_point(&g->line, within_reach(&g->losses, loss));
	if (g->losses.count == MST_QUORUM_WINDOW)
		add(&g->earlier, g->losses.recent[g->losses.next]);
	add(&g->losses, loss);
	g->loss = mst_quorum_window_mean(&g->losses);
	g->rises = rises(g);
}

void mst_quorum_gain_add(struct mst_quorum_gain *g, const struct mst_quorum_step *step)
{
	const struct mst_commit_norms *n = &step->norms;

	if (n->known) {
		double rate = g->rate * n->factor;
		add_variance(g, n);
		double square = n->mean_square -
				mst_quorum_window_mean(&g->variance) * n->concentration;
		add_square(g, square);
		shift_line(&g->line, rate * square, rate * rate * n->mean_square);
	}
	take_loss(g, step->loss);
	g->rate = step->rate;
}

bool mst_quorum_gain_known(const struct mst_quorum_gain *g)
{
	return g->steps == MST_QUORUM_WINDOW && g->variance.count == MST_QUORUM_WINDOW &&
	       g->line.count > LINE_POINTS;
}

double mst_quorum_gain_lipschitz(const struct mst_quorum_gain *g)
{
	const struct mst_quorum_line *l = &g->line;

	if (l->count <= LINE_POINTS || !(l->xx > 0))
		return 0;
	return fmax(0, 2 * l->xy / l->xx);
}

double mst_quorum_gain(const struct mst_quorum_gain *g, uint32_t quorum, double rate)
{
	double curve = mst_quorum_gain_lipschitz(g) * rate * rate / 2;

	return (rate - curve) * fmax(0, mst_quorum_gain_square(g)) -
	       curve * mst_quorum_window_mean(&g->variance) / quorum;
}
