/* SPDX-License-Identifier: MIT */
/* What is counted and waits for the next commit: groups of the tree that may be summed before it,
 * what a commit looks at, and what becomes of a step that no commit takes. */
#include <string.h>

#include "common/base/clock.h"
#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

/* ---- groups ---- */

static void count_group(uint32_t group)
{
	for (uint32_t rank = group * AGG_GROUP; rank < (group + 1) * AGG_GROUP; rank++) {
		agg_fill(rank, 0);
		agg_count_of(rank, 0);
	}
}

static void work_off(void)
{
	while (agg_work_all())
		;
}

static void a_complete_group_is_summed_while_the_step_is_open(void)
{
	agg_begin(true);
	count_group(0);
	agg_regrant(0);
	CU_ASSERT(mst_aggregator_work(agg_aggregator)); /* nothing is decided, and there is work */
	work_off();
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 1); /* the slot has been read, before any commit */
	CU_ASSERT_EQUAL(agg_note[0].put.imm, mst_imm(MST_IMM_GRANT, 0, 2));
	CU_ASSERT(!mst_aggregator_work(agg_aggregator)); /* once */
	agg_commit();
	work_off();
	agg_end();
}

static void an_incomplete_group_waits_for_the_commit(void)
{
	agg_begin(true);
	for (uint32_t rank = 1; rank < AGG_RANKS; rank++)
		if (rank % AGG_GROUP != 0)
			agg_count_of(rank, 0);
	CU_ASSERT(!mst_aggregator_work(agg_aggregator));
	agg_fail();
	agg_end();
}

/* Its own commit takes it in the same turn: then one pass is better than two. */
static void a_group_is_not_summed_apart_when_its_commit_is_there(void)
{
	agg_begin_with(true, AGG_ELEMS);
	count_group(0);
	agg_commit();
	CU_ASSERT(mst_aggregator_work(agg_aggregator));
	CU_ASSERT(!mst_aggregator_work(agg_aggregator));
	agg_end();
}

/* Groups early or not, in any order: the same bits. There are fewer buffers than groups. */
static void early_groups_change_no_bit(void)
{
	static const uint32_t order[][3] = { { 0, 1, 2 }, { 2, 0, 1 }, { 1, 2, 0 }, { 2, 1, 0 } };
	static float expected[AGG_ELEMS];

	for (size_t i = 0; i < 2 * sizeof(order) / sizeof(order[0]); i++) {
		bool early = i % 2 == 1;
		agg_shards = (uint32_t)(1 + i % 3);
		agg_begin_with(true, 500);
		for (int k = 0; k < 3; k++) {
			count_group(order[i / 2][k]);
			if (early)
				work_off();
		}
		agg_commit();
		work_off();
		if (i == 0)
			memcpy(expected, agg_result(), sizeof(expected));
		CU_ASSERT_EQUAL(memcmp(expected, agg_result(), sizeof(expected)), 0);
		agg_end();
	}
}

/* Nobody will commit them, and their slots are let go of. */
static void groups_of_a_job_that_failed_are_not_summed(void)
{
	agg_begin_with(true, 500);
	count_group(0);
	CU_ASSERT(mst_aggregator_work(agg_aggregator)); /* at work, and the next is ready */
	count_group(1);
	agg_fail();
	work_off();
	CU_ASSERT(!mst_aggregator_work(agg_aggregator));
	agg_end();

	agg_begin(true);
	count_group(2);
	agg_fail();
	CU_ASSERT(!mst_aggregator_work(agg_aggregator));
	agg_end();
}

/* The worker is gone, its contribution is in the set: its memory stays until it is summed. */
static void a_session_that_ends_keeps_its_slot_until_its_group_is_summed(void)
{
	agg_begin_with(true, AGG_ELEMS);
	count_group(0);
	agg_evict(0);
	CU_ASSERT_EQUAL(agg_over_count, 0);
	work_off();
	CU_ASSERT_EQUAL(agg_over_count, 1);
	agg_commit();
	work_off();
	agg_end();
}

/* ---- the end of the step ---- */

/* A job that fails leaves a step open, whose sum nobody will want. */
static void what_is_counted_when_the_job_fails_holds_no_session(void)
{
	struct mst_lane_header header = {
		.seq = 1, .epoch = 1, .weight = 1, .size = MST_HEADER_SIZE
	};

	agg_begin(true);
	memcpy((char *)agg_link[0].inbound + agg_cfg.layout.up_header[0], &header, sizeof(header));
	agg_arrive(0, mst_imm(MST_IMM_HEADER, 0, 1));
	CU_ASSERT_TRUE(agg_said(0, MST_EV_FULL, 0));
	agg_decide(&(struct mst_decision){
		.kind = MST_DO_COUNT, .who = { 0, 1 }, .count = { .slot = 0, .coefficient = 1 } });
	agg_decide(&(struct mst_decision){ .kind = MST_DO_FINISH,
					   .finish = { .why = MST_FINISH_TOO_FEW } });
	agg_evict(0);
	CU_ASSERT_EQUAL(agg_over_count, 1);
	agg_end();
}

/* Processor time of commits of one contribution each, the least of some rounds. */
static uint64_t commits_ns(uint32_t workers)
{
	uint64_t least_ns = UINT64_MAX;

	for (int round = 0; round < 5; round++) {
		uint64_t took_ns = 0;
		agg_workers = workers;
		agg_begin(true);
		for (uint32_t i = 0; i < 2 * AGG_RANKS; i++) {
			agg_count_of(i / 2, i % 2);
			uint64_t begin_ns = mst_thread_ns();
			agg_commit_to(i + 1, i % 2 + 1);
			took_ns += mst_thread_ns() - begin_ns;
		}
		agg_end();
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	return least_ns;
}

/* A look at every rank would make the second hundreds of times as long. */
static void a_commit_looks_only_at_ranks_that_are_in_it(void)
{
	uint64_t few_ns = commits_ns(AGG_RANKS), many_ns = commits_ns(200000);

	CU_ASSERT(many_ns < 50 * few_ns);
}

static CU_TestInfo cases[] = {
	{ "a complete group is summed while the step is open",
	  a_complete_group_is_summed_while_the_step_is_open },
	{ "an incomplete group waits for the commit", an_incomplete_group_waits_for_the_commit },
	{ "a group is not summed apart when its commit is there",
	  a_group_is_not_summed_apart_when_its_commit_is_there },
	{ "early groups change no bit", early_groups_change_no_bit },
	{ "groups of a job that failed are not summed",
	  groups_of_a_job_that_failed_are_not_summed },
	{ "a session that ends keeps its slot until its group is summed",
	  a_session_that_ends_keeps_its_slot_until_its_group_is_summed },
	{ "what is counted when the job fails holds no session",
	  what_is_counted_when_the_job_fails_holds_no_session },
	{ "a commit looks only at ranks that are in it",
	  a_commit_looks_only_at_ranks_that_are_in_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("open step", cases);
}
