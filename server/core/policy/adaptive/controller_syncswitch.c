/* SPDX-License-Identifier: MIT */
/*
 * Sync-Switch (Li et al. 2021, arXiv 2104.08364): bsp first, while gradients are large and stale
 * ones do damage, then async, which no straggler slows down. The optimiser keeps its momentum, and
 * the rate follows the number of gradients in a version (--lr-scale).
 *
 * The share is one of samples, not of commits: a commit of bsp has a batch of every worker, one of
 * async has a single batch.
 *
 * A straggler before the change holds up every step of bsp. The paper has two policies for that:
 * greedy goes async at once, and back to bsp when the straggler is gone, until the share is done;
 * elastic has the straggler rest until the change, or until it is fast again, which is ours.
 *
 * The paper calls a worker a straggler that has a throughput of one deviation below the mean in
 * five windows. Among workers whose times vary, healthy ones are below that often, and one whose
 * times are exponential and ten times as long is not in each of five. So the judge of
 * server/core/stragglers says who is one, and the test of the paper is greedy=paper and
 * elastic=paper.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/reason.h"
#include "server/core/policy/controller_row.h"
#include "server/core/policy/rule.h"

/* Defaults, as we recall them from the paper. */
#define DEVIATIONS 1.0
#define WINDOWS 5u

/* ---- reading ---- */

static const char *const online[] = {
	[MST_SYNCSWITCH_GREEDY] = ",greedy",
	[MST_SYNCSWITCH_ELASTIC] = ",elastic",
};

/* ",greedy": return: what follows it, or @text. */
static const char *online_parse(const char *text, struct mst_syncswitch *s)
{
	for (unsigned i = MST_SYNCSWITCH_GREEDY; i <= MST_SYNCSWITCH_ELASTIC; i++) {
		size_t len = strlen(online[i]);
		if (strncmp(text, online[i], len) == 0) {
			s->online = i;
			return text + len;
		}
	}
	return text;
}

/* "=paper,1.5,10": each may be left out, from the last one on. Return: is there nothing else? */
static bool test_parse(const char *text, struct mst_straggler_test *test)
{
	static const struct mst_number deviations = { 0, 100, false }, windows = { 1, 1e6, true };
	static const char paper[] = "=paper";
	double number;

	test->paper = strncmp(text, paper, strlen(paper)) == 0;
	if (!test->paper)
		return *text == '\0';
	text += strlen(paper);
	if (*text == ',')
		text = mst_number_parse(text + 1, &deviations, &test->deviations);
	if (text != NULL && *text == ',') {
		text = mst_number_parse(text + 1, &windows, &number);
		test->windows = text != NULL ? (uint32_t)number : 0;
	}
	return text != NULL && *text == '\0';
}

static bool text_parse(const char *text, struct mst_syncswitch *s)
{
	static const struct mst_number share = { 1e-6, 1 - 1e-6, false };
	const char *behind = mst_number_parse(text, &share, &s->share);

	if (behind == NULL)
		return false;
	behind = online_parse(behind, s);
	return s->online != MST_SYNCSWITCH_OFFLINE ? test_parse(behind, &s->test) : *behind == '\0';
}

static int parse(const char *text, struct mst_controller *c, struct mst_rule *rule,
		 struct mst_reason *why)
{
	struct mst_syncswitch *s = &c->syncswitch;

	s->test = (struct mst_straggler_test){ false, DEVIATIONS, WINDOWS };
	if (!text_parse(text, s)) {
		mst_reason_set(
			why,
			"policy \"syncswitch:%.40s\": syncswitch needs the share of the samples "
			"that is done under bsp, above 0 and below 1, as in syncswitch:0.1; and "
			"if you like what is done about stragglers, greedy or elastic, as in "
			"syncswitch:0.1,greedy. Numbers by which a straggler is known belong to "
			"the test of the paper, as in syncswitch:0.1,greedy=paper,%g,%u",
			text, DEVIATIONS, WINDOWS);
		return -EINVAL;
	}
	s->other = *rule;
	int rc = mst_rule_parse("bsp", rule, why);
	return rc != 0 ? rc : mst_rule_parse("async", &s->other, why);
}

/* ---- what it may become ---- */

static struct mst_rule *then(struct mst_controller *c)
{
	return &c->syncswitch.other;
}

static struct mst_rule last(const struct mst_controller *c, const struct mst_rule *first,
			    uint32_t workers)
{
	(void)first;
	(void)workers;
	return c->syncswitch.other;
}

static int check(const struct mst_controller *c, const struct mst_rule_context *ctx,
		 struct mst_reason *why)
{
	if (ctx->samples_max > 0)
		return 0;
	mst_reason_set(
		why,
		"%g of the job's samples are to be done under bsp, and the job has no end in "
		"samples; say --samples N",
		c->syncswitch.share);
	return -EINVAL;
}

/* ---- deciding ---- */

static void exchange(struct mst_syncswitch *s, struct mst_rule *rule)
{
	struct mst_rule next = s->other;

	s->other = *rule;
	*rule = next;
}

/* Samples that are counted meanwhile are not in the share. */
static bool comes_back(struct mst_syncswitch *s, const struct mst_commit_view *commit)
{
	s->away = mst_samples_add(s->away, commit->samples);
	s->is_away = commit->stragglers > 0;
	return !s->is_away;
}

static bool leaves(struct mst_syncswitch *s, const struct mst_commit_view *commit)
{
	double share = s->share * commit->samples_max;

	s->at = commit->samples_total;
	s->is_done = s->at - s->away >= share;
	s->is_away = !s->is_done && s->online == MST_SYNCSWITCH_GREEDY && commit->stragglers > 0;
	return s->is_done || s->is_away;
}

static bool decide(struct mst_controller *c, const struct mst_commit_view *commit,
		   struct mst_rule *rule)
{
	struct mst_syncswitch *s = &c->syncswitch;

	s->stragglers = commit->stragglers;
	if (s->is_done || !(s->is_away ? comes_back(s, commit) : leaves(s, commit)))
		return false;
	exchange(s, rule);
	return true;
}

/* ---- checkpoints ---- */

enum { DONE, AT, LEFT, AWAY, KEPT };

static uint32_t keep(const struct mst_controller *c, struct mst_controller_figure *out)
{
	const struct mst_syncswitch *s = &c->syncswitch;

	out[DONE] = (struct mst_controller_figure){ "syncswitch.done", s->is_done };
	out[AT] = (struct mst_controller_figure){ "syncswitch.at", s->at };
	out[LEFT] = (struct mst_controller_figure){ "syncswitch.left", s->is_away };
	out[AWAY] = (struct mst_controller_figure){ "syncswitch.away", s->away };
	return KEPT;
}

static bool resume(struct mst_controller *c, const struct mst_controller_figure *figure,
		   struct mst_rule *rule)
{
	struct mst_syncswitch *s = &c->syncswitch;

	s->is_done = figure[DONE].value != 0;
	s->at = figure[AT].value;
	s->is_away = figure[LEFT].value != 0;
	s->away = figure[AWAY].value;
	if (s->is_done || s->is_away)
		exchange(s, rule);
	return s->at >= 0 && s->away >= 0 && !(s->is_done && s->is_away);
}

/* ---- stragglers ---- */

static bool watches(const struct mst_controller *c, struct mst_straggler_test *out)
{
	const struct mst_syncswitch *s = &c->syncswitch;

	*out = s->test;
	return s->online != MST_SYNCSWITCH_OFFLINE && !s->is_done;
}

static bool rests_stragglers(const struct mst_controller *c, struct mst_straggler_test *out)
{
	return watches(c, out) && c->syncswitch.online == MST_SYNCSWITCH_ELASTIC;
}

/* ---- for people ---- */

static void now(const struct mst_controller *c, const struct mst_rule *rule, char *out, size_t len)
{
	const struct mst_syncswitch *s = &c->syncswitch;

	(void)rule;
	snprintf(out, len, "%s", s->is_done || s->is_away ? "async" : "bsp");
}

static void why(const struct mst_controller *c, const struct mst_rule *rule, char *out, size_t len)
{
	const struct mst_syncswitch *s = &c->syncswitch;

	(void)rule;
	if (s->is_done)
		snprintf(out, len, "%.0f samples are done, and the share of bsp was %g", s->at,
			 s->share);
	else if (s->is_away)
		snprintf(out, len, "%" PRIu32 " straggler%s, until %s gone", s->stragglers,
			 s->stragglers > 1 ? "s" : "", s->stragglers > 1 ? "they are" : "it is");
	else
		snprintf(out, len, "until %g of all samples are done", s->share);
}

static bool is_stuck(const struct mst_controller *c)
{
	(void)c;
	return false;
}

const struct mst_controller_row mst_controller_syncswitch = {
	.name = "syncswitch",
	.help = "syncswitch:SHARE[,greedy|,elastic] bsp for a share of --samples, such as 0.1, "
		"then async; a straggler before that has all go async (greedy), or rests "
		"(elastic); greedy=paper[,D[,W]] knows one by its throughput, D deviations below "
		"the mean in W windows, 1 and 5 if not given",
	.parse = parse,
	.then = then,
	.last = last,
	.check = check,
	.decide = decide,
	.keep = keep,
	.resume = resume,
	.now = now,
	.why = why,
	.is_stuck = is_stuck,
	.watches = watches,
	.rests_stragglers = rests_stragglers,
};
