/* SPDX-License-Identifier: MIT */
/* What a server that is not the lead keeps to itself; and how little of one worker can be under way
 * at a time, wherever what it reports has to wait. */
#include "tests/unit/aggregator_case.h"

#include <errno.h>
#include <string.h>

#include "tests/ut.h"

static void begin_member(bool is_member)
{
	member = is_member;
	begin(true);
}

static void work_off(void)
{
	while (mst_aggregator_work(aggregator))
		;
}

static void a_members_answer_has_no_record(void)
{
	for (int is_member = 0; is_member < 2; is_member++) {
		begin_member(is_member);
		count(0);
		commit();
		release(0, 2);
		work_off();
		const struct mst_put *last = &note[note_count - 1].put;
		size_t to = last->offset + last->bytes;
		CU_ASSERT_EQUAL(to == cfg.layout.down_record, is_member);
		const struct mst_lane_answer *a = cell_at(note_count - 1, cfg.layout.down_answer);
		CU_ASSERT(a->number == 1 && a->version == 3 && a->where == MST_WHERE_COPIED);
		end();
	}
}

static void the_jobs_end_is_the_leads_to_tell(void)
{
	for (int is_member = 0; is_member < 2; is_member++) {
		begin_member(is_member);
		note_count = 0;
		fail();
		CU_ASSERT_EQUAL(note_count == 0, is_member);
		note_count = 0;
		evict(0); /* the end of its own session is told; and why, in the job's words */
		CU_ASSERT_EQUAL_FATAL(note_count, 1);
		const struct mst_lane_session *word = cell_at(
			0, cfg.layout.down_session[MST_SESSION_OF_WORKER]);
		CU_ASSERT(word->state == MST_SESSION_ENDED && word->error == -EHOSTDOWN);
		end();
	}
}

static void asks_alone_go_to_the_lead(void)
{
	begin_member(true);
	ask(0);
	CU_ASSERT_EQUAL_FATAL(event_count, 1);
	CU_ASSERT(said(0, MST_EV_LOST, 0) && event[0].error == -EPROTO);
	evict(0);
	end();
}

static void a_second_ask_before_the_first_is_answered_ends_the_session(void)
{
	begin_member(false);
	ask(0);
	CU_ASSERT(said(0, MST_EV_ASK, 0));
	ask(0);
	CU_ASSERT(said(1, MST_EV_LOST, 0) && event[1].error == -EPROTO);
	ask(1);
	release(1, 2);
	work_off();
	event_count = 0;
	ask(1);
	CU_ASSERT(said(0, MST_EV_ASK, 1));
	evict(0);
	end();
}

static void a_grant_is_given_up_once(void)
{
	begin_member(false);
	arrive(0, mst_imm(MST_IMM_ABANDON, 0, 1));
	CU_ASSERT(said(0, MST_EV_ABANDONED, 0));
	arrive(0, mst_imm(MST_IMM_ABANDON, 0, 1));
	CU_ASSERT(said(1, MST_EV_LOST, 0) && event[1].error == -EPROTO);
	evict(0);
	end();
}

static void a_grant_given_up_is_granted_anew(void)
{
	begin_member(true);
	arrive(0, mst_imm(MST_IMM_ABANDON, 0, 1));
	regrant(0);
	mst_aggregator_deliver(aggregator);
	CU_ASSERT_EQUAL_FATAL(note_count, 1);
	CU_ASSERT_EQUAL(note[0].put.imm, mst_imm(MST_IMM_GRANT, 0, 2));
	arrive(0, mst_imm(MST_IMM_ABANDON, 0, 2));
	CU_ASSERT(said(1, MST_EV_ABANDONED, 0));
	end();
}

/* Its worker asked the lead without having heard from here. */
static void an_answer_behind_another_ends_the_session(void)
{
	begin_member(true);
	release(0, 2);
	event_count = 0;
	release(0, 2);
	CU_ASSERT(said(0, MST_EV_LOST, 0) && event[0].error == -EPROTO);
	evict(0);
	work_off();
	end();
}

static CU_TestInfo cases[] = {
	{ "a member's answer has no record", a_members_answer_has_no_record },
	{ "the job's end is the lead's to tell", the_jobs_end_is_the_leads_to_tell },
	{ "asks alone go to the lead", asks_alone_go_to_the_lead },
	{ "a second ask before the first is answered ends the session",
	  a_second_ask_before_the_first_is_answered_ends_the_session },
	{ "a grant is given up once", a_grant_is_given_up_once },
	{ "a grant given up is granted anew", a_grant_given_up_is_granted_anew },
	{ "an answer behind another ends the session", an_answer_behind_another_ends_the_session },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("aggregator member", cases);
}
