/* SPDX-License-Identifier: MIT */
/*
 * The training of simulated jobs, with a problem that the test sees through: every gradient is
 * logged with the parameters that it was computed on.
 */
#include "tests/ut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "server/core/policy/rule.h"
#include "tests/policies.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tools/sim/learn/trainer.h"
#include "tools/sim/problem/problem.h"
#include "tools/sim/world.h"

#define ELEMS 5u
#define WORKERS 4u
#define COMMITS 60u
#define LOG_MAX 4000u

static const char *const delay[] = { "exp:20" };
static struct mst_reason why;

/* What was asked for, and what was given. */
static struct training_log {
	unsigned count;
	float on[LOG_MAX][ELEMS], gradient[LOG_MAX][ELEMS];
	uint64_t samples[LOG_MAX];
	float end[ELEMS]; /* parameters at the last point of the curve */
} seen, before;

static const char *const equal[] = { "const:20" };

/* If not NULL, a gradient is the mean of the next WORKERS of this log. */
static const struct training_log *replayed;

static void give_start(const struct mst_sim_problem *p, float *parameters)
{
	for (unsigned i = 0; i < p->elems; i++)
		parameters[i] = (float)i - 2.25f;
}

static void give_mean(float *gradient)
{
	unsigned first = seen.count * WORKERS;

	for (unsigned i = 0; i < ELEMS; i++) {
		float sum = replayed->gradient[first][i];
		for (unsigned k = 1; k < WORKERS; k++)
			sum += replayed->gradient[first + k][i];
		gradient[i] = sum / (float)WORKERS;
	}
}

static double give_gradient(struct mst_sim_problem *p, const float *parameters,
			    struct mst_rand *chance, uint64_t samples, float *gradient)
{
	CU_ASSERT_FATAL(seen.count < LOG_MAX);
	memcpy(seen.on[seen.count], parameters, sizeof(seen.on[0]));
	seen.samples[seen.count] = samples;
	for (unsigned i = 0; i < p->elems; i++)
		gradient[i] = rintf((float)(16 * mst_rand_normal(chance))) / 16;
	if (replayed != NULL)
		give_mean(gradient);
	memcpy(seen.gradient[seen.count], gradient, sizeof(seen.gradient[0]));
	return (double)++seen.count;
}

static double give_error(struct mst_sim_problem *p, const float *parameters)
{
	memcpy(seen.end, parameters, p->elems * sizeof(float));
	return 0.5;
}

static const struct mst_sim_problem_ops ops = {
	.start = give_start,
	.gradient = give_gradient,
	.error = give_error,
};
static struct mst_sim_problem problem = { .ops = &ops, .elems = ELEMS, .batch = 16, .lr = 0.1 };

static struct mst_sim_cfg cfg_of(const char *policy, uint32_t workers)
{
	struct mst_rule rule = { .divide = true,
				 .patience_ns = 300 * MST_SECOND,
				 .min_workers = 1 };

	CU_ASSERT_EQUAL_FATAL(mst_rule_parse(policy, &rule, &why), 0);
	return (struct mst_sim_cfg){
		.policy = policy,
		.ledger = { .workers = workers,
			    .shards = 1,
			    .slots = mst_rule_slots(&rule),
			    .buffers = 4,
			    .in_place = true,
			    .owner = MUSTER_SERVERS_OWN,
			    .rule = rule,
			    .optimizer = optim_case_sgd(0.1, 0.9),
			    .commits_max = COMMITS,
			    .lease_ns = 3600 * MST_SECOND,
			    .join_until_ns = MST_NEVER },
		.checks = MST_SIM_AT_ONCE,
		.micro = 8,
		.delay = delay,
		.delay_count = 1,
		.seed = 1,
		.problem = &problem,
	};
}

static void run(const struct mst_sim_cfg *cfg, struct mst_sim_figures *f)
{
	memset(&seen, 0, sizeof(seen));
	CU_ASSERT_EQUAL_FATAL(mst_sim_figures_init(f, cfg->ledger.workers), 0);
	CU_ASSERT_EQUAL_FATAL(mst_sim_run(cfg, f, &why), 0);
	CU_ASSERT(f->ended && !mst_finish_failed(f->why));
}

/* The elements of gradients are sixteenths, so that no sum of them is rounded. */
static void bsp_is_a_serial_run_with_the_mean(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = cfg_of("bsp", WORKERS);

	cfg.delay = equal;
	run(&cfg, &f);
	CU_ASSERT(seen.count >= COMMITS * WORKERS);
	mst_sim_figures_fini(&f);
	before = seen;
	replayed = &before;
	cfg = cfg_of("bsp", 1);
	run(&cfg, &f);
	replayed = NULL;
	for (unsigned i = 0; i < COMMITS; i++)
		CU_ASSERT_EQUAL(memcmp(seen.on[i], before.on[i * WORKERS], sizeof(seen.on[i])), 0);
	CU_ASSERT_EQUAL(memcmp(seen.end, before.end, sizeof(seen.end)), 0);
	CU_ASSERT_EQUAL(f.commits, COMMITS);
	mst_sim_figures_fini(&f);
}

static void a_seed_repeats_and_another_does_not(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = cfg_of("kasync:2", WORKERS);

	run(&cfg, &f);
	mst_sim_figures_fini(&f);
	before = seen;
	run(&cfg, &f);
	mst_sim_figures_fini(&f);
	CU_ASSERT_EQUAL(memcmp(&seen, &before, sizeof(seen)), 0);
	cfg.seed = 2;
	run(&cfg, &f);
	mst_sim_figures_fini(&f);
	CU_ASSERT_NOT_EQUAL(memcmp(seen.gradient, before.gradient, sizeof(seen.gradient)), 0);
}

/* Every gradient is drawn once, whatever the delays are. */
static void gradients_do_not_depend_on_delays(void)
{
	static const char *const other[] = { "uniform:5,50" };
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = cfg_of("bsp", 1);

	run(&cfg, &f);
	mst_sim_figures_fini(&f);
	before = seen;
	cfg.delay = other;
	run(&cfg, &f);
	mst_sim_figures_fini(&f);
	CU_ASSERT_EQUAL(memcmp(seen.gradient, before.gradient, sizeof(seen.gradient)), 0);
}

static double constant(struct mst_sim_problem *p, const float *parameters, struct mst_rand *chance,
		       uint64_t samples, float *gradient)
{
	(void)give_gradient(p, parameters, chance, samples, gradient);
	for (unsigned i = 0; i < p->elems; i++)
		gradient[i] = -1;
	return 1;
}

/* With a gradient of -1 and a rate of 1 the parameters tell their version. */
static const struct mst_sim_problem_ops counting = {
	.start = give_start,
	.gradient = constant,
	.error = give_error,
};

static uint64_t version_seen(unsigned i)
{
	return (uint64_t)(seen.on[i][0] + 2.25f);
}

static struct mst_sim_cfg counting_cfg(const char *policy, uint32_t workers)
{
	struct mst_sim_cfg cfg = cfg_of(policy, workers);

	problem.ops = &counting;
	cfg.ledger.optimizer = optim_case_sgd(1, 0);
	return cfg;
}

/* All of them counted: the staleness that the ledger sees is that of what was computed. */
static void a_gradient_is_computed_on_the_version_that_was_read(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = counting_cfg("async", WORKERS);

	run(&cfg, &f);
	double sum = 0;
	for (unsigned i = 0; i < COMMITS; i++)
		sum += (double)i - (double)version_seen(i);
	CU_ASSERT(sum > 0);
	CU_ASSERT_DOUBLE_EQUAL(sum, mst_hist_mean(&f.staleness) * COMMITS, 1e-6);
	mst_sim_figures_fini(&f);
	problem.ops = &ops;
}

static void stale_gradients_are_so_many_commits_old(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = counting_cfg("bsp", 1);

	cfg.staleness = 5;
	cfg.staleness_ramp = 20;
	run(&cfg, &f);
	for (unsigned i = 0; i < COMMITS; i++)
		CU_ASSERT_EQUAL(i - version_seen(i), i / 4 < 5 ? i / 4 : 5);
	mst_sim_figures_fini(&f);
	cfg.staleness_ramp = 0;
	run(&cfg, &f);
	for (unsigned i = 0; i < COMMITS; i++)
		CU_ASSERT_EQUAL(i - version_seen(i), i < 5 ? i : 5);
	mst_sim_figures_fini(&f);
	problem.ops = &ops;
}

/* Their differences are added up: each of two local steps of 0.1 adds 0.1 to every element. */
static void local_steps_push_their_difference(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = counting_cfg("local:2", WORKERS);

	cfg.delay = equal;
	CU_ASSERT_EQUAL_FATAL(mst_optimizer_parse("add", &cfg.ledger.optimizer, &why), 0);
	run(&cfg, &f);
	CU_ASSERT_DOUBLE_EQUAL((double)seen.end[0], -2.25 + COMMITS * 0.2, 1e-4);
	CU_ASSERT_DOUBLE_EQUAL((double)(seen.on[WORKERS][0] - seen.on[0][0]), 0.1, 1e-6);
	mst_sim_figures_fini(&f);
	problem.ops = &ops;
}

/* Zhang, Choromanska, LeCun 2015, algorithm 1, with one worker. */
static void elastic_averaging_moves_worker_and_centre(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = counting_cfg("easgd:2,0.3", 1);
	double worker = -2.25, centre = -2.25;

	CU_ASSERT_EQUAL_FATAL(mst_optimizer_parse("add", &cfg.ledger.optimizer, &why), 0);
	run(&cfg, &f);
	for (unsigned i = 0; i < COMMITS; i++) {
		worker += 2 * 0.1;
		double moved = 0.3 * (worker - centre);
		worker -= moved;
		centre += moved;
	}
	CU_ASSERT_DOUBLE_EQUAL((double)seen.end[0], centre, 1e-4);
	mst_sim_figures_fini(&f);
	problem.ops = &ops;
}

static void parts_of_a_batch_have_parts_of_its_samples(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = cfg_of("nonblocking", WORKERS);
	bool parts = false;

	run(&cfg, &f);
	for (unsigned i = 0; i < seen.count; i++) {
		CU_ASSERT(seen.samples[i] > 0 && seen.samples[i] <= 16);
		CU_ASSERT_EQUAL(seen.samples[i] % 2, 0);
		parts |= seen.samples[i] < 16;
	}
	CU_ASSERT(parts);
	mst_sim_figures_fini(&f);
}

static void each_policy_trains_to_its_end(void)
{
	for (unsigned i = 0; i < POLICY_ROWS; i++) {
		struct mst_sim_figures f;
		struct mst_sim_cfg cfg = cfg_of(policy_rows[i].text, 8);
		if (cfg.ledger.rule.deltas)
			CU_ASSERT_EQUAL_FATAL(
				mst_optimizer_parse("add", &cfg.ledger.optimizer, &why), 0);
		run(&cfg, &f);
		CU_ASSERT_EQUAL(f.commits, COMMITS);
		CU_ASSERT_EQUAL(f.curve.count, 21);
		CU_ASSERT(isfinite(mst_sim_curve_end(&f.curve)->loss));
		mst_sim_figures_fini(&f);
	}
}

static void a_norm_is_clipped_as_by_servers(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = cfg_of("bsp", WORKERS);

	CU_ASSERT_EQUAL_FATAL(
		mst_optimizer_parse("sgd:lr=1,momentum=0,clip=0.5", &cfg.ledger.optimizer, &why),
		0);
	cfg.ledger.shards = 3;
	cfg.ledger.commits_max = 1;
	run(&cfg, &f);
	double squares = 0;
	for (unsigned i = 0; i < ELEMS; i++)
		squares += pow((double)seen.end[i] - ((double)i - 2.25), 2);
	CU_ASSERT_DOUBLE_EQUAL(sqrt(squares), 0.5, 1e-6);
	mst_sim_figures_fini(&f);
}

static double norm(const float *of, unsigned first, unsigned end)
{
	double squares = 0;

	for (unsigned i = first; i < end; i++)
		squares += (double)of[i] * (double)of[i];
	return sqrt(squares);
}

/* A job of one worker, whose log has each version in turn: every tensor has moved in each step by
 * @rate times its norm. That is what LARS and LAMB are for. */
static void moves_with_its_norm(const char *optimizer, double rate)
{
	static const unsigned end[] = { 2, ELEMS };
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = cfg_of("bsp", 1);

	CU_ASSERT_EQUAL_FATAL(mst_optimizer_parse(optimizer, &cfg.ledger.optimizer, &why), 0);
	cfg.ledger.shards = 3; /* the norms of tensors do not depend on them */
	run(&cfg, &f);
	for (unsigned v = 0; v + 1 < COMMITS; v++) {
		float moved[ELEMS];
		unsigned first = 0;
		for (unsigned i = 0; i < ELEMS; i++)
			moved[i] = seen.on[v + 1][i] - seen.on[v][i];
		for (unsigned t = 0; t < 2; first = end[t++])
			CU_ASSERT_DOUBLE_EQUAL(norm(moved, first, end[t]) /
						       norm(seen.on[v], first, end[t]),
					       rate, 1e-4 * rate);
	}
	CU_ASSERT_EQUAL(f.commits, COMMITS);
	mst_sim_figures_fini(&f);
}

static void a_tensor_moves_in_proportion_to_its_norm(void)
{
	problem.tensors = 2;
	problem.tensor_end[0] = 2;
	problem.tensor_end[1] = ELEMS;
	moves_with_its_norm("lars:lr=0.5,momentum=0,decay=0,trust=0.1", 0.05);
	moves_with_its_norm("lamb:lr=0.03", 0.03);
	problem.tensors = 0;
}

static double outwards(struct mst_sim_problem *p, const float *parameters, struct mst_rand *chance,
		       uint64_t samples, float *gradient)
{
	(void)chance;
	(void)samples;
	for (unsigned i = 0; i < p->elems; i++)
		gradient[i] = -parameters[i];
	return 1;
}

static const struct mst_sim_problem_ops growing = {
	.start = give_start,
	.gradient = outwards,
	.error = give_error,
};

static void a_version_that_overflows_ends_the_job(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = cfg_of("async", WORKERS);

	problem.ops = &growing;
	cfg.ledger.optimizer = optim_case_sgd(1e9, 0);
	CU_ASSERT_EQUAL_FATAL(mst_sim_figures_init(&f, WORKERS), 0);
	CU_ASSERT_EQUAL_FATAL(mst_sim_run(&cfg, &f, &why), 0);
	CU_ASSERT(f.ended && f.why == MST_FINISH_SPOILT && f.commits < 10);
	mst_sim_figures_fini(&f);
	problem.ops = &ops;
}

/* A worker that has been answered with version 0 pushes. */
static void the_ledger_is_told_the_loss(void)
{
	struct mst_sim_cfg cfg = cfg_of("bsp", 1);
	struct mst_sim_curve curve = { .count = 0 };
	struct mst_sim_trainer *t;
	struct mst_sim_worker w = { .who = { 0, 1 }, .answers = 1, .batch = { .micro = 8 } };
	struct mst_decision d = { .kind = MST_DO_START };
	struct mst_sim_act act = { .sends = true,
				   .event = { .kind = MST_EV_FULL, .who = { 0, 1 } } };
	struct mst_lane_header *h = &act.event.full.header;

	memset(&seen, 0, sizeof(seen));
	h->seq = 1;
	h->weight = 16;
	h->flags = MST_HEADER_FULL;
	CU_ASSERT_EQUAL_FATAL(mst_sim_trainer_new(&cfg, &curve, &t), 0);
	CU_ASSERT_EQUAL(mst_sim_trainer_decided(t, &d, 0), 0);
	d = (struct mst_decision){ .kind = MST_DO_RELEASE, .who = { 0, 1 } };
	CU_ASSERT_EQUAL(mst_sim_trainer_decided(t, &d, 0), 0);
	CU_ASSERT_EQUAL(mst_sim_trainer_acted(t, &w, &act), 0);
	CU_ASSERT_EQUAL(h->flags, MST_HEADER_FULL | MST_HEADER_LOSS);
	CU_ASSERT_EQUAL(h->loss, 1); /* as the first gradient of give_gradient() has it */
	CU_ASSERT_EQUAL(seen.samples[0], 16);
	mst_sim_trainer_free(t);
	mst_sim_curve_fini(&curve);
}

static void points_in_time_are_equally_far_apart(void)
{
	struct mst_sim_figures f;
	struct mst_sim_cfg cfg = cfg_of("bsp", WORKERS);

	cfg.every = (struct mst_sim_every){ MST_SIM_EVERY_TIME, 15e6 };
	run(&cfg, &f);
	CU_ASSERT(f.curve.count > 10);
	for (uint32_t i = 0; i + 1 < f.curve.count; i++) {
		CU_ASSERT_EQUAL(f.curve.point[i].time_ns, i * UINT64_C(15000000));
		CU_ASSERT(f.curve.point[i].commits <= f.curve.point[i + 1].commits);
	}
	CU_ASSERT_EQUAL(mst_sim_curve_end(&f.curve)->commits, COMMITS);
	mst_sim_figures_fini(&f);
}

static CU_TestInfo cases[] = {
	{ "bsp is a serial run with the mean, to the bit", bsp_is_a_serial_run_with_the_mean },
	{ "a seed repeats, and another does not", a_seed_repeats_and_another_does_not },
	{ "gradients do not depend on delays", gradients_do_not_depend_on_delays },
	{ "a gradient is computed on the version that was read",
	  a_gradient_is_computed_on_the_version_that_was_read },
	{ "stale gradients are so many commits old", stale_gradients_are_so_many_commits_old },
	{ "local steps push their difference", local_steps_push_their_difference },
	{ "elastic averaging moves worker and centre", elastic_averaging_moves_worker_and_centre },
	{ "parts of a batch have parts of its samples",
	  parts_of_a_batch_have_parts_of_its_samples },
	{ "each policy trains to its end", each_policy_trains_to_its_end },
	{ "a norm is clipped as by servers", a_norm_is_clipped_as_by_servers },
	{ "a tensor moves in proportion to its norm", a_tensor_moves_in_proportion_to_its_norm },
	{ "a version that overflows ends the job", a_version_that_overflows_ends_the_job },
	{ "the ledger is told the loss", the_ledger_is_told_the_loss },
	{ "points in time are equally far apart", points_in_time_are_equally_far_apart },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim: training", cases);
}
