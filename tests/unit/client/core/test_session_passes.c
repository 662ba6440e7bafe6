/* SPDX-License-Identifier: MIT */
/* Passes: a worker is asked for what it has finished, and has nothing. A pass takes a number among
 * the tickets and has no verdict; what tells that it has been judged may arrive in any order. */
#include <errno.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind one = { .slots = 1 };
static const struct session_kind two = { .slots = 2, .window = MST_WINDOW_MAX };
static const struct session_kind two_of_three = { .slots = 2,
						  .window = MST_WINDOW_MAX,
						  .servers = 3 };

static uint64_t judged; /* the newest number that the leader has judged */

/* What a header acknowledges must have been judged: else the leader ends the session. */
static void check_unheard(void)
{
	CU_ASSERT(session_sent.unheard < session_sent.seq);
	CU_ASSERT(session_sent.seq - 1 - session_sent.unheard <= judged);
}

static bool pass(void)
{
	bool sent = mst_worker_pass(&session_worker, &session_sent);

	if (sent)
		check_unheard();
	return sent;
}

static void push(bool keep)
{
	session_fill_and_push(keep);
	check_unheard();
}

static int count(uint64_t ticket)
{
	judged = ticket;
	return session_judge(ticket, MUSTER_COUNTED, ticket);
}

static void begin(const struct session_kind *kind)
{
	judged = 0;
	session_begin_working(kind);
}

static bool misses(unsigned what)
{
	return mst_worker_misses(&session_worker) == what;
}

static void a_pass_is_a_header_without_contents(void)
{
	begin(&one);
	CU_ASSERT(pass());
	CU_ASSERT_EQUAL(session_sent.seq, 1);
	CU_ASSERT_EQUAL(session_sent.epoch, 1);
	CU_ASSERT_EQUAL(session_sent.weight, 0);
	CU_ASSERT_EQUAL(session_sent.flags, MST_HEADER_PASS);
	CU_ASSERT_EQUAL(session_sent.ask.number, 0);
	CU_ASSERT_FALSE(pass()); /* its slot is out */
	session_end();
}

/* While an ask is out the servers may write to the place of the result, and let go of its buffer.
 */
static void the_result_stays_until_the_wait(void)
{
	begin(&one);
	CU_ASSERT(pass());
	CU_ASSERT_EQUAL(session_worker.ask, MST_ASK_NONE);
	CU_ASSERT_FALSE(mst_worker_awaits(&session_worker));
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_worker.ask, MST_ASK_OUT);
	session_end();
}

/* An ask that is out was sent before the pass, and its answer is what the wait brings. */
static void a_pass_asks_for_no_other_answer(void)
{
	begin(&two);
	push(false);
	CU_ASSERT(pass());
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(count(1), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT(misses(0));
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	session_end();
}

static void a_pass_has_no_verdict(void)
{
	begin(&one);
	CU_ASSERT(pass());
	CU_ASSERT(session_wait_asks());
	CU_ASSERT(misses(MST_MISSES_ANSWER | MST_MISSES_VERDICT | MST_MISSES_SLOT));
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT(misses(MST_MISSES_VERDICT | MST_MISSES_SLOT));
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), -EPROTO);
	judged = 1;
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_NONE);
	CU_ASSERT_EQUAL(session_out.ticket, 0);
	push(false);
	CU_ASSERT_EQUAL(session_sent.seq, 2);
	CU_ASSERT_EQUAL(session_sent.unheard, 0);
	session_end();
}

static void ranges_of_a_pass_are_told_as_cancelled(void)
{
	begin(&one);
	mst_worker_fill(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_range(&session_worker, 0, 60), 0);
	CU_ASSERT(pass());
	CU_ASSERT(session_wait_asks());
	judged = 1;
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(session_out.ticket, 0);
	mst_worker_fill(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_range(&session_worker, 0, 60), 0);
	session_end();
}

static void a_verdict_after_a_pass_tells_of_it_too(void)
{
	begin(&two);
	CU_ASSERT(pass());
	push(true);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(count(2), 0);
	CU_ASSERT_EQUAL(session_grant(1), 0);
	CU_ASSERT_EQUAL(session_answer(2, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.ticket, 2);
	push(false);
	CU_ASSERT_EQUAL(session_sent.unheard, 0);
	CU_ASSERT_EQUAL(session_grant(0), 0); /* late, and tells nothing new */
	session_end();
}

/* Cells go slot by slot, so the grant of a pass may overtake the verdict before it. */
static void the_grant_of_a_pass_may_come_before_the_verdict_before_it(void)
{
	begin(&two);
	mst_worker_fill(&session_worker);
	push(true);
	CU_ASSERT(pass());
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_grant(1), 0);
	CU_ASSERT(misses(MST_MISSES_VERDICT));
	CU_ASSERT_EQUAL(count(1), 0);
	CU_ASSERT(misses(0));
	judged = 2;
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	push(false);
	CU_ASSERT_EQUAL(session_sent.unheard, 0);
	session_end();
}

static void the_later_of_two_passes_tells_of_both(void)
{
	begin(&two);
	CU_ASSERT(pass());
	CU_ASSERT(pass());
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_grant(1), 0);
	judged = 2;
	CU_ASSERT_EQUAL(session_take(), 0);
	push(false);
	CU_ASSERT_EQUAL(session_sent.unheard, 0);
	session_end();
}

/* One server stands still, and so the slot of the pass does not come back. */
static void a_slot_may_stay_away_for_ever(void)
{
	begin(&two);
	CU_ASSERT(pass());
	for (uint64_t ticket = 2; ticket <= 301; ticket++) {
		push(ticket % 2 == 0);
		CU_ASSERT_EQUAL_FATAL(count(ticket), 0);
		CU_ASSERT_EQUAL(session_grant(1), 0);
		if (session_worker.ask == MST_ASK_OUT)
			CU_ASSERT_EQUAL_FATAL(session_answer(ticket, MST_WHERE_IN_PLACE), 0);
		if (ticket % 5 == 0 && mst_worker_misses(&session_worker) == 0)
			while (session_take() == 1)
				;
	}
	CU_ASSERT_EQUAL(session_grant(0), 0);
	push(false);
	CU_ASSERT(pass());
	session_end();
}

static void a_pass_is_judged_when_all_servers_have_granted(void)
{
	uint64_t epoch;

	judged = 0;
	session_begin(&two_of_three);
	mst_worker_start(&session_worker);
	session_worker.cfg.servers = 1; /* whose answer to the start is enough here */
	CU_ASSERT_EQUAL_FATAL(session_answer(0, MST_WHERE_IN_PLACE), 0);
	session_worker.cfg.servers = 3;
	CU_ASSERT_EQUAL_FATAL(session_take(), 0);
	CU_ASSERT(pass());
	epoch = session_worker.slot[0].epoch + 1;
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 2, 0, epoch), 0);
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 0, 0, epoch), 0);
	push(true);
	CU_ASSERT_EQUAL(session_sent.unheard, 1);
	judged = 1; /* what a follower grants, the leader has judged */
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 1, 0, epoch), 0);
	push(true);
	CU_ASSERT_EQUAL(session_sent.unheard, 1);
	session_end();
}

static void the_end_of_the_job_leaves_no_pass_behind(void)
{
	begin(&two);
	push(true);
	CU_ASSERT(pass());
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	CU_ASSERT(session_out.finished);
	session_end();
}

static void without_a_slot_there_is_no_pass(void)
{
	begin(&one);
	push(true);
	CU_ASSERT_FALSE(pass());
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT_FALSE(pass());
	session_end();
}

static CU_TestInfo cases[] = {
	{ "a pass is a header without contents, which does not ask",
	  a_pass_is_a_header_without_contents },
	{ "after a pass the result stays readable until the wait",
	  the_result_stays_until_the_wait },
	{ "a pass after an ask asks for no other answer", a_pass_asks_for_no_other_answer },
	{ "a pass has no verdict; its grant says that it has been judged", a_pass_has_no_verdict },
	{ "ranges that a pass gives up are told as cancelled",
	  ranges_of_a_pass_are_told_as_cancelled },
	{ "a verdict after a pass tells of the pass, too", a_verdict_after_a_pass_tells_of_it_too },
	{ "the grant of a pass may come before the verdict before it",
	  the_grant_of_a_pass_may_come_before_the_verdict_before_it },
	{ "the later of two passes tells of both", the_later_of_two_passes_tells_of_both },
	{ "a pass's slot may stay away while 300 pushes go by", a_slot_may_stay_away_for_ever },
	{ "a pass is judged when all servers have granted its slot",
	  a_pass_is_judged_when_all_servers_have_granted },
	{ "the end of the job leaves no pass behind", the_end_of_the_job_leaves_no_pass_behind },
	{ "without a slot there is no pass", without_a_slot_there_is_no_pass },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session: passes", cases);
}
