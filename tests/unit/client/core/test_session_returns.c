/* SPDX-License-Identifier: MIT */
/* A session that is lost, and another one that goes on in its place. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind one = { .slots = 1 };
static const struct session_kind two = { .slots = 2, .window = MST_WINDOW_MAX };
static const struct session_kind two_kept = { .slots = 2, .history = 4 };
static const struct session_kind own = {
	.slots = 2, .workers_own = true, .window = 5, .history = 2
};

static struct mst_worker *w = &session_worker;

static void return_as(const struct mst_worker_cfg *cfg)
{
	mst_worker_unlink(w);
	CU_ASSERT_EQUAL_FATAL(mst_worker_go_on(w, cfg), 0);
}

static void come_back(void)
{
	const struct mst_worker_cfg cfg = w->cfg;

	return_as(&cfg);
}

/* Comes back, and starts; no set names any of its open tickets. */
static void start_again(void)
{
	come_back();
	mst_tickets_cancel_rest(&w->tickets);
	mst_worker_start(w);
}

/* The server's record of @version, as the KEEP or the first answer of a generation has it. */
static int answer_with(uint64_t version, enum mst_where where, const struct mst_lane_record *record)
{
	struct mst_lane_answer a = { w->ask_number, version, version, (uint32_t)where, 0 };

	return mst_worker_answered(w, 0, &a, record);
}

static int judge(uint64_t seq, uint32_t slot, enum muster_verdict verdict, uint64_t counted_in)
{
	return mst_worker_judged(
		w, 0, slot, &(struct mst_lane_verdict){ seq, counted_in, (uint32_t)verdict, 0 });
}

static void give(uint64_t version)
{
	CU_ASSERT_FATAL(session_wait_asks() || w->ask == MST_ASK_OUT);
	CU_ASSERT_EQUAL_FATAL(session_answer(version, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL_FATAL(session_take(), 0);
}

static bool takes(enum muster_verdict verdict, uint64_t ticket, uint64_t counted_in)
{
	(void)session_take();
	return session_out.verdict == verdict && session_out.ticket == ticket &&
	       session_out.counted_in == counted_in;
}

/* ---- another session ---- */

static void it_begins_with_all_slots_granted(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_grant(0), 0); /* epoch 2 */
	session_fill_and_push(true);
	session_fill_and_push(false);
	mst_worker_cut(w);
	come_back();
	CU_ASSERT_EQUAL(w->phase, MST_WORKER_JOINED);
	CU_ASSERT(!w->cut && w->ask == MST_ASK_NONE);
	CU_ASSERT(!session_wait_asks()); /* the first ask is the start */
	CU_ASSERT(mst_worker_awaits(w));
	CU_ASSERT(mst_worker_released(w, 0));
	CU_ASSERT(mst_worker_has_begun(w));
	CU_ASSERT_EQUAL(mst_worker_fill(w), -EAGAIN); /* not before its first outcome */
	mst_tickets_cancel_rest(&w->tickets);
	mst_worker_start(w);
	CU_ASSERT_EQUAL(mst_worker_fill(w), -EAGAIN);
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.epoch, 1);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.epoch, 1);
	session_end();
}

/* Several servers say everything anew, and the job that ended has not ended here. */
static void what_servers_have_said_is_forgotten(void)
{
	const struct session_kind servers = { .slots = 1, .workers_own = true, .servers = 2 };
	const struct mst_lane_answer next = { 1, 1, 1, MST_WHERE_COPIED, 0 };
	const struct mst_lane_record record = { .version = 1, .size = MST_RECORD_SIZE };

	session_begin(&servers);
	mst_worker_start(w);
	CU_ASSERT_EQUAL(mst_worker_answered(w, 1, &next, NULL), 0);
	CU_ASSERT_EQUAL(mst_worker_ended(w, 1), 0);
	start_again();
	CU_ASSERT_EQUAL(w->last, MST_VERSION_NONE);
	CU_ASSERT_EQUAL(mst_worker_answered(w, 0, &next, &record), 0);
	CU_ASSERT_EQUAL(mst_worker_misses(w), MST_MISSES_ANSWER);
	CU_ASSERT_EQUAL(mst_worker_answered(w, 1, &next, NULL), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	session_end();
}

/* A push that another ask would have followed. */
static void an_ask_that_was_due_is_forgotten(void)
{
	session_begin_working(&own);
	session_fill_and_push(false);
	session_fill_and_push(false);
	CU_ASSERT(w->renew);
	start_again();
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT(takes(MUSTER_CANCELLED, 1, 0));
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(!mst_worker_awaits(w));
	session_end();
}

/* A send of a link that is freed does not come back. */
static void what_was_on_its_way_is_forgotten(void)
{
	session_begin_working(&one);
	mst_worker_fill(w);
	mst_worker_posted(w);
	mst_worker_lent(w);
	CU_ASSERT_EQUAL(session_push(false), 1);
	start_again();
	CU_ASSERT(mst_worker_released(w, 1));
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(mst_worker_misses(w), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(w), 0);
	session_end();
}

static void tickets_go_on_and_headers_begin_anew(void)
{
	session_begin_working(&one);
	session_fill_and_push(false);
	mst_worker_go_adrift(w); /* ticket 2 has no header */
	w->slot[0].state = MST_GRANT_FREE;
	CU_ASSERT_EQUAL(session_push(false), 0);
	start_again();
	CU_ASSERT_EQUAL(w->headers, 0);
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT(takes(MUSTER_CANCELLED, 1, 0));
	CU_ASSERT(takes(MUSTER_CANCELLED, 2, 0));
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.seq, 1);
	CU_ASSERT_EQUAL(w->headers, 1);
	CU_ASSERT_EQUAL(w->tickets.sent, 3);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(w->asking, 3);
	CU_ASSERT_EQUAL(judge(1, 0, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_COPIED), 0);
	CU_ASSERT(takes(MUSTER_COUNTED, 3, 1));
	session_end();
}

static void a_verdict_of_an_earlier_session_is_eproto(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	session_fill_and_push(true);
	start_again();
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	(void)session_take();
	(void)session_take();
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(judge(0, 0, MUSTER_COUNTED, 1), -EPROTO);
	CU_ASSERT_EQUAL(judge(3, 0, MUSTER_COUNTED, 1), -EPROTO);
	CU_ASSERT_EQUAL(judge(UINT64_MAX, 1, MUSTER_COUNTED, 1), -EPROTO);
	CU_ASSERT_EQUAL(judge(1, 0, MUSTER_COUNTED, 1), 0);
	session_end();
}

/* The new servers know nothing of older tickets, heard or not. */
static void a_header_acknowledges_only_its_sessions_tickets(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	session_fill_and_push(true);
	start_again();
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT(takes(MUSTER_CANCELLED, 1, 0)); /* of 2 no outcome has told */
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.unheard, 0);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_sent.unheard, 1);
	CU_ASSERT_EQUAL(judge(1, 0, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT(mst_worker_pass(w, &session_sent));
	CU_ASSERT_EQUAL(session_sent.seq, 3);
	CU_ASSERT_EQUAL(session_sent.unheard, 2);
	session_end();
}

/* Else it would say nothing of tickets whose sets are still to come. */
static void the_first_outcome_waits_for_the_verdicts(void)
{
	session_begin_working(&own);
	session_fill_and_push(true);
	come_back();
	mst_worker_start(w);
	CU_ASSERT_EQUAL(mst_worker_misses(w), MST_MISSES_ANSWER | MST_MISSES_VERDICT);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(mst_worker_misses(w), MST_MISSES_VERDICT);
	CU_ASSERT(!session_wait_asks());
	mst_tickets_counted(&w->tickets, &(struct mst_tickets_part){ 1, 1, 0, 1 });
	mst_tickets_cancel_rest(&w->tickets);
	CU_ASSERT(takes(MUSTER_COUNTED, 1, 1));
	CU_ASSERT_EQUAL(session_out.version, 1);
	session_end();
}

static void verdicts_that_are_due_come_first(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(session_judge(2, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT(takes(MUSTER_LATE, 1, 0));
	CU_ASSERT(w->more);
	session_fill_and_push(true);
	start_again();
	CU_ASSERT_EQUAL(mst_worker_misses(w), MST_MISSES_ANSWER);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_KEEP), 0);
	CU_ASSERT(takes(MUSTER_COUNTED, 2, 1));
	CU_ASSERT(takes(MUSTER_CANCELLED, 3, 0));
	session_end();
}

static void what_was_being_filled_is_told_as_given_up(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	mst_worker_fill(w);
	CU_ASSERT_EQUAL(mst_worker_range(w, 0, 50), 0);
	start_again();
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT(takes(MUSTER_CANCELLED, 0, 0));
	CU_ASSERT(takes(MUSTER_CANCELLED, 1, 0));
	mst_worker_fill(w);
	CU_ASSERT_EQUAL(mst_worker_range(w, 0, 50), 0);
	session_end();
}

static void whoever_ends_the_job_still_waits_for_its_end(void)
{
	session_begin_working(&one);
	w->finishing = true;
	start_again();
	CU_ASSERT(w->finishing);
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(mst_worker_misses(w), MST_MISSES_END);
	session_end();
}

static void a_session_may_be_lost_before_it_has_started(void)
{
	session_begin_working(&own);
	session_fill_and_push(false);
	come_back();
	come_back();
	mst_tickets_cancel_rest(&w->tickets);
	mst_worker_start(w);
	come_back();
	mst_worker_start(w);
	CU_ASSERT_EQUAL(w->ask_number, 1);
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_KEEP), 0);
	CU_ASSERT(takes(MUSTER_CANCELLED, 1, 0));
	CU_ASSERT_EQUAL(w->phase, MST_WORKER_WORKING);
	session_end();
}

/* The user has still to call muster_start(). */
static void one_that_has_had_no_outcome_begins_as_ever(void)
{
	session_begin(&own);
	mst_worker_start(w);
	CU_ASSERT_EQUAL(session_answer(7, MST_WHERE_COPIED), 0);
	come_back();
	CU_ASSERT(!mst_worker_has_begun(w));
	mst_worker_start(w);
	CU_ASSERT_EQUAL(session_answer(7, MST_WHERE_KEEP), -EPROTO);
	CU_ASSERT_EQUAL(session_answer(3, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.version, 3);
	CU_ASSERT(session_out.fresh);
	session_end();
}

/* ---- the version that it has ---- */

static void it_keeps_the_set_and_takes_the_rule(void)
{
	const struct mst_lane_record record = {
		.version = 4, .weight = 0, .lr_scale = 77, .window = 9, .size = MST_RECORD_SIZE
	};

	session_begin_working(&own);
	for (uint64_t v = 1; v <= 4; v++)
		give(v);
	start_again();
	CU_ASSERT_EQUAL(w->held.where, MST_WHERE_NOWHERE);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(answer_with(4, MST_WHERE_KEEP, &record), 0);
		CU_ASSERT_EQUAL(w->held.window, 9);
		CU_ASSERT_EQUAL(session_take(), 0);
		CU_ASSERT_EQUAL(session_out.version, 4);
		CU_ASSERT(!session_out.fresh);
		CU_ASSERT_EQUAL(session_out.set_len, 2);
		CU_ASSERT_EQUAL(session_out.set[1].rank, 1);
		CU_ASSERT_EQUAL(session_out.weight, 64);
		CU_ASSERT_EQUAL(session_out.orders.lr_scale, 0.5);
		CU_ASSERT(session_wait_asks()); /* and so it is asked again */
	}
	CU_ASSERT_EQUAL(mst_worker_set_of(w, 4)->window, 9);
	CU_ASSERT_EQUAL(mst_worker_set_of(w, 4)->share_count, 2);
	CU_ASSERT_EQUAL(mst_worker_set_of(w, 3)->window, 5);
	CU_ASSERT_EQUAL(session_answer(5, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(answer_with(5, MST_WHERE_KEEP, &record), -EPROTO); /* that it has */
	session_end();
}

static void a_rule_that_cannot_be_is_eproto(void)
{
	const struct mst_lane_record record = { .alpha = 2, .size = MST_RECORD_SIZE };

	session_begin_working(&own);
	start_again();
	CU_ASSERT_EQUAL(answer_with(0, MST_WHERE_KEEP, &record), -EPROTO);
	session_end();
}

/* At the end of the job it keeps what it has, and nobody knows that version's rule. */
static void without_a_record_the_rule_stays(void)
{
	const struct mst_lane_record none = { 0 };
	const struct mst_lane_record other = { .version = 2, .window = 9, .size = MST_RECORD_SIZE };

	session_begin_working(&own);
	give(1);
	start_again();
	CU_ASSERT_EQUAL(mst_worker_ended(w, 9), 0);
	struct mst_lane_answer a = { 1, 1, 9, MST_WHERE_KEEP, 0 };
	CU_ASSERT_EQUAL(mst_worker_answered(w, 0, &a, &none), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.finished);
	CU_ASSERT_EQUAL(session_out.version, 1);
	CU_ASSERT_EQUAL(session_out.set_len, 2);
	CU_ASSERT_EQUAL(w->held.window, 5);
	session_end();
	session_begin_working(&own);
	give(1);
	start_again();
	CU_ASSERT_EQUAL(answer_with(1, MST_WHERE_KEEP, &other), 0);
	CU_ASSERT_EQUAL(w->held.window, 5);
	session_end();
}

static void workers_own_the_next_version_may_be_the_first(void)
{
	session_begin_working(&own);
	give(1);
	start_again();
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_COPIED), -EPROTO);
	CU_ASSERT_EQUAL(session_answer(3, MST_WHERE_COPIED), -EPROTO);
	CU_ASSERT_EQUAL(session_answer(2, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.fresh);
	CU_ASSERT(mst_worker_set_of(w, 1) != NULL && mst_worker_set_of(w, 2) != NULL);
	session_end();
}

/* The claim says what an outcome has brought, and so does the record that is kept. */
static void one_that_was_not_given_out_is_dropped(void)
{
	session_begin_working(&own);
	give(1);
	give(2);
	CU_ASSERT(session_wait_asks());
	const struct mst_lane_answer next = { w->ask_number, 3, 6, MST_WHERE_COPIED, 0 };
	CU_ASSERT_EQUAL(session_answer_of(&next, 1, 2), 0);
	start_again();
	CU_ASSERT_EQUAL(w->held.version, 2);
	CU_ASSERT_EQUAL(w->held.newest, 2);
	CU_ASSERT_EQUAL(session_answer(3, MST_WHERE_KEEP), -EPROTO);
	CU_ASSERT_EQUAL(session_answer(2, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.version, 2);
	CU_ASSERT_EQUAL(session_out.newest, 2);
	CU_ASSERT_EQUAL(session_out.set_len, 2);
	give(3);
	CU_ASSERT(mst_worker_set_of(w, 2) != NULL && mst_worker_set_of(w, 3) != NULL);
	CU_ASSERT_EQUAL(mst_worker_set_of(w, 3)->share_count, 2);
	session_end();
}

static void servers_own_the_version_may_go_down(void)
{
	session_begin_working(&two);
	give(9);
	start_again();
	CU_ASSERT_EQUAL(mst_worker_ended(w, 5), 0); /* and the job may have ended there */
	CU_ASSERT_EQUAL(session_answer(5, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.version, 5);
	CU_ASSERT_EQUAL(session_out.newest, 5);
	CU_ASSERT(session_out.fresh && session_out.finished);
	session_end();
	session_begin_working(&two_kept);
	give(9);
	start_again();
	CU_ASSERT_EQUAL(session_answer(5, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	mst_worker_pull(w, &session_asked);
	CU_ASSERT_EQUAL(session_answer(4, MST_WHERE_COPIED), -EPROTO); /* only the first time */
	CU_ASSERT_EQUAL(session_answer(12, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(mst_worker_set_of(w, 5) != NULL && mst_worker_set_of(w, 12) != NULL);
	CU_ASSERT_PTR_NULL(mst_worker_set_of(w, 9)); /* it was another one */
	session_end();
}

/* It is of the same number, and of other gradients. */
static void servers_own_the_same_number_is_fresh(void)
{
	session_begin_working(&two);
	give(9);
	start_again();
	CU_ASSERT_EQUAL(session_answer(9, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.fresh);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(9, MST_WHERE_KEEP), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(!session_out.fresh);
	session_end();
}

static void the_state_of_another_may_be_older(void)
{
	session_begin_working(&own);
	give(1);
	give(2);
	start_again();
	CU_ASSERT_EQUAL(mst_worker_took(w, 1), 0);
	CU_ASSERT_EQUAL(w->phase, MST_WORKER_WORKING);
	CU_ASSERT_EQUAL(w->given, 1);
	CU_ASSERT_EQUAL(w->held.newest, 1);
	CU_ASSERT_PTR_NULL(mst_worker_set_of(w, 1)); /* it may be of another line */
	CU_ASSERT_EQUAL(mst_worker_took(w, 0), -EPROTO);
	CU_ASSERT_EQUAL(session_answer(2, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.fresh);
	CU_ASSERT_EQUAL(session_out.set_len, 2);
	session_end();
}

static void a_state_that_was_taken_is_kept(void)
{
	const struct mst_lane_record record = {
		.version = 6, .weight = 5, .window = 9, .share_count = 1, .size = MST_RECORD_SIZE
	};

	session_begin_working(&own);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(mst_worker_took(w, 6), 0);
	CU_ASSERT_EQUAL(session_answer(7, MST_WHERE_COPIED), 0); /* and not given out */
	start_again();
	CU_ASSERT_EQUAL(w->held.version, 6);
	CU_ASSERT_EQUAL(answer_with(6, MST_WHERE_KEEP, &record), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.set_len, 0);
	CU_ASSERT_EQUAL(session_out.weight, 0);
	CU_ASSERT_EQUAL(w->held.window, 9);
	CU_ASSERT_PTR_NULL(mst_worker_set_of(w, 6));
	session_end();
}

/* ---- other figures ---- */

static void another_number_of_workers_slots_and_servers(void)
{
	session_begin_working(&own);
	give(1);
	struct mst_worker_cfg cfg = w->cfg;
	cfg.workers = 7;
	cfg.slots = 3;
	cfg.servers = 2;
	cfg.history = 6;
	cfg.buffers = 1;
	return_as(&cfg);
	mst_worker_start(w);
	CU_ASSERT_EQUAL(mst_worker_set_of(w, 1)->share[1].rank, 1);
	CU_ASSERT_PTR_EQUAL(w->held.share, mst_worker_set_of(w, 1)->share);
	const struct mst_lane_answer bad = { 1, 2, 2, MST_WHERE_IN_PLACE, 1 };
	CU_ASSERT_EQUAL(session_answer_of(&bad, 1, 0), -EPROTO); /* buffers */
	const struct mst_lane_answer good = { 1, 2, 2, MST_WHERE_COPIED, 0 };
	CU_ASSERT_EQUAL(mst_worker_answered(w, 1, &good, NULL), 0);
	CU_ASSERT_EQUAL(session_answer_of(&good, 3, 4), 0); /* ranks 4 to 6 */
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.set[2].rank, 6);
	for (int i = 0; i < 3; i++)
		session_fill_and_push(true);
	CU_ASSERT_EQUAL(mst_worker_fill(w), -EAGAIN);
	cfg.workers = 2; /* the set of the version that it has may have more */
	return_as(&cfg);
	CU_ASSERT_EQUAL(w->held.share_count, 3);
	CU_ASSERT_EQUAL(w->held.share[2].rank, 6);
	session_end();
}

static void another_number_before_the_first_outcome(void)
{
	session_begin(&own);
	struct mst_worker_cfg cfg = w->cfg;
	cfg.workers = 50;
	return_as(&cfg);
	mst_worker_start(w);
	CU_ASSERT_EQUAL(w->held.version, MST_VERSION_NONE);
	CU_ASSERT_PTR_EQUAL(w->held.share, w->sets.share);
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	session_end();
}

static CU_TestInfo cases[] = {
	{ "another session begins with all slots granted", it_begins_with_all_slots_granted },
	{ "what servers have said is forgotten", what_servers_have_said_is_forgotten },
	{ "an ask that was due is forgotten", an_ask_that_was_due_is_forgotten },
	{ "what was on its way is forgotten", what_was_on_its_way_is_forgotten },
	{ "tickets go on, and headers begin anew", tickets_go_on_and_headers_begin_anew },
	{ "a verdict of an earlier session is -EPROTO", a_verdict_of_an_earlier_session_is_eproto },
	{ "a header acknowledges only tickets of its session",
	  a_header_acknowledges_only_its_sessions_tickets },
	{ "the first outcome waits for the verdicts", the_first_outcome_waits_for_the_verdicts },
	{ "verdicts that are due come first", verdicts_that_are_due_come_first },
	{ "what was being filled is told as given up", what_was_being_filled_is_told_as_given_up },
	{ "whoever ends the job still waits for its end",
	  whoever_ends_the_job_still_waits_for_its_end },
	{ "a session may be lost before it has started",
	  a_session_may_be_lost_before_it_has_started },
	{ "one that has had no outcome begins as ever",
	  one_that_has_had_no_outcome_begins_as_ever },
	{ "it keeps the set of its version, and takes the rule",
	  it_keeps_the_set_and_takes_the_rule },
	{ "a rule that cannot be is -EPROTO", a_rule_that_cannot_be_is_eproto },
	{ "without a record the rule stays", without_a_record_the_rule_stays },
	{ "workers own: the next version may be the first",
	  workers_own_the_next_version_may_be_the_first },
	{ "a version that was not given out is dropped", one_that_was_not_given_out_is_dropped },
	{ "servers own: the version may go down", servers_own_the_version_may_go_down },
	{ "servers own: the same number is fresh", servers_own_the_same_number_is_fresh },
	{ "the state of another may be older", the_state_of_another_may_be_older },
	{ "a state that was taken is kept", a_state_that_was_taken_is_kept },
	{ "another number of workers, slots and servers",
	  another_number_of_workers_slots_and_servers },
	{ "another number of workers before the first outcome",
	  another_number_before_the_first_outcome },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session: returns", cases);
}
