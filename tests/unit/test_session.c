/* SPDX-License-Identifier: MIT */
/* One worker's side of a session, without a transport or a clock: pushing, asking, waiting,
 * ends. */
#include <errno.h>
#include <math.h>

#include "tests/unit/session_case.h"
#include "tests/ut.h"

static const struct session_kind bsp = { .slots = 1 };
static const struct session_kind two = { .slots = 2 };
static const struct session_kind async = { .slots = 2, .window = MST_WINDOW_MAX };
static const struct session_kind own = { .slots = 2, .workers_own = true };

static bool misses(unsigned what)
{
	return mst_worker_misses(&w) == what;
}

/* ---- filling ---- */

static void nothing_is_filled_before_the_start(void)
{
	begin(&bsp);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), -EAGAIN);
	mst_worker_start(&w);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), -EAGAIN);
	CU_ASSERT_EQUAL(push(false), -EAGAIN);
	end();
}

static void the_same_buffer_until_it_is_pushed(void)
{
	begin_working(&two);
	int slot = mst_worker_fill(&w);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), slot);
	CU_ASSERT_EQUAL(push(false), 1);
	CU_ASSERT_NOT_EQUAL(mst_worker_fill(&w), slot);
	end();
}

static void all_in_flight_is_eagain(void)
{
	begin_working(&bsp);
	fill_and_push(false);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), -EAGAIN);
	CU_ASSERT_EQUAL(push(false), -EAGAIN);
	CU_ASSERT_EQUAL(grant(0), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), 0);
	end();
}

static void the_first_call_fixes_the_tag(void)
{
	begin_working(&async);
	mst_worker_fill(&w);
	mst_worker_pull(&w, &asked);
	CU_ASSERT_EQUAL(answer(5, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(mst_worker_computes_on(&w), 0);
	CU_ASSERT_EQUAL(push(false), 1);
	CU_ASSERT_EQUAL(sent.tag, 0);
	CU_ASSERT_EQUAL(mst_worker_computes_on(&w), 5);
	fill_and_push(false);
	CU_ASSERT_EQUAL(sent.tag, 5);
	end();
}

static void ranges_belong_to_one_contribution(void)
{
	begin_working(&two);
	mst_worker_fill(&w);
	CU_ASSERT_EQUAL(mst_worker_range(&w, 0, 60), 0);
	CU_ASSERT_EQUAL(mst_worker_range(&w, 50, 10), -EINVAL);
	CU_ASSERT_EQUAL(push(false), 1);
	mst_worker_fill(&w);
	CU_ASSERT_EQUAL(mst_worker_range(&w, 50, 10), 0);
	mst_worker_abandon(&w);
	mst_worker_fill(&w);
	CU_ASSERT_EQUAL(mst_worker_range(&w, 50, 10), 0);
	end();
}

/* ---- headers ---- */

static void a_header_says_it_all(void)
{
	struct muster_contribution c = { .weight = 7, .loss = 0.5, .sum = true };
	uint64_t ticket;

	begin_working(&two);
	CU_ASSERT_EQUAL(mst_worker_push(&w, &c, &sent, &ticket), 1);
	CU_ASSERT_EQUAL(sent.seq, 1);
	CU_ASSERT_EQUAL(sent.epoch, 1);
	CU_ASSERT_EQUAL(sent.weight, 7);
	CU_ASSERT_EQUAL(sent.loss, 0.5);
	CU_ASSERT_EQUAL(sent.flags, MST_HEADER_SUM | MST_HEADER_ASK);
	CU_ASSERT_EQUAL(sent.ask.number, 2);
	CU_ASSERT_EQUAL(sent.ask.have, 0);
	end();
}

static void a_kept_push_does_not_ask(void)
{
	begin_working(&two);
	fill_and_push(true);
	CU_ASSERT_EQUAL(sent.flags, MST_HEADER_FULL);
	CU_ASSERT_EQUAL(sent.ask.number, 0);
	fill_and_push(false);
	CU_ASSERT_EQUAL(sent.flags, MST_HEADER_FULL | MST_HEADER_ASK);
	end();
}

static void a_new_grant_is_used_with_its_epoch(void)
{
	begin_working(&bsp);
	fill_and_push(true);
	CU_ASSERT_EQUAL(judge(1, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(mst_worker_granted(&w, 0, 0, 9), 0);
	fill_and_push(true);
	CU_ASSERT_EQUAL(sent.epoch, 9);
	end();
}

/* Pushes on version 0 when version @newest is known to be decided, under a window. */
static uint32_t flags_behind(uint64_t newest, uint32_t window)
{
	const struct session_kind kind = { .slots = 2, .window = window };

	begin_working(&kind);
	mst_worker_fill(&w);
	mst_worker_pull(&w, &asked);
	CU_ASSERT_EQUAL(answer(newest, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(push(false), 1);
	end();
	return sent.flags & MST_HEADER_EMPTY;
}

static void late_before_sending_goes_empty(void)
{
	CU_ASSERT_EQUAL(flags_behind(1, 0), MST_HEADER_EMPTY);
	CU_ASSERT_EQUAL(flags_behind(2, 2), 0);
	CU_ASSERT_EQUAL(flags_behind(3, 2), MST_HEADER_EMPTY);
	CU_ASSERT_EQUAL(flags_behind(1000, MST_WINDOW_MAX), 0);
}

/* ---- asking and waiting ---- */

static void a_wait_misses_answer_verdict_and_slot(void)
{
	begin_working(&bsp);
	fill_and_push(false);
	CU_ASSERT(misses(MST_MISSES_ANSWER | MST_MISSES_VERDICT | MST_MISSES_SLOT));
	CU_ASSERT(!wait_asks());
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT(misses(MST_MISSES_ANSWER | MST_MISSES_SLOT));
	CU_ASSERT_EQUAL(grant(0), 0);
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	CU_ASSERT_EQUAL(answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.verdict, MUSTER_COUNTED);
	CU_ASSERT_EQUAL(out.ticket, 1);
	CU_ASSERT_EQUAL(out.counted_in, 1);
	CU_ASSERT_EQUAL(out.version, 1);
	CU_ASSERT(out.fresh && !out.finished);
	end();
}

static void a_wait_with_nothing_pushed_asks(void)
{
	begin_working(&bsp);
	CU_ASSERT(wait_asks());
	CU_ASSERT_EQUAL(asked.number, 2);
	CU_ASSERT_EQUAL(asked.have, 0);
	CU_ASSERT(!wait_asks());
	CU_ASSERT_EQUAL(answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.verdict, MUSTER_NONE);
	CU_ASSERT_EQUAL(out.ticket, 0);
	CU_ASSERT(!out.fresh);
	end();
}

static void a_pull_asks_once(void)
{
	begin_working(&async);
	CU_ASSERT(mst_worker_pull(&w, &asked));
	CU_ASSERT(!mst_worker_pull(&w, &asked));
	CU_ASSERT(!wait_asks());
	CU_ASSERT_EQUAL(answer(4, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.version, 4);
	end();
}

static void keeping_what_one_has_keeps_where_it_is(void)
{
	begin_working(&async);
	mst_worker_pull(&w, &asked);
	CU_ASSERT_EQUAL(answer(5, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(take(), 0);
	mst_worker_pull(&w, &asked);
	CU_ASSERT_EQUAL(asked.have, 5);
	CU_ASSERT_EQUAL(answer(5, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(w.held.where, MST_WHERE_COPIED);
	CU_ASSERT(!out.fresh);
	end();
}

static void a_kept_push_is_not_waited_for(void)
{
	begin_working(&async);
	fill_and_push(true);
	CU_ASSERT(wait_asks());
	CU_ASSERT_EQUAL(answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.verdict, MUSTER_NONE);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT(wait_asks());
	CU_ASSERT_EQUAL(answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.verdict, MUSTER_COUNTED);
	CU_ASSERT_EQUAL(out.ticket, 1);
	end();
}

static void verdicts_come_one_by_one_oldest_first(void)
{
	begin_working(&async);
	fill_and_push(true);
	fill_and_push(false);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(judge(2, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(grant(0), 0);
	CU_ASSERT_EQUAL(answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 1);
	CU_ASSERT_EQUAL(out.ticket, 1);
	CU_ASSERT(out.fresh);
	CU_ASSERT(!wait_asks());
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.ticket, 2);
	CU_ASSERT_EQUAL(out.verdict, MUSTER_LATE);
	CU_ASSERT_EQUAL(out.counted_in, 0);
	CU_ASSERT_EQUAL(out.version, 1);
	CU_ASSERT(!out.fresh);
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	end();
}

/* What an outcome left behind needs no ask; but a result that is lent is never handed out. */
static void an_ask_comes_before_what_was_left(void)
{
	begin_working(&async);
	fill_and_push(true);
	fill_and_push(false);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(judge(2, MUSTER_COUNTED, 2), 0);
	CU_ASSERT_EQUAL(grant(0), 0);
	CU_ASSERT_EQUAL(answer(2, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 1);
	CU_ASSERT(mst_worker_pull(&w, &asked));
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	CU_ASSERT_EQUAL(answer(2, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.ticket, 2);
	end();
}

static void a_push_while_an_ask_is_out_renews_it(void)
{
	begin_working(&async);
	mst_worker_pull(&w, &asked);
	fill_and_push(false);
	CU_ASSERT_EQUAL(sent.flags & MST_HEADER_ASK, 0);
	CU_ASSERT_EQUAL(answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	CU_ASSERT(wait_asks());
	CU_ASSERT_EQUAL(answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT(out.version >= out.counted_in);
	end();
}

static void an_answer_nobody_took_makes_room_for_a_newer(void)
{
	begin_working(&async);
	mst_worker_pull(&w, &asked);
	CU_ASSERT_EQUAL(answer(3, MST_WHERE_IN_PLACE), 0);
	fill_and_push(false);
	CU_ASSERT_EQUAL(sent.ask.have, 3);
	CU_ASSERT_EQUAL(sent.tag, 0);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 4), 0);
	CU_ASSERT_EQUAL(answer(4, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.version, 4);
	CU_ASSERT(out.fresh);
	end();
}

static void the_set_comes_with_the_version(void)
{
	begin_working(&async);
	CU_ASSERT_EQUAL(out.set_len, 0);
	mst_worker_pull(&w, &asked);
	CU_ASSERT_EQUAL(answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.set_len, 2);
	CU_ASSERT_EQUAL(out.set[1].rank, 1);
	CU_ASSERT_EQUAL(out.set[1].weight, 32);
	CU_ASSERT_EQUAL(out.weight, 64);
	CU_ASSERT_EQUAL(out.orders.lr_scale, 0.5);
	end();
}

/* ---- abandoning ---- */

static void an_abandoned_contribution_is_cancelled_without_a_ticket(void)
{
	begin_working(&bsp);
	int slot = mst_worker_fill(&w);
	mst_worker_abandon(&w);
	CU_ASSERT(wait_asks());
	CU_ASSERT_EQUAL(answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.verdict, MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(out.ticket, 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&w), slot);
	CU_ASSERT_EQUAL(push(false), 1);
	CU_ASSERT_EQUAL(sent.epoch, 1);
	CU_ASSERT_EQUAL(sent.tag, 1);
	end();
}

static void abandoning_twice_is_told_once(void)
{
	begin_working(&bsp);
	mst_worker_abandon(&w);
	mst_worker_abandon(&w);
	CU_ASSERT(wait_asks());
	CU_ASSERT_EQUAL(answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT(wait_asks());
	CU_ASSERT_EQUAL(answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.verdict, MUSTER_NONE);
	end();
}

/* ---- workers own ---- */

static void versions_in_order_one_by_one(void)
{
	begin_working(&own);
	fill_and_push(false);
	CU_ASSERT_EQUAL(judge(1, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(answer_behind(1, 3), 0);
	CU_ASSERT_EQUAL(take(), 1);
	for (uint64_t version = 2; version <= 3; version++) {
		CU_ASSERT(wait_asks());
		CU_ASSERT_EQUAL(asked.have, version - 1);
		CU_ASSERT_EQUAL(answer_behind(version, 3), 0);
		CU_ASSERT_EQUAL(take(), version < 3);
		CU_ASSERT_EQUAL(out.version, version);
		CU_ASSERT(out.fresh);
	}
	end();
}

static void no_version_is_skipped_where_workers_own(void)
{
	begin_working(&own);
	mst_worker_pull(&w, &asked);
	CU_ASSERT_EQUAL(answer_behind(1, 1), 0);
	CU_ASSERT(!mst_worker_pull(&w, &asked));
	fill_and_push(false);
	CU_ASSERT_EQUAL(sent.flags & MST_HEADER_ASK, 0);
	CU_ASSERT_EQUAL(judge(1, MUSTER_COUNTED, 2), 0);
	CU_ASSERT_EQUAL(take(), 1);
	CU_ASSERT_EQUAL(out.version, 1);
	CU_ASSERT(wait_asks());
	CU_ASSERT_EQUAL(answer_behind(2, 2), 0);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_EQUAL(out.version, 2);
	end();
}

static void a_gap_between_versions_is_eproto(void)
{
	begin_working(&own);
	mst_worker_pull(&w, &asked);
	CU_ASSERT_EQUAL(answer_behind(2, 2), -EPROTO);
	CU_ASSERT_EQUAL(answer_behind(1, 2), 0);
	end();
}

static CU_TestInfo cases[] = {
	{ "nothing is filled before the start", nothing_is_filled_before_the_start },
	{ "a buffer stays the same until it is pushed", the_same_buffer_until_it_is_pushed },
	{ "all slots in flight is -EAGAIN", all_in_flight_is_eagain },
	{ "the first call of a contribution fixes its tag", the_first_call_fixes_the_tag },
	{ "ranges belong to one contribution", ranges_belong_to_one_contribution },
	{ "a header says it all", a_header_says_it_all },
	{ "a kept push does not ask", a_kept_push_does_not_ask },
	{ "a new grant is used with its own epoch", a_new_grant_is_used_with_its_epoch },
	{ "what is late before it is sent goes empty", late_before_sending_goes_empty },
	{ "a wait misses answer, verdict and slot", a_wait_misses_answer_verdict_and_slot },
	{ "a wait with nothing pushed asks", a_wait_with_nothing_pushed_asks },
	{ "a pull asks once", a_pull_asks_once },
	{ "keeping what one has keeps where it is", keeping_what_one_has_keeps_where_it_is },
	{ "a kept push is not waited for, and its verdict comes later",
	  a_kept_push_is_not_waited_for },
	{ "verdicts come one by one, the oldest first", verdicts_come_one_by_one_oldest_first },
	{ "a result that is lent is not handed out with what was left",
	  an_ask_comes_before_what_was_left },
	{ "a push while an ask is out renews it", a_push_while_an_ask_is_out_renews_it },
	{ "an answer nobody took makes room for a newer one",
	  an_answer_nobody_took_makes_room_for_a_newer },
	{ "the set comes with the version", the_set_comes_with_the_version },
	{ "an abandoned contribution is cancelled, without a ticket",
	  an_abandoned_contribution_is_cancelled_without_a_ticket },
	{ "abandoning twice is told once", abandoning_twice_is_told_once },
	{ "workers own: versions come in order, one by one", versions_in_order_one_by_one },
	{ "workers own: no version is skipped", no_version_is_skipped_where_workers_own },
	{ "workers own: a gap between versions is -EPROTO", a_gap_between_versions_is_eproto },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session", cases);
}
