/* SPDX-License-Identifier: MIT */
#include "tools/tune/search.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/base/log.h"
#include "tools/command.h"
#include "tools/figure.h"

/* Writes the policy as musterd takes it. */
static void name_policy(double share, char *out, size_t len)
{
	if (share >= 1)
		(void)snprintf(out, len, "bsp");
	else
		(void)snprintf(out, len, "syncswitch:%.10g", share);
}

static int check_share(const struct mst_tune_line *line, double share, struct mst_reason *why)
{
	struct mst_trial_line trial;
	char policy[MST_POLICY_LEN];

	name_policy(share, policy, sizeof(policy));
	int rc = mst_trial_line_init(&trial, line, policy, why);
	mst_trial_line_fini(&trial);
	return rc;
}

int mst_search_check(const struct mst_tune_line *line, struct mst_reason *why)
{
	int rc = check_share(line, 1, why);

	return rc == 0 ? check_share(line, 0.5, why) : rc;
}

/* ---- one share ---- */

static int run_once(struct mst_search *s, const struct mst_trial_line *line,
		    struct mst_signals *signals)
{
	const struct mst_tune_options *o = &s->line->options;
	struct mst_tune_share *share = &s->tried[s->count - 1];
	struct mst_trial *trial = &share->trial[share->trials];
	struct mst_reason why;

	trial->seed = o->seed + share->trials;
	int status = mst_trial_run(line, o->metric, signals, trial, &why);
	if (status == MST_EXIT_DONE) {
		share->trials++;
		mst_info("%s, run %" PRIu32 " of %" PRIu32 ", seed %" PRIu64 ": %s %g after %s",
			 share->policy, share->trials, o->runs, trial->seed, o->metric,
			 trial->value, mst_figure_duration(trial->wall_ns).text);
	} else {
		mst_reason_set(&s->why,
			       "run %" PRIu32 " of %" PRIu32 " with %s, seed %" PRIu64 ": %s",
			       share->trials + 1, o->runs, share->policy, trial->seed, why.text);
	}
	return status;
}

static void sum_up(struct mst_tune_share *share)
{
	double value[MST_TUNE_RUNS_MAX];
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < share->trials; i++) {
		value[i] = share->trial[i].value;
		sum_ns += share->trial[i].wall_ns;
	}
	share->spread = mst_spread_of(value, share->trials);
	share->mean_ns = sum_ns / share->trials;
	share->whole = true;
}

static int try_share(struct mst_search *s, double share, struct mst_signals *signals)
{
	struct mst_tune_share *tried = &s->tried[s->count++];
	struct mst_trial_line line;
	int status = MST_EXIT_FAILED;

	*tried = (struct mst_tune_share){ .share = share };
	name_policy(share, tried->policy, sizeof(tried->policy));
	if (mst_trial_line_init(&line, s->line, tried->policy, &s->why) == 0)
		status = MST_EXIT_DONE;
	s->samples = line.run.options.server.samples;
	while (status == MST_EXIT_DONE && tried->trials < s->line->options.runs)
		status = run_once(s, &line, signals);
	mst_trial_line_fini(&line);
	if (status == MST_EXIT_DONE)
		sum_up(tried);
	return status;
}

/* ---- all of it ---- */

static int try_bsp(struct mst_search *s, struct mst_signals *signals)
{
	const struct mst_tune_options *o = &s->line->options;
	struct mst_tune_share *bsp = &s->tried[0];
	int status = try_share(s, 1, signals);

	if (status != MST_EXIT_DONE)
		return status;
	bsp->kept = true;
	s->bisection = mst_bisection_begin(bsp->spread.mean, o->tolerance, o->lower);
	if (bsp->spread.deviation > o->tolerance)
		mst_warn("the runs of bsp differ by more than the tolerance: their standard "
			 "deviation is %g, the tolerance %g; chance may decide which share is "
			 "kept: more --runs, or a larger --tolerance",
			 bsp->spread.deviation, o->tolerance);
	return status;
}

static void judge(struct mst_search *s, struct mst_tune_share *tried)
{
	double tolerance = s->bisection.wanted - s->tried[0].spread.mean;
	double distance[MST_TUNE_RUNS_MAX];

	for (uint32_t i = 0; i < tried->trials; i++)
		distance[i] = tried->trial[i].value - s->tried[0].trial[i].value - tolerance;
	struct mst_spread spread = mst_spread_of(distance, tried->trials);
	tried->noise = mst_noise_of(&spread);
	tried->kept = mst_bisection_take(&s->bisection, tried->spread.mean);
}

uint32_t mst_search_unsure(const struct mst_search *s, uint32_t *runs)
{
	uint32_t unsure = 0;

	*runs = 0;
	for (uint32_t i = 1; i < s->count; i++) {
		const struct mst_tune_share *t = &s->tried[i];
		unsure += t->whole && !t->noise.sure;
		if (t->whole && t->noise.runs > *runs)
			*runs = t->noise.runs;
	}
	return unsure;
}

/* In how many decisions, and what to do about it. */
static void warn_of_chance(const struct mst_search *s)
{
	uint32_t runs, unsure = mst_search_unsure(s, &runs), most = MST_TUNE_RUNS_MAX;

	if (unsure == 0)
		return;
	if (runs == 0)
		mst_warn("chance may have made the choice: one run of each share does not tell how "
			 "much runs differ; use --runs 2 at the least");
	else if (runs <= most)
		mst_warn("chance may have made the choice: %" PRIu32 " of %" PRIu32
			 " decisions are "
			 "within what runs differ by; --runs %" PRIu32 " would tell",
			 unsure, s->count - 1, runs);
	else
		mst_warn(
			"chance may have made the choice: %" PRIu32 " of %" PRIu32 " decisions are "
			"within what runs differ by; to tell would take %s%" PRIu32 " runs of each "
			"share: use a larger --tolerance, or a metric that varies less",
			unsure, s->count - 1, runs >= MST_NOISE_RUNS_MAX ? "more than " : "", runs);
}

int mst_search_run(struct mst_search *s, const struct mst_tune_line *line,
		   struct mst_signals *signals)
{
	*s = (struct mst_search){ .line = line };
	s->status = try_bsp(s, signals);
	for (uint32_t i = 0; i < line->options.tries && s->status == MST_EXIT_DONE; i++) {
		s->status = try_share(s, mst_bisection_next(&s->bisection), signals);
		struct mst_tune_share *tried = &s->tried[s->count - 1];
		if (tried->whole)
			judge(s, tried);
	}
	if (s->status == MST_EXIT_DONE)
		warn_of_chance(s);
	return s->status;
}

const struct mst_tune_share *mst_search_answer(const struct mst_search *s)
{
	const struct mst_tune_share *answer = NULL;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->tried[i].kept && (answer == NULL || s->tried[i].share < answer->share))
			answer = &s->tried[i];
	return answer;
}

/* ---- bisection ---- */

struct mst_bisection mst_bisection_begin(double bsp, double tolerance, bool lower)
{
	return (struct mst_bisection){
		.low = 0,
		.high = 1,
		.wanted = lower ? bsp + tolerance : bsp - tolerance,
		.lower = lower,
	};
}

double mst_bisection_next(const struct mst_bisection *b)
{
	return (b->low + b->high) / 2;
}

bool mst_bisection_take(struct mst_bisection *b, double mean)
{
	bool kept = b->lower ? mean <= b->wanted : mean >= b->wanted;

	*(kept ? &b->high : &b->low) = mst_bisection_next(b);
	return kept;
}
