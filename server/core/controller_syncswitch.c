/* SPDX-License-Identifier: MIT */
/*
 * Sync-Switch (Li et al. 2021, arXiv 2104.08364): bsp first, while gradients are large and stale
 * ones do damage, then async, which no straggler slows down. The optimiser keeps its momentum, and
 * the rate follows the number of gradients in a version (--lr-scale).
 *
 * The share is one of samples, not of commits: a commit of bsp has a batch of every worker, one of
 * async has a single batch.
 */
#include <errno.h>
#include <stdio.h>

#include "server/core/controller_row.h"
#include "server/core/number.h"

static int parse(const char *text, struct mst_controller *c, struct mst_rule *rule, char *why,
		 size_t why_len)
{
	static const struct mst_number number = { 1e-6, 1 - 1e-6, false };
	struct mst_syncswitch *s = &c->syncswitch;
	const char *behind = mst_number_parse(text, &number, &s->share);

	if (behind == NULL || *behind != '\0') {
		snprintf(why, why_len,
			 "policy \"syncswitch:%.40s\": syncswitch needs the share of the samples "
			 "that is done under bsp, above 0 and below 1, as in syncswitch:0.1",
			 text);
		return -EINVAL;
	}
	s->then = *rule;
	int rc = mst_rule_parse("bsp", rule, why, why_len);
	return rc != 0 ? rc : mst_rule_parse("async", &s->then, why, why_len);
}

static struct mst_rule *then(struct mst_controller *c)
{
	return &c->syncswitch.then;
}

static struct mst_rule last(const struct mst_controller *c, const struct mst_rule *first,
			    uint32_t workers)
{
	(void)first;
	(void)workers;
	return c->syncswitch.then;
}

static int check(const struct mst_controller *c, const struct mst_rule_context *ctx, char *why,
		 size_t why_len)
{
	if (ctx->samples_max > 0)
		return 0;
	snprintf(why, why_len,
		 "%g of the job's samples are to be done under bsp, and the job has no end in "
		 "samples; say --samples N",
		 c->syncswitch.share);
	return -EINVAL;
}

static bool decide(struct mst_controller *c, const struct mst_commit_view *commit,
		   struct mst_rule *rule)
{
	struct mst_syncswitch *s = &c->syncswitch;

	if (s->is_done || commit->samples_total < s->share * commit->samples_max)
		return false;
	s->is_done = true;
	s->at = commit->samples_total;
	*rule = s->then;
	return true;
}

static void now(const struct mst_controller *c, const struct mst_rule *rule, char *out, size_t len)
{
	(void)rule;
	snprintf(out, len, "%s", c->syncswitch.is_done ? "async" : "bsp");
}

static void why(const struct mst_controller *c, const struct mst_rule *rule, char *out, size_t len)
{
	const struct mst_syncswitch *s = &c->syncswitch;

	(void)rule;
	if (s->is_done)
		snprintf(out, len, "%.0f samples, %g of all, were done under bsp", s->at, s->share);
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
	.help = "syncswitch:SHARE bsp for a share of --samples, such as 0.1, and then async",
	.parse = parse,
	.then = then,
	.last = last,
	.check = check,
	.decide = decide,
	.now = now,
	.why = why,
	.is_stuck = is_stuck,
};
