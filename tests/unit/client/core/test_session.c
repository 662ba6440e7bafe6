/* SPDX-License-Identifier: MIT */
/* One worker's side of a session, without a transport or a clock: pushing, asking, waiting,
 * ends. */
#include <errno.h>
#include <math.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind bsp = { .slots = 1 };
static const struct session_kind two = { .slots = 2 };
static const struct session_kind async = { .slots = 2, .window = MST_WINDOW_MAX };
static const struct session_kind own = { .slots = 2, .workers_own = true };

static bool misses(unsigned what)
{
	return mst_worker_misses(&session_worker) == what;
}

/* ---- filling ---- */

static void nothing_is_filled_before_the_start(void)
{
	session_begin(&bsp);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	mst_worker_start(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	CU_ASSERT_EQUAL(session_push(false), -EAGAIN);
	session_end();
}

static void the_same_buffer_until_it_is_pushed(void)
{
	session_begin_working(&two);
	int slot = mst_worker_fill(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), slot);
	CU_ASSERT_EQUAL(session_push(false), 1);
	CU_ASSERT_NOT_EQUAL(mst_worker_fill(&session_worker), slot);
	session_end();
}

static void all_in_flight_is_eagain(void)
{
	session_begin_working(&bsp);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	CU_ASSERT_EQUAL(session_push(false), -EAGAIN);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), 0);
	session_end();
}

static void the_first_call_fixes_the_tag(void)
{
	session_begin_working(&async);
	mst_worker_fill(&session_worker);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer(5, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(mst_worker_computes_on(&session_worker), 0);
	CU_ASSERT_EQUAL(session_push(false), 1);
	CU_ASSERT_EQUAL(session_sent.tag, 0);
	CU_ASSERT_EQUAL(mst_worker_computes_on(&session_worker), 5);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_sent.tag, 5);
	session_end();
}

static void ranges_belong_to_one_contribution(void)
{
	session_begin_working(&two);
	mst_worker_fill(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_range(&session_worker, 0, 60), 0);
	CU_ASSERT_EQUAL(mst_worker_range(&session_worker, 50, 10), -EEXIST);
	CU_ASSERT_EQUAL(session_push(false), 1);
	mst_worker_fill(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_range(&session_worker, 50, 10), 0);
	mst_worker_abandon(&session_worker);
	mst_worker_fill(&session_worker);
	CU_ASSERT_EQUAL(mst_worker_range(&session_worker, 50, 10), 0);
	session_end();
}

/* ---- headers ---- */

static void a_header_says_it_all(void)
{
	struct muster_contribution c = { .weight = 7, .loss = 0.5, .has_loss = true, .sum = true };
	uint64_t ticket;

	session_begin_working(&two);
	CU_ASSERT_EQUAL(mst_worker_push(&session_worker, &c, &session_sent, &ticket), 1);
	CU_ASSERT_EQUAL(session_sent.seq, 1);
	CU_ASSERT_EQUAL(session_sent.epoch, 1);
	CU_ASSERT_EQUAL(session_sent.weight, 7);
	CU_ASSERT_EQUAL(session_sent.loss, 0.5);
	CU_ASSERT_EQUAL(session_sent.flags, MST_HEADER_SUM | MST_HEADER_LOSS | MST_HEADER_ASK);
	CU_ASSERT_EQUAL(session_sent.ask.number, 2);
	CU_ASSERT_EQUAL(session_sent.ask.have, 0);
	session_end();
}

static void a_header_has_the_norm_where_it_is_wanted(void)
{
	session_begin_working(&two);
	session_worker.cfg.norms = true;
	mst_worker_fill(&session_worker);
	mst_worker_squares(&session_worker, 9);
	mst_worker_squares(&session_worker, 16);
	CU_ASSERT_EQUAL(session_push(true), 1);
	CU_ASSERT(session_sent.flags & MST_HEADER_NORM);
	CU_ASSERT_EQUAL(session_sent.norm, 5);
	session_fill_and_push(false); /* and begins anew with the next one */
	CU_ASSERT_EQUAL(session_sent.norm, 0);
	session_end();
}

static void a_kept_push_does_not_ask(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.flags, MST_HEADER_FULL);
	CU_ASSERT_EQUAL(session_sent.ask.number, 0);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_sent.flags, MST_HEADER_FULL | MST_HEADER_ASK);
	session_end();
}

/* What outcomes have brought, not what has arrived. */
static void a_header_acknowledges_what_was_heard(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.unheard, 0);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_sent.unheard, 1);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_judge(2, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.unheard, 2);
	CU_ASSERT_EQUAL(session_grant(1), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.seq, 4);
	CU_ASSERT_EQUAL(session_sent.unheard, 2);
	session_end();
}

static void a_new_grant_is_used_with_its_epoch(void)
{
	session_begin_working(&bsp);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 0, 0, 9), 0);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.epoch, 9);
	session_end();
}

/* Pushes on version 0 when version @newest is known to be decided, under a window. */
static uint32_t flags_behind(uint64_t newest, uint32_t window)
{
	const struct session_kind kind = { .slots = 2, .window = window };

	session_begin_working(&kind);
	mst_worker_fill(&session_worker);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer(newest, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_push(false), 1);
	session_end();
	return session_sent.flags & MST_HEADER_EMPTY;
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
	session_begin_working(&bsp);
	session_fill_and_push(false);
	CU_ASSERT(misses(MST_MISSES_ANSWER | MST_MISSES_VERDICT | MST_MISSES_SLOT));
	CU_ASSERT(!session_wait_asks());
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT(misses(MST_MISSES_ANSWER | MST_MISSES_SLOT));
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_COUNTED);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	CU_ASSERT_EQUAL(session_out.counted_in, 1);
	CU_ASSERT_EQUAL(session_out.version, 1);
	CU_ASSERT(session_out.fresh && !session_out.finished);
	session_end();
}

static void a_wait_with_nothing_pushed_asks(void)
{
	session_begin_working(&bsp);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_asked.number, 2);
	CU_ASSERT_EQUAL(session_asked.have, 0);
	CU_ASSERT(!session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_NONE);
	CU_ASSERT_EQUAL(session_out.ticket, 0);
	CU_ASSERT(!session_out.fresh);
	session_end();
}

static void a_pull_asks_once(void)
{
	session_begin_working(&async);
	CU_ASSERT(mst_worker_pull(&session_worker, &session_asked));
	CU_ASSERT(!mst_worker_pull(&session_worker, &session_asked));
	CU_ASSERT(!session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(4, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.version, 4);
	session_end();
}

static void keeping_what_one_has_keeps_where_it_is(void)
{
	session_begin_working(&async);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer(5, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_asked.have, 5);
	CU_ASSERT_EQUAL(session_answer(5, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_worker.held.where, MST_WHERE_COPIED);
	CU_ASSERT(!session_out.fresh);
	session_end();
}

static void a_kept_push_before_the_ask_is_waited_for(void)
{
	session_begin_working(&async);
	session_fill_and_push(true);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT(mst_worker_misses(&session_worker) != 0);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_COUNTED);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	session_end();
}

static void a_kept_push_after_the_ask_is_not_waited_for(void)
{
	session_begin_working(&async);
	mst_worker_pull(&session_worker, &session_asked);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_NONE);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_COUNTED);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	session_end();
}

static void verdicts_come_one_by_one_oldest_first(void)
{
	session_begin_working(&async);
	session_fill_and_push(true);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_judge(2, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	CU_ASSERT(session_out.fresh);
	CU_ASSERT(!session_wait_asks());
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.ticket, 2);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_LATE);
	CU_ASSERT_EQUAL(session_out.counted_in, 0);
	CU_ASSERT_EQUAL(session_out.version, 1);
	CU_ASSERT(!session_out.fresh);
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	session_end();
}

/* What an outcome left behind needs no ask; but a result that is lent is never handed out. */
static void an_ask_comes_before_what_was_left(void)
{
	session_begin_working(&async);
	session_fill_and_push(true);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_judge(2, MUSTER_COUNTED, 2), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_answer(2, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT(mst_worker_pull(&session_worker, &session_asked));
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	CU_ASSERT_EQUAL(session_answer(2, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.ticket, 2);
	session_end();
}

static void a_push_while_an_ask_is_out_renews_it(void)
{
	session_begin_working(&async);
	mst_worker_pull(&session_worker, &session_asked);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_sent.flags & MST_HEADER_ASK, 0);
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.version >= session_out.counted_in);
	session_end();
}

static void a_pull_while_an_ask_is_out_covers_what_was_pushed_since(void)
{
	session_begin_working(&async);
	session_fill_and_push(false);
	session_fill_and_push(true);
	CU_ASSERT(!mst_worker_pull(&session_worker, &session_asked));
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT(mst_worker_misses(&session_worker) & MST_MISSES_ANSWER);
	CU_ASSERT(mst_worker_misses(&session_worker) & MST_MISSES_VERDICT);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_judge(2, MUSTER_COUNTED, 2), 0);
	CU_ASSERT_EQUAL(session_answer(2, MST_WHERE_IN_PLACE), 0);
	session_end();
}

static void an_answer_nobody_took_makes_room_for_a_newer(void)
{
	session_begin_working(&async);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer(3, MST_WHERE_IN_PLACE), 0);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_sent.ask.have, 3);
	CU_ASSERT_EQUAL(session_sent.tag, 0);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 4), 0);
	CU_ASSERT_EQUAL(session_answer(4, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.version, 4);
	CU_ASSERT(session_out.fresh);
	session_end();
}

static void the_set_comes_with_the_version(void)
{
	session_begin_working(&async);
	CU_ASSERT_EQUAL(session_out.set_len, 0);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.set_len, 2);
	CU_ASSERT_EQUAL(session_out.set[1].rank, 1);
	CU_ASSERT_EQUAL(session_out.set[1].weight, 32);
	CU_ASSERT_EQUAL(session_out.weight, 64);
	CU_ASSERT_EQUAL(session_worker.held.samples, 64);
	CU_ASSERT_EQUAL(session_out.orders.lr_scale, 0.5);
	session_end();
}

/* ---- abandoning ---- */

static void an_abandoned_contribution_is_cancelled_without_a_ticket(void)
{
	session_begin_working(&bsp);
	int slot = mst_worker_fill(&session_worker);
	mst_worker_abandon(&session_worker);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(session_out.ticket, 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), slot);
	CU_ASSERT_EQUAL(session_push(false), 1);
	CU_ASSERT_EQUAL(session_sent.epoch, 1);
	CU_ASSERT_EQUAL(session_sent.tag, 1);
	session_end();
}

static void abandoning_twice_is_told_once(void)
{
	session_begin_working(&bsp);
	mst_worker_abandon(&session_worker);
	mst_worker_abandon(&session_worker);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_NONE);
	session_end();
}

/* ---- workers own ---- */

static void versions_in_order_one_by_one(void)
{
	session_begin_working(&own);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(session_answer_behind(1, 3), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	for (uint64_t version = 2; version <= 3; version++) {
		CU_ASSERT(session_wait_asks());
		CU_ASSERT_EQUAL(session_asked.have, version - 1);
		CU_ASSERT_EQUAL(session_answer_behind(version, 3), 0);
		CU_ASSERT_EQUAL(session_take(), version < 3);
		CU_ASSERT_EQUAL(session_out.version, version);
		CU_ASSERT_EQUAL(session_out.newest, 3);
		CU_ASSERT(session_out.fresh);
	}
	session_end();
}

static void no_version_is_skipped_where_workers_own(void)
{
	session_begin_working(&own);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer_behind(1, 1), 0);
	CU_ASSERT(!mst_worker_pull(&session_worker, &session_asked));
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_sent.flags & MST_HEADER_ASK, 0);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 2), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT_EQUAL(session_out.version, 1);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer_behind(2, 2), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.version, 2);
	session_end();
}

/* Its outcome would bring nothing, and promise another one, which only other workers can bring. */
static void an_answer_without_a_version_makes_way_for_the_ask_of_a_push(void)
{
	for (int came = 0; came < 2; came++) {
		session_begin_working(&own);
		mst_worker_pull(&session_worker, &session_asked);
		if (came == 1)
			CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
		session_fill_and_push(false);
		CU_ASSERT_EQUAL((session_sent.flags & MST_HEADER_ASK) != 0, came == 1);
		CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
		CU_ASSERT_EQUAL(session_grant(0), 0);
		if (came == 0) {
			CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
			CU_ASSERT(misses(MST_MISSES_ANSWER));
			CU_ASSERT(session_wait_asks());
		}
		CU_ASSERT(misses(MST_MISSES_ANSWER));
		CU_ASSERT_EQUAL(session_answer_behind(1, 1), 0);
		CU_ASSERT_EQUAL(session_take(), 0);
		CU_ASSERT(session_out.fresh && session_out.version == 1);
		CU_ASSERT_EQUAL(session_out.ticket, 1);
		session_end();
	}
}

static void a_gap_between_versions_is_eproto(void)
{
	session_begin_working(&own);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer_behind(2, 2), -EPROTO);
	CU_ASSERT_EQUAL(session_answer_behind(1, 2), 0);
	session_end();
}

static CU_TestInfo cases[] = {
	{ "nothing is filled before the start", nothing_is_filled_before_the_start },
	{ "a buffer stays the same until it is pushed", the_same_buffer_until_it_is_pushed },
	{ "all slots in flight is -EAGAIN", all_in_flight_is_eagain },
	{ "the first call of a contribution fixes its tag", the_first_call_fixes_the_tag },
	{ "ranges belong to one contribution", ranges_belong_to_one_contribution },
	{ "a header says it all", a_header_says_it_all },
	{ "a header has the norm where it is wanted", a_header_has_the_norm_where_it_is_wanted },
	{ "a kept push does not ask", a_kept_push_does_not_ask },
	{ "a header acknowledges what was heard", a_header_acknowledges_what_was_heard },
	{ "a new grant is used with its own epoch", a_new_grant_is_used_with_its_epoch },
	{ "what is late before it is sent goes empty", late_before_sending_goes_empty },
	{ "a wait misses answer, verdict and slot", a_wait_misses_answer_verdict_and_slot },
	{ "a wait with nothing pushed asks", a_wait_with_nothing_pushed_asks },
	{ "a pull asks once", a_pull_asks_once },
	{ "keeping what one has keeps where it is", keeping_what_one_has_keeps_where_it_is },
	{ "a kept push before the ask is waited for", a_kept_push_before_the_ask_is_waited_for },
	{ "a kept push after the ask is not waited for, and its verdict comes later",
	  a_kept_push_after_the_ask_is_not_waited_for },
	{ "verdicts come one by one, the oldest first", verdicts_come_one_by_one_oldest_first },
	{ "a result that is lent is not handed out with what was left",
	  an_ask_comes_before_what_was_left },
	{ "a push while an ask is out renews it", a_push_while_an_ask_is_out_renews_it },
	{ "a pull while an ask is out covers what was pushed since",
	  a_pull_while_an_ask_is_out_covers_what_was_pushed_since },
	{ "an answer nobody took makes room for a newer one",
	  an_answer_nobody_took_makes_room_for_a_newer },
	{ "the set comes with the version", the_set_comes_with_the_version },
	{ "an abandoned contribution is cancelled, without a ticket",
	  an_abandoned_contribution_is_cancelled_without_a_ticket },
	{ "abandoning twice is told once", abandoning_twice_is_told_once },
	{ "workers own: versions come in order, one by one", versions_in_order_one_by_one },
	{ "workers own: no version is skipped", no_version_is_skipped_where_workers_own },
	{ "workers own: an answer without a version makes way for the ask of a push",
	  an_answer_without_a_version_makes_way_for_the_ask_of_a_push },
	{ "workers own: a gap between versions is -EPROTO", a_gap_between_versions_is_eproto },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session", cases);
}
