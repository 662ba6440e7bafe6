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
	size_t at = mst_lane_gradient(&cfg.layout, slot, rank);

	return (float *)(void *)((char *)link[rank].inbound + at);
}

static void work_off(void)
{
	while (work_all())
		;
}

static void settle(void)
{
	decide(&(struct mst_decision){ .kind = MST_DO_SETTLE });
}

static int events_of(enum mst_ledger_event_kind kind)
{
	int count = 0;

	for (int i = 0; i < event_count; i++)
		count += event[i].kind == kind;
	return count;
}

static const struct mst_spoilt *spoilt(void)
{
	for (int i = 0; i < event_count; i++)
		if (event[i].kind == MST_EV_SPOILT)
			return &event[i].spoilt;
	return NULL;
}

/* Answers that have been announced. */
static int answers(void)
{
	int count = 0;

	for (int i = 0; i < note_count; i++)
		count += note[i].put.notify && mst_imm_kind(note[i].put.imm) == MST_IMM_ANSWER;
	return count;
}

static void count_all(void)
{
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		gradient(rank, 0)[7] = (float)rank;
		count_of(rank, 0);
	}
}

static bool blames(enum mst_spoil kind, uint32_t rank, uint64_t element)
{
	const struct mst_spoilt *s = spoilt();

	return s != NULL && s->version == 3 && s->kind == (uint32_t)kind && s->rank == rank &&
	       s->element == element + cfg.first;
}

static void nobody_is_answered_with_what_is_not_finite(void)
{
	static const float bad[] = { NAN, INFINITY, -INFINITY };

	for (uint32_t i = 0; i < 12; i++) {
		shards = 1 + i % 4;
		begin_with(i < 6, 700); /* over shared memory, and by puts */
		gradient(5, 0)[BAD] = bad[i % 3];
		gradient(11, 0)[BAD + 1] = NAN;
		count_all();
		ask(0);
		commit();
		release(0, 2);
		settle();
		work_off();
		mst_aggregator_deliver(aggregator);
		CU_ASSERT(blames(MST_SPOIL_GRADIENT, 5, BAD));
		CU_ASSERT_EQUAL(events_of(MST_EV_SPOILT), 1);
		CU_ASSERT_EQUAL(events_of(MST_EV_SETTLED), 0);
		CU_ASSERT_EQUAL(answers(), 0);
		end();
	}
}

static void without_a_guard_everything_passes(void)
{
	unguarded = true;
	begin(true);
	gradient(5, 0)[BAD] = NAN;
	count_all();
	ask(0);
	commit();
	release(0, 2);
	settle();
	work_off();
	CU_ASSERT_PTR_NULL(spoilt());
	CU_ASSERT_EQUAL(events_of(MST_EV_SETTLED), 1);
	CU_ASSERT_EQUAL(answers(), 1);
	end();
}

/* Not before: a shard that has not done its part may still find something. */
static void settled_is_said_when_every_shard_has_done_all_before(void)
{
	shards = 2;
	begin_with(true, ELEMS);
	count_all();
	commit();
	settle();
	mst_aggregator_work(aggregator);
	CU_ASSERT_EQUAL(events_of(MST_EV_SETTLED), 0);
	CU_ASSERT(mst_shard_step(mst_aggregator_shard(aggregator, 1)));
	mst_aggregator_work(aggregator);
	CU_ASSERT_EQUAL(events_of(MST_EV_SETTLED), 1);
	CU_ASSERT_PTR_NULL(spoilt());
	end();
}

static void a_sum_that_overflows_blames_no_gradient(void)
{
	begin(true);
	gradient(2, 0)[BAD] = 3e38f;
	gradient(9, 0)[BAD] = 3e38f;
	count_all();
	commit();
	work_off();
	CU_ASSERT(blames(MST_SPOIL_STEP, 0, BAD));
	end();
}

/* The group is summed early, and its slots are given back before the commit. */
static void a_group_remembers_who_spoilt_it(void)
{
	begin(true);
	gradient(6, 0)[BAD] = NAN;
	for (uint32_t rank = GROUP; rank < 2 * GROUP; rank++)
		count_of(rank, 0);
	work_off();
	CU_ASSERT_PTR_NULL(spoilt());
	memset(gradient(6, 0), 0, ELEMS * sizeof(float));
	for (uint32_t rank = 0; rank < RANKS; rank++)
		if (rank / GROUP != 1)
			count_of(rank, 0);
	commit();
	work_off();
	CU_ASSERT(blames(MST_SPOIL_GRADIENT, 6, BAD));
	end();
}

/* As the group, for a rank that contributes again: of its gradients only the sum is left. */
static void a_ranks_own_sum_blames_the_rank(void)
{
	begin(true);
	gradient(0, 0)[BAD] = NAN;
	count(0);
	count(1);
	work_off();
	memset(gradient(0, 0), 0, ELEMS * sizeof(float));
	count_of(1, 0);
	commit();
	work_off();
	CU_ASSERT(blames(MST_SPOIL_SUM, 0, BAD));
	end();
}

static void of_two_groups_the_first_element_is_named(void)
{
	begin(true);
	gradient(6, 0)[BAD] = NAN;
	for (uint32_t rank = GROUP; rank < 2 * GROUP; rank++)
		count_of(rank, 0);
	work_off();
	gradient(9, 0)[BAD + 5] = NAN;
	for (uint32_t rank = 2 * GROUP; rank < 3 * GROUP; rank++)
		count_of(rank, 0);
	work_off();
	commit();
	work_off();
	CU_ASSERT(blames(MST_SPOIL_GRADIENT, 6, BAD));
	end();
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
