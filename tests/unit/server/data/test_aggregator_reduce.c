/* SPDX-License-Identifier: MIT */
/* The reduce phase of an aggregator: it reports the squares of its mean, gives the slots back, and
 * makes the version when it is told by what the mean is to be multiplied. */
#include <math.h>
#include <string.h>

#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

static float *gradient(uint32_t rank, uint32_t slot)
{
	size_t at = mst_lane_gradient(&agg_cfg.layout, slot, rank);

	return (float *)(void *)((char *)agg_link[rank].inbound + at);
}

/* That buffer is where versions are made, from that of version 0. */
static const float *version_in(uint32_t buffer)
{
	return (const void *)((const char *)agg_cfg.published +
			      buffer * mst_version_stride(AGG_ELEMS, MUSTER_F32));
}

static void work_off(void)
{
	while (agg_work_all())
		;
}

static const struct mst_ledger_event *reduced(void)
{
	for (int i = 0; i < agg_event_count; i++)
		if (agg_event[i].kind == MST_EV_REDUCED)
			return &agg_event[i];
	return NULL;
}

static void begin_clipped(uint32_t of)
{
	struct mst_decision start = { .kind = MST_DO_START, .commit.version = 2 };

	agg_clips = 1;
	agg_shards = of;
	agg_begin_with(true, 700);
	agg_decide(&start);
	for (uint32_t i = 0; i < AGG_ELEMS; i++)
		gradient(0, 0)[i] = (float)(i % 1000) / 8;
	agg_count(0);
	agg_ask(1);
	agg_commit();
	agg_release(1, 2);
	work_off();
}

static void apply(float factor)
{
	struct mst_decision d = { .kind = MST_DO_APPLY };

	d.apply.version = 3;
	d.apply.factor = factor;
	agg_decide(&d);
	work_off();
	mst_aggregator_deliver(agg_aggregator);
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

static void the_squares_are_the_same_whatever_the_shards(void)
{
	struct mst_exact_sum first;

	for (uint32_t of = 1; of <= 3; of++) {
		begin_clipped(of);
		CU_ASSERT_PTR_NOT_NULL_FATAL(reduced());
		CU_ASSERT_EQUAL(reduced()->reduced.version, 3);
		CU_ASSERT(mst_exact_value(&reduced()->reduced.squares) > 0);
		if (of == 1)
			first = reduced()->reduced.squares;
		CU_ASSERT_EQUAL(memcmp(&first, &reduced()->reduced.squares, sizeof(first)), 0);
		apply(1);
		agg_end();
	}
}

static void a_version_is_made_when_its_factor_is_known(void)
{
	begin_clipped(2);
	CU_ASSERT_EQUAL(answers(), 0);
	CU_ASSERT_EQUAL(agg_session[0].busy, 0); /* its slot has been read */
	CU_ASSERT_EQUAL(version_in(2)[999], 0);
	apply(0.5f);
	CU_ASSERT_EQUAL(answers(), 1);
	for (uint32_t i = 0; i < AGG_ELEMS; i++)
		CU_ASSERT_FATAL(version_in(2)[i] == -(float)(i % 1000) / 16);
	agg_end();
}

/* Else: its sessions wait for ever for an answer, and none of them is ever freed. */
static void a_job_that_fails_before_answers_nobody(void)
{
	begin_clipped(2);
	agg_fail();
	work_off();
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL(answers(), 0);
	CU_ASSERT_EQUAL(agg_session[1].busy, 0);
	agg_end();
}

static CU_TestInfo cases[] = {
	{ "the squares are the same whatever the shards",
	  the_squares_are_the_same_whatever_the_shards },
	{ "a version is made when its factor is known",
	  a_version_is_made_when_its_factor_is_known },
	{ "a job that fails before answers nobody", a_job_that_fails_before_answers_nobody },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator_reduce", cases);
}
