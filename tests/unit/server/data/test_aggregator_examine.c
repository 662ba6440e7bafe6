/* SPDX-License-Identifier: MIT */
/* Where contributions are measured (--norm-limit) or have checksums, they are read when they
 * arrive, and reported when they have been. */
#include <errno.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

static void measuring(struct mst_aggregator_cfg *cfg)
{
	cfg->measures = true;
	cfg->first = 10 * MST_SHARD_ELEMS_MIN; /* as parts of servers begin */
}

static void checking(struct mst_aggregator_cfg *cfg)
{
	cfg->checks = true;
}

static void begin(void (*adjust)(struct mst_aggregator_cfg *cfg), uint32_t shards)
{
	agg_adjust = adjust;
	agg_shards = shards;
	agg_begin(true);
}

static float *gradient(uint32_t rank)
{
	return (float *)(void *)((char *)agg_link[rank].inbound +
				 mst_lane_gradient(&agg_cfg.layout, 0, rank));
}

static void fill(uint32_t rank)
{
	for (uint32_t i = 0; i < AGG_ELEMS; i++)
		gradient(rank)[i] = (float)(i % 97) / 7;
}

static void push(uint32_t rank, uint32_t flags, uint32_t sum)
{
	struct mst_lane_header header = { .seq = 1,
					  .epoch = 1,
					  .weight = 1,
					  .flags = flags,
					  .sum = sum,
					  .size = MST_HEADER_SIZE };

	memcpy((char *)agg_link[rank].inbound + agg_cfg.layout.up_header[0], &header,
	       sizeof(header));
	agg_arrive(rank, mst_imm(MST_IMM_HEADER, 0, 1));
}

static void work(void)
{
	while (agg_work_all())
		;
}

/* To the bit, however many shards there are; and not before all of it has been read. */
static void the_squares_do_not_depend_on_the_shards(void)
{
	double squares[3];

	for (uint32_t shards = 1; shards <= 3; shards++) {
		begin(measuring, shards);
		fill(2);
		push(2, 0, 0);
		CU_ASSERT_EQUAL(agg_event_count, 0);
		work();
		CU_ASSERT_EQUAL(agg_event_count, 1);
		CU_ASSERT_TRUE(agg_said(0, MST_EV_FULL, 2));
		squares[shards - 1] = agg_event[0].full.squares;
		CU_ASSERT_FALSE(agg_event[0].full.damaged);
		agg_end();
	}
	double expect = 0;
	for (uint32_t i = 0; i < AGG_ELEMS; i++)
		expect += (double)((float)(i % 97) / 7) * (double)((float)(i % 97) / 7);
	CU_ASSERT_DOUBLE_EQUAL(squares[0], expect, expect * 1e-12);
	CU_ASSERT_EQUAL(squares[1], squares[0]);
	CU_ASSERT_EQUAL(squares[2], squares[0]);
}

static void squares_of_what_is_not_finite_are_infinite(void)
{
	begin(measuring, 2);
	fill(0);
	gradient(0)[AGG_ELEMS - 1] = __builtin_nanf("");
	push(0, 0, 0);
	work();
	CU_ASSERT_TRUE(agg_event_count == 1 && __builtin_isinf(agg_event[0].full.squares));
	agg_end();
}

/* Whole, with one bit changed in any shard, and without a checksum. */
static void a_changed_bit_is_damage(void)
{
	static const uint32_t at[] = { 0, 4095, 4096, 8191, AGG_ELEMS - 1 };

	for (uint32_t i = 0; i < 7; i++) {
		begin(checking, 3);
		fill(1);
		uint32_t sum = mst_crc32c_linear(0, gradient(1), AGG_ELEMS * sizeof(float));
		if (i < 5)
			((uint8_t *)&gradient(1)[at[i]])[i % 4] ^= (uint8_t)(1u << i);
		push(1, i == 5 ? 0 : MST_HEADER_CHECKED, sum);
		work();
		CU_ASSERT_EQUAL_FATAL(agg_event_count, 1);
		CU_ASSERT_EQUAL(agg_event[0].full.damaged, i < 6);
		agg_end();
	}
}

/* Headers without data have nothing to be read, and stay in their turn all the same. */
static void what_a_session_says_stays_in_order(void)
{
	begin(measuring, 1);
	fill(3);
	push(3, 0, 0);
	agg_ask(3);
	push(4, MST_HEADER_EMPTY, 0);
	CU_ASSERT_EQUAL(agg_event_count, 0);
	CU_ASSERT_EQUAL(mst_aggregator_reports(agg_aggregator).arrived, 3);
	CU_ASSERT_EQUAL(mst_aggregator_reports(agg_aggregator).reported, 0);
	work();
	CU_ASSERT_EQUAL(mst_aggregator_reports(agg_aggregator).reported, 3);
	CU_ASSERT_EQUAL(agg_event_count, 3);
	CU_ASSERT_TRUE(agg_said(0, MST_EV_FULL, 3));
	CU_ASSERT_TRUE(agg_said(1, MST_EV_ASK, 3));
	CU_ASSERT_TRUE(agg_said(2, MST_EV_FULL, 4));
	CU_ASSERT_EQUAL(agg_event[2].full.squares, 0);
	agg_end();
}

/* The loss of its link is told at once; that nothing more comes, after all that has come. */
static void what_came_before_a_link_was_lost_is_reported_before_its_end(void)
{
	struct mst_net_event lost = { .kind = MST_LOST, .link = &agg_link[3], .error = -EPIPE };

	begin(measuring, 1);
	fill(3);
	push(3, 0, 0);
	mst_aggregator_arrived(agg_aggregator, &lost);
	CU_ASSERT_EQUAL(agg_event_count, 1);
	CU_ASSERT_TRUE(agg_said(0, MST_EV_LOST, 3));
	work();
	CU_ASSERT_EQUAL(agg_event_count, 3);
	CU_ASSERT_TRUE(agg_said(1, MST_EV_FULL, 3));
	CU_ASSERT_TRUE(agg_said(2, MST_EV_UNLINKED, 3));
	agg_end();
}

/* Its memory is read until then, so the session is over only when that is done; nothing is said. */
static void who_is_evicted_meanwhile_is_let_go_of_after_the_read(void)
{
	begin(measuring, 1);
	fill(5);
	push(5, 0, 0);
	agg_evict(5);
	CU_ASSERT_EQUAL(agg_over_count, 0);
	work();
	CU_ASSERT_EQUAL(agg_over_count, 1);
	CU_ASSERT_EQUAL(agg_event_count, 0);
	CU_ASSERT_EQUAL(mst_aggregator_reports(agg_aggregator).reported,
			1); /* nobody waits for it */
	agg_end();
}

static CU_TestInfo cases[] = {
	{ "the squares do not depend on the shards", the_squares_do_not_depend_on_the_shards },
	{ "squares of what is not finite are infinite",
	  squares_of_what_is_not_finite_are_infinite },
	{ "a changed bit is damage, and so is no checksum", a_changed_bit_is_damage },
	{ "what a session says stays in order", what_a_session_says_stays_in_order },
	{ "what came before a link was lost is reported before its end",
	  what_came_before_a_link_was_lost_is_reported_before_its_end },
	{ "who is evicted meanwhile is let go of after the read",
	  who_is_evicted_meanwhile_is_let_go_of_after_the_read },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator examine", cases);
}
