/* SPDX-License-Identifier: MIT */
/* The ledger and contributions: identity, order, the rule they are judged by (PROTOCOL 1, 3). */
#include <math.h>

#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

static struct mst_ledger_cfg sharded(const char *policy, uint32_t workers)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.shards = 2;
	return cfg;
}

/* ---- 1. Identity and order ---- */

/* Else a vector is counted that shard B does not hold. */
static void report_of_a_dead_incarnation_counts_for_nothing(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header old = job_header(&j, 1);
	struct mst_identity dead = j.worker[1].who;
	job_full(&j, 1, 0, &old);
	job_tell(&j, 1, MST_EV_LOST);
	job_enter(&j, 1);
	job_push(&j, 0); /* gives the joiner its first version */
	CU_ASSERT_EQUAL(j.worker[1].have, 1);
	job_forget(&j);

	struct mst_lane_header fresh = job_header(&j, 1);
	job_full(&j, 1, 0, &fresh);
	struct mst_ledger_event late = { .kind = MST_EV_FULL, .who = dead };
	late.full.shard = 1;
	late.full.header = old;
	job_event(&j, &late);
	CU_ASSERT_EQUAL(j.seen_count, 0);
	job_full(&j, 1, 1, &fresh);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	job_close(&j);
}

/* Else: counted, dies, rejoins, counted again. */
static void rank_is_counted_once_in_a_step_across_incarnations(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kasync:3", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_COUNTED);
	job_tell(&j, 1, MST_EV_LOST);
	job_enter(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 0);
	struct mst_lane_header h = job_header(&j, 1);
	h.tag = 0;
	h.flags = MST_HEADER_FULL;
	job_full(&j, 1, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_LATE);
	job_close(&j);
}

static void contributions_are_judged_in_order_of_seq(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 1);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header first = job_header(&j, 0), second = first;
	first.flags = second.flags = MST_HEADER_FULL;
	second.seq = 2;
	second.unheard = 1;
	second.slot = 1;
	job_full(&j, 0, 0, &first);
	job_full(&j, 0, 0, &second);
	job_full(&j, 0, 1, &second);
	CU_ASSERT_EQUAL(j.seen_count, 0);
	job_full(&j, 0, 1, &first);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_COUNT, 0), 2);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_COUNT, 0)->count.seq, 2);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_close(&j);
}

static void expect_breach(const struct mst_lane_header *told, const struct mst_lane_header *other)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_full(&j, 0, 0, told);
	job_full(&j, 0, 1, other);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_EVICT, 0)->evict, MST_EVICT_INVALID);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_COUNT, 0), 0);
	job_close(&j);
}

static void shards_that_differ_end_the_session(void)
{
	struct mst_lane_header told = { .seq = 1, .epoch = 1, .weight = 1 }, other = told;

	other.weight = 2;
	expect_breach(&told, &other);
	other = told;
	other.tag = 1;
	expect_breach(&told, &other);
	other = told;
	other.flags = MST_HEADER_SUM;
	expect_breach(&told, &other);
	told.flags = MST_HEADER_CLIPPED;
	told.clip = 0.5f;
	other = told;
	other.clip = 0.25f;
	expect_breach(&told, &other);
}

/* What an ask comes after follows from the order in which the leader reads. */
static void header_out_of_turn_at_the_leader_ends_the_session(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 1);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 0);
	h.seq = 2;
	h.unheard = 1;
	job_full(&j, 0, 0, &h);
	CU_ASSERT_TRUE(job_evicted(&j, 0, MST_EVICT_INVALID));
	job_close(&j);
}

/* What a worker acknowledges has been judged, and of more than so many tickets it cannot lack the
 * verdict. */
static void acknowledgement_that_cannot_be_ends_the_session(void)
{
	static const struct {
		uint64_t judged;
		uint32_t unheard;
		bool fits;
	} rows[] = {
		{ 0, 0, true },
		{ 0, 1, false },
		{ 2, 0, true },
		{ 2, 2, true },
		{ 2, 3, false },
		{ 300, MUSTER_TICKETS_MAX - 1, true },
		{ 300, MUSTER_TICKETS_MAX, false },
		{ 300, UINT16_MAX, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mst_ledger_cfg cfg = job_cfg("async", 1);
		struct ledger_job j;
		job_born(&j, &cfg);
		for (uint64_t k = 0; k < rows[i].judged; k++) {
			job_push(&j, 0);
			job_answered(&j, 0);
			job_forget(&j);
		}
		struct mst_lane_header h = job_header(&j, 0);
		h.unheard = (uint16_t)rows[i].unheard;
		job_full(&j, 0, 0, &h);
		CU_ASSERT_EQUAL(job_evicted(&j, 0, MST_EVICT_INVALID), !rows[i].fits);
		job_close(&j);
	}
}

/* Two headers are out, and the second claims that the first has a verdict. */
static void verdict_that_was_never_given_cannot_be_acknowledged(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 1);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header first = job_header(&j, 0), second = first;
	first.flags = second.flags = MST_HEADER_FULL;
	second.seq = 2;
	second.slot = 1;
	job_full(&j, 0, 0, &first);
	job_full(&j, 0, 0, &second);
	CU_ASSERT_TRUE(job_evicted(&j, 0, MST_EVICT_INVALID));
	job_close(&j);
}

static void weight_that_is_no_number_is_alike_on_all_shards(void)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 0);
	h.weight = (double)NAN;
	job_full_all(&j, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_REFUSED);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_close(&j);
}

static void header_before_the_start_is_refused(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_enter(&j, 0);
	struct mst_lane_header h = { .seq = 1, .epoch = 1, .weight = 1, .tag = MST_VERSION_NONE };
	job_full(&j, 0, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_REFUSED);
	h = (struct mst_lane_header){ .seq = 2, .epoch = 2, .weight = 1 };
	job_full(&j, 0, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_REFUSED);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_COUNT, 0), 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, 0), 0);
	job_close(&j);
}

static void header_of_one_that_does_not_take_part_is_refused(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_tell(&j, 1, MST_EV_LOST);
	job_join(&j, 1);
	job_link(&j, 1, 0);
	struct mst_lane_header h = { .seq = 1, .epoch = 1, .weight = 1 };
	job_full(&j, 1, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_REFUSED);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_close(&j);
}

static void weights_are_samples_that_can_be_counted(void)
{
	static const struct {
		double weight;
		enum muster_verdict verdict;
	} rows[] = {
		{ 0, MUSTER_REFUSED },
		{ -1, MUSTER_REFUSED },
		{ (double)INFINITY, MUSTER_REFUSED },
		{ 0x1.0000000000001p53, MUSTER_REFUSED },
		{ 0x1p53, MUSTER_COUNTED },
		{ 0x1p-53, MUSTER_COUNTED },
		{ 0x1.fffffffffffffp-54, MUSTER_REFUSED },
		{ 1e-39, MUSTER_REFUSED },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
		struct ledger_job j;
		job_born(&j, &cfg);
		struct mst_lane_header h = job_header(&j, 0);
		h.weight = rows[i].weight;
		job_full(&j, 0, 0, &h);
		CU_ASSERT_EQUAL(job_verdict(&j, 0), rows[i].verdict);
		job_close(&j);
	}
}

/* ---- 3. The rule ---- */

static void smaller_quorum_takes_effect_at_once(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 4);
	struct mst_rule rule = job_rule("backup:2");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_policy(&j, &rule);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT(job_count(&j, MST_DO_POLICY, -1) >= 1);
	job_close(&j);
}

static void larger_quorum_waits_for_the_next_version(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:2", 3);
	struct mst_rule rule = job_rule("bsp");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_policy(&j, &rule);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 0);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 1);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* Five from anybody is not less than one from each of three: the step would wait for one rank. */
static void everybody_is_not_a_smaller_quorum(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kbatchasync:5", 3);
	struct mst_rule rule = job_rule("bsp");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_policy(&j, &rule);
	for (int i = 0; i < 5; i++)
		job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* A step that counts contributions from any ranks holds no more of them than the workers that take
 * part have slots, unless the job has begun with a larger number. */
static void no_more_is_needed_than_the_step_has_room_for(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 4);
	struct mst_rule rule = job_rule("kbatchasync:8");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_policy(&j, &rule);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	for (int i = 0; i < 5; i++)
		job_push(&j, 0);
	job_tell(&j, 3, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	job_close(&j);
}

static void what_the_job_began_with_has_room(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kbatchasync:8", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	for (uint32_t rank = 1; rank < 4; rank++)
		job_tell(&j, rank, MST_EV_LOST);
	for (int i = 0; i < 7; i++)
		job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* Two workers are left. Under backup:4 each counts once in a step, so that two gradients would do.
 * But kbatchasync:3 is in force, where a worker may count again: four is more than three. */
static void quorums_are_compared_under_the_release_in_force(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kbatchasync:3", 4);
	struct mst_rule rule = job_rule("backup:4");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_tell(&j, 2, MST_EV_LOST);
	job_tell(&j, 3, MST_EV_LOST);
	job_policy(&j, &rule);
	for (int i = 0; i < 3; i++)
		job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* backup:-2 of four workers needs fewer gradients than backup:-1. But three workers have passed:
 * under both policies the step needs the one gradient that can still come. */
static void all_but_some_are_no_more_than_can_still_come(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:-1", 4);
	struct mst_rule rule = job_rule("backup:-2");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_pass(&j, 1);
	job_pass(&j, 2);
	job_pass(&j, 3);
	job_policy(&j, &rule);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_POLICY, -1), 1);
	job_close(&j);
}

static void contribution_is_judged_by_the_rule_of_its_last_report(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 2);
	struct mst_rule rule = job_rule("bsp");
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 0);
	job_full(&j, 0, 0, &h);
	job_policy(&j, &rule);
	job_push(&j, 1); /* version 1, and bsp */
	job_full(&j, 0, 1, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_LATE);
	job_close(&j);
}

static void outside_the_window_is_stale_where_the_rule_rejects(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bounded:1", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 1);
	struct mst_lane_header h = job_header(&j, 0);
	job_full(&j, 0, 0, &h); /* one version old */
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_COUNTED);
	job_push(&j, 1);
	h = job_header(&j, 0);
	h.tag = 0;
	job_full(&j, 0, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_STALE);
	job_close(&j);
}

static void busy_workers_are_advised_by_the_rule_of_the_new_step(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kasync:1", 2);
	struct mst_rule rule = job_rule("ksync:1");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_policy(&j, &rule);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, 1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, 0), 0);
	rule = job_rule("kasync:1");
	job_policy(&j, &rule);
	job_forget(&j);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 0);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "a report of a dead incarnation counts for nothing",
	  report_of_a_dead_incarnation_counts_for_nothing },
	{ "a rank is counted once in a step, across incarnations",
	  rank_is_counted_once_in_a_step_across_incarnations },
	{ "contributions are judged in order of seq", contributions_are_judged_in_order_of_seq },
	{ "shards that differ end the session", shards_that_differ_end_the_session },
	{ "a header out of turn at the leader ends the session",
	  header_out_of_turn_at_the_leader_ends_the_session },
	{ "an acknowledgement that cannot be ends the session",
	  acknowledgement_that_cannot_be_ends_the_session },
	{ "a verdict that was never given cannot be acknowledged",
	  verdict_that_was_never_given_cannot_be_acknowledged },
	{ "a weight that is no number is alike on all shards",
	  weight_that_is_no_number_is_alike_on_all_shards },
	{ "a header before the start is refused", header_before_the_start_is_refused },
	{ "a header of one that does not take part is refused",
	  header_of_one_that_does_not_take_part_is_refused },
	{ "weights are samples that can be counted", weights_are_samples_that_can_be_counted },
	{ "a smaller quorum takes effect at once", smaller_quorum_takes_effect_at_once },
	{ "a larger quorum waits for the next version", larger_quorum_waits_for_the_next_version },
	{ "everybody is not a smaller quorum", everybody_is_not_a_smaller_quorum },
	{ "quorums are compared under the release in force",
	  quorums_are_compared_under_the_release_in_force },
	{ "no more is needed than the step has room for",
	  no_more_is_needed_than_the_step_has_room_for },
	{ "what the job began with has room", what_the_job_began_with_has_room },
	{ "all but some are no more than can still come",
	  all_but_some_are_no_more_than_can_still_come },
	{ "a contribution is judged by the rule of its last report",
	  contribution_is_judged_by_the_rule_of_its_last_report },
	{ "outside the window is stale where the rule rejects",
	  outside_the_window_is_stale_where_the_rule_rejects },
	{ "busy workers are advised by the rule of the new step",
	  busy_workers_are_advised_by_the_rule_of_the_new_step },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger", cases);
}
