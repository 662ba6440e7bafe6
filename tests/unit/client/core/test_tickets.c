/* SPDX-License-Identifier: MIT */
/* After the loss of a server: what became of the tickets that no server will judge any more, as the
 * sets of the versions tell it. */
#include <string.h>

#include "client/core/tickets.h"
#include "common/wire/rule.h"
#include "tests/ut.h"

static struct mst_tickets tickets;

static void begin(void)
{
	memset(&tickets, 0, sizeof(tickets));
}

static void push(uint64_t tag)
{
	(void)mst_tickets_issue(&tickets, tag);
}

static void pass(void)
{
	(void)mst_tickets_issue_pass(&tickets);
}

static int judge(uint64_t number, enum muster_verdict verdict, uint64_t counted_in)
{
	return mst_tickets_judge(&tickets, &(struct mst_ticket){ .number = number,
								 .verdict = verdict,
								 .counted_in = counted_in });
}

static void counted(uint64_t version, uint32_t count, uint32_t window)
{
	mst_tickets_counted(&tickets,
			    &(struct mst_tickets_part){ version, count, window, UINT64_MAX });
}

/* The next verdict that is given out. */
static bool gives(uint64_t number, enum muster_verdict verdict, uint64_t counted_in)
{
	if (!mst_tickets_due(&tickets))
		return false;
	struct mst_ticket t = mst_tickets_give(&tickets);
	return t.number == number && t.verdict == verdict && t.counted_in == counted_in;
}

static bool gives_no_more(void)
{
	return !mst_tickets_due(&tickets) && mst_tickets_open(&tickets) == 0;
}

static void one_that_a_set_names_is_counted(void)
{
	begin();
	push(4);
	counted(5, 1, 0);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 5));
	CU_ASSERT(gives_no_more());
}

static void one_that_no_set_names_is_cancelled(void)
{
	begin();
	push(4);
	counted(5, 0, 0);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(1, MUSTER_CANCELLED, 0));
	CU_ASSERT(gives_no_more());
}

/* No version was made after that which the rank has. */
static void without_a_version_all_are_cancelled(void)
{
	begin();
	push(4);
	push(4);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(1, MUSTER_CANCELLED, 0));
	CU_ASSERT(gives(2, MUSTER_CANCELLED, 0));
	CU_ASSERT(gives_no_more());
}

static void of_several_the_first_are_counted(void)
{
	begin();
	push(4);
	push(4);
	push(4);
	counted(5, 2, 0);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 5));
	CU_ASSERT(gives(2, MUSTER_COUNTED, 5));
	CU_ASSERT(gives(3, MUSTER_CANCELLED, 0));
	CU_ASSERT(gives_no_more());
}

static void each_version_has_its_own(void)
{
	begin();
	push(4);
	push(4);
	push(4);
	counted(5, 1, 3);
	counted(6, 2, 3);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 5));
	CU_ASSERT(gives(2, MUSTER_COUNTED, 6));
	CU_ASSERT(gives(3, MUSTER_COUNTED, 6));
	CU_ASSERT(gives_no_more());
}

static void a_version_may_name_nobody(void)
{
	begin();
	push(4);
	counted(5, 0, 3);
	counted(6, 1, 3);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 6));
	CU_ASSERT(gives_no_more());
}

/* The first was too late for the step, and the second was not. */
static void what_the_rule_dropped_is_passed_over(void)
{
	begin();
	push(3);
	push(4);
	counted(5, 1, 0);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(1, MUSTER_CANCELLED, 0));
	CU_ASSERT(gives(2, MUSTER_COUNTED, 5));
	CU_ASSERT(gives_no_more());
}

static void a_window_reaches_back_so_far(void)
{
	begin();
	push(1);
	push(2);
	push(4);
	counted(5, 2, 2);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(1, MUSTER_CANCELLED, 0));
	CU_ASSERT(gives(2, MUSTER_COUNTED, 5));
	CU_ASSERT(gives(3, MUSTER_COUNTED, 5));
	begin();
	push(0);
	counted(1000, 1, MST_WINDOW_MAX);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 1000));
	CU_ASSERT(gives_no_more());
}

/* Nobody contributes to a step that has not opened for the rank. */
static void a_tag_from_later_is_not_in_an_earlier_version(void)
{
	begin();
	push(5);
	counted(5, 1, MST_WINDOW_MAX);
	counted(6, 1, 0);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 6));
	CU_ASSERT(gives_no_more());
}

static void passes_have_numbers_and_no_verdicts(void)
{
	begin();
	pass();
	push(4);
	pass();
	pass();
	push(4);
	pass();
	counted(5, 2, MST_WINDOW_MAX);
	CU_ASSERT(gives(2, MUSTER_COUNTED, 5));
	CU_ASSERT(gives(5, MUSTER_COUNTED, 5));
	CU_ASSERT_FALSE(mst_tickets_due(&tickets));
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives_no_more());
	push(5);
	CU_ASSERT_EQUAL(tickets.sent, 7);
	CU_ASSERT_EQUAL(mst_tickets_open(&tickets), 1);
}

static void passes_alone_leave_nothing(void)
{
	begin();
	pass();
	pass();
	counted(5, 1, 0);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives_no_more());
}

/* Its slot came back, and the verdict before it did not. */
static void a_pass_whose_slot_came_back_changes_nothing(void)
{
	begin();
	push(4);
	pass();
	mst_tickets_passed(&tickets, 2);
	push(4);
	counted(5, 2, 0);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 5));
	CU_ASSERT(gives(3, MUSTER_COUNTED, 5));
	CU_ASSERT(gives_no_more());
}

static void what_a_server_has_judged_stays(void)
{
	begin();
	push(3);
	push(4);
	push(4);
	CU_ASSERT_EQUAL(judge(1, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(judge(2, MUSTER_COUNTED, 5), 0);
	counted(5, 1, 0); /* that is ticket 2 */
	counted(6, 1, 1);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(1, MUSTER_LATE, 0));
	CU_ASSERT(gives(2, MUSTER_COUNTED, 5));
	CU_ASSERT(gives(3, MUSTER_COUNTED, 6));
	CU_ASSERT(gives_no_more());
}

static void what_was_given_out_is_not_counted_twice(void)
{
	begin();
	push(4);
	push(4);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 5), 0);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 5));
	counted(5, 1, 0);
	mst_tickets_cancel_rest(&tickets);
	CU_ASSERT(gives(2, MUSTER_CANCELLED, 0));
	CU_ASSERT(gives_no_more());
}

/* The ring of tickets goes round, and its cells have older verdicts. */
static void old_verdicts_are_not_taken_for_new_ones(void)
{
	begin();
	for (uint64_t n = 1; n <= 3 * MUSTER_TICKETS_MAX; n++) {
		push(n - 1);
		CU_ASSERT_EQUAL_FATAL(judge(n, MUSTER_COUNTED, n), 0);
		CU_ASSERT_FATAL(gives(n, MUSTER_COUNTED, n));
	}
	uint64_t last = tickets.sent;
	push(last);
	CU_ASSERT_EQUAL_FATAL(judge(last + 1, MUSTER_COUNTED, last + 1), 0);
	while (!mst_tickets_full(&tickets))
		push(last);
	counted(last + 1, MUSTER_TICKETS_MAX - 1, 0);
	mst_tickets_cancel_rest(&tickets);
	for (uint64_t n = last + 1; n < last + MUSTER_TICKETS_MAX; n++)
		CU_ASSERT_FATAL(gives(n, MUSTER_COUNTED, last + 1));
	CU_ASSERT(gives(last + MUSTER_TICKETS_MAX, MUSTER_CANCELLED, 0));
	CU_ASSERT(gives_no_more());
}

/* The servers had counted it in a step that they did not end. */
static void what_a_lost_version_counted_is_cancelled(void)
{
	begin();
	push(4);
	push(5);
	push(6);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 5), 0);
	CU_ASSERT_EQUAL(judge(2, MUSTER_COUNTED, 6), 0);
	CU_ASSERT_EQUAL(judge(3, MUSTER_STALE, 0), 0);
	mst_tickets_withdraw(&tickets, 5);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 5));
	CU_ASSERT(gives(2, MUSTER_CANCELLED, 0));
	CU_ASSERT(gives(3, MUSTER_STALE, 0));
	CU_ASSERT(gives_no_more());
}

/* A server has counted it, and was lost before it gave the version. The next one has saved that, or
 * has not. */
static void what_stands_is_judged_again(void)
{
	for (int saved = 0; saved < 2; saved++) {
		begin();
		push(4);
		push(5);
		CU_ASSERT_EQUAL(mst_tickets_issue_pass(&tickets), 3);
		push(6);
		CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 5), 0);
		CU_ASSERT_EQUAL(judge(2, MUSTER_COUNTED, 6), 0);
		CU_ASSERT_EQUAL(judge(4, MUSTER_STALE, 0), 0);
		mst_tickets_reopen(&tickets, 5);
		CU_ASSERT_EQUAL(tickets.judged, 1);
		if (saved)
			CU_ASSERT_EQUAL(judge(2, MUSTER_COUNTED, 6), 0);
		mst_tickets_cancel_rest(&tickets);
		CU_ASSERT(gives(1, MUSTER_COUNTED, 5));
		CU_ASSERT(saved ? gives(2, MUSTER_COUNTED, 6) : gives(2, MUSTER_CANCELLED, 0));
		CU_ASSERT(gives(4, MUSTER_CANCELLED, 0));
		CU_ASSERT(gives_no_more());
	}
}

static void nothing_is_judged_again_where_all_stands(void)
{
	begin();
	push(4);
	push(5);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 5), 0);
	CU_ASSERT_EQUAL(judge(2, MUSTER_LATE, 0), 0);
	mst_tickets_reopen(&tickets, 5);
	CU_ASSERT_EQUAL(tickets.judged, 2);
	CU_ASSERT(gives(1, MUSTER_COUNTED, 5));
	mst_tickets_reopen(&tickets, 4); /* what was given out is given out */
	CU_ASSERT(gives(2, MUSTER_LATE, 0));
	CU_ASSERT(gives_no_more());
}

static CU_TestInfo cases[] = {
	{ "one that a set names is counted", one_that_a_set_names_is_counted },
	{ "one that no set names is cancelled", one_that_no_set_names_is_cancelled },
	{ "without a version all are cancelled", without_a_version_all_are_cancelled },
	{ "of several the first are counted, and the rest is cancelled",
	  of_several_the_first_are_counted },
	{ "each version has its own", each_version_has_its_own },
	{ "a version may name nobody", a_version_may_name_nobody },
	{ "what the rule dropped is passed over", what_the_rule_dropped_is_passed_over },
	{ "a window reaches back so far, and no further", a_window_reaches_back_so_far },
	{ "a tag from later is not in an earlier version",
	  a_tag_from_later_is_not_in_an_earlier_version },
	{ "passes have numbers, and no verdicts", passes_have_numbers_and_no_verdicts },
	{ "passes alone leave nothing", passes_alone_leave_nothing },
	{ "a pass whose slot came back changes nothing",
	  a_pass_whose_slot_came_back_changes_nothing },
	{ "what a server has judged stays, and stays first", what_a_server_has_judged_stays },
	{ "what was given out as counted is not counted twice",
	  what_was_given_out_is_not_counted_twice },
	{ "old verdicts are not taken for new ones", old_verdicts_are_not_taken_for_new_ones },
	{ "what a lost version counted is cancelled", what_a_lost_version_counted_is_cancelled },
	{ "what stands is judged again", what_stands_is_judged_again },
	{ "nothing is judged again where all stands", nothing_is_judged_again_where_all_stands },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("tickets", cases);
}
