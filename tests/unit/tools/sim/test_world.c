/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "server/core/policy/rule.h"
#include "tests/policies.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"
#include "tools/sim/world.h"

#define WORKERS 6u
#define COMMITS 200u

static const char *const delay[] = { "exp:20", "4:const:50" };
static struct mst_sim_figures f;
static struct mst_reason why;

/* Three servers, and a network in which everything takes some time. */
static struct mst_sim_cfg cfg_of(const struct mst_rule *rule)
{
	struct mst_sim_cfg cfg = {
		.policy = "as given",
		.ledger = { .workers = WORKERS,
			    .shards = 3,
			    .slots = mst_rule_slots(rule),
			    .buffers = 4,
			    .sent = true,
			    .owner = MUSTER_SERVERS_OWN,
			    .rule = *rule,
			    .optimizer = optim_case_sgd(0.1, 0.9),
			    .commits_max = COMMITS,
			    .lease_ns = MST_SECOND,
			    .join_until_ns = MST_NEVER },
		.net = { .latency_ns = MST_MS,
			 .bytes = 3 << 20,
			 .worker_rate = 1,
			 .server_rate = 0.5 },
		.checks = 4,
		.micro = 8,
		.delay = delay,
		.delay_count = 2,
		.seed = 1,
	};

	cfg.ledger.rule.divide = true;
	cfg.ledger.rule.patience_ns = 300 * MST_SECOND;
	cfg.ledger.rule.min_workers = 1;
	return cfg;
}

static void run(const struct mst_sim_cfg *cfg)
{
	CU_ASSERT_FATAL(mst_sim_figures_init(&f, WORKERS) == 0);
	CU_ASSERT_EQUAL_FATAL(mst_sim_run(cfg, &f, &why), 0);
}

static void ends_well(const char *policy)
{
	bool well = f.started && f.ended && f.why == MST_FINISH_COMMITS && f.commits == COMMITS;

	CU_ASSERT_TRUE(well);
	if (!well)
		printf("%s ends after %u commits\n", policy, (unsigned)f.commits);
}

static void a_job_comes_to_its_end_under_every_policy(void)
{
	for (size_t i = 0; i < POLICY_ROWS; i++) {
		struct mst_sim_cfg cfg = cfg_of(&policy_rows[i].rule);
		run(&cfg);
		ends_well(policy_rows[i].name);
		mst_sim_figures_fini(&f);
	}
}

static void every_step_of_bsp_has_all_of_the_living(void)
{
	static const struct mst_sim_change change[] = { { 500 * MST_MS, 2, MST_SIM_KILL, 0 } };
	struct mst_sim_cfg cfg = cfg_of(&policy_rows[0].rule);

	run(&cfg);
	CU_ASSERT_EQUAL(mst_sim_figures_total(&f).counted, WORKERS * COMMITS);
	mst_sim_figures_fini(&f);
	cfg.change = change;
	cfg.change_count = 1;
	run(&cfg);
	ends_well("bsp");
	uint64_t of_dead = f.rank[2].counted;
	CU_ASSERT(of_dead > 0 && of_dead < COMMITS);
	CU_ASSERT_EQUAL(mst_sim_figures_total(&f).counted, (WORKERS - 1) * COMMITS + of_dead);
	mst_sim_figures_fini(&f);
}

/* The second process of rank 2 takes part; that of rank 3 comes too early, and tries again. */
static void deaths_and_joins_end_well_under_every_policy(void)
{
	static const struct mst_sim_change change[] = {
		{ 200 * MST_MS, 2, MST_SIM_KILL, 0 },
		{ 300 * MST_MS, 3, MST_SIM_FREEZE, 0 },
		{ 400 * MST_MS, 3, MST_SIM_JOIN, 0 },
		{ 500 * MST_MS, 2, MST_SIM_JOIN, 0 },
	};

	for (size_t i = 0; i < POLICY_ROWS; i++) {
		struct mst_sim_cfg cfg = cfg_of(&policy_rows[i].rule);
		cfg.change = change;
		cfg.change_count = 4;
		cfg.ledger.lease_ns = 500 * MST_MS;
		run(&cfg);
		ends_well(policy_rows[i].name);
		/* What it sends, what it computes, and what the end of the job cancels. */
		CU_ASSERT(f.rank[2].counted > 0 && f.rank[2].lost <= 3);
		mst_sim_figures_fini(&f);
	}
}

/* 3 MiB of each of six workers take 12.6 ms, down and up: they push from 32.6 ms to 45.2 ms. */
static void what_was_under_way_is_lost_with_its_worker(void)
{
	static const char *const even[] = { "const:20" };
	static const struct mst_sim_change change[] = { { 40 * MST_MS, 2, MST_SIM_KILL, 0 },
							{ 42 * MST_MS, 3, MST_SIM_FREEZE, 0 } };
	struct mst_sim_cfg cfg = cfg_of(&policy_rows[0].rule);

	cfg.net.latency_ns = 0;
	cfg.delay = even;
	cfg.delay_count = 1;
	cfg.change = change;
	cfg.change_count = 2;
	run(&cfg);
	ends_well("bsp");
	for (uint32_t rank = 2; rank <= 3; rank++) {
		CU_ASSERT(f.rank[rank].counted == 0 && f.rank[rank].lost == 1);
		CU_ASSERT_EQUAL(f.rank[rank].wasted_ns, 20 * MST_MS);
	}
	mst_sim_figures_fini(&f);
}

static void the_rule_may_change_between_any_two_policies(void)
{
	for (size_t i = 0; i < POLICY_ROWS * POLICY_ROWS; i++) {
		const struct mst_rule *from = &policy_rows[i / POLICY_ROWS].rule;
		struct mst_sim_cfg cfg = cfg_of(from);
		struct mst_sim_switch change = { 50, cfg.ledger.rule };
		CU_ASSERT(mst_rule_parse(policy_rows[i % POLICY_ROWS].text, &change.rule, &why) ==
			  0);
		cfg.ledger.slots = 2;
		cfg.change_of_rule = &change;
		cfg.change_of_rule_count = 1;
		run(&cfg);
		ends_well(policy_rows[i % POLICY_ROWS].name);
		mst_sim_figures_fini(&f);
	}
}

static void the_same_seed_gives_the_same_figures(void)
{
	struct mst_sim_cfg cfg = cfg_of(&policy_rows[3].rule);
	uint64_t elapsed_ns[3];

	for (int i = 0; i < 3; i++) {
		cfg.seed = i < 2 ? 1 : 2;
		run(&cfg);
		elapsed_ns[i] = mst_sim_figures_elapsed_ns(&f);
		mst_sim_figures_fini(&f);
	}
	CU_ASSERT_EQUAL(elapsed_ns[0], elapsed_ns[1]);
	CU_ASSERT_NOT_EQUAL(elapsed_ns[0], elapsed_ns[2]);
}

/* A gradient takes ten leases. */
static void who_computes_for_long_keeps_its_lease(void)
{
	static const char *const slow[] = { "const:10000" };
	struct mst_sim_cfg cfg = cfg_of(&policy_rows[0].rule);

	cfg.delay = slow;
	cfg.delay_count = 1;
	cfg.ledger.commits_max = 3;
	run(&cfg);
	CU_ASSERT_EQUAL(mst_sim_figures_total(&f).counted, 3 * WORKERS);
	mst_sim_figures_fini(&f);
}

/* Everything takes longer than there is time, so nobody is ever woken. */
static void delays_without_end_end_the_job(void)
{
	static const char *const endless[] = { "const:1e15" };
	struct mst_sim_cfg cfg = cfg_of(&policy_rows[0].rule);

	cfg.delay = endless;
	cfg.delay_count = 1;
	run(&cfg);
	CU_ASSERT(f.ended && f.why == MST_FINISH_TOO_FEW && f.commits == 0);
	mst_sim_figures_fini(&f);
}

static void wrong_delays_are_told(void)
{
	static const char *const wrong[] = { "nope" };
	struct mst_sim_cfg cfg = cfg_of(&policy_rows[0].rule);

	cfg.delay = wrong;
	cfg.delay_count = 1;
	CU_ASSERT_FATAL(mst_sim_figures_init(&f, WORKERS) == 0);
	CU_ASSERT(mst_sim_run(&cfg, &f, &why) < 0);
	CU_ASSERT(strstr(why.text, "nope") != NULL);
	mst_sim_figures_fini(&f);
}

static CU_TestInfo cases[] = {
	{ "a job comes to its end under every policy", a_job_comes_to_its_end_under_every_policy },
	{ "every step of bsp has all of the living", every_step_of_bsp_has_all_of_the_living },
	{ "deaths and joins end well under every policy",
	  deaths_and_joins_end_well_under_every_policy },
	{ "what was under way is lost with its worker",
	  what_was_under_way_is_lost_with_its_worker },
	{ "the rule may change between any two policies",
	  the_rule_may_change_between_any_two_policies },
	{ "the same seed gives the same figures", the_same_seed_gives_the_same_figures },
	{ "who computes for long keeps its lease", who_computes_for_long_keeps_its_lease },
	{ "delays without end end the job", delays_without_end_end_the_job },
	{ "wrong delays are told", wrong_delays_are_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim_world", cases);
}
