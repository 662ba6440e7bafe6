/* SPDX-License-Identifier: MIT */
/* Policies as typed, what they are refused for, and the numbers of a rule (PROTOCOL 2, 3, 5). */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "server/core/policy/rule.h"
#include "tests/policies.h"
#include "tests/ut.h"

static struct mst_reason why;

static int parse(const char *policy, struct mst_rule *out)
{
	why.text[0] = '\0';
	return mst_rule_parse(policy, out, &why);
}

static struct mst_rule rule(const char *policy)
{
	struct mst_rule out = { .divide = true,
				.min_workers = 1,
				.patience_ns = UINT64_C(1) << 40 };

	CU_ASSERT_EQUAL_FATAL(parse(policy, &out), 0);
	return out;
}

/* ---- Policies ---- */

static void policies_are_the_rows_of_the_table(void)
{
	for (size_t i = 0; i < POLICY_ROWS; i++) {
		const struct mst_rule *want = &policy_rows[i].rule;
		struct mst_rule got = rule(policy_rows[i].text);
		CU_ASSERT_EQUAL(got.quorum, want->quorum);
		CU_ASSERT_EQUAL(got.window, want->window);
		CU_ASSERT_EQUAL(got.late, want->late);
		CU_ASSERT_EQUAL(got.release, want->release);
		CU_ASSERT_EQUAL(got.bound, want->bound);
		CU_ASSERT_EQUAL(got.preempt, want->preempt);
		CU_ASSERT_EQUAL(got.weigh, want->weigh);
		CU_ASSERT_EQUAL(got.compensate, want->compensate);
		CU_ASSERT_EQUAL(got.trigger, want->trigger);
		CU_ASSERT_EQUAL(got.deadline_ns, want->deadline_ns);
		CU_ASSERT_EQUAL(got.collect, want->collect);
		CU_ASSERT_EQUAL(got.grace_ns, want->grace_ns);
		CU_ASSERT_EQUAL(got.by_micro, want->by_micro);
		CU_ASSERT_EQUAL(got.deltas, want->deltas);
		CU_ASSERT_EQUAL(got.divide, want->deltas ? want->divide : true);
		CU_ASSERT_EQUAL(got.pace.local_steps, want->pace.local_steps);
		CU_ASSERT_EQUAL(got.pace.push_every, want->pace.push_every);
		CU_ASSERT_EQUAL(got.pace.fetch_every, want->pace.fetch_every);
		CU_ASSERT_EQUAL(got.pace.alpha, want->pace.alpha);
	}
}

static void what_options_fix_stays(void)
{
	struct mst_rule out = { .divide = true,
				.patience_ns = 7,
				.on_loss = MST_LOSS_FAIL,
				.min_workers = 3,
				.bound = 9,
				.preempt = true };

	CU_ASSERT_EQUAL(parse("bsp", &out), 0);
	CU_ASSERT(out.divide);
	CU_ASSERT_EQUAL(out.patience_ns, 7);
	CU_ASSERT_EQUAL(out.on_loss, MST_LOSS_FAIL);
	CU_ASSERT_EQUAL(out.min_workers, 3);
	CU_ASSERT_EQUAL(out.bound, 0);
	CU_ASSERT_FALSE(out.preempt);
}

static void what_cannot_be_read_is_refused_with_a_reason(void)
{
	static const char *const wrong[] = {
		"",           "bspp",      "bsp:1",    "bsp:",
		"backup",     "backup:",   "backup:0", "backup:x",
		"backup:4x",  "backup: 4", "ksync:-1", "ksync:0",
		"ssp:-1",     "async:1",   "ssp:1.5",  "kasync:99999999999",
		"backup:--1", ":4",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct mst_rule out = { .quorum = 42 };
		CU_ASSERT_NOT_EQUAL(parse(wrong[i], &out), 0);
		CU_ASSERT(strlen(why.text) > 10);
		CU_ASSERT_EQUAL(out.quorum, 42);
	}
}

static void every_policy_has_its_line_of_help(void)
{
	unsigned count = 0;

	while (mst_rule_help(count) != NULL)
		count++;
	CU_ASSERT(count >= 10);
	CU_ASSERT_PTR_NULL(mst_rule_help(count + 1));
}

/* ---- What is refused ---- */

static int check(const char *policy, struct mst_rule_context ctx)
{
	struct mst_rule r = rule(policy);

	why.text[0] = '\0';
	return mst_rule_check(&r, &ctx, &why);
}

static void going_on_early_needs_servers_that_own(void)
{
	struct mst_rule_context ctx = { .owner = MUSTER_WORKERS_OWN, .workers = 3, .slots = 2 };

	for (size_t i = 0; i < POLICY_ROWS; i++) {
		const struct policy_row *row = &policy_rows[i];
		ctx.owner = MUSTER_WORKERS_OWN;
		CU_ASSERT_EQUAL(check(row->text, ctx), policy_fits_workers(row) ? 0 : -EINVAL);
		ctx.owner = MUSTER_SERVERS_OWN;
		CU_ASSERT_EQUAL(check(row->text, ctx), 0);
	}
}

static void quorum_that_cannot_be_met_is_refused(void)
{
	struct mst_rule_context ctx = { .workers = 4, .slots = 2 };

	CU_ASSERT_EQUAL(check("backup:4", ctx), 0);
	CU_ASSERT_EQUAL(check("backup:5", ctx), -EINVAL);
	CU_ASSERT_EQUAL(check("kasync:5", ctx), -EINVAL);
	CU_ASSERT_EQUAL(check("backup:-3",
			      (struct mst_rule_context){ .workers = 4, .slots = 1, .force = true }),
			0);
	CU_ASSERT_EQUAL(check("backup:-4", ctx), -EINVAL);
	CU_ASSERT_EQUAL(check("kbatchasync:9", ctx), 0);
	CU_ASSERT_EQUAL(check("backup:-2147483647", ctx), -EINVAL);
}

static void elastic_averaging_of_all_that_diverges_is_refused(void)
{
	static const struct {
		const char *policy;
		uint32_t workers;
		int rc;
	} of[] = {
		{ "easgdsync:4,0.25", 7, 0 },
		{ "easgdsync:4,0.25", 8, -EINVAL },
		{ "easgdsync:4,0.4", 4, 0 },
		{ "easgdsync:4,0.4001", 4, -EINVAL },
		{ "easgdsync:4,1", 1, 0 },
		{ "easgdsync:4,1", 2, -EINVAL },
		{ "easgdsync:4,0.03", 64, 0 },
		{ "easgdsync:4,0.031", 64, -EINVAL },
		/* Exchanges one after the other: A <= 1 is enough, for any number of workers. */
		{ "easgd:4,1", 64, 0 },
		{ "local:4", 64, 0 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct mst_rule_context ctx = { .workers = of[i].workers, .slots = 1 };
		CU_ASSERT_EQUAL(check(of[i].policy, ctx), of[i].rc);
		ctx.force = true; /* it is nothing that could be meant */
		CU_ASSERT_EQUAL(check(of[i].policy, ctx), of[i].rc);
	}
	check("easgdsync:4,0.25", (struct mst_rule_context){ .workers = 8, .slots = 1 });
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "2 / (1 + 8) = 0.2222 at most"));
}

/* What the bound rests on: the parameters of the workers and the centre, where the loss is flat. */
static double elastic_difference(double alpha, uint32_t workers, int exchanges)
{
	double x[8], centre = 0;

	for (uint32_t i = 0; i < workers; i++)
		x[i] = 1 + i;
	for (; exchanges > 0; exchanges--) {
		double sum = 0;
		for (uint32_t i = 0; i < workers; i++) {
			double z = alpha * (x[i] - centre);
			x[i] -= z;
			sum += z;
		}
		centre += sum;
	}
	double mean = 0;
	for (uint32_t i = 0; i < workers; i++)
		mean += x[i] / workers;
	return fabs(mean - centre);
}

static void the_bound_of_elastic_averaging_is_where_it_begins_to_diverge(void)
{
	for (uint32_t workers = 1; workers <= 8; workers++) {
		double bound = 2.0 / (1 + workers), first = elastic_difference(bound, workers, 0);
		CU_ASSERT(elastic_difference(0.99 * bound, workers, 400) < first / 100);
		CU_ASSERT(elastic_difference(1.01 * bound, workers, 400) > first * 100);
	}
}

static void quorum_under_half_of_the_workers_must_be_meant(void)
{
	struct mst_rule_context ctx = { .workers = 5, .slots = 1 };

	CU_ASSERT_EQUAL(check("backup:3", ctx), 0);
	CU_ASSERT_EQUAL(check("backup:2", ctx), -EINVAL);
	CU_ASSERT_EQUAL(check("backup:-3", ctx), -EINVAL);
	ctx.force = true;
	CU_ASSERT_EQUAL(check("backup:2", ctx), 0);
}

static void set_must_have_room_for_the_quorum(void)
{
	struct mst_rule_context ctx = { .workers = 4, .slots = 2, .quorum_max = 6 };

	CU_ASSERT_EQUAL(check("kbatchasync:6", ctx), 0);
	CU_ASSERT_EQUAL(check("kbatchasync:7", ctx), -EINVAL);
}

static void one_slot_is_enough_where_workers_wait(void)
{
	struct mst_rule_context ctx = { .workers = 4, .slots = 1 };

	CU_ASSERT_EQUAL(check("bsp", ctx), 0);
	CU_ASSERT_EQUAL(check("async", ctx), 0);
	CU_ASSERT_EQUAL(check("softsync:2", ctx), -EINVAL);
	ctx.slots = 2;
	CU_ASSERT_EQUAL(check("softsync:2", ctx), 0);
}

static void a_worker_that_owns_can_take_all_versions_that_a_micro_batch_may_miss(void)
{
	struct mst_rule_context ctx = {
		.owner = MUSTER_WORKERS_OWN, .workers = 4, .slots = 2, .history = 16
	};

	CU_ASSERT_EQUAL(check("nonblocking:0,16", ctx), 0);
	CU_ASSERT_EQUAL(check("nonblocking:0,17", ctx), -EINVAL);
	CU_ASSERT(strstr(why.text, "the servers keep 16; say --history 17") != NULL);
	ctx.owner = MUSTER_SERVERS_OWN;
	CU_ASSERT_EQUAL(check("nonblocking:0,17", ctx), 0);
}

static void an_age_of_0_is_the_policy_without(void)
{
	struct mst_rule plain = rule("nonblocking:5"), aged = rule("nonblocking:5,0");
	struct mst_rule out;

	CU_ASSERT(!aged.by_micro && aged.collect && aged.release == MST_RELEASE_COMMIT);
	CU_ASSERT(aged.window == plain.window && aged.grace_ns == plain.grace_ns);
	CU_ASSERT_EQUAL(parse("nonblocking:0,0", &out), -EINVAL);
	CU_ASSERT_EQUAL(parse("nonblocking:0", &out), -EINVAL);
	CU_ASSERT_EQUAL(rule("nonblocking:0,1").grace_ns, 0);
}

static void fewest_workers_are_between_one_and_all(void)
{
	struct mst_rule_context ctx = { .workers = 4, .slots = 1 };
	struct mst_rule r = rule("bsp");

	r.min_workers = 0;
	CU_ASSERT_EQUAL(mst_rule_check(&r, &ctx, &why), -EINVAL);
	r.min_workers = 4;
	CU_ASSERT_EQUAL(mst_rule_check(&r, &ctx, &why), 0);
	r.min_workers = 5;
	CU_ASSERT_EQUAL(mst_rule_check(&r, &ctx, &why), -EINVAL);
}

/* ---- Numbers ---- */

static uint32_t needed(const char *policy, struct mst_rule_step step)
{
	struct mst_rule r = rule(policy);

	return mst_rule_needed(&r, &step);
}

static bool met(const char *policy, struct mst_rule_step step)
{
	struct mst_rule r = rule(policy);

	return mst_rule_met(&r, &step);
}

static void empty_set_never_commits(void)
{
	for (size_t i = 0; i < POLICY_ROWS; i++) {
		const char *policy = policy_rows[i].text;
		CU_ASSERT_FALSE(met(policy, (struct mst_rule_step){ .roster = 3, .missing = 3 }));
		CU_ASSERT_FALSE(met(policy, (struct mst_rule_step){ .roster = 3 }));
		CU_ASSERT_FALSE(met(policy, (struct mst_rule_step){ 0 }));
	}
}

static void everybody_means_nobody_is_missing(void)
{
	CU_ASSERT_FALSE(met("bsp", (struct mst_rule_step){ 3, 1, 2, 0, false }));
	CU_ASSERT(met("bsp", (struct mst_rule_step){ 3, 0, 3, 0, false }));
	CU_ASSERT(met("bsp", (struct mst_rule_step){ 3, 0, 1, 0, false }));
}

static void all_but_some_follow_the_roster(void)
{
	CU_ASSERT_EQUAL(needed("backup:-1", (struct mst_rule_step){ 5, 5, 0, 0, false }), 4);
	CU_ASSERT_EQUAL(needed("backup:-1", (struct mst_rule_step){ 3, 1, 2, 0, false }), 2);
	CU_ASSERT_EQUAL(needed("backup:-4", (struct mst_rule_step){ 2, 2, 0, 0, false }), 1);
	/* Two have passed: no more than one can come. */
	CU_ASSERT_EQUAL(needed("backup:-1", (struct mst_rule_step){ 3, 1, 0, 0, false }), 1);
}

static void distinct_ranks_are_no_more_than_can_come(void)
{
	CU_ASSERT_EQUAL(needed("backup:3", (struct mst_rule_step){ 4, 4, 0, 0, false }), 3);
	CU_ASSERT_EQUAL(needed("backup:3", (struct mst_rule_step){ 2, 1, 1, 0, false }), 2);
	/* Counted, and gone since: still one of them. */
	CU_ASSERT_EQUAL(needed("backup:3", (struct mst_rule_step){ 1, 1, 2, 0, false }), 3);
}

static void contributions_may_come_from_anybody(void)
{
	CU_ASSERT_EQUAL(needed("kbatchsync:4", (struct mst_rule_step){ 1, 0, 2, 0, false }), 4);
	CU_ASSERT_EQUAL(needed("kbatchsync:4", (struct mst_rule_step){ 1, 0, 2, 3, false }), 3);
	CU_ASSERT_EQUAL(needed("kbatchsync:4", (struct mst_rule_step){ 1, 0, 2, 5, false }), 4);
	CU_ASSERT_EQUAL(needed("ssp:1", (struct mst_rule_step){ 9, 9, 0, 0, false }), 1);
	CU_ASSERT_EQUAL(needed("nonblocking:5,3", (struct mst_rule_step){ 2, 1, 2, 0, false }),
			2048);
	CU_ASSERT_EQUAL(needed("nonblocking:5,3", (struct mst_rule_step){ 2, 1, 2, 9, false }), 9);
}

static void micro_batches_have_room_in_jobs_of_any_size(void)
{
	struct mst_rule r = rule("nonblocking:0,1"), plain = rule("nonblocking");

	CU_ASSERT_EQUAL(mst_rule_planned(&r, 8), 8 * 1024);
	CU_ASSERT_EQUAL(mst_rule_planned(&r, 100), 65536);
	CU_ASSERT_EQUAL(mst_rule_planned(&r, 4096), 4096 * 128);
	CU_ASSERT_EQUAL(mst_rule_planned(&plain, 8), 0);
}

static void anything_is_enough_when_nobody_is_waited_for(void)
{
	CU_ASSERT(met("bsp", (struct mst_rule_step){ 0, 0, 1, 0, false }));
	CU_ASSERT(met("backup:3", (struct mst_rule_step){ 0, 0, 1, 0, false }));
	CU_ASSERT(met("kbatchsync:3", (struct mst_rule_step){ 0, 0, 1, 0, false }));
}

static CU_TestInfo cases[] = {
	{ "policies are the rows of the table", policies_are_the_rows_of_the_table },
	{ "what options fix stays", what_options_fix_stays },
	{ "what cannot be read is refused with a sentence",
	  what_cannot_be_read_is_refused_with_a_reason },
	{ "every policy has its line of help", every_policy_has_its_line_of_help },
	{ "going on early needs servers that own", going_on_early_needs_servers_that_own },
	{ "a quorum that cannot be met is refused", quorum_that_cannot_be_met_is_refused },
	{ "elastic averaging of all that diverges is refused",
	  elastic_averaging_of_all_that_diverges_is_refused },
	{ "the bound of elastic averaging is where it begins to diverge",
	  the_bound_of_elastic_averaging_is_where_it_begins_to_diverge },
	{ "a quorum under half of the workers must be meant",
	  quorum_under_half_of_the_workers_must_be_meant },
	{ "a set must have room for the quorum", set_must_have_room_for_the_quorum },
	{ "one slot is enough where workers wait", one_slot_is_enough_where_workers_wait },
	{ "a worker that owns can take all versions that a micro-batch may miss",
	  a_worker_that_owns_can_take_all_versions_that_a_micro_batch_may_miss },
	{ "an age of 0 is the policy without", an_age_of_0_is_the_policy_without },
	{ "the fewest workers are between one and all", fewest_workers_are_between_one_and_all },
	{ "an empty set never commits", empty_set_never_commits },
	{ "everybody means nobody is missing", everybody_means_nobody_is_missing },
	{ "all but some follow the roster", all_but_some_follow_the_roster },
	{ "distinct ranks are no more than can come", distinct_ranks_are_no_more_than_can_come },
	{ "contributions may come from anybody", contributions_may_come_from_anybody },
	{ "micro-batches have room in jobs of any size",
	  micro_batches_have_room_in_jobs_of_any_size },
	{ "anything is enough when nobody is waited for",
	  anything_is_enough_when_nobody_is_waited_for },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("rule", cases);
}
