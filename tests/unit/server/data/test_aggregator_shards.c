/* SPDX-License-Identifier: MIT */
/* An aggregator whose sums are divided among shards, each stepped when the test likes. */
#include <string.h>

#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

/* Steps the shards in some order that @seed stands for, until nothing is left. */
static void work_anyhow(unsigned seed)
{
	unsigned idle = 0;

	while (idle < 1000) {
		seed = seed * 1103515245u + 12345u;
		uint32_t which = (seed >> 16) % agg_cfg.shards;
		bool any = which == 0 ? mst_aggregator_work(agg_aggregator)
				      : mst_shard_step(mst_aggregator_shard(agg_aggregator, which));
		idle = any ? 0 : idle + 1;
	}
}

static void shards_cover_the_vector_once(void)
{
	for (uint32_t count = 1; count <= MST_SHARDS_MAX; count++) {
		uint64_t end_before = 0;
		agg_shards = count;
		agg_begin(true);
		for (uint32_t i = 0; i < count; i++) {
			struct mst_span range = mst_shard_range(
				mst_aggregator_shard(agg_aggregator, i));
			CU_ASSERT_EQUAL(range.begin, end_before);
			CU_ASSERT(range.end >= range.begin);
			CU_ASSERT_EQUAL(range.begin % MST_SHARD_ELEMS_MIN, 0);
			end_before = range.end;
		}
		CU_ASSERT_EQUAL(end_before, AGG_ELEMS);
		agg_end();
	}
}

static void a_version_has_the_same_bits_however_many_shards(void)
{
	static float expected[AGG_ELEMS];

	for (uint32_t count = 1; count <= MST_SHARDS_MAX; count++) {
		agg_shards = count;
		agg_begin_with(true, 300);
		for (uint32_t rank = 0; rank < AGG_RANKS; rank++) {
			agg_fill(rank, 0);
			agg_count_of(rank, 0);
		}
		agg_commit();
		work_anyhow(count);
		if (count == 1)
			memcpy(expected, agg_result(), sizeof(expected));
		CU_ASSERT_EQUAL(memcmp(expected, agg_result(), sizeof(expected)), 0);
		CU_ASSERT(expected[AGG_ELEMS - 1] != 0);
		agg_end();
	}
}

static void a_job_is_over_when_every_shard_has_done_its_part(void)
{
	agg_shards = 2;
	agg_begin_with(true, AGG_ELEMS);
	agg_count(0);
	agg_regrant(0);
	agg_commit();
	mst_aggregator_work(agg_aggregator);
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL(agg_note_count, 0); /* the slot is not read to its end */
	CU_ASSERT_EQUAL(agg_worked, 0);
	CU_ASSERT(mst_shard_step(mst_aggregator_shard(agg_aggregator, 1)));
	CU_ASSERT_EQUAL(agg_worked, 1);
	CU_ASSERT(mst_aggregator_work(agg_aggregator));
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 1);
	CU_ASSERT_EQUAL(agg_note[0].put.imm, mst_imm(MST_IMM_GRANT, 0, 2));
	agg_end();
}

/* A shard that is not the last has nothing to tell. */
static void only_the_last_shard_wakes_the_aggregator(void)
{
	agg_shards = 2;
	agg_begin_with(true, AGG_ELEMS);
	agg_count(0);
	agg_commit();
	CU_ASSERT(mst_shard_step(mst_aggregator_shard(agg_aggregator, 1)));
	CU_ASSERT_EQUAL(agg_worked, 0);
	CU_ASSERT(!mst_shard_step(mst_aggregator_shard(agg_aggregator, 1)));
	CU_ASSERT(mst_aggregator_work(agg_aggregator));
	agg_end();
}

/* ---- copies of results ---- */

static uint64_t copied(void)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < agg_cfg.shards; i++)
		bytes += mst_shard_copied(mst_aggregator_shard(agg_aggregator, i));
	return bytes;
}

static void answer_version(enum mst_where where)
{
	agg_decide(&(struct mst_decision){
		.kind = MST_DO_RELEASE,
		.who = { 0, 1 },
		.answer = { .number = 1, .version = 3, .newest = 3, .where = where } });
	work_anyhow(7);
}

/* To where the worker reads it; or else it is put from where it is published, by nobody here. */
static void a_result_is_copied_once_at_most(void)
{
	for (uint32_t count = 1; count <= 3; count++) {
		agg_shards = count;
		agg_begin_with(true, 300);
		answer_version(MST_WHERE_COPIED);
		CU_ASSERT_EQUAL(copied(), AGG_ELEMS * sizeof(float));
		agg_end();
		agg_shards = count;
		agg_begin_with(true, 300);
		answer_version(MST_WHERE_IN_PLACE);
		CU_ASSERT_EQUAL(copied(), 0);
		agg_end();
		agg_shards = count;
		agg_begin_with(false, 300);
		answer_version(MST_WHERE_COPIED);
		CU_ASSERT_EQUAL(agg_report_parts_sent(0), agg_note_count - 1);
		CU_ASSERT_EQUAL(copied(), 0);
		agg_end();
	}
}

/* A shard may be a job ahead of another: what the first reads of a version it has summed itself. */
static void a_shard_goes_on_with_the_next_job_alone(void)
{
	agg_shards = 2;
	agg_begin_with(true, AGG_ELEMS);
	agg_fill(0, 0);
	agg_count(0);
	agg_commit();
	agg_release(0, 2);
	struct mst_shard *second = mst_aggregator_shard(agg_aggregator, 1);
	CU_ASSERT(mst_shard_step(second));
	CU_ASSERT(mst_shard_step(second));
	CU_ASSERT(!mst_shard_step(second));
	CU_ASSERT_EQUAL(agg_note_count, 0);
	work_anyhow(1);
	CU_ASSERT_EQUAL(agg_note_count, 1); /* record and answer */
	CU_ASSERT_EQUAL(memcmp((char *)agg_link[0].remote_mapping + agg_cfg.layout.down_result,
			       agg_result(), AGG_ELEMS * sizeof(float)),
			0);
	agg_end();
}

/* Whichever shard is slow: what is sent covers the result once, in few parts, and only when all is
 * sent is it reported. */
static void a_result_is_sent_once_whoever_is_slow(void)
{
	for (unsigned seed = 0; seed < 50; seed++) {
		static bool sent[AGG_ELEMS];
		int last = 0;

		agg_shards = 1 + seed % MST_SHARDS_MAX;
		agg_begin_with(false, 200);
		agg_count(0);
		agg_commit();
		agg_release(0, 2);
		work_anyhow(seed);
		memset(sent, 0, sizeof(sent));
		CU_ASSERT(agg_note_count >= 2 && agg_note_count <= 18);
		for (int i = 0; i < agg_note_count - 1; i++) {
			uint64_t first = (agg_note[i].put.offset - agg_cfg.layout.down_result) / 4;
			for (uint64_t e = first; e < first + agg_note[i].put.bytes / 4; e++) {
				CU_ASSERT(!sent[e]);
				sent[e] = true;
			}
			last += (int)(agg_note[i].put.cookie & 1);
		}
		CU_ASSERT_PTR_NULL(memchr(sent, false, sizeof(sent)));
		CU_ASSERT_EQUAL(last, 1);
		CU_ASSERT_EQUAL(agg_note[agg_note_count - 2].put.cookie & 1, 1);
		CU_ASSERT(agg_report_parts_sent(0) >= 1);
		CU_ASSERT(agg_said(agg_event_count - 1, MST_EV_ANSWERED, 0));
		agg_end();
	}
}

static void second_goes_on(void)
{
	while (mst_shard_step(mst_aggregator_shard(agg_aggregator, 1)))
		;
}

/* The second shard does the rest in the midst of the first's being passed on. */
static void the_last_part_has_data_whatever_is_done_meanwhile(void)
{
	agg_shards = 2;
	agg_begin_with(false, 1024);
	agg_count(0);
	agg_commit();
	agg_release(0, 2);
	for (int i = 0; i < 3; i++)
		mst_aggregator_work(agg_aggregator);
	agg_on_put = second_goes_on;
	mst_aggregator_work(agg_aggregator); /* the first shard's last chunk */
	agg_on_put = NULL;
	work_anyhow(1);
	CU_ASSERT_FATAL(agg_note_count > 2);
	CU_ASSERT_EQUAL(agg_note[agg_note_count - 2].put.cookie & 1, 1);
	CU_ASSERT(agg_note[agg_note_count - 2].put.bytes > 0);
	CU_ASSERT(agg_report_parts_sent(0) > 1);
	agg_end();
}

static CU_TestInfo cases[] = {
	{ "shards cover the vector once", shards_cover_the_vector_once },
	{ "a version has the same bits however many shards",
	  a_version_has_the_same_bits_however_many_shards },
	{ "a job is over when every shard has done its part",
	  a_job_is_over_when_every_shard_has_done_its_part },
	{ "only the last shard wakes the aggregator", only_the_last_shard_wakes_the_aggregator },
	{ "a shard goes on with the next job alone", a_shard_goes_on_with_the_next_job_alone },
	{ "a result is sent once, whoever is slow", a_result_is_sent_once_whoever_is_slow },
	{ "the last part has data, whatever is done meanwhile",
	  the_last_part_has_data_whatever_is_done_meanwhile },
	{ "a result is copied once at most", a_result_is_copied_once_at_most },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator shards", cases);
}
