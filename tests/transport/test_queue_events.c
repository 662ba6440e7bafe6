/* SPDX-License-Identifier: MIT */
/*
 * What poll() tells of a link whose puts go through a queue: over a network of two rails of this
 * test's own, whose completions and arrivals are what a case says.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/transport/queue.h"
#include "tests/ut.h"

#define BYTES 4096u
#define CREDITS 8u
#define MAX 16

static uint8_t outbound[BYTES];
static struct mst_link link_ = { .outbound = outbound, .outbound_bytes = BYTES };
static struct mst_region composed = { .base = outbound, .bytes = BYTES };
static struct mst_region nothing;
static _Atomic uint64_t in_word, out_word;
static uint32_t credit_words; /* written so far */
static struct mst_net_event ev[MAX];

static void write_one(struct mst_queue *q, uint32_t rail, const struct mst_queue_write *w)
{
	(void)rail;
	credit_words += w->bytes > 0 && w->offset == q->word_at;
}

static void post(struct mst_queue *q, uint32_t rail)
{
	(void)q;
	(void)rail;
}

static void gather(struct mst_queue *q)
{
	(void)q;
}

static const struct mst_queue_ops ops = { write_one, post, gather };

static struct mst_queue queue_open(void)
{
	static const struct mst_lanes lanes = { BYTES, BYTES, CREDITS, CREDITS };
	struct mst_queue q = { .ops = &ops,
			       .link = &link_,
			       .outbound = &composed,
			       .published = &nothing,
			       .message = BYTES,
			       .in_word = &in_word,
			       .out_word = &out_word,
			       .word_at = BYTES,
			       .ordered = true,
			       .open = true,
			       .state = MST_QUEUE_LIVE,
			       .rail_count = 2 };

	credit_words = 0;
	atomic_store(&in_word, 0);
	mst_queue_set_lanes(&q, &lanes, true);
	for (uint32_t i = 0; i < q.rail_count; i++)
		CU_ASSERT_EQUAL_FATAL(mst_queue_rail_init(&q, i, MST_QUEUE_SENDS_MIN), 0);
	CU_ASSERT_EQUAL_FATAL(mst_queue_init(&q), 0);
	return q;
}

static void arrive(struct mst_queue *q, uint32_t imm)
{
	for (uint32_t i = 0; i < q->rail_count; i++)
		mst_queue_arrived(q, i, imm);
}

/* What a network does that has nothing to free. Return: how many events. */
static int poll_link(struct mst_queue *q, int max)
{
	int n = mst_queue_take_events(q, ev, max);

	return mst_queue_finish_poll(q, ev, n, max);
}

static void lanes_give_each_end_its_figures(void)
{
	static const struct mst_lanes lanes = { 100, 200, 3, 4 };
	struct mst_queue q = { 0 };

	mst_queue_set_lanes(&q, &lanes, true);
	CU_ASSERT(q.own_bytes == 200 && q.peer_bytes == 100);
	CU_ASSERT(q.in_credits == 4 && q.out_credits == 3);
	mst_queue_set_lanes(&q, &lanes, false);
	CU_ASSERT(q.own_bytes == 100 && q.peer_bytes == 200);
	CU_ASSERT(q.in_credits == 3 && q.out_credits == 4);
	CU_ASSERT_EQUAL(mst_queue_outbound(&lanes, true, 50), 100);
	CU_ASSERT_EQUAL(mst_queue_outbound(&lanes, false, 50), 50);
	CU_ASSERT_EQUAL(mst_queue_outbound(&lanes, false, 300), 200);
	CU_ASSERT_EQUAL(mst_queue_outbound(&lanes, false, 0), 200);
}

static void events_are_told_in_order_and_as_many_as_there_is_room_for(void)
{
	struct mst_queue q = queue_open();
	struct mst_put put = { .src = outbound, .bytes = 8, .signal = true, .cookie = 77 };

	CU_ASSERT_FALSE(mst_queue_has_events(&q));
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	for (uint32_t i = 0; i < q.rail_count; i++)
		mst_queue_completed(&q, i, q.rail[i].posted);
	arrive(&q, 5);
	arrive(&q, 6);
	CU_ASSERT_TRUE(mst_queue_has_events(&q));
	CU_ASSERT_EQUAL_FATAL(poll_link(&q, 2), 2);
	CU_ASSERT(ev[0].kind == MST_SENT && ev[0].cookie == 77 && ev[0].link == &link_);
	CU_ASSERT(ev[1].kind == MST_ARRIVED && ev[1].imm == 5 && ev[1].link == &link_);
	CU_ASSERT_EQUAL(q.polled, 1);
	CU_ASSERT_EQUAL_FATAL(poll_link(&q, MAX), 1);
	CU_ASSERT(ev[0].kind == MST_ARRIVED && ev[0].imm == 6);
	CU_ASSERT_FALSE(mst_queue_has_events(&q));
	mst_queue_fini(&q);
}

static void what_has_arrived_is_told_before_a_peer_is_lost_and_that_once(void)
{
	struct mst_queue q = queue_open();

	arrive(&q, 5);
	arrive(&q, 6);
	mst_queue_end(&q, -EPIPE);
	CU_ASSERT_EQUAL_FATAL(poll_link(&q, 2), 2); /* there is no room for the end */
	CU_ASSERT(ev[0].kind == MST_ARRIVED && ev[1].kind == MST_ARRIVED);
	CU_ASSERT_TRUE(mst_queue_has_events(&q));
	CU_ASSERT_EQUAL_FATAL(poll_link(&q, 2), 1);
	CU_ASSERT(ev[0].kind == MST_LOST && ev[0].error == -EPIPE && ev[0].link == &link_);
	CU_ASSERT_FALSE(mst_queue_has_events(&q));
	CU_ASSERT_EQUAL(poll_link(&q, MAX), 0);
	mst_queue_fini(&q);
}

/* A network may end the link while it frees what arrivals took up. */
static void what_arrives_in_the_middle_of_a_poll_is_told_before_the_end(void)
{
	struct mst_queue q = queue_open();

	CU_ASSERT_EQUAL(mst_queue_take_events(&q, ev, MAX), 0);
	arrive(&q, 5);
	mst_queue_end(&q, -EPIPE);
	CU_ASSERT_EQUAL(mst_queue_finish_poll(&q, ev, 0, MAX), 0);
	CU_ASSERT_EQUAL_FATAL(poll_link(&q, MAX), 2);
	CU_ASSERT(ev[0].kind == MST_ARRIVED && ev[0].imm == 5);
	CU_ASSERT(ev[1].kind == MST_LOST && ev[1].error == -EPIPE);
	mst_queue_fini(&q);
}

static void a_peer_that_breaks_the_rules_is_lost_at_once(void)
{
	struct mst_queue q = queue_open();

	arrive(&q, 5);
	mst_queue_end(&q, -EPROTO);
	mst_queue_end(&q, -EPIPE); /* the first end is the one that counts */
	CU_ASSERT_EQUAL_FATAL(poll_link(&q, MAX), 1);
	CU_ASSERT(ev[0].kind == MST_LOST && ev[0].error == -EPROTO);
	mst_queue_fini(&q);
}

/* Whether or not the peer has gone meanwhile. */
static void rails_that_do_not_agree_are_noticed_and_tell_nothing_more(void)
{
	for (int gone = 0; gone < 2; gone++) {
		struct mst_queue q = queue_open();

		arrive(&q, 5);
		mst_queue_arrived(&q, 0, 6);
		mst_queue_arrived(&q, 1, 7);
		arrive(&q, 8);
		if (gone)
			mst_queue_end(&q, -EPIPE);
		CU_ASSERT_EQUAL_FATAL(mst_queue_take_events(&q, ev, MAX), 1);
		CU_ASSERT(ev[0].kind == MST_ARRIVED && ev[0].imm == 5);
		CU_ASSERT_TRUE(q.torn);
		mst_queue_end(&q, -EPROTO);
		CU_ASSERT_EQUAL_FATAL(mst_queue_finish_poll(&q, ev, 1, MAX), 2);
		CU_ASSERT(ev[1].kind == MST_LOST && ev[1].error == (gone ? -EPIPE : -EPROTO));
		mst_queue_fini(&q);
	}
}

static void half_of_the_credits_go_back_at_once(void)
{
	struct mst_queue q = queue_open();

	for (uint32_t i = 0; i < CREDITS / 2; i++) {
		CU_ASSERT_EQUAL(credit_words, 0);
		arrive(&q, i);
		CU_ASSERT_EQUAL(poll_link(&q, MAX), 1);
	}
	CU_ASSERT_EQUAL(credit_words, 1);
	CU_ASSERT_EQUAL(atomic_load(&out_word), CREDITS / 2);
	mst_queue_fini(&q);
}

static void the_last_credits_go_back_when_nothing_has_come_for_many_polls(void)
{
	struct mst_queue q = queue_open();
	int polls = 0;

	arrive(&q, 1);
	CU_ASSERT_EQUAL(poll_link(&q, MAX), 1);
	for (; credit_words == 0 && polls < 100000; polls++)
		CU_ASSERT_EQUAL_FATAL(poll_link(&q, MAX), 0);
	CU_ASSERT(polls > 100 && polls < 100000);
	CU_ASSERT_EQUAL(atomic_load(&out_word), 1);
	for (int i = 0; i < 2 * polls; i++)
		(void)poll_link(&q, MAX);
	CU_ASSERT_EQUAL(credit_words, 1); /* they are told once */
	mst_queue_fini(&q);
}

static CU_TestInfo cases[] = {
	{ "lanes give each end its figures", lanes_give_each_end_its_figures },
	{ "events are told in order, and as many as there is room for",
	  events_are_told_in_order_and_as_many_as_there_is_room_for },
	{ "what has arrived is told before a peer is lost, and that once",
	  what_has_arrived_is_told_before_a_peer_is_lost_and_that_once },
	{ "what arrives in the middle of a poll is told before the end",
	  what_arrives_in_the_middle_of_a_poll_is_told_before_the_end },
	{ "a peer that breaks the rules is lost at once",
	  a_peer_that_breaks_the_rules_is_lost_at_once },
	{ "rails that do not agree are noticed, and tell nothing more",
	  rails_that_do_not_agree_are_noticed_and_tell_nothing_more },
	{ "half of the credits go back at once", half_of_the_credits_go_back_at_once },
	{ "the last credits go back when nothing has come for many polls",
	  the_last_credits_go_back_when_nothing_has_come_for_many_polls },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("queue_events", cases);
}
