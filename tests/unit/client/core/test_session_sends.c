/* SPDX-License-Identifier: MIT */
/* One worker's side of a session over a transport whose puts take their time: what is handed over,
 * what is on its way, and when a slot may be filled again. */
#include <errno.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind bsp = { .slots = 1 };
static const struct session_kind two = { .slots = 2 };

static bool misses(unsigned what)
{
	return mst_worker_misses(&session_worker) == what;
}

static bool rest_is(uint64_t from, uint64_t begin, uint64_t end)
{
	struct mst_range rest = { 0, 0 };

	return mst_worker_rest(&session_worker, from, &rest) && rest.begin == begin &&
	       rest.end == end;
}

static bool no_rest(void)
{
	struct mst_range rest;

	return !mst_worker_rest(&session_worker, 0, &rest);
}

static void the_rest_is_what_no_range_covers(void)
{
	session_begin_working(&two);
	CU_ASSERT(no_rest()); /* nothing is being filled */
	mst_worker_fill(&session_worker);
	CU_ASSERT(rest_is(0, 0, 100));
	CU_ASSERT_EQUAL(mst_worker_range(&session_worker, 20, 30), 0);
	CU_ASSERT(rest_is(0, 0, 20));
	CU_ASSERT(rest_is(20, 50, 100));
	CU_ASSERT_EQUAL(mst_worker_range(&session_worker, 0, 20), 0);
	CU_ASSERT(rest_is(0, 50, 100));
	CU_ASSERT_EQUAL(mst_worker_range(&session_worker, 50, 50), 0);
	CU_ASSERT(no_rest());
	session_end();
}

static void what_cannot_count_stays_here(void)
{
	session_begin_working(&two);
	mst_worker_fill(&session_worker);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_COPIED), 0);
	CU_ASSERT(no_rest());
	CU_ASSERT_EQUAL(session_push(false), 1);
	CU_ASSERT(session_sent.flags & MST_HEADER_EMPTY);
	session_end();

	session_begin_working(&two);
	mst_worker_fill(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT(no_rest());
	session_end();
}

static void a_slot_is_filled_again_when_granted_and_sent(void)
{
	session_begin_working(&bsp);
	mst_worker_fill(&session_worker);
	mst_worker_posted(&session_worker);
	mst_worker_posted(&session_worker);
	CU_ASSERT_EQUAL(session_push(false), 1);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	CU_ASSERT(misses(MST_MISSES_SLOT));
	mst_worker_sent(&session_worker, 0);
	CU_ASSERT(misses(MST_MISSES_SLOT));
	mst_worker_sent(&session_worker, 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), 0);
	session_end();

	session_begin_working(&bsp); /* the other way round */
	mst_worker_fill(&session_worker);
	mst_worker_posted(&session_worker);
	CU_ASSERT_EQUAL(session_push(true), 1);
	mst_worker_sent(&session_worker, 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), 0);
	session_end();
}

/* What is left of an outcome needs a slot as well. */
static void more_verdicts_wait_for_what_is_being_sent(void)
{
	session_begin_working(&(struct session_kind){ .slots = 1, .window = MST_WINDOW_MAX });
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	mst_worker_fill(&session_worker);
	mst_worker_posted(&session_worker);
	CU_ASSERT_EQUAL(session_push(false), 1);
	CU_ASSERT_EQUAL(session_judge(2, MUSTER_COUNTED, 2), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_answer(2, MST_WHERE_COPIED), 0);
	mst_worker_sent(&session_worker, 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT_EQUAL(session_take(), 0);
	session_end();
}

static void abandoning_what_was_sent_spends_the_slot(void)
{
	session_begin_working(&bsp);
	mst_worker_fill(&session_worker);
	mst_worker_posted(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_abandon(&session_worker), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT(misses(MST_MISSES_SLOT));
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT(misses(MST_MISSES_SLOT)); /* it is still being sent */
	mst_worker_sent(&session_worker, 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(session_out.ticket, 0);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_sent.epoch, 2);
	CU_ASSERT_EQUAL(session_sent.seq, 1);
	session_end();
}

/* Sent is sent, even where all of it has arrived by now. */
static void abandoning_after_the_sends_tells_too(void)
{
	session_begin_working(&two);
	mst_worker_fill(&session_worker);
	mst_worker_posted(&session_worker);
	mst_worker_sent(&session_worker, 0);
	CU_ASSERT_EQUAL(mst_worker_abandon(&session_worker), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), 1); /* nothing of this one is */
	CU_ASSERT_EQUAL(mst_worker_abandon(&session_worker), -1);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), 1);
	session_end();
}

static void abandoning_after_the_end_tells_nobody(void)
{
	session_begin_working(&bsp);
	mst_worker_fill(&session_worker);
	mst_worker_posted(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT_EQUAL(mst_worker_abandon(&session_worker), -1);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.finished);
	mst_worker_sent(&session_worker, 0);
	session_end();
}

static void a_contribution_half_sent_is_cancelled_by_the_end(void)
{
	session_begin_working(&bsp);
	mst_worker_fill(&session_worker);
	mst_worker_posted(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT_EQUAL(session_push(false), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	CU_ASSERT(session_out.finished);
	session_end();
}

/* ---- memory of the caller's ---- */

static void lend(void)
{
	mst_worker_posted(&session_worker);
	mst_worker_lent(&session_worker);
}

static void give_back(uint32_t slot)
{
	mst_worker_returned(&session_worker, slot);
	mst_worker_sent(&session_worker, slot);
}

/* Another slot is free, so the source is all that is missing. */
static void a_wait_brings_the_sources_back(void)
{
	session_begin_working(&two);
	CU_ASSERT(mst_worker_released(&session_worker, 0));
	mst_worker_fill(&session_worker);
	lend();
	lend();
	CU_ASSERT(!mst_worker_released(&session_worker, 0));
	CU_ASSERT_EQUAL(session_push(false), 1);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT(misses(MST_MISSES_SOURCE));
	CU_ASSERT(!mst_worker_misses_words(&session_worker));
	give_back(0);
	CU_ASSERT(misses(MST_MISSES_SOURCE));
	CU_ASSERT(!mst_worker_released(&session_worker, 1));
	give_back(0);
	CU_ASSERT(mst_worker_released(&session_worker, 1));
	CU_ASSERT_EQUAL(session_take(), 0);
	session_end();
}

static void a_wait_leaves_sources_out_that_did_not_ask(void)
{
	session_begin_working(&two);
	mst_worker_pull(&session_worker, &session_asked);
	mst_worker_fill(&session_worker);
	lend();
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0); /* not pushed yet */
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_push(true), 1);
	CU_ASSERT_EQUAL(session_answer(2, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0); /* pushed after the ask */
	CU_ASSERT(!mst_worker_released(&session_worker, 1));
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 3), 0);
	CU_ASSERT_EQUAL(session_answer(3, MST_WHERE_COPIED), 0);
	CU_ASSERT(misses(MST_MISSES_SOURCE));
	give_back(0);
	CU_ASSERT_EQUAL(session_take(), 0);
	session_end();
}

static void each_ticket_has_its_own_sources(void)
{
	session_begin_working(&two);
	mst_worker_fill(&session_worker);
	lend();
	CU_ASSERT_EQUAL(session_push(true), 1);
	mst_worker_fill(&session_worker);
	lend();
	CU_ASSERT_EQUAL(session_push(true), 1);
	give_back(1);
	CU_ASSERT(mst_worker_released(&session_worker, 2));
	CU_ASSERT(!mst_worker_released(&session_worker, 1));
	CU_ASSERT(!mst_worker_released(&session_worker, 0));
	give_back(0);
	CU_ASSERT(mst_worker_released(&session_worker, 1));
	CU_ASSERT(mst_worker_released(&session_worker, 0));
	session_end();
}

/* No ticket is theirs, and no wait waits for them; but their slot is not filled before. */
static void sources_that_were_given_up_come_back(void)
{
	session_begin_working(&two);
	mst_worker_fill(&session_worker);
	lend();
	CU_ASSERT_EQUAL(mst_worker_abandon(&session_worker), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), 1);
	CU_ASSERT_EQUAL(session_push(false), 1);
	CU_ASSERT(mst_worker_released(&session_worker, 1));
	CU_ASSERT(!mst_worker_released(&session_worker, 0));
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	give_back(0);
	CU_ASSERT(mst_worker_released(&session_worker, 0));
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), 0);
	session_end();
}

static void the_end_waits_for_all_sources_of_pushes(void)
{
	session_begin_working(&two);
	mst_worker_fill(&session_worker);
	lend();
	CU_ASSERT_EQUAL(session_push(true), 1);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT(misses(MST_MISSES_SOURCE));
	CU_ASSERT(!session_wait_asks()); /* a server has nothing to say to that */
	give_back(0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.finished);
	session_end();
}

static void a_lost_link_is_not_waited_for(void)
{
	session_begin_working(&two);
	mst_worker_fill(&session_worker);
	lend();
	CU_ASSERT_EQUAL(session_push(false), 1);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT(misses(MST_MISSES_SOURCE));
	mst_worker_cut(&session_worker);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(!mst_worker_released(&session_worker, 1));
	session_end();
}

static CU_TestInfo cases[] = {
	{ "the rest is what no range covers", the_rest_is_what_no_range_covers },
	{ "what cannot count stays here", what_cannot_count_stays_here },
	{ "a slot is filled again when it is granted and its data are sent",
	  a_slot_is_filled_again_when_granted_and_sent },
	{ "more verdicts wait for what is being sent", more_verdicts_wait_for_what_is_being_sent },
	{ "abandoning what was sent spends the slot", abandoning_what_was_sent_spends_the_slot },
	{ "abandoning after the sends tells too", abandoning_after_the_sends_tells_too },
	{ "abandoning after the end tells nobody", abandoning_after_the_end_tells_nobody },
	{ "a contribution half sent is cancelled by the end",
	  a_contribution_half_sent_is_cancelled_by_the_end },
	{ "a wait brings the sources back", a_wait_brings_the_sources_back },
	{ "a wait leaves sources out whose push did not ask",
	  a_wait_leaves_sources_out_that_did_not_ask },
	{ "each ticket has its own sources", each_ticket_has_its_own_sources },
	{ "sources that were given up come back", sources_that_were_given_up_come_back },
	{ "the end waits for the sources of all pushes", the_end_waits_for_all_sources_of_pushes },
	{ "a lost link is not waited for", a_lost_link_is_not_waited_for },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session, sends", cases);
}
