/* SPDX-License-Identifier: MIT */
/* What an aggregator does with a version that would not be finite: nobody is answered with it, the
 * ledger is told once, and by whom it came; and "settled" is never said of it. */
#include <math.h>
#include <string.h>

#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

#define BAD 9000u

static float *gradient(uint32_t rank, uint32_t slot)
{
	size_t at = mst_lane_gradient(&agg_cfg.layout, slot, rank);

	return (float *)(void *)((char *)agg_link[rank].inbound + at);
}

static void work_off(void)
{
	while (agg_work_all())
		;
}

static void settle(void)
{
	agg_decide(&(struct mst_decision){ .kind = MST_DO_SETTLE });
}

static int events_of(enum mst_ledger_event_kind kind)
{
	int count = 0;

	for (int i = 0; i < agg_event_count; i++)
		count += agg_event[i].kind == kind;
	return count;
}

static const struct mst_spoilt *spoilt(void)
{
	for (int i = 0; i < agg_event_count; i++)
		if (agg_event[i].kind == MST_EV_SPOILT)
			return &agg_event[i].spoilt;
	return NULL;
}

/* Answers that have been announced. */
static int answers(void)
{
	int count = 0;

	for (int i = 0; i < agg_note_count; i++)
		count += agg_note[i].put.notify &&
			 mst_imm_kind(agg_note[i].put.imm) == MST_IMM_ANSWER;
	return count;
}

static void count_all(void)
{
	for (uint32_t rank = 0; rank < AGG_RANKS; rank++) {
		gradient(rank, 0)[7] = (float)rank;
		agg_count_of(rank, 0);
	}
}

static bool blames(enum mst_spoil kind, uint32_t rank, uint64_t element)
{
	const struct mst_spoilt *s = spoilt();

	return s != NULL && s->version == 3 && s->kind == (uint32_t)kind && s->rank == rank &&
	       s->element == element + agg_cfg.first;
}

static void nobody_is_answered_with_what_is_not_finite(void)
{
	static const float bad[] = { NAN, INFINITY, -INFINITY };

	for (uint32_t i = 0; i < 12; i++) {
		agg_shards = 1 + i % 4;
		agg_begin_with(i < 6, 700); /* over shared memory, and by puts */
		gradient(5, 0)[BAD] = bad[i % 3];
		gradient(11, 0)[BAD + 1] = NAN;
		count_all();
		agg_ask(0);
		agg_commit();
		agg_release(0, 2);
		settle();
		work_off();
		mst_aggregator_deliver(agg_aggregator);
		CU_ASSERT(blames(MST_SPOIL_GRADIENT, 5, BAD));
		CU_ASSERT_EQUAL(events_of(MST_EV_SPOILT), 1);
		CU_ASSERT_EQUAL(events_of(MST_EV_SETTLED), 0);
		CU_ASSERT_EQUAL(answers(), 0);
		agg_end();
	}
}

static void without_a_guard_everything_passes(void)
{
	agg_unguarded = true;
	agg_begin(true);
	gradient(5, 0)[BAD] = NAN;
	count_all();
	agg_ask(0);
	agg_commit();
	agg_release(0, 2);
	settle();
	work_off();
	CU_ASSERT_PTR_NULL(spoilt());
	CU_ASSERT_EQUAL(events_of(MST_EV_SETTLED), 1);
	CU_ASSERT_EQUAL(answers(), 1);
	agg_end();
}

/* Not before: a shard that has not done its part may still find something. */
static void settled_is_said_when_every_shard_has_done_all_before(void)
{
	agg_shards = 2;
	agg_begin_with(true, AGG_ELEMS);
	count_all();
	agg_commit();
	settle();
	mst_aggregator_work(agg_aggregator);
	CU_ASSERT_EQUAL(events_of(MST_EV_SETTLED), 0);
	CU_ASSERT(mst_shard_step(mst_aggregator_shard(agg_aggregator, 1)));
	mst_aggregator_work(agg_aggregator);
	CU_ASSERT_EQUAL(events_of(MST_EV_SETTLED), 1);
	CU_ASSERT_PTR_NULL(spoilt());
	agg_end();
}

static void a_sum_that_overflows_blames_no_gradient(void)
{
	agg_begin(true);
	gradient(2, 0)[BAD] = 3e38f;
	gradient(9, 0)[BAD] = 3e38f;
	count_all();
	agg_commit();
	work_off();
	CU_ASSERT(blames(MST_SPOIL_STEP, 0, BAD));
	agg_end();
}

/* The group is summed early, and its slots are given back before the commit. */
static void a_group_remembers_who_spoilt_it(void)
{
	agg_begin(true);
	gradient(6, 0)[BAD] = NAN;
	for (uint32_t rank = AGG_GROUP; rank < 2 * AGG_GROUP; rank++)
		agg_count_of(rank, 0);
	work_off();
	CU_ASSERT_PTR_NULL(spoilt());
	memset(gradient(6, 0), 0, AGG_ELEMS * sizeof(float));
	for (uint32_t rank = 0; rank < AGG_RANKS; rank++)
		if (rank / AGG_GROUP != 1)
			agg_count_of(rank, 0);
	agg_commit();
	work_off();
	CU_ASSERT(blames(MST_SPOIL_GRADIENT, 6, BAD));
	agg_end();
}

/* As the group, for a rank that contributes again: of its gradients only the sum is left. */
static void a_ranks_own_sum_blames_the_rank(void)
{
	agg_begin(true);
	gradient(0, 0)[BAD] = NAN;
	agg_count(0);
	agg_count(1);
	work_off();
	memset(gradient(0, 0), 0, AGG_ELEMS * sizeof(float));
	agg_count_of(1, 0);
	agg_commit();
	work_off();
	CU_ASSERT(blames(MST_SPOIL_SUM, 0, BAD));
	agg_end();
}

static void of_two_groups_the_first_element_is_named(void)
{
	agg_begin(true);
	gradient(6, 0)[BAD] = NAN;
	for (uint32_t rank = AGG_GROUP; rank < 2 * AGG_GROUP; rank++)
		agg_count_of(rank, 0);
	work_off();
	gradient(9, 0)[BAD + 5] = NAN;
	for (uint32_t rank = 2 * AGG_GROUP; rank < 3 * AGG_GROUP; rank++)
		agg_count_of(rank, 0);
	work_off();
	agg_commit();
	work_off();
	CU_ASSERT(blames(MST_SPOIL_GRADIENT, 6, BAD));
	agg_end();
}

static CU_TestInfo cases[] = {
	{ "nobody is answered with what is not finite",
	  nobody_is_answered_with_what_is_not_finite },
	{ "without a guard everything passes", without_a_guard_everything_passes },
	{ "settled is said when every shard has done all before",
	  settled_is_said_when_every_shard_has_done_all_before },
	{ "a sum that overflows blames no gradient", a_sum_that_overflows_blames_no_gradient },
	{ "a group remembers who spoilt it", a_group_remembers_who_spoilt_it },
	{ "a rank's own sum blames the rank", a_ranks_own_sum_blames_the_rank },
	{ "of two groups the first element is named", of_two_groups_the_first_element_is_named },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator guard", cases);
}
