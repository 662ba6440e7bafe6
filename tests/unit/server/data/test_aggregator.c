/* SPDX-License-Identifier: MIT */
/* A shard over a link that takes its time: what is put when, what is held until it has been sent,
 * and what a session that ends, or a worker that breaks the rules, takes with it. */
#include <errno.h>
#include <string.h>

#include "tests/unit/server/data/aggregator_case.h"
#include "tests/ut.h"

static const char *why_of(uint32_t rank)
{
	return agg_session[rank].why.text;
}

static void a_copied_answer_is_one_put_of_what_is_published(void)
{
	agg_begin(false);
	agg_answer_to(0, 4);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 2);
	const struct mst_put *result = &agg_note[0].put;
	CU_ASSERT_EQUAL(result->offset, agg_cfg.layout.down_result);
	CU_ASSERT_EQUAL(result->bytes, AGG_ELEMS * sizeof(float));
	CU_ASSERT_PTR_EQUAL(result->src, (char *)agg_cfg.published +
						 2 * mst_version_stride(AGG_ELEMS, MUSTER_F32));
	CU_ASSERT(result->signal && !result->notify);
	CU_ASSERT_EQUAL(agg_note[1].put.offset, agg_cfg.layout.down_answer);
	CU_ASSERT(agg_note[1].put.notify && agg_note[1].answer.number == 4);
	const struct mst_lane_record *r = agg_written_at(1, agg_cfg.layout.down_record);
	CU_ASSERT(r->version == 3 && r->share_count == AGG_RANKS);
	CU_ASSERT(r->samples == AGG_SAMPLES && r->size == MST_RECORD_SIZE);
	agg_end();
}

static void a_result_holds_its_buffer_until_it_is_sent(void)
{
	agg_begin(false);
	agg_answer_to(0, 1);
	CU_ASSERT_EQUAL(agg_event_count, 0);
	agg_report_sent(0, agg_note[0].put.cookie);
	CU_ASSERT_EQUAL(agg_event_count, 1);
	CU_ASSERT(agg_said(0, MST_EV_ANSWERED, 0) && agg_event[0].answered.number == 1);
	agg_end();
}

/* The worker has the answer before the shard has heard so, and goes on. */
static void an_ask_may_come_before_the_result_is_reported_sent(void)
{
	agg_begin(false);
	agg_answer_to(0, 1);
	agg_ask(0);
	CU_ASSERT(agg_said(0, MST_EV_ASK, 0) && agg_event_count == 1);
	agg_answer_to(0, 2);
	agg_report_sent(0, agg_note[0].put.cookie);
	agg_report_sent(0, agg_note[2].put.cookie);
	CU_ASSERT(agg_said(1, MST_EV_ANSWERED, 0) && agg_event[1].answered.number == 1);
	CU_ASSERT(agg_said(2, MST_EV_ANSWERED, 0) && agg_event[2].answered.number == 2);
	agg_end();
}

static void an_ask_before_its_answer_is_put_breaks_the_protocol(void)
{
	agg_begin(false);
	agg_decide(&(struct mst_decision){ .kind = MST_DO_RELEASE,
					   .who = { 0, 1 },
					   .answer = { .number = 1, .where = MST_WHERE_KEEP } });
	agg_ask(0);
	CU_ASSERT(agg_said(0, MST_EV_LOST, 0) && agg_event[0].error == -EPROTO);
	CU_ASSERT_STRING_EQUAL(why_of(0), "it asks again before it has its answer");
	agg_end();
}

/* What the control thread says of it: which check failed, with its numbers. */
static void who_breaks_the_protocol_is_told_of_with_the_check(void)
{
	static const struct {
		uint32_t imm;
		struct mst_lane_header header;
		const char *why;
	} rows[] = {
		{ MST_IMM_HEADER << 28 | 7u << 24 | 1, { 0 }, "it names slot 7 of 2" },
		{ MST_IMM_HEADER << 28 | 9,
		  { 0 },
		  "it uses grant 9 of slot 0, and grant 1 is out" },
		{ MST_IMM_ABANDON << 28 | 9,
		  { 0 },
		  "it uses grant 9 of slot 0, and grant 1 is out" },
		{ MST_IMM_HEADER << 28 | 1,
		  { .size = 3 },
		  "its header of 3 bytes is shorter than 84" },
		{ MST_IMM_HEADER << 28 | 1,
		  { .size = MST_HEADER_SIZE, .epoch = 1, .slot = 1 },
		  "its header in slot 0 names slot 1" },
		{ MST_IMM_HEADER << 28 | 1,
		  { .size = MST_HEADER_SIZE, .epoch = 8 },
		  "its header uses grant 8 of slot 0, and grant 1 is out" },
		{ 15u << 28,
		  { 0 },
		  "it notifies of something of kind 15, which is not a worker's" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		agg_begin(false);
		memcpy((char *)agg_link[0].inbound + agg_cfg.layout.up_header[0], &rows[i].header,
		       sizeof(rows[i].header));
		agg_arrive(0, rows[i].imm);
		CU_ASSERT(agg_said(0, MST_EV_LOST, 0) && agg_event[0].error == -EPROTO);
		CU_ASSERT_STRING_EQUAL(why_of(0), rows[i].why);
		/* The control thread may read it from now on. */
		agg_arrive(0, 15u << 28);
		CU_ASSERT_STRING_EQUAL(why_of(0), rows[i].why);
		agg_end();
	}
}

/* Its asks came in headers, the second before the first was judged, so the ledger took both. */
static void a_second_answer_before_the_first_breaks_the_protocol(void)
{
	agg_begin(false);
	agg_count(0);
	agg_commit();
	int before = agg_event_count;
	agg_release(0, 2);
	agg_release(0, 2);
	CU_ASSERT_EQUAL(agg_event_count, before + 1);
	CU_ASSERT(agg_said(before, MST_EV_LOST, 0) && agg_event[before].error == -EPROTO);
	while (mst_aggregator_work(agg_aggregator))
		;
	CU_ASSERT(agg_report_parts_sent(0) > 0);
	CU_ASSERT_EQUAL(agg_event_count, before + 2); /* one answer is sent */
	agg_end();
}

static void a_session_ends_without_its_sends(void)
{
	agg_begin(false);
	agg_answer_to(0, 1);
	agg_answer_to(0, 2);
	agg_evict(0);
	CU_ASSERT_EQUAL(agg_over_count, 1);
	CU_ASSERT_EQUAL(agg_event_count, 0);
	agg_end();
}

static void what_is_queued_for_an_ended_session_is_not_put(void)
{
	agg_begin(false);
	agg_decide(&(struct mst_decision){
		.kind = MST_DO_RELEASE,
		.who = { 0, 1 },
		.answer = { .number = 1, .version = 3, .where = MST_WHERE_COPIED } });
	agg_evict(0);
	CU_ASSERT_EQUAL(agg_over_count, 0); /* its answer is still in the queue */
	int before = agg_note_count;
	while (mst_aggregator_work(agg_aggregator))
		;
	CU_ASSERT_EQUAL(agg_note_count, before);
	CU_ASSERT_EQUAL(agg_over_count, 1);
	agg_end();
}

static void a_link_without_room_ends_its_own_session_only(void)
{
	agg_begin(false);
	agg_link_full = true;
	agg_answer_to(0, 1);
	CU_ASSERT_EQUAL(agg_event_count, 1);
	CU_ASSERT(agg_said(0, MST_EV_LOST, 0) && agg_event[0].error == -EPROTO);
	agg_link_full = false;
	agg_answer_to(1, 1);
	CU_ASSERT_EQUAL(agg_note_count, 2);
	agg_report_sent(1, agg_note[0].put.cookie);
	CU_ASSERT(agg_said(1, MST_EV_ANSWERED, 1));
	agg_end();
}

static void a_link_that_is_done_at_once_is_answered_at_once(void)
{
	agg_begin(false);
	agg_put_rc = 1;
	agg_answer_to(0, 1);
	CU_ASSERT(agg_said(0, MST_EV_ANSWERED, 0));
	agg_end();
}

/* Written where the worker reads it, chunk by chunk, before anything announces it. */
static void a_link_that_maps_gets_it_in_chunks(void)
{
	int chunks = 0;

	agg_begin(true);
	memset(agg_cfg.published, 7, 4 * mst_version_stride(AGG_ELEMS, MUSTER_F32));
	agg_decide(&(struct mst_decision){
		.kind = MST_DO_RELEASE,
		.who = { 0, 1 },
		.answer = { .number = 1, .version = 3, .newest = 3, .where = MST_WHERE_COPIED } });
	while (agg_note_count == 0 && mst_aggregator_work(agg_aggregator))
		chunks++;
	CU_ASSERT_EQUAL(chunks, 13);        /* 13000 elements by 1024 */
	CU_ASSERT_EQUAL(agg_note_count, 1); /* record and answer */
	CU_ASSERT_EQUAL(memcmp((char *)agg_link[0].remote_mapping + agg_cfg.layout.down_result,
			       agg_cfg.published, AGG_ELEMS * sizeof(float)),
			0);
	CU_ASSERT(agg_said(0, MST_EV_ANSWERED, 0));
	agg_end();
}

static void advise(uint32_t rank, uint64_t version)
{
	agg_decide(&(struct mst_decision){
		.kind = MST_DO_ADVISE, .who = { rank, 1 }, .advice = { version, false } });
}

static void one_hint_is_on_its_way_at_a_time(void)
{
	agg_begin(false);
	advise(0, 5);
	advise(0, 6);
	advise(0, 7);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 1);
	CU_ASSERT(agg_note[0].word == mst_hint_word(5, false) &&
		  agg_note[0].put.offset == agg_cfg.layout.down_hint);
	agg_report_sent(0, agg_note[0].put.cookie);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 2); /* the newest follows */
	CU_ASSERT_EQUAL(agg_note[1].word, mst_hint_word(7, false));
	agg_report_sent(0, agg_note[1].put.cookie);
	CU_ASSERT_EQUAL(agg_note_count, 2);
	CU_ASSERT_EQUAL(agg_event_count, 0);
	agg_end();
}

static void over_a_link_that_maps_each_hint_goes(void)
{
	agg_begin(true);
	advise(0, 5);
	advise(0, 6);
	CU_ASSERT_EQUAL(agg_note_count, 2);
	agg_end();
}

/* Nothing of the slot has been read, so that its next grant is used at once. */
static void an_abandoned_slot_is_reported_and_granted_anew(void)
{
	agg_begin(false);
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, 1, 1));
	CU_ASSERT_FATAL(agg_said(0, MST_EV_ABANDONED, 0));
	CU_ASSERT(agg_event[0].abandoned.slot == 1 && agg_event[0].abandoned.epoch == 1);
	agg_decide(&(struct mst_decision){
		.kind = MST_DO_REGRANT, .who = { 0, 1 }, .grant = { .slot = 1, .epoch = 2 } });
	mst_aggregator_deliver(agg_aggregator);
	CU_ASSERT_EQUAL_FATAL(agg_note_count, 1);
	CU_ASSERT_EQUAL(agg_note[0].put.imm, mst_imm(MST_IMM_GRANT, 1, 2));
	CU_ASSERT_EQUAL(agg_note[0].grant.epoch, 2);
	agg_arrive(0, mst_imm(MST_IMM_ABANDON, 1, 1)); /* of the grant before */
	CU_ASSERT(agg_said(1, MST_EV_LOST, 0) && agg_event[1].error == -EPROTO);
	agg_end();
}

static CU_TestInfo cases[] = {
	{ "a copied answer is one put of what is published, then record and answer",
	  a_copied_answer_is_one_put_of_what_is_published },
	{ "a result holds its buffer until it is sent",
	  a_result_holds_its_buffer_until_it_is_sent },
	{ "an ask may come before the result is reported sent",
	  an_ask_may_come_before_the_result_is_reported_sent },
	{ "an ask before its answer is put breaks the protocol",
	  an_ask_before_its_answer_is_put_breaks_the_protocol },
	{ "a second answer before the first breaks the protocol",
	  a_second_answer_before_the_first_breaks_the_protocol },
	{ "a session ends without waiting for its sends", a_session_ends_without_its_sends },
	{ "what is queued for an ended session is not put",
	  what_is_queued_for_an_ended_session_is_not_put },
	{ "a link without room ends its own session only",
	  a_link_without_room_ends_its_own_session_only },
	{ "who breaks the protocol is told of with the check",
	  who_breaks_the_protocol_is_told_of_with_the_check },
	{ "a link that is done at once is answered at once",
	  a_link_that_is_done_at_once_is_answered_at_once },
	{ "a link that maps gets a copy in chunks", a_link_that_maps_gets_it_in_chunks },
	{ "one a hint is on its way at a time, and the newest follows",
	  one_hint_is_on_its_way_at_a_time },
	{ "over a link that maps each hint goes", over_a_link_that_maps_each_hint_goes },
	{ "an abandoned slot is reported, and granted anew",
	  an_abandoned_slot_is_reported_and_granted_anew },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator", cases);
}
