/* SPDX-License-Identifier: MIT */
/* One worker's side of a session over a transport whose puts take their time: what is handed over,
 * what is on its way, and when a slot may be filled again. */
#include <errno.h>

#include "tests/unit/session_case.h"
#include "tests/ut.h"

static const struct session_kind bsp = { .slots = 1 };
static const struct session_kind two = { .slots = 2 };

static bool misses(unsigned what)
{
	return mst_worker_misses(&w) == what;
}

static bool rest_is(uint64_t from, uint64_t begin, uint64_t end)
{
	struct mst_range rest = { 0, 0 };

	return mst_worker_rest(&w, from, &rest) && rest.begin == begin && rest.end == end;
}

static bool no_rest(void)
{
	struct mst_range rest;

	return !mst_worker_rest(&w, 0, &rest);
}

static void the_rest_is_what_no_range_covers(void)
{
	begin_working(&two);
	CU_ASSERT(no_rest()); /* nothing is being filled */
	mst_worker_fill(&w);
	CU_ASSERT(rest_is(0, 0, 100));
	CU_ASSERT_EQUAL(mst_worker_range(&w, 20, 30), 0);
	CU_ASSERT(rest_is(0, 0, 20));
	CU_ASSERT(rest_is(20, 50, 100));
	CU_ASSERT_EQUAL(mst_worker_range(&w, 0, 20), 0);
	CU_ASSERT(rest_is(0, 50, 100));
	CU_ASSERT_EQUAL(mst_worker_range(&w, 50, 50), 0);
	CU_ASSERT(no_rest());
	end();
}

static void what_cannot_count_stays_here(void)
{
	begin_working(&two);
	mst_worker_fill(&w);
	mst_worker_pull(&w, &asked);
	CU_ASSERT_EQUAL(answer(1, MST_WHERE_COPIED), 0);
	CU_ASSERT(no_rest());
	CU_ASSERT_EQUAL(push(false), 1);
	CU_ASSERT(sent.flags & MST_HEADER_EMPTY);
	end();

	begin_working(&two);
	mst_worker_fill(&w);
	CU_ASSERT_EQUAL(mst_worker_ended(&w, 0), 0);
	CU_ASSERT(no_rest());
	end();
}

static void a_slot_is_filled_again_when_granted_and_sent(void)
{
	begin_working(&bsp);
	mst_worker_fill(&w);
	mst_worker_posted(&w);
	mst_worker_posted(&w);
	CU_ASSERT_EQUAL(push(false), 1);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(answer(1, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(grant(0), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), -EAGAIN);
	CU_ASSERT(misses(MST_MISSES_SLOT));
	mst_worker_sent(&w, 0);
	CU_ASSERT(misses(MST_MISSES_SLOT));
	mst_worker_sent(&w, 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), 0);
	end();

	begin_working(&bsp); /* the other way round */
	mst_worker_fill(&w);
	mst_worker_posted(&w);
	CU_ASSERT_EQUAL(push(true), 1);
	mst_worker_sent(&w, 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), -EAGAIN);
	CU_ASSERT_EQUAL(grant(0), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), 0);
	end();
}

/* What is left of an outcome needs a slot as well. */
static void more_verdicts_wait_for_what_is_being_sent(void)
{
	begin_working(&(struct session_kind){ .slots = 1, .window = MST_WINDOW_MAX });
	fill_and_push(true);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(grant(0), 0);
	mst_worker_fill(&w);
	mst_worker_posted(&w);
	CU_ASSERT_EQUAL(push(false), 1);
	CU_ASSERT_EQUAL(judge(2, MUSTER_COUNTED, 2), 0);
	CU_ASSERT_EQUAL(grant(0), 0);
	CU_ASSERT_EQUAL(answer(2, MST_WHERE_COPIED), 0);
	mst_worker_sent(&w, 0);
	CU_ASSERT_EQUAL(take(), 1);
	CU_ASSERT_EQUAL(take(), 0);
	end();
}

static void abandoning_what_was_sent_spends_the_slot(void)
{
	begin_working(&bsp);
	mst_worker_fill(&w);
	mst_worker_posted(&w);
	CU_ASSERT_EQUAL(mst_worker_abandon(&w), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), -EAGAIN);
	CU_ASSERT(wait_asks());
	CU_ASSERT_EQUAL(answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT(misses(MST_MISSES_SLOT));
	CU_ASSERT_EQUAL(grant(0), 0);
	CU_ASSERT(misses(MST_MISSES_SLOT)); /* it is still being sent */
	mst_worker_sent(&w, 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.verdict, MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(out.ticket, 0);
	fill_and_push(false);
	CU_ASSERT_EQUAL(sent.epoch, 2);
	CU_ASSERT_EQUAL(sent.seq, 1);
	end();
}

/* Sent is sent, even where all of it has arrived by now. */
static void abandoning_after_the_sends_tells_too(void)
{
	begin_working(&two);
	mst_worker_fill(&w);
	mst_worker_posted(&w);
	mst_worker_sent(&w, 0);
	CU_ASSERT_EQUAL(mst_worker_abandon(&w), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), 1); /* nothing of this one is */
	CU_ASSERT_EQUAL(mst_worker_abandon(&w), -1);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), 1);
	end();
}

static void abandoning_after_the_end_tells_nobody(void)
{
	begin_working(&bsp);
	mst_worker_fill(&w);
	mst_worker_posted(&w);
	CU_ASSERT_EQUAL(mst_worker_ended(&w, 0), 0);
	CU_ASSERT_EQUAL(mst_worker_abandon(&w), -1);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT(out.finished);
	mst_worker_sent(&w, 0);
	end();
}

static void a_contribution_half_sent_is_cancelled_by_the_end(void)
{
	begin_working(&bsp);
	mst_worker_fill(&w);
	mst_worker_posted(&w);
	CU_ASSERT_EQUAL(mst_worker_ended(&w, 0), 0);
	CU_ASSERT_EQUAL(push(false), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.verdict, MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(out.ticket, 1);
	CU_ASSERT(out.finished);
	end();
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
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session, sends", cases);
}
