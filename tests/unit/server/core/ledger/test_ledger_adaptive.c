/* SPDX-License-Identifier: MIT */
/* The ledger and policies that change their rule: when it asks them, and from when on it holds. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/optim/kernels.h"
#include "server/core/ledger/state/state.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

/* What the last change of the rule says; NULL: there was none. */
static const struct mst_decision *change_of(const struct ledger_job *j)
{
	return job_last(j, MST_DO_POLICY, -1);
}

static int32_t quorum(const struct ledger_job *j)
{
	return mst_ledger_rule(j->ledger)->quorum;
}

static bool names(const struct ledger_job *j, const char *now)
{
	char text[64];

	mst_controller_now(mst_ledger_controller(j->ledger), mst_ledger_rule(j->ledger), text,
			   sizeof(text));
	return strcmp(text, now) == 0;
}

/* Ranks 0 to count - 1 push, which makes one version. */
static void step(struct ledger_job *j, uint32_t count, double loss)
{
	uint64_t before = job_version(j);

	for (uint32_t rank = 0; rank < count; rank++) {
		CU_ASSERT_EQUAL(job_version(j), before);
		job_push_loss(j, rank, loss);
	}
	CU_ASSERT_EQUAL(job_version(j), before + 1);
}

/* ---- adasync ---- */

static void the_step_after_the_commit_has_the_new_rule(void)
{
	struct mst_ledger_cfg cfg = job_cfg("adasync:kasync,1,1", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	step(&j, 1, 8);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 0);
	step(&j, 1, 0.5);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 1);
	CU_ASSERT_EQUAL(change_of(&j)->policy.version, 3);
	CU_ASSERT(change_of(&j)->policy.whole && change_of(&j)->policy.adapts);
	CU_ASSERT_EQUAL(quorum(&j), 3);
	CU_ASSERT(names(&j, "kasync:3"));
	step(&j, 3, 0.5); /* at once, and no version between was made under another rule */
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 3)->entry_count, 3);
	job_close(&j);
}

static void a_worker_that_dies_lowers_k(void)
{
	struct mst_ledger_cfg cfg = job_cfg("adasync:kasync,4,4", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	step(&j, 4, 1);
	CU_ASSERT_EQUAL(quorum(&j), 4);
	job_lose(&j, 3, -32);
	step(&j, 3, 1);
	CU_ASSERT_EQUAL(quorum(&j), 3);
	CU_ASSERT(names(&j, "kasync:3"));
	job_enter(&j, 3);
	step(&j, 3, 1); /* made without the one that has come meanwhile */
	CU_ASSERT_EQUAL(quorum(&j), 4);
	step(&j, 4, 1);
	job_close(&j);
}

static void k_is_never_more_than_the_live_workers(void)
{
	struct mst_ledger_cfg cfg = job_cfg("adasync:kbatchasync,1,1", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	step(&j, 1, 100);
	job_lose(&j, 3, -32);
	step(&j, 1, 0.01);
	CU_ASSERT_EQUAL(quorum(&j), 3);
	job_close(&j);
}

/* A worker that rests is not waited for, so it is no live one for K. */
static void who_rests_is_not_counted(void)
{
	struct mst_ledger_cfg cfg = job_cfg("adasync:kasync,4", 4);
	struct mst_ledger_event ev = { .kind = MST_EV_REST, .rests = true };
	struct ledger_job j;

	job_born(&j, &cfg);
	ev.who = j.worker[3].who;
	job_event(&j, &ev);
	step(&j, 3, 1);
	CU_ASSERT_EQUAL(quorum(&j), 3);
	job_close(&j);
}

static void losses_that_nobody_tells_change_nothing(void)
{
	struct mst_ledger_cfg cfg = job_cfg("adasync:kasync,1,1", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	for (int i = 0; i < 5; i++)
		step(&j, 1, (double)NAN);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 0);
	CU_ASSERT(mst_controller_is_stuck(mst_ledger_controller(j.ledger)));
	job_close(&j);
}

static void report(struct ledger_job *j, uint32_t rank, double value)
{
	struct mst_ledger_event ev = { .kind = MST_EV_METRIC, .who = j->worker[rank].who };

	(void)snprintf(ev.metric.name, sizeof(ev.metric.name), "test_loss");
	ev.metric.value = value;
	job_event(j, &ev);
}

/* It changes the next step, as a loss of gradients does. Nobody but who is in the job is heard. */
static void a_reported_loss_is_told_to_the_policy_in_force(void)
{
	struct mst_ledger_cfg cfg = job_cfg("adasync:kasync,1,1,loss=test_loss", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	report(&j, 2, 8);
	step(&j, 1, 0.001);
	j.worker[2].who.incarnation++;
	report(&j, 2, 0.5);
	j.worker[2].who.incarnation--;
	step(&j, 1, 0.001);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 0);
	report(&j, 3, 0.5);
	step(&j, 1, 100);
	CU_ASSERT_EQUAL(change_of(&j)->policy.version, 4);
	CU_ASSERT(names(&j, "kasync:3"));
	job_close(&j);
}

/* ---- syncswitch ---- */

static void syncswitch_changes_once_and_costs_no_step(void)
{
	struct mst_ledger_cfg cfg = job_cfg("syncswitch:0.5", 4);
	struct ledger_job j;

	cfg.samples_max = 16;
	job_born(&j, &cfg);
	step(&j, 4, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 0);
	step(&j, 4, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 1);
	CU_ASSERT_EQUAL(change_of(&j)->policy.version, 3);
	CU_ASSERT(names(&j, "async"));
	for (int i = 0; i < 7; i++)
		step(&j, 1, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 1);
	job_close(&j);
}

static void a_job_that_ends_with_the_commit_changes_nothing_any_more(void)
{
	struct mst_ledger_cfg cfg = job_cfg("syncswitch:0.9", 4);
	struct ledger_job j;

	cfg.samples_max = 4;
	job_born(&j, &cfg);
	step(&j, 4, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 0);
	job_close(&j);
}

/* ---- stragglers ---- */

#define MS UINT64_C(1000000)

/* A version under bsp, whose ranks take so long, in order; ranks with 0 take no part. */
static void timed_step(struct ledger_job *j, const uint64_t *took_ms)
{
	uint64_t before = job_version(j), passed = 0;

	for (uint32_t rank = 0; rank < 4; rank++) {
		if (took_ms[rank] == 0)
			continue;
		job_wait(j, (took_ms[rank] - passed) * MS, -1);
		passed = took_ms[rank];
		job_push(j, rank);
	}
	CU_ASSERT_EQUAL(job_version(j), before + 1);
}

static const uint64_t alike[] = { 20, 20, 21, 21 };
static const uint64_t slow[] = { 20, 20, 21, 60 };

static void greedy_leaves_bsp_after_five_slow_windows_in_a_row(void)
{
	struct mst_ledger_cfg cfg = job_cfg("syncswitch:0.9,greedy=paper", 4);
	struct ledger_job j;

	cfg.samples_max = 10000;
	job_born(&j, &cfg);
	for (int i = 0; i < 4; i++)
		timed_step(&j, slow);
	timed_step(&j, alike);
	for (int i = 0; i < 4; i++)
		timed_step(&j, slow);
	CU_ASSERT(names(&j, "bsp"));
	timed_step(&j, slow);
	CU_ASSERT(names(&j, "async"));
	CU_ASSERT_EQUAL(change_of(&j)->policy.version, 11);
	job_wait(&j, 20 * MS, -1);
	for (uint32_t i = 0; i < 4; i++) /* a window in which nobody is slow */
		job_push(&j, i);
	CU_ASSERT(names(&j, "bsp"));
	job_close(&j);
}

static void equal_workers_are_no_stragglers(void)
{
	struct mst_ledger_cfg cfg = job_cfg("syncswitch:0.9,greedy=paper", 4);
	struct ledger_job j;

	cfg.samples_max = 10000;
	job_born(&j, &cfg);
	for (int i = 0; i < 20; i++)
		timed_step(&j, alike);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 0);
	job_close(&j);
}

static void elastic_has_a_straggler_rest_until_the_change(void)
{
	static const uint64_t rest[] = { 20, 20, 21, 0 };
	struct mst_ledger_cfg cfg = job_cfg("syncswitch:0.5,elastic=paper", 4);
	struct ledger_job j;

	cfg.samples_max = 80;
	job_born(&j, &cfg);
	for (int i = 0; i < 5; i++)
		timed_step(&j, slow);
	CU_ASSERT_TRUE(job_member(&j, 3).rests);
	CU_ASSERT(names(&j, "bsp"));
	for (int i = 0; i < 7; i++) {
		CU_ASSERT_TRUE(job_member(&j, 3).rests);
		timed_step(&j, rest);
	}
	CU_ASSERT(names(&j, "async"));
	CU_ASSERT_FALSE(job_member(&j, 3).rests);
	job_close(&j);
}

/* A worker that rests for another reason does not return with the stragglers. */
static void a_fixed_policy_has_stragglers_return(void)
{
	static const uint64_t rest[] = { 20, 20, 0, 0 };
	struct mst_ledger_cfg cfg = job_cfg("syncswitch:0.5,elastic=paper", 4);
	struct mst_ledger_event ev = { .kind = MST_EV_REST, .rests = true };
	struct mst_rule bsp = job_rule("bsp");
	struct ledger_job j;

	cfg.samples_max = 8000;
	job_born(&j, &cfg);
	for (int i = 0; i < 5; i++)
		timed_step(&j, slow);
	ev.who = j.worker[2].who;
	job_event(&j, &ev);
	CU_ASSERT(job_member(&j, 3).rests && job_member(&j, 2).rests);
	job_policy(&j, &bsp);
	timed_step(&j, rest);
	timed_step(&j, rest);
	CU_ASSERT_FALSE(job_member(&j, 3).rests);
	CU_ASSERT_TRUE(job_member(&j, 2).rests);
	job_close(&j);
}

/* ---- by the judge ---- */

static const uint64_t without_3[] = { 20, 20, 21, 0 };

static void timed_steps(struct ledger_job *j, const uint64_t *took_ms, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		job_forget(j);
		timed_step(j, took_ms);
	}
}

/* A job under elastic whose rank 3 takes 60 ms, until it rests. */
static void open_until_3_rests(struct ledger_job *j, uint32_t share_of_samples)
{
	struct mst_ledger_cfg cfg = job_cfg("syncswitch:0.5,elastic", 4);

	cfg.samples_max = share_of_samples;
	job_born(j, &cfg);
	for (int i = 0; i < 30 && !job_member(j, 3).rests; i++)
		timed_step(j, slow);
	CU_ASSERT_TRUE_FATAL(job_member(j, 3).rests);
	job_forget(j);
}

/* It was not shown to be fast: so people read that it is slow until its gradients say that it is
 * not. */
static void who_returns_with_the_policy_is_still_slow(void)
{
	struct mst_rule bsp = job_rule("bsp");
	struct ledger_job j;

	open_until_3_rests(&j, 8000);
	job_policy(&j, &bsp);
	timed_step(&j, without_3);
	timed_step(&j, without_3);
	CU_ASSERT_FALSE(job_member(&j, 3).rests);
	timed_steps(&j, slow, 4);
	CU_ASSERT_TRUE(mst_ledger_straggler(j.ledger, 3, j.now_ns).now);
	timed_steps(&j, alike, 40);
	CU_ASSERT_FALSE(mst_ledger_straggler(j.ledger, 3, j.now_ns).now);
	job_close(&j);
}

/* Steps without rank 3, until it is answered. Return: how many. */
static uint32_t steps_until_probe(struct ledger_job *j)
{
	uint32_t steps = 0;

	while (job_count(j, MST_DO_RELEASE, 3) == 0 && steps < 100) {
		job_forget(j);
		timed_step(j, without_3);
		steps++;
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(job_last(j, MST_DO_RELEASE, 3));
	CU_ASSERT_EQUAL(job_last(j, MST_DO_RELEASE, 3)->answer.version, job_version(j));
	job_forget(j);
	return steps;
}

static void who_rests_is_probed_every_20_versions_and_no_step_waits(void)
{
	struct ledger_job j;

	open_until_3_rests(&j, 100000);
	CU_ASSERT_EQUAL(steps_until_probe(&j), 20);
	for (int i = 0; i < 25; i++) /* it does not come, and is not asked for another */
		timed_step(&j, without_3);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	CU_ASSERT_TRUE(job_member(&j, 3).rests);
	job_push(&j, 3); /* of a version that is long committed */
	CU_ASSERT_EQUAL(job_verdict(&j, 3), MUSTER_LATE);
	CU_ASSERT_TRUE(job_member(&j, 3).rests);
	job_close(&j);
}

static void a_probe_that_comes_in_time_counts(void)
{
	struct ledger_job j;

	open_until_3_rests(&j, 100000);
	(void)steps_until_probe(&j);
	job_push(&j, 3);
	CU_ASSERT_EQUAL(job_verdict(&j, 3), MUSTER_COUNTED);
	timed_step(&j, without_3);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 3), 0);
	job_close(&j);
}

static void who_rests_returns_after_three_fast_probes(void)
{
	struct ledger_job j;

	open_until_3_rests(&j, 100000);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(job_member(&j, 3).rests);
		CU_ASSERT(steps_until_probe(&j) <= 20);
		job_wait(&j, 5 * MS, -1);
		job_push(&j, 3);
	}
	timed_step(&j, without_3);
	CU_ASSERT_FALSE(job_member(&j, 3).rests);
	timed_steps(&j, alike, 10); /* the steps wait for it again */
	CU_ASSERT_FALSE(job_member(&j, 3).rests);
	job_close(&j);
}

static void who_rests_does_not_return_after_slow_probes(void)
{
	struct ledger_job j;

	open_until_3_rests(&j, 100000);
	for (int i = 0; i < 8; i++) {
		(void)steps_until_probe(&j);
		timed_steps(&j, without_3, 3);
		job_push(&j, 3);
		CU_ASSERT_TRUE(job_member(&j, 3).rests);
	}
	job_close(&j);
}

/* What is asked of a rank that has gone meanwhile, and of the one that comes in its place. */
static void a_rank_that_rests_may_die_and_its_successor_takes_part(void)
{
	struct ledger_job j;

	open_until_3_rests(&j, 100000);
	(void)steps_until_probe(&j);
	job_lose(&j, 3, -EPIPE);
	timed_steps(&j, without_3, 45);
	job_enter(&j, 3);
	timed_steps(&j, without_3, 1);
	timed_steps(&j, alike, 10);
	CU_ASSERT_FALSE(job_member(&j, 3).rests);
	job_close(&j);
}

static void half_of_the_ranks_rest_at_most(void)
{
	static const uint64_t three[] = { 20, 60, 61, 62 };
	struct mst_ledger_cfg cfg = job_cfg("syncswitch:0.5,elastic", 4);
	struct ledger_job j;
	uint64_t took[4];

	cfg.samples_max = 100000;
	job_born(&j, &cfg);
	for (int i = 0; i < 40; i++) {
		uint32_t resting = 0;
		for (uint32_t rank = 0; rank < 4; rank++) {
			bool rests = job_member(&j, rank).rests;
			took[rank] = rests ? 0 : three[rank];
			resting += rests;
		}
		CU_ASSERT(resting <= 2);
		timed_steps(&j, took, 1);
	}
	CU_ASSERT_FALSE(job_member(&j, 0).rests);
	CU_ASSERT_TRUE(job_member(&j, 3).rests);
	job_close(&j);
}

/* The throughput of the paper would have it return after one window in which the slow rank's last
 * gradient was a fast one. */
static void greedy_stays_in_async_while_a_rank_is_slow(void)
{
	struct mst_ledger_cfg cfg = job_cfg("syncswitch:0.9,greedy", 4);
	struct ledger_job j;

	cfg.samples_max = 100000;
	job_born(&j, &cfg);
	for (int i = 0; i < 30 && names(&j, "bsp"); i++)
		timed_steps(&j, slow, 1);
	CU_ASSERT_FATAL(names(&j, "async"));
	for (int i = 0; i < 30; i++) {
		for (int fast = 0; fast < 3; fast++) {
			job_forget(&j);
			job_wait(&j, 20 * MS, -1);
			for (uint32_t rank = 0; rank < 3; rank++)
				job_push(&j, rank);
		}
		job_push(&j, 3);
		CU_ASSERT(names(&j, "async"));
	}
	for (int i = 0; i < 20; i++) { /* and goes back when it is fast again */
		job_forget(&j);
		job_wait(&j, 20 * MS, -1);
		for (uint32_t rank = 0; rank < 4 && names(&j, "async"); rank++)
			job_push(&j, rank);
	}
	CU_ASSERT(names(&j, "bsp"));
	job_close(&j);
}

/* ---- another policy is asked for ---- */

static void a_fixed_policy_ends_an_adaptive_one(void)
{
	struct mst_ledger_cfg cfg = job_cfg("adasync:kasync,1,1", 4);
	struct mst_rule two = job_rule("kasync:2");
	struct ledger_job j;

	job_born(&j, &cfg);
	step(&j, 1, 8);
	job_policy(&j, &two);
	step(&j, 1, 0.1); /* which would have raised K */
	CU_ASSERT_EQUAL(quorum(&j), 2);
	CU_ASSERT_FALSE(change_of(&j)->policy.adapts);
	CU_ASSERT(names(&j, ""));
	for (int i = 0; i < 3; i++)
		step(&j, 2, 0.01);
	CU_ASSERT_EQUAL(quorum(&j), 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 1);
	job_close(&j);
}

/* Its first loss is the first that it hears of. */
static void an_adaptive_policy_follows_a_fixed_one(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kasync:1", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	step(&j, 1, 100);
	job_adapt(&j, "adasync:kasync,1,1");
	step(&j, 1, 100);
	CU_ASSERT(names(&j, "kasync:1"));
	step(&j, 1, 2);
	CU_ASSERT_EQUAL(quorum(&j), 1);
	step(&j, 1, 0.02);
	CU_ASSERT_EQUAL(quorum(&j), 4);
	job_close(&j);
}

/* ---- dbw ---- */

/* Four gradients whose mean has the squared norm 2; the loss falls by a tenth. Rank 3 takes 400 ms
 * more than the others. The servers tell the mean's norm before the version is there. */
static void dbw_step(struct ledger_job *j, uint32_t count, double loss)
{
	struct mst_ledger_event ev = { .kind = MST_EV_REDUCED };
	uint64_t before = job_version(j);

	job_wait(j, 100000000, -1);
	for (uint32_t rank = 0; rank < count; rank++) {
		struct mst_lane_header h = job_header(j, rank);
		if (rank == 3)
			job_wait(j, 400000000, -1);
		h.flags |= MST_HEADER_NORM;
		h.norm = 2;
		h.loss = loss;
		job_full_all(j, rank, &h);
	}
	CU_ASSERT_EQUAL(job_version(j), before + 1);
	ev.reduced.version = before + 1;
	mst_exact_add(&ev.reduced.squares, 2);
	job_event(j, &ev);
}

static struct mst_ledger_cfg dbw_cfg(void)
{
	struct mst_ledger_cfg cfg = job_cfg("dbw", 4);

	cfg.optimizer.parameter[MST_SGD_MOMENTUM] = 0;
	mst_optimizer_measure(&cfg.optimizer);
	return cfg;
}

static void dbw_stops_waiting_for_a_slow_worker_and_costs_no_step(void)
{
	struct mst_ledger_cfg cfg = dbw_cfg();
	struct ledger_job j;

	job_born(&j, &cfg);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 0);
	dbw_step(&j, 4, 8);
	CU_ASSERT_EQUAL_FATAL(job_count(&j, MST_DO_POLICY, -1), 1);
	CU_ASSERT_EQUAL(change_of(&j)->policy.version, 2);
	CU_ASSERT(names(&j, "backup:3"));
	dbw_step(&j, 3, 7); /* at once */
	CU_ASSERT_EQUAL(mst_ledger_record_of(j.ledger, 2)->entry_count, 3);
	job_close(&j);
}

/* The header tells the norm of the data; what counts are the data times the factor. */
static void dbw_is_told_of_norms_after_clipping(void)
{
	struct mst_ledger_event ev = { .kind = MST_EV_REDUCED, .reduced.version = 1 };
	struct mst_ledger_cfg cfg = dbw_cfg();
	struct ledger_job j;

	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 4; rank++) {
		struct mst_lane_header h = job_header(&j, rank);
		h.flags |= MST_HEADER_NORM | (rank == 0 ? MST_HEADER_CLIPPED : 0);
		h.norm = rank == 0 ? 8 : 2;
		h.clip = 0.25f;
		job_full_all(&j, rank, &h);
	}
	mst_exact_add(&ev.reduced.squares, 2);
	job_event(&j, &ev);
	CU_ASSERT(j.ledger->norms.known);
	CU_ASSERT_EQUAL(j.ledger->norms.square, 4);
	job_close(&j);
}

static void dbw_without_norms_waits_for_all(void)
{
	struct mst_ledger_cfg cfg = job_cfg("dbw", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	step(&j, 4, 8);
	step(&j, (uint32_t)quorum(&j), 8); /* by the times of the first */
	CU_ASSERT_EQUAL(quorum(&j), 4);
	CU_ASSERT(mst_controller_is_stuck(mst_ledger_controller(j.ledger)));
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "dbw stops waiting for a slow worker, and costs no step",
	  dbw_stops_waiting_for_a_slow_worker_and_costs_no_step },
	{ "dbw is told of norms after clipping", dbw_is_told_of_norms_after_clipping },
	{ "dbw without norms waits for all", dbw_without_norms_waits_for_all },

	{ "the step after the commit has the new rule",
	  the_step_after_the_commit_has_the_new_rule },
	{ "a worker that dies lowers K", a_worker_that_dies_lowers_k },
	{ "K is never more than the live workers", k_is_never_more_than_the_live_workers },
	{ "who rests is not counted", who_rests_is_not_counted },
	{ "losses that nobody tells change nothing", losses_that_nobody_tells_change_nothing },
	{ "a reported loss is told to the policy in force",
	  a_reported_loss_is_told_to_the_policy_in_force },
	{ "syncswitch changes once, and costs no step", syncswitch_changes_once_and_costs_no_step },
	{ "a job that ends with the commit changes nothing any more",
	  a_job_that_ends_with_the_commit_changes_nothing_any_more },
	{ "greedy leaves bsp after five slow windows in a row",
	  greedy_leaves_bsp_after_five_slow_windows_in_a_row },
	{ "equal workers are no stragglers", equal_workers_are_no_stragglers },
	{ "who returns with the policy is still slow", who_returns_with_the_policy_is_still_slow },
	{ "elastic has a straggler rest until the change",
	  elastic_has_a_straggler_rest_until_the_change },
	{ "a fixed policy has stragglers return", a_fixed_policy_has_stragglers_return },
	{ "who rests is probed every 20 versions, and no step waits",
	  who_rests_is_probed_every_20_versions_and_no_step_waits },
	{ "a probe that comes in time counts", a_probe_that_comes_in_time_counts },
	{ "who rests returns after three fast probes", who_rests_returns_after_three_fast_probes },
	{ "who rests does not return after slow probes",
	  who_rests_does_not_return_after_slow_probes },
	{ "a rank that rests may die, and its successor takes part",
	  a_rank_that_rests_may_die_and_its_successor_takes_part },
	{ "half of the ranks rest at most", half_of_the_ranks_rest_at_most },
	{ "greedy stays in async while a rank is slow",
	  greedy_stays_in_async_while_a_rank_is_slow },
	{ "a fixed policy ends an adaptive one", a_fixed_policy_ends_an_adaptive_one },
	{ "an adaptive policy follows a fixed one", an_adaptive_policy_follows_a_fixed_one },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_adaptive", cases);
}
