/* SPDX-License-Identifier: MIT */
/*
 * What multiplies what, by hand: a line a policy, as its author published it (docs/policies.md).
 *
 * Each line is a set of contributions with their samples and staleness in a job of four workers
 * with lr 1, and what the first of them is multiplied with before it is taken from the parameters.
 * The product is not computed here: a commit moves a parameter by it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/kernels/commit.h"
#include "server/core/policy/factor.h"
#include "server/core/policy/rule.h"
#include "server/options/options.h"
#include "tests/ut.h"

#define WORKERS 4
#define SET_MAX 6

struct factor_case {
	const char *policy, *weigh, *lr_scale, *optimizer;
	unsigned count;
	struct {
		double samples;
		uint64_t staleness;
	} one[SET_MAX];
	bool is_sum;
	double coefficient, divisor, lr_scale_is; /* by hand */
	double moves;                             /* what a gradient of 1 moves a parameter by */
};

#define SGD "sgd:lr=1,momentum=0"

/* clang-format off */
static const struct factor_case lines[] = {
	/* The mean over all samples: a thousand of them weigh a thousand times as much as one. */
	{ "bsp", "samples", "auto", SGD, 4, { { 1, 0 }, { 1000, 0 }, { 1000, 0 }, { 1999, 0 } },
	  false, 1, 4000, 1, 1.0 / 4000 },
	{ "bsp", "samples", "auto", SGD, 4, { { 1000, 0 }, { 1, 0 }, { 1000, 0 }, { 1999, 0 } },
	  false, 1000, 4000, 1, 0.25 },
	{ "bsp", "one", "auto", SGD, 4, { { 1, 0 }, { 1000, 0 }, { 1000, 0 }, { 1999, 0 } },
	  false, 1, 4, 1, 0.25 },
	/* Sums over 1000 samples each: the sum of sums over the number of samples; or, where all
	 * weigh alike, the mean of their means. */
	{ "bsp", "samples", "auto", SGD, 2, { { 1000, 0 }, { 3000, 0 } },
	  true, 1, 4000, 0.5, 0.5 / 4000 },
	{ "bsp", "one", "none", SGD, 2, { { 1000, 0 }, { 3000, 0 } },
	  true, 1.0 / 1000, 2, 1, 1.0 / 2000 },
	/* Chen: lr / N x sum of N; with the linear scale lr goes with N. */
	{ "backup:3", "samples", "none", SGD, 3, { { 32, 0 }, { 32, 0 }, { 32, 0 } },
	  false, 32, 96, 1, 1.0 / 3 },
	{ "backup:3", "samples", "auto", SGD, 3, { { 32, 0 }, { 32, 0 }, { 32, 0 } },
	  false, 32, 96, 0.75, 0.25 },
	{ "backup:-1", "samples", "auto", SGD, 3, { { 32, 0 }, { 32, 0 }, { 32, 0 } },
	  false, 32, 96, 0.75, 0.25 },
	/* By the samples: each of them moves the model as far as under bsp with batches of 32,
	 * wherever it is, and so does a version of parts of batches. */
	{ "bsp", "samples", "samples:32", SGD, 4, { { 32, 0 }, { 32, 0 }, { 32, 0 }, { 32, 0 } },
	  false, 32, 128, 1, 0.25 },
	{ "nonblocking", "samples", "samples:32", SGD, 4,
	  { { 8, 0 }, { 32, 0 }, { 4, 0 }, { 20, 0 } },
	  false, 8, 64, 0.5, 8.0 / 128 },
	{ "async", "samples", "samples:32", SGD, 1, { { 16, 3 } },
	  false, 1, 1, 0.125, 0.125 },
	{ "kbatchasync:6", "one", "samples:32", SGD, 6,
	  { { 32, 0 }, { 32, 1 }, { 32, 0 }, { 32, 1 }, { 32, 2 }, { 32, 1 } },
	  false, 1, 6, 1.5, 0.25 },
	{ "local:10", "samples", "samples:320", "outer:lr=1,momentum=0", 2,
	  { { 320, 0 }, { 160, 0 } },
	  false, 320, 480, 0.375, 0.25 },
	/* Dutta: lr / K x sum of K, however old they are. */
	{ "ksync:2", "samples", "none", SGD, 2, { { 16, 0 }, { 48, 0 } },
	  false, 16, 64, 1, 0.25 },
	{ "kbatchsync:2", "samples", "none", SGD, 2, { { 32, 0 }, { 32, 0 } },
	  false, 32, 64, 1, 0.5 },
	{ "kasync:2", "samples", "none", SGD, 2, { { 32, 7 }, { 32, 0 } },
	  false, 32, 64, 1, 0.5 },
	{ "kbatchasync:2", "samples", "auto", SGD, 2, { { 32, 7 }, { 32, 0 } },
	  false, 32, 64, 0.5, 0.25 },
	/* Zhang: 1 / C x sum of lr / max(1, staleness) x g; nothing else divides. */
	{ "softsync:2", "one", "auto", SGD, 2, { { 32, 4 }, { 32, 0 } },
	  false, 0.25, 2, 1, 0.125 },
	{ "softsync:2", "one", "auto", SGD, 2, { { 32, 0 }, { 32, 4 } },
	  false, 1, 2, 1, 0.5 },
	{ "softsync:2", "samples", "auto", SGD, 2, { { 32, 4 }, { 32, 1 } },
	  false, 8, 64, 1, 0.125 },
	{ "softsync:1", "samples", "auto", SGD, 1, { { 33, 5 } },
	  false, 0.2, 1, 1, 0.2 },
	{ "softsync:2", "one", "linear", SGD, 2, { { 32, 4 }, { 32, 0 } }, /* if somebody insists */
	  false, 0.25, 2, 0.5, 0.0625 },
	/* A commit after each: its weight would cancel, so nothing is multiplied or divided. */
	{ "async", "samples", "none", SGD, 1, { { 33, 9 } }, false, 1, 1, 1, 1 },
	{ "async", "samples", "auto", SGD, 1, { { 33, 9 } }, false, 1, 1, 0.25, 0.25 },
	{ "async", "samples", "auto", SGD, 1, { { 50, 9 } }, true, 0.02, 1, 0.25, 0.005 },
	{ "bounded:3", "samples", "auto", SGD, 1, { { 33, 3 } }, false, 1, 1, 0.25, 0.25 },
	{ "ssp:2", "samples", "auto", SGD, 1, { { 33, 2 } }, false, 1, 1, 0.25, 0.25 },
	/* He and Dube, Ferdinand: the mean over the samples of all that was handed in. */
	{ "nonblocking", "samples", "auto", SGD, 4, { { 8, 0 }, { 32, 0 }, { 16, 0 }, { 8, 0 } },
	  false, 8, 64, 1, 0.125 },
	{ "nonblocking:5", "samples", "auto", SGD, 3, { { 32, 0 }, { 16, 0 }, { 16, 0 } },
	  false, 32, 64, 0.75, 0.375 },
	{ "anytime:50", "samples", "auto", SGD, 4, { { 10, 0 }, { 30, 0 }, { 40, 0 }, { 20, 0 } },
	  false, 10, 100, 1, 0.1 },
	/* Two of the three that it waits for are there when the time is over. */
	{ "deadline:50,3", "samples", "auto", SGD, 2, { { 32, 0 }, { 32, 0 } },
	  false, 32, 64, 0.5, 0.25 },
	/* McMahan: the mean of the differences, by samples; Douillard: the plain mean, with no
	 * linear scale. */
	{ "local:10", "samples", "auto", "add", 4,
	  { { 100, 0 }, { 100, 0 }, { 300, 0 }, { 500, 0 } }, false, 100, 1000, 1, 0.1 },
	{ "local:10,3", "one", "auto", "outer:lr=1,momentum=0", 3,
	  { { 100, 0 }, { 300, 0 }, { 100, 0 } }, false, 1, 3, 1, 1.0 / 3 },
	/* Zhang 2015: x = x + z, of each worker or of all; alpha is in z. */
	{ "easgd:10,0.1", "samples", "auto", "add", 1, { { 320, 7 } }, false, 1, 1, 0.25, 1 },
	{ "easgdsync:10,0.1", "samples", "auto", "add", 4,
	  { { 320, 0 }, { 32, 0 }, { 1, 0 }, { 8, 0 } }, false, 1, 1, 1, 1 },
	/* Dean: a step with each sum that is pushed, however old it is. */
	{ "downpour:5,2", "samples", "none", SGD, 1, { { 160, 6 } }, false, 1, 1, 1, 1 },
	{ "downpour:5,2", "samples", "auto", SGD, 1, { { 160, 6 } }, false, 1, 1, 0.25, 0.25 },
	/* Deltas are added as they are, whatever they weigh; there is no rate to be scaled. */
	{ "kbatchasync:2", "samples", "auto", "add", 2, { { 32, 0 }, { 1, 0 } },
	  false, 1, 1, 0.5, 1 },
};

/* The same under options that every policy takes. */
static const struct {
	bool compensate;
	const char *schedule;
	double so_far; /* samples that have been counted */
	float tensor;  /* the lr_scale of the parameter's tensor */
	struct factor_case line;
} adjusted[] = {
	/* A discount where old gradients count, and no linear scale on top of it. */
	{ true, "constant", 1, 1,
	  { "kasync:2", "samples", "auto", SGD, 2, { { 32, 4 }, { 32, 0 } },
	    false, 8, 64, 1, 0.125 } },
	{ true, "constant", 1, 1,
	  { "async", "samples", "auto", SGD, 1, { { 33, 8 } }, false, 0.125, 1, 1, 0.125 } },
	{ true, "constant", 1, 1,
	  { "bounded:4", "one", "auto", SGD, 1, { { 33, 4 } }, false, 0.25, 1, 1, 0.25 } },
	{ true, "constant", 1, 1, /* nothing is old here */
	  { "backup:3", "samples", "auto", SGD, 3, { { 32, 0 }, { 32, 0 }, { 32, 0 } },
	    false, 32, 96, 0.75, 0.25 } },
	/* A schedule multiplies whatever scale there is. */
	{ false, "warmup:1000", 250, 1,
	  { "backup:3", "samples", "auto", SGD, 3, { { 32, 0 }, { 32, 0 }, { 32, 0 } },
	    false, 32, 96, 0.1875, 0.0625 } },
	{ false, "steps:0.5,1000", 1000, 1,
	  { "async", "samples", "auto", SGD, 1, { { 33, 9 } }, false, 1, 1, 0.125, 0.125 } },
	{ false, "steps:0.5,1000", 2000, 1,
	  { "softsync:2", "one", "auto", SGD, 2, { { 32, 4 }, { 32, 0 } },
	    false, 0.25, 2, 0.5, 0.0625 } },
	{ true, "stairs:0.5,100", 250, 1,
	  { "kasync:2", "samples", "auto", SGD, 2, { { 32, 4 }, { 32, 0 } },
	    false, 8, 64, 0.25, 0.03125 } },
	/* The scale of a tensor multiplies whatever rate the version has, also one that a discount,
	 * a linear scale or a schedule is in. */
	{ false, "constant", 1, 0.5f,
	  { "bsp", "samples", "auto", SGD, 4, { { 1000, 0 }, { 1, 0 }, { 1000, 0 }, { 1999, 0 } },
	    false, 1000, 4000, 1, 0.125 } },
	{ false, "warmup:1000", 250, 4,
	  { "backup:3", "samples", "auto", SGD, 3, { { 32, 0 }, { 32, 0 }, { 32, 0 } },
	    false, 32, 96, 0.1875, 0.25 } },
	{ true, "stairs:0.5,100", 250, 2,
	  { "kasync:2", "samples", "auto", SGD, 2, { { 32, 4 }, { 32, 0 } },
	    false, 8, 64, 0.25, 0.0625 } },
	{ false, "steps:0.5,1000", 1000, 0.5f,
	  { "async", "samples", "auto", SGD, 1, { { 50, 9 } }, true, 0.02, 1, 0.125, 0.00125 } },
	{ false, "steps:0.5,1000", 2000, 0, /* frozen */
	  { "softsync:2", "one", "auto", SGD, 2, { { 32, 4 }, { 32, 0 } },
	    false, 0.25, 2, 0.5, 0 } },
};
/* clang-format on */

static struct mst_rule rule_of(const struct factor_case *line, bool compensate,
			       struct mst_optimizer *optimizer)
{
	struct mst_server_options o;
	struct mst_options parsed;
	struct mst_policy policy = { .rule = { 0 } };
	struct mst_reason why = { "" };
	int rc = mst_options_init(&parsed, mst_server_table, &o);

	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&parsed, "policy", line->policy), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&parsed, "optimizer", line->optimizer), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&parsed, "weigh", line->weigh), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&parsed, "lr-scale", line->lr_scale), 0);
	if (compensate)
		CU_ASSERT_EQUAL_FATAL(mst_options_set(&parsed, "compensate", "true"), 0);
	rc = mst_server_options_rule(&o, &policy, &why);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	rc = mst_optimizer_parse(o.optimizer, optimizer, &why);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	mst_options_free(&parsed);
	return policy.rule;
}

/* @counted: samples in the version. */
static double scale_of_samples(const struct mst_rule *rule, const char *schedule,
			       uint32_t contributions, double counted, double samples)
{
	struct mst_schedule read;
	struct mst_reason why = { "" };

	CU_ASSERT_EQUAL_FATAL(mst_schedule_parse(schedule, &read, &why), 0);
	return mst_lr_scale(&(struct mst_lr_scale_of){ .linear = rule->linear,
						       .batch = rule->batch,
						       .schedule = &read,
						       .contributions = contributions,
						       .workers = WORKERS,
						       .counted = counted,
						       .samples = samples });
}

static double scale_of(const struct mst_rule *rule, const char *schedule, uint32_t contributions,
		       double samples)
{
	return scale_of_samples(rule, schedule, contributions, 0, samples);
}

/* What a version moves a parameter by that is 0, if the first of its contributions has a gradient
 * of 1 and the others of 0. The parameter is the second one, and the first is in a tensor of its
 * own, whose scale is 1. */
static double moved(const struct mst_optimizer *o, struct mst_factor of, float divisor,
		    double scale, float tensor)
{
	static const float gradient[2] = { 1, 1 };
	const float theta[2] = { 0, 0 };
	float next[2];
	const struct mst_scale of_tensor[2] = { { .end = 1, .rate = 1, .trust = 1 },
						{ .end = 2, .rate = tensor, .trust = 1 } };
	const struct mst_leaf leaf = { .coefficient = of.coefficient, .data = gradient };
	const struct mst_optim_version version = { .version = 1, .lr_scale = scale };
	struct mst_commit c = {
		.tree = { .type = MUSTER_F32, .group = 1, .leaf = &leaf, .leaf_count = 1 },
		.divisor = divisor,
		.result_type = MUSTER_F32,
		.out = next,
		.apply = o->row->apply,
		.theta = theta,
		.next = next,
		.scale = o->row->scales ? of_tensor : NULL,
		.scales = o->row->scales ? 2 : 0,
	};

	mst_optimizer_figures(o, &c.figures);
	mst_optimizer_scalars(o, &version, c.figures.scalar);
	CU_ASSERT(o->row->scales || tensor == 1);
	CU_ASSERT(mst_commit_range(&c, 0, 2));
	CU_ASSERT(tensor == 0 || fabsf(next[1] / tensor - next[0]) < 1e-7f);
	return fabs((double)next[1]);
}

static struct mst_factor factor_of(const struct mst_rule *rule, uint64_t staleness, double samples,
				   bool is_sum, double clip)
{
	return mst_factor(&(struct mst_factor_of){ .rule = rule,
						   .workers = WORKERS,
						   .staleness = staleness,
						   .samples = samples,
						   .is_sum = is_sum,
						   .clip = clip });
}

static void check_line(const struct factor_case *line, bool compensate, const char *schedule,
		       double so_far, float tensor)
{
	struct mst_optimizer optimizer;
	struct mst_rule rule = rule_of(line, compensate, &optimizer);
	double base = 0, counted = 0;

	for (unsigned k = 0; k < line->count; k++)
		counted += line->one[k].samples;
	for (unsigned k = 0; k < line->count; k++)
		base += factor_of(&rule, line->one[k].staleness, line->one[k].samples, line->is_sum,
				  1)
				.base;
	struct mst_factor f = factor_of(&rule, line->one[0].staleness, line->one[0].samples,
					line->is_sum, 1);
	float divisor = mst_divisor(&rule, base);
	double scale = scale_of_samples(&rule, schedule, line->count, counted, so_far);
	double moves = moved(&optimizer, f, divisor, scale, tensor);
	bool right = f.coefficient == (float)line->coefficient && divisor == (float)line->divisor &&
		     scale == line->lr_scale_is && fabs(moves - line->moves) < 1e-7;
	if (!right)
		printf("\n%s, --weigh %s, --lr-scale %s, %s, tensor %g: c %g, D %g, scale %g, "
		       "moves %g; by hand %g\n",
		       line->policy, line->weigh, line->lr_scale, schedule, (double)tensor,
		       (double)f.coefficient, (double)divisor, scale, moves, line->moves);
	CU_ASSERT(right);
}

static void each_policy_multiplies_as_its_author_says(void)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		check_line(&lines[i], false, "constant", 1, 1);
}

static void discounts_schedules_and_tensors_multiply_what_a_policy_has(void)
{
	for (size_t i = 0; i < sizeof(adjusted) / sizeof(adjusted[0]); i++)
		check_line(&adjusted[i].line, adjusted[i].compensate, adjusted[i].schedule,
			   adjusted[i].so_far, adjusted[i].tensor);
}

/* A row of the table of policies that nobody has written a line for. */
static void each_policy_has_a_line(void)
{
	for (unsigned row = 0; mst_rule_help(row) != NULL; row++) {
		const char *help = mst_rule_help(row);
		size_t len = strcspn(help, "[: ");
		bool found = false;
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			found = found || (strcspn(lines[i].policy, ":") == len &&
					  memcmp(lines[i].policy, help, len) == 0);
		if (!found)
			printf("\nno line for %.*s\n", (int)len, help);
		CU_ASSERT(found);
	}
}

/* Where a version cannot have a second contribution, multiplying by its weight and dividing by it
 * again would only round twice. */
static void a_weight_that_would_only_cancel_is_left_out(void)
{
	static const struct {
		const char *policy, *optimizer;
		uint32_t workers;
		bool cancels;
	} line[] = {
		{ "bsp", SGD, 1, true },
		{ "bsp", SGD, 2, false },
		{ "backup:1", SGD, 1, true },
		{ "backup:-3", SGD, 4, true },
		{ "backup:-3", SGD, 5, false },
		{ "ksync:1", SGD, 4, true },
		{ "kbatchsync:2", SGD, 1, false }, /* two of one worker */
		{ "kasync:2", SGD, 4, false },
		{ "async", SGD, 4, true },
		{ "nonblocking", SGD, 1, true },
		{ "nonblocking:5", SGD, 2, false },
		{ "anytime:50", SGD, 1, true },
		{ "deadline:50,1", SGD, 4, true },
		{ "deadline:50,2", SGD, 4, false },
		{ "local:10", "add", 1, true },
		{ "local:10,-1", "add", 2, true },
		{ "local:10", "add", 2, false },
	};

	for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		struct factor_case one = { .policy = line[i].policy,
					   .weigh = "samples",
					   .lr_scale = "none",
					   .optimizer = line[i].optimizer };
		struct mst_optimizer optimizer;
		struct mst_rule rule = rule_of(&one, false, &optimizer);
		struct mst_factor_of of = { &rule, line[i].workers, 0, 0.1, false, 1 };
		struct mst_factor f = mst_factor(&of);
		CU_ASSERT_EQUAL(f.base, line[i].cancels ? 1 : 0.1);
		CU_ASSERT_EQUAL(f.coefficient, line[i].cancels ? 1 : 0.1f);
		of.is_sum = true;
		f = mst_factor(&of);
		CU_ASSERT_EQUAL(f.base, line[i].cancels ? 1 : 0.1);
		CU_ASSERT_EQUAL(f.coefficient, line[i].cancels ? (float)(1 / 0.1) : 1);
	}
}

/* The linear scale and the schedule multiply each other. */
static void schedule_multiplies_the_rate_of_a_version(void)
{
	struct mst_rule linear = { .linear = true }, none = { .linear = false };

	CU_ASSERT_EQUAL(scale_of(&none, "steps:0.5,1000", 3, 999), 1);
	CU_ASSERT_EQUAL(scale_of(&none, "steps:0.5,1000", 3, 1000), 0.5);
	CU_ASSERT_EQUAL(scale_of(&linear, "steps:0.5,1000", 3, 999), 0.75);
	CU_ASSERT_EQUAL(scale_of(&linear, "steps:0.5,1000", 3, 1000), 0.375);
	CU_ASSERT_EQUAL(scale_of(&linear, "warmup:1000+steps:0.5,2000", 4, 250), 0.25);
}

static struct mst_factor factor(bool by_samples, bool compensate, uint64_t staleness,
				double samples, bool is_sum)
{
	struct mst_rule r = { .weigh = by_samples ? MST_WEIGH_SAMPLES : MST_WEIGH_ONE,
			      .divide = true,
			      .compensate = compensate };

	return factor_of(&r, staleness, samples, is_sum, 1);
}

/* Dutta et al. 2018: eta = min(C / distance^2, eta_max), where eta_max is the rate without it. */
static void a_distance_bounds_the_rate_of_a_version(void)
{
	static const struct {
		double lr, distance, square, is; /* `is`: the rate, of four workers, by hand */
	} line[] = {
		{ 0.5, 2, 0, 0.125 },   /* nothing has moved, or it is not known yet */
		{ 0.5, 2, 16, 0.125 },  /* just as far as makes no difference */
		{ 0.5, 2, 32, 0.0625 }, /* C / square, whatever lr is */
		{ 4, 2, 32, 0.0625 },
		{ 4, 1e-300, 1e300, 0 },             /* hardly moves, and does not become NaN */
		{ 0.5, 2, (double)INFINITY, 0.125 }, /* of what is spoilt anyway */
		{ 0.5, 0, 1e9, 0.125 },              /* no bound is wanted */
	};
	struct mst_schedule constant = { .count = 0 };

	for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		struct mst_lr_scale_of of = { .linear = true,
					      .schedule = &constant,
					      .contributions = 1,
					      .workers = 4,
					      .samples = 1,
					      .distance = line[i].distance,
					      .lr = line[i].lr,
					      .square = line[i].square };
		CU_ASSERT_EQUAL(line[i].lr * mst_lr_scale(&of), line[i].is);
	}
}

/* The factor of a worker that limits its norm multiplies what is there, and is no weight. */
static void a_worker_shortens_its_contribution(void)
{
	struct mst_rule one = { .divide = true }, samples = one;

	samples.weigh = MST_WEIGH_SAMPLES;
	CU_ASSERT_EQUAL(factor_of(&one, 0, 8, false, 0.25).coefficient, 0.25f);
	CU_ASSERT_EQUAL(factor_of(&one, 0, 8, true, 0.25).coefficient, 0.25f / 8);
	CU_ASSERT_EQUAL(factor_of(&samples, 0, 8, false, 0.25).coefficient, 2);
	CU_ASSERT_EQUAL(factor_of(&samples, 0, 8, true, 0.25).coefficient, 0.25f);
	CU_ASSERT_EQUAL(factor_of(&samples, 0, 8, true, 0.25).base, 8);
	one.compensate = true;
	CU_ASSERT_EQUAL(factor_of(&one, 3, 8, false, 0.7).coefficient, (float)(0.7 / 3));
}

/* c = b f, rounded once: a product with a reciprocal that was rounded to f32 differs. */
static void coefficients_are_rounded_once(void)
{
	for (uint64_t staleness = 1; staleness <= 200; staleness++) {
		for (int samples = 1; samples <= 100; samples++) {
			long double exact = (long double)samples / (long double)staleness;
			CU_ASSERT_EQUAL(factor(true, true, staleness, samples, false).coefficient,
					(float)exact);
		}
	}
}

/* Whatever rule there is, whatever a worker may say: neither infinite, nor zero, nor so small that
 * digits are lost. */
static void no_weight_that_is_allowed_overflows_or_vanishes(void)
{
	static const double ends[] = { 0x1p-53, 0x1p53 };

	for (unsigned i = 0; i < 16; i++) {
		struct mst_factor f = factor(i & 1, i & 2, UINT64_MAX, ends[i >> 2 & 1], i & 8);
		CU_ASSERT(isnormal(f.coefficient) && f.coefficient > 0);
		CU_ASSERT(isnormal((float)f.base) && f.base > 0);
	}
}

/* By hand: TensorFlow has 2/11 of the old average left after its first step, where that is less. */
static void little_of_a_young_average_is_left(void)
{
	CU_ASSERT_EQUAL(mst_average_rest(0.9999, 1), (float)(2.0 / 11));
	CU_ASSERT_EQUAL(mst_average_rest(0.9999, 80), 0.9f);
	CU_ASSERT_EQUAL(mst_average_rest(0.9, 81), 0.9f);
	CU_ASSERT_EQUAL(mst_average_rest(0.1, 1), 0.1f);
	CU_ASSERT_EQUAL(mst_average_rest(0.9999, 89980), (float)(89981.0 / 89990));
	CU_ASSERT_EQUAL(mst_average_rest(0.9999, UINT64_MAX), 0.9999f);
	CU_ASSERT_EQUAL(mst_average_rest(0, 1), 0); /* there is none */
}

static CU_TestInfo cases[] = {
	{ "each policy multiplies as its author says", each_policy_multiplies_as_its_author_says },
	{ "discounts, schedules and tensors multiply what a policy has",
	  discounts_schedules_and_tensors_multiply_what_a_policy_has },
	{ "each policy has a line", each_policy_has_a_line },
	{ "a weight that would only cancel is left out",
	  a_weight_that_would_only_cancel_is_left_out },
	{ "a schedule multiplies the rate of a version",
	  schedule_multiplies_the_rate_of_a_version },
	{ "a distance bounds the rate of a version", a_distance_bounds_the_rate_of_a_version },
	{ "a worker shortens its contribution", a_worker_shortens_its_contribution },
	{ "coefficients are rounded once", coefficients_are_rounded_once },
	{ "no weight that is allowed overflows or vanishes",
	  no_weight_that_is_allowed_overflows_or_vanishes },
	{ "little of a young average is left", little_of_a_young_average_is_left },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("factor", cases);
}
