/* SPDX-License-Identifier: MIT */
/* A version is marked before it is written over another: whoever finds the mark of a version finds
 * nothing of a later one. */
#include <string.h>

#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

#define BUFFER 2u

static void make_marked(struct mst_aggregator_cfg *cfg)
{
	cfg->marks = true;
}

static void begin(bool maps, uint32_t shards)
{
	agg_adjust = make_marked;
	agg_shards = shards;
	agg_begin_with(maps, 300);
}

static void step(uint32_t shard)
{
	(void)mst_shard_step(mst_aggregator_shard(agg_aggregator, shard));
}

static void work_off(void)
{
	while (agg_work_all())
		;
}

static uint64_t mark_of_buffer(uint32_t buffer)
{
	uint64_t word;

	memcpy(&word,
	       (const char *)agg_cfg.published +
		       agg_cfg.buffers * mst_version_stride(AGG_ELEMS, MUSTER_F32) +
		       buffer * sizeof(word),
	       sizeof(word));
	return word;
}

static uint64_t mark_of_lane(uint32_t rank)
{
	uint64_t word;

	memcpy(&word, (const char *)agg_link[rank].outbound + agg_cfg.layout.down_mark,
	       sizeof(word));
	return word;
}

/* Is any byte of the result that rank 0 maps written? */
static bool has_result(void)
{
	const char *at = (const char *)agg_link[0].remote_mapping + agg_cfg.layout.down_result;

	for (size_t i = 0; i < AGG_ELEMS * sizeof(float); i++)
		if (at[i] != 0)
			return true;
	return false;
}

static bool is_empty(void) /* the buffer */
{
	const float *at = agg_result();

	for (size_t i = 0; i < AGG_ELEMS; i++)
		if (at[i] != 0)
			return false;
	return true;
}

static bool is_mark(int i)
{
	return agg_note[i].put.offset == agg_cfg.layout.down_mark;
}

static int count_marks(void)
{
	int marks = 0;

	for (int i = 0; i < agg_note_count; i++)
		marks += is_mark(i);
	return marks;
}

/* ---- version buffers ---- */

static void a_start_marks_its_buffer(void)
{
	begin(true, 1);
	CU_ASSERT_EQUAL(mark_of_buffer(1), 0);
	agg_decide(&(struct mst_decision){ .kind = MST_DO_START,
					   .commit = { .version = 41, .buffer = 1 } });
	CU_ASSERT_EQUAL(mark_of_buffer(1), 41);
	CU_ASSERT(mark_of_buffer(0) == 0 && mark_of_buffer(2) == 0);
	agg_end();
}

/* Whichever shard comes first: the version before may be read until then. */
static void a_buffer_is_marked_when_the_first_shard_begins_to_write_it(void)
{
	for (uint32_t first = 0; first < 3; first++) {
		begin(true, 3);
		agg_fill(0, 0);
		agg_count(0);
		agg_commit();
		CU_ASSERT_EQUAL(mark_of_buffer(BUFFER), 0);
		CU_ASSERT(is_empty());
		step(first);
		CU_ASSERT_EQUAL(mark_of_buffer(BUFFER), 3);
		CU_ASSERT_FALSE(is_empty());
		work_off();
		CU_ASSERT_EQUAL(mark_of_buffer(BUFFER), 3);
		agg_end();
	}
}

static void a_follower_marks_its_buffers(void)
{
	agg_follower = true;
	begin(true, 2);
	agg_count(0);
	agg_commit();
	work_off();
	CU_ASSERT_EQUAL(mark_of_buffer(BUFFER), 3);
	agg_end();
}

/* ---- results that are copied ---- */

static void a_result_is_marked_when_the_first_shard_begins_to_copy_it(void)
{
	for (uint32_t first = 0; first < 3; first++) {
		begin(true, 3);
		agg_fill(0, 0);
		agg_count(0);
		agg_commit();
		work_off();
		agg_release(0, BUFFER);
		CU_ASSERT(mark_of_lane(0) == 0 && !has_result());
		step(first);
		CU_ASSERT(mark_of_lane(0) == 3 && has_result());
		CU_ASSERT_EQUAL(mark_of_lane(1), 0);
		work_off();
		CU_ASSERT_EQUAL(count_marks(), 0); /* no put is added */
		agg_end();
	}
}

/* As early as the first part of a version that is still being summed. */
static void a_result_that_is_put_is_marked_before_its_first_part(void)
{
	for (uint32_t shards = 1; shards <= 3; shards++) {
		begin(false, shards);
		agg_fill(0, 0);
		agg_count(0);
		agg_commit();
		agg_release(0, BUFFER);
		CU_ASSERT_EQUAL(agg_note_count, 0);
		work_off();
		CU_ASSERT_FATAL(agg_note_count >= 3 && is_mark(0));
		CU_ASSERT(agg_note[0].word == 3 && agg_note[0].put.bytes == 8);
		CU_ASSERT(agg_note[0].put.every_rail && !agg_note[0].put.notify);
		CU_ASSERT_EQUAL(count_marks(), 1);
		CU_ASSERT(agg_note[1].put.offset >= agg_cfg.layout.down_result);
		CU_ASSERT(agg_report_parts_sent(0) >= 1);
		agg_end();
	}
}

/* The same version again writes nothing over. */
static void each_version_that_is_put_is_marked_once(void)
{
	begin(false, 1);
	agg_answer_to(0, 1);
	agg_ask(0);
	agg_answer_to(0, 2);
	agg_answer_to(1, 1);
	CU_ASSERT_EQUAL(count_marks(), 2);
	CU_ASSERT(is_mark(0) && agg_note[0].rank == 0);
	CU_ASSERT(is_mark(5) && agg_note[5].rank == 1);
	for (int i = 0; i < agg_note_count; i++)
		if (agg_note[i].put.signal)
			agg_report_sent(agg_note[i].rank, agg_note[i].put.cookie);
	agg_end();
}

/* A link that has no room for it is lost. Until its end a part may still be put, and another try of
 * the mark goes before. */
static void nothing_is_put_whose_mark_could_not_be(void)
{
	begin(false, 1);
	agg_count(0);
	agg_commit();
	agg_release(0, BUFFER);
	agg_link_refuses = 1;
	work_off();
	CU_ASSERT_TRUE(agg_session[0].lost);
	CU_ASSERT_FATAL(agg_note_count > 1);
	CU_ASSERT(is_mark(0));
	CU_ASSERT_EQUAL(count_marks(), 1);
	(void)agg_report_parts_sent(0);
	agg_end();
}

/* ---- without ---- */

static void a_job_without_marks_writes_none(void)
{
	for (int maps = 0; maps < 2; maps++) {
		agg_begin_with(maps != 0, 300);
		CU_ASSERT_EQUAL(mst_aggregator_published(&agg_cfg),
				agg_cfg.buffers * mst_version_stride(AGG_ELEMS, MUSTER_F32));
		agg_fill(0, 0);
		agg_count(0);
		agg_commit();
		agg_release(0, BUFFER);
		work_off();
		CU_ASSERT_EQUAL(count_marks(), 0);
		CU_ASSERT_EQUAL(mark_of_lane(0), 0);
		(void)agg_report_parts_sent(0);
		agg_end();
	}
}

static void marks_are_a_page_of_what_is_published(void)
{
	begin(true, 1);
	CU_ASSERT_EQUAL(mst_aggregator_published(&agg_cfg),
			agg_cfg.buffers * mst_version_stride(AGG_ELEMS, MUSTER_F32) + 4096);
	agg_end();
	CU_ASSERT_EQUAL(mst_lane_marks_bytes(512), 4096);
	CU_ASSERT_EQUAL(mst_lane_marks_bytes(513), 8192);
}

static CU_TestInfo cases[] = {
	{ "a start marks its buffer", a_start_marks_its_buffer },
	{ "a buffer is marked when the first shard begins to write it",
	  a_buffer_is_marked_when_the_first_shard_begins_to_write_it },
	{ "a follower marks its buffers", a_follower_marks_its_buffers },
	{ "a result is marked when the first shard begins to copy it",
	  a_result_is_marked_when_the_first_shard_begins_to_copy_it },
	{ "a result that is put is marked before its first part",
	  a_result_that_is_put_is_marked_before_its_first_part },
	{ "each version that is put is marked once", each_version_that_is_put_is_marked_once },
	{ "nothing is put whose mark could not be", nothing_is_put_whose_mark_could_not_be },
	{ "a job without marks writes none", a_job_without_marks_writes_none },
	{ "marks are a page of what is published", marks_are_a_page_of_what_is_published },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator marks", cases);
}
