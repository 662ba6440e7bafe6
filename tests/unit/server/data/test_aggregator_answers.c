/* SPDX-License-Identifier: MIT */
/* What travels together: verdicts and grants with answers, results with the sum that makes them. */
#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

static bool covers(int i, size_t offset)
{
	const struct mst_put *put = &agg_note[i].put;

	return put->offset <= offset && offset < put->offset + put->bytes;
}

/* What was put there; NULL: nothing. */
static const void *written_at(size_t offset)
{
	for (int i = 0; i < agg_note_count; i++) {
		if (covers(i, offset))
			return agg_written_at(i, offset);
	}
	return NULL;
}

/* The grant waits for the sum, the answer for both; one arrival tells all. */
static void verdict_and_grant_travel_with_the_answer(void)
{
	agg_begin(false);
	agg_count(1);
	agg_judge(1);
	agg_regrant(1);
	agg_commit();
	agg_release(0, 2);
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL(agg_note_count, 0);
	while (mst_aggregator_work(agg_aggregator))
		;
	mst_aggregator_deliver(agg_aggregator);
	const struct mst_put *last = &agg_note[agg_note_count - 1].put;
	CU_ASSERT_EQUAL(last->imm, mst_imm_answer(1u << 1, 1u << 1));
	CU_ASSERT(covers(agg_note_count - 1, agg_cfg.layout.down_answer));
	const struct mst_lane_verdict *v = written_at(agg_cfg.layout.down_verdict[1]);
	const struct mst_lane_grant *g = written_at(agg_cfg.layout.down_grant[1]);
	CU_ASSERT_FATAL(v != NULL && g != NULL);
	CU_ASSERT(v->ticket == 2 && v->counted_in == 3 && g->epoch == 2);
	for (int i = 0; i < agg_note_count - 1; i++)
		CU_ASSERT_FALSE(agg_note[i].put.notify);
	agg_end();
}

/* Over RDMA each write costs as much as all of them together. */
static void the_first_slots_records_and_the_answer_are_one_write(void)
{
	agg_begin(false);
	agg_count(0);
	agg_judge(0);
	agg_regrant(0);
	agg_commit();
	agg_release(0, 2);
	while (mst_aggregator_work(agg_aggregator))
		;
	mst_aggregator_deliver(agg_aggregator);
	int last = agg_note_count - 1;
	CU_ASSERT_EQUAL(agg_note[last].put.imm, mst_imm_answer(1u << 0, 1u << 0));
	CU_ASSERT_EQUAL(agg_note[last].put.offset, agg_cfg.layout.down_verdict[0]);
	CU_ASSERT(covers(last, agg_cfg.layout.down_record));
	const struct mst_lane_verdict *v = agg_written_at(last, agg_cfg.layout.down_verdict[0]);
	const struct mst_lane_grant *g = agg_written_at(last, agg_cfg.layout.down_grant[0]);
	const struct mst_lane_answer *answer = agg_written_at(last, agg_cfg.layout.down_answer);
	CU_ASSERT(v->ticket == 1 && v->counted_in == 3 && g->epoch == 2 && answer->version == 3);
	for (int i = 0; i < last; i++)
		CU_ASSERT(agg_note[i].put.offset >= agg_cfg.layout.down_result);
	agg_end();
}

static void without_an_answer_verdict_and_grant_go_at_the_end_of_the_step(void)
{
	agg_begin(false);
	agg_count(0);
	agg_judge(0);
	CU_ASSERT_EQUAL(agg_note_count, 0);
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 1);
	CU_ASSERT_EQUAL(agg_note[0].put.imm, mst_imm(MST_IMM_VERDICT, 0, 0));
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL(agg_note_count, 1);
	agg_fail();
	agg_end();
}

/* The worker may have been told of it, and not have looked yet. */
static void an_answer_writes_over_no_verdict_that_went_before(void)
{
	agg_begin(false);
	agg_count(0);
	agg_judge(0);
	mst_aggregator_deliver(agg_aggregator);
	agg_regrant(0);
	agg_commit();
	agg_release(0, 2);
	while (mst_aggregator_work(agg_aggregator))
		;
	CU_ASSERT_EQUAL(agg_note[agg_note_count - 1].put.imm, mst_imm_answer(0, 1u << 0));
	for (int i = 1; i < agg_note_count; i++) /* the first told of it */
		CU_ASSERT_FALSE(covers(i, agg_cfg.layout.down_verdict[0]));
	CU_ASSERT_PTR_NOT_NULL(written_at(agg_cfg.layout.down_grant[0]));
	agg_end();
}

/* Whatever the slots: a worker hears of its tickets in their order. */
static void verdicts_go_out_in_the_order_they_were_made(void)
{
	agg_begin(false);
	agg_count(1);
	agg_count(0);
	agg_judge(1);
	agg_judge(0);
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 2);
	CU_ASSERT_EQUAL(agg_note[0].put.imm, mst_imm(MST_IMM_VERDICT, 1, 0));
	CU_ASSERT_EQUAL(agg_note[1].put.imm, mst_imm(MST_IMM_VERDICT, 0, 0));
	agg_fail();
	agg_end();
}

/* It may be reading what is not. */
static void a_worker_that_maps_its_records_has_only_those_written_that_are_due(void)
{
	agg_begin(true);
	agg_release(0, 1);
	agg_regrant(0);
	while (mst_aggregator_work(agg_aggregator))
		;
	for (int i = 0; i < agg_note_count; i++) {
		CU_ASSERT_FALSE(covers(i, agg_cfg.layout.down_verdict[0]));
		CU_ASSERT_FALSE(covers(i, agg_cfg.layout.down_grant[1]));
	}
	CU_ASSERT_EQUAL(agg_note[agg_note_count - 1].put.imm, mst_imm_answer(0, 1u << 0));
	agg_fail();
	agg_end();
}

static void a_verdict_comes_before_the_end_of_its_session(void)
{
	agg_begin(false);
	agg_count(0);
	agg_judge(0);
	agg_release(0, 2);
	agg_evict(0);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 2);
	CU_ASSERT_EQUAL(agg_note[0].put.imm, mst_imm(MST_IMM_VERDICT, 0, 0));
	CU_ASSERT_EQUAL(agg_note[1].put.imm, mst_imm(MST_IMM_SESSION, MST_SESSION_OF_WORKER, 0));
	agg_fail();
	agg_end();
}

static void what_is_summed_travels_while_the_rest_is_summed(void)
{
	agg_begin(false);
	agg_count(0);
	agg_commit();
	agg_release(0, 2);
	mst_aggregator_work(agg_aggregator);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 1);
	CU_ASSERT(agg_is_part(0, 0, AGG_CHUNK));
	agg_release(1, 2); /* one who comes later has what has been summed by then */
	mst_aggregator_work(agg_aggregator);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 3);
	CU_ASSERT(agg_is_part(1, AGG_CHUNK, AGG_CHUNK) && agg_is_part(2, 0, 2 * AGG_CHUNK));
	while (mst_aggregator_work(agg_aggregator))
		;
	CU_ASSERT(agg_report_parts_sent(0) > 1);
	CU_ASSERT(agg_said(agg_event_count - 1, MST_EV_ANSWERED, 0));
	agg_end();
}

/* Else it could be reported sent, and its record be gone, before the answer brings that. */
static void the_last_part_goes_with_the_answer(void)
{
	uint64_t sent = 0;

	agg_begin_with(false, AGG_ELEMS / 4); /* no smaller one is left over */
	agg_count(0);
	agg_commit();
	agg_release(0, 2);
	int before = agg_event_count;
	for (int i = 0; i < 3; i++)
		mst_aggregator_work(agg_aggregator);
	for (int i = 0; i < agg_note_count; i++)
		sent += agg_note[i].put.bytes / sizeof(float);
	CU_ASSERT(sent > 0 && sent < AGG_ELEMS);
	CU_ASSERT_EQUAL(agg_event_count, before);
	while (mst_aggregator_work(agg_aggregator))
		;
	CU_ASSERT(agg_report_parts_sent(0) > 1);
	CU_ASSERT(agg_said(agg_event_count - 1, MST_EV_ANSWERED, 0));
	agg_end();
}

/* Whatever is on its way, there is room for a second answer's. */
static void a_result_is_sent_in_few_parts(void)
{
	agg_begin_with(false, 16);
	agg_count(0);
	agg_commit();
	agg_release(0, 2);
	while (mst_aggregator_work(agg_aggregator))
		;
	uint64_t sent = 0;
	CU_ASSERT(agg_note_count > 1 && agg_note_count <= 18);
	for (int i = 0; i < agg_note_count - 1; i++) { /* then the answer */
		CU_ASSERT(agg_is_part(i, sent, agg_note[i].put.bytes / sizeof(float)));
		sent += agg_note[i].put.bytes / sizeof(float);
	}
	CU_ASSERT_EQUAL(sent, AGG_ELEMS);
	agg_end();
}

/* It is of another version, and whole. */
static void an_older_answer_does_not_wait_for_the_sum(void)
{
	agg_begin(false);
	agg_count(0);
	agg_release(1, 1);
	agg_commit();
	mst_aggregator_work(agg_aggregator);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 2);
	CU_ASSERT(agg_is_part(0, 0, AGG_ELEMS));
	agg_release(1, 1);
	mst_aggregator_work(agg_aggregator);
	CU_ASSERT_EQUAL(agg_note_count, 2);
	while (mst_aggregator_work(agg_aggregator))
		;
	CU_ASSERT(agg_is_part(2, 0, AGG_ELEMS));
	agg_end();
}

static CU_TestInfo cases[] = {
	{ "verdict and grant travel with the answer", verdict_and_grant_travel_with_the_answer },
	{ "the first slot's records and the answer are one write",
	  the_first_slots_records_and_the_answer_are_one_write },
	{ "without an answer verdict and grant go at the end of the step",
	  without_an_answer_verdict_and_grant_go_at_the_end_of_the_step },
	{ "verdicts go out in the order they were made",
	  verdicts_go_out_in_the_order_they_were_made },
	{ "a worker that maps its records has only those written that are due",
	  a_worker_that_maps_its_records_has_only_those_written_that_are_due },
	{ "an answer writes over no verdict that went before",
	  an_answer_writes_over_no_verdict_that_went_before },
	{ "a verdict comes before the end of its session",
	  a_verdict_comes_before_the_end_of_its_session },
	{ "what is summed travels while the rest is summed",
	  what_is_summed_travels_while_the_rest_is_summed },
	{ "the last part goes with the answer", the_last_part_goes_with_the_answer },
	{ "a result is sent in few parts", a_result_is_sent_in_few_parts },
	{ "an older answer is none of a commit's", an_older_answer_does_not_wait_for_the_sum },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator answers", cases);
}
