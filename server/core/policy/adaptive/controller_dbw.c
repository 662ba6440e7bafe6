/* SPDX-License-Identifier: MIT */
/*
 * Dynamic backup workers (Xu, Neglia, Sebastianelli 2020, arXiv 2004.14696): the quorum k of the
 * next step is the one with the most gain per second. quorum_gain.h and quorum_time.h have the two
 * estimates. The first step waits for all workers and tells times. Until the gain is known as well,
 * the quorum is the one that is met first, of half of the workers or more.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/base/reason.h"
#include "server/core/policy/controller_row.h"
#include "server/core/policy/rule.h"

/* Less than this times as much is as much. */
#define MORE (1 + 1e-6)

/* ---- reading ---- */

static int parse(const char *text, struct mst_controller *c, struct mst_rule *rule,
		 struct mst_reason *why)
{
	static const struct mst_number number = { 1, INT32_MAX, true };
	double least = 0;
	const char *behind = *text == '\0' ? text : mst_number_parse(text, &number, &least);

	if (behind == NULL || *behind != '\0') {
		mst_reason_set(
			why,
			"policy \"dbw:%.40s\": dbw needs no number, or the least quorum that it "
			"may choose, 1 or more, as in dbw:1",
			text);
		return -EINVAL;
	}
	c->dbw.least = (uint32_t)least;
	return mst_rule_parse("bsp", rule, why);
}

/* ---- what it may become ---- */

static struct mst_rule *then(struct mst_controller *c)
{
	(void)c;
	return NULL;
}

/* Half of the workers, if the user did not say: muster refuses a fixed quorum below that. */
static uint32_t least_of(const struct mst_dbw *d, uint32_t workers)
{
	return d->least > 0 ? d->least : (workers + 1) / 2;
}

static struct mst_rule last(const struct mst_controller *c, const struct mst_rule *first,
			    uint32_t workers)
{
	struct mst_rule rule = *first;

	rule.quorum = (int32_t)least_of(&c->dbw, workers);
	return rule;
}

static int check(const struct mst_controller *c, const struct mst_rule_context *ctx,
		 struct mst_reason *why)
{
	if (ctx->plain_step && ctx->norms && c->dbw.least <= ctx->workers)
		return 0;
	if (c->dbw.least > ctx->workers)
		mst_reason_set(why,
			       "the quorum is to be at least %" PRIu32 ", and there are %" PRIu32
			       " workers",
			       c->dbw.least, ctx->workers);
	else if (!ctx->plain_step)
		mst_reason_set(why,
			       "its gain is that of a plain step of the servers down the mean; say "
			       "--optimizer sgd:lr=LR,momentum=0");
	else
		mst_reason_set(
			why, "workers tell the norms of their gradients in a job that was started "
			     "with --policy dbw");
	return -EINVAL;
}

/* ---- deciding ---- */

/* The rate of a step of so many gradients. */
static double rate_of(const struct mst_commit_view *commit, uint32_t quorum)
{
	return commit->linear ? commit->rate * quorum / commit->gradients : commit->rate;
}

static uint32_t one_more(const struct mst_commit_view *commit, uint32_t than)
{
	uint32_t n = commit->workers;
	uint32_t k = mst_quorum_of_class(n, mst_quorum_class(n, than < n ? than + 1 : n));

	return k < commit->live ? k : commit->live;
}

/* A single gradient tells no variance, so until the gain is known there are to be two. */
static uint32_t lowest(const struct mst_dbw *d, uint32_t workers)
{
	uint32_t half = (workers + 1) / 2, least = least_of(d, workers);

	if (mst_quorum_gain_known(&d->gain))
		return least;
	half = half > 2 ? half : 2;
	return least > half ? least : half;
}

static double gain_of(const struct mst_dbw *d, const struct mst_commit_view *commit, uint32_t k)
{
	if (!mst_quorum_gain_known(&d->gain))
		return 1;
	return mst_quorum_gain(&d->gain, k, rate_of(commit, k));
}

/* The quorum with the most gain per second, of equals the largest; where none gains, one more than
 * was chosen last. */
static uint32_t best(struct mst_dbw *d, const struct mst_commit_view *commit,
		     const struct mst_quorum_waits *row)
{
	uint32_t n = commit->workers, classes = mst_quorum_classes(n);
	uint32_t chosen = d->wanted > 0 ? one_more(commit, d->wanted) : commit->live;
	double most = 0;

	for (uint32_t at = classes; at-- > 0;) {
		uint32_t k = mst_quorum_of_class(n, at);
		double after_s = row->after_s[at];
		if (k < lowest(d, n) || k > commit->live || !(after_s > 0))
			continue;
		double gain = gain_of(d, commit, k);
		if (gain / after_s > most * MORE) {
			most = gain / after_s;
			chosen = k;
		}
	}
	d->gains = most > 0;
	return chosen;
}

/* What is missing to choose by. Before the first commit there is no version with norms. */
static void look(struct mst_dbw *d, const struct mst_commit_view *commit)
{
	d->trouble = MST_DBW_FINE;
	if (!isfinite(commit->loss))
		d->trouble = MST_DBW_NO_LOSS;
	else if (!commit->norms.known && d->commits > 1)
		d->trouble = MST_DBW_NO_NORMS;
}

static void choose(struct mst_dbw *d, const struct mst_commit_view *commit)
{
	struct mst_quorum_waits row;

	/* Losses or norms are missing. A quorum that was chosen by times alone is not kept then. */
	if (d->trouble != MST_DBW_FINE) {
		if (d->wanted > 0 && !mst_quorum_gain_known(&d->gain))
			d->wanted = commit->live;
		return;
	}
	if (!mst_quorum_time_estimate(&d->time, commit->workers, commit->gradients, &row))
		return;
	d->wanted = best(d, commit, &row);
	if (d->gain.rises && d->wanted < one_more(commit, commit->gradients))
		d->wanted = one_more(commit, commit->gradients);
}

static bool decide(struct mst_controller *c, const struct mst_commit_view *commit,
		   struct mst_rule *rule)
{
	struct mst_dbw *d = &c->dbw;
	int32_t before = rule->quorum;

	if (commit->live == 0 || commit->gradients == 0)
		return false;
	d->commits += d->commits < UINT32_MAX;
	mst_quorum_gain_add(&d->gain,
			    &(struct mst_quorum_step){ commit->norms, commit->loss, commit->rate });
	look(d, commit);
	choose(d, commit);
	mst_quorum_time_age(&d->time);
	d->live = commit->live;
	/* A quorum above the live workers is met by all of them. */
	if (d->wanted > 0)
		rule->quorum = (int32_t)(d->wanted > least_of(d, commit->workers)
						 ? d->wanted
						 : least_of(d, commit->workers));
	return rule->quorum != before;
}

static void arrived(struct mst_controller *c, const struct mst_arrival *arrival, uint32_t workers)
{
	mst_quorum_time_add(&c->dbw.time, workers, arrival);
}

/* ---- checkpoints ---- */

enum { WANTED, SQUARE, VARIANCE, POINTS, XX, XY, KEPT };

/* Times are learned anew: the job may go on on other machines. So are the means of the line's
 * points: the losses may be of other data. */
static uint32_t keep(const struct mst_controller *c, struct mst_controller_figure *out)
{
	const struct mst_dbw *d = &c->dbw;
	const struct mst_quorum_line *l = &d->gain.line;
	bool known = mst_quorum_gain_known(&d->gain);
	double square = known ? mst_quorum_gain_square(&d->gain) : 0;
	double variance = known ? mst_quorum_window_mean(&d->gain.variance) : 0;

	out[WANTED] = (struct mst_controller_figure){ "dbw.wanted", known ? d->wanted : 0 };
	out[SQUARE] = (struct mst_controller_figure){ "dbw.square", square };
	out[VARIANCE] = (struct mst_controller_figure){ "dbw.variance", variance };
	out[POINTS] = (struct mst_controller_figure){ "dbw.points", l->count };
	out[XX] = (struct mst_controller_figure){ "dbw.xx", l->xx };
	out[XY] = (struct mst_controller_figure){ "dbw.xy", l->xy };
	return KEPT;
}

static bool are_in_order(const struct mst_controller_figure *figure)
{
	double wanted = figure[WANTED].value;

	for (int i = 0; i < KEPT; i++)
		if (!isfinite(figure[i].value))
			return false;
	return wanted >= 0 && wanted <= INT32_MAX && wanted == floor(wanted) &&
	       figure[VARIANCE].value >= 0 && figure[POINTS].value >= 0 && figure[XX].value >= 0;
}

static bool resume(struct mst_controller *c, const struct mst_controller_figure *figure,
		   struct mst_rule *rule)
{
	struct mst_dbw *d = &c->dbw;

	if (!are_in_order(figure))
		return false;
	d->wanted = (uint32_t)figure[WANTED].value;
	if (d->wanted == 0)
		return true;
	mst_quorum_gain_fill_square(&d->gain, figure[SQUARE].value);
	mst_quorum_window_fill(&d->gain.variance, figure[VARIANCE].value);
	d->gain.line = (struct mst_quorum_line){ .count = figure[POINTS].value,
						 .xx = figure[XX].value,
						 .xy = figure[XY].value };
	rule->quorum = (int32_t)d->wanted;
	return true;
}

/* ---- for people ---- */

static void now(const struct mst_controller *c, const struct mst_rule *rule, char *out, size_t len)
{
	(void)c;
	if (rule->quorum == 0)
		snprintf(out, len, "bsp");
	else
		snprintf(out, len, "backup:%" PRId32, rule->quorum);
}

static void why(const struct mst_controller *c, const struct mst_rule *rule, char *out, size_t len)
{
	const struct mst_dbw *d = &c->dbw;

	(void)rule;
	if (d->trouble == MST_DBW_NO_LOSS)
		snprintf(out, len, "the last gradients told no loss");
	else if (d->trouble == MST_DBW_NO_NORMS)
		snprintf(out, len, "the last gradients told no norms");
	else if (d->wanted == 0)
		snprintf(out, len, "until a step has told times");
	else if (!mst_quorum_gain_known(&d->gain))
		snprintf(out, len, "by times alone, until %u steps have told the gain",
			 MST_QUORUM_WINDOW);
	else if (d->gain.rises)
		snprintf(out, len, "the loss has risen to %.3g", d->gain.loss);
	else if (!d->gains)
		snprintf(out, len, "no quorum is sure to gain");
	else
		snprintf(out, len,
			 "gradient %.3g, deviation %.3g, L %.3g, %" PRIu32 " live workers",
			 sqrt(fmax(0, mst_quorum_gain_square(&d->gain))),
			 sqrt(mst_quorum_window_mean(&d->gain.variance)),
			 mst_quorum_gain_lipschitz(&d->gain), d->live);
}

static bool is_stuck(const struct mst_controller *c)
{
	return c->dbw.trouble != MST_DBW_FINE;
}

const struct mst_controller_row mst_controller_dbw = {
	.name = "dbw",
	.help = "dbw[:K]          backup:N, with an N of most gain per second for each step; at "
		"least K, half of the workers if not given; needs losses, and sgd with momentum=0",
	.by_loss = true,
	.by_norms = true,
	.parse = parse,
	.then = then,
	.last = last,
	.check = check,
	.arrived = arrived,
	.decide = decide,
	.keep = keep,
	.resume = resume,
	.now = now,
	.why = why,
	.is_stuck = is_stuck,
};
