/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "tests/ut.h"
#include "tools/sim/network.h"

/* 100 bytes take 100 ns alone; no message can have more than half of the link. */
static struct mst_sim_link link_new(double rate, double rate_each)
{
	return (struct mst_sim_link){ .rate = rate, .rate_each = rate_each, .bytes = 100 };
}

static void begin(struct mst_sim_link *l, uint32_t mark, uint64_t now_ns)
{
	struct mst_sim_message *m = mst_sim_link_begin(l, now_ns);

	CU_ASSERT_FATAL(m != NULL);
	m->server = mark;
}

/* The first message is finished at @at_ns. */
static void ends(struct mst_sim_link *l, uint32_t mark, uint64_t at_ns)
{
	struct mst_sim_message m;

	CU_ASSERT_EQUAL(mst_sim_link_due(l), at_ns);
	mst_sim_link_end(l, &m, mst_sim_link_due(l));
	CU_ASSERT_EQUAL(m.server, mark);
}

static void messages_come_out_in_order_however_many(void)
{
	struct mst_sim_queue q = { 0 };
	struct mst_sim_message m;
	uint32_t put = 0, taken = 0;

	for (int round = 0; round < 1000; round++) {
		for (int i = 0; i < 3; i++)
			mst_sim_queue_add(&q)->server = put++;
		for (int i = 0; i < 2; i++) {
			mst_sim_queue_take(&q, &m);
			CU_ASSERT_EQUAL_FATAL(m.server, taken++);
		}
	}
	CU_ASSERT_EQUAL(q.count, 1000);
	mst_sim_queue_fini(&q);
}

static void a_message_alone_has_the_whole_link(void)
{
	struct mst_sim_link l = link_new(1, 0);

	CU_ASSERT_EQUAL(mst_sim_link_due(&l), MST_NEVER);
	begin(&l, 1, 1000);
	ends(&l, 1, 1100);
	begin(&l, 2, 5000);
	ends(&l, 2, 5100);
	CU_ASSERT_EQUAL(mst_sim_link_due(&l), MST_NEVER);
	mst_sim_queue_fini(&l.queue);
}

static void those_that_begin_together_end_together(void)
{
	struct mst_sim_link l = link_new(1, 0);

	for (uint32_t i = 0; i < 5; i++)
		begin(&l, i, 1000);
	for (uint32_t i = 0; i < 5; i++)
		ends(&l, i, 1500);
	mst_sim_queue_fini(&l.queue);
}

/* The first has sent 60 bytes alone, then 40 in 80 ns; the second 40 in these, then 60 alone. */
static void one_that_comes_later_slows_the_first_down(void)
{
	struct mst_sim_link l = link_new(1, 0);

	begin(&l, 1, 1000);
	begin(&l, 2, 1060);
	ends(&l, 1, 1140);
	ends(&l, 2, 1200);
	mst_sim_queue_fini(&l.queue);
}

static void a_worker_sends_no_faster_than_its_own_link(void)
{
	struct mst_sim_link l = link_new(1, 0.25);

	begin(&l, 1, 0);
	begin(&l, 2, 0);
	ends(&l, 1, 400);
	ends(&l, 2, 400);
	for (uint32_t i = 0; i < 8; i++)
		begin(&l, i, 1000);
	ends(&l, 0, 1800);
	mst_sim_queue_fini(&l.queue);

	struct mst_sim_link own = link_new(0, 0.25); /* only the workers' links are limited */
	begin(&own, 1, 0);
	begin(&own, 2, 100);
	ends(&own, 1, 400);
	ends(&own, 2, 500);
	mst_sim_queue_fini(&own.queue);
}

static void without_rates_or_bytes_nothing_is_limited(void)
{
	struct mst_sim_link none = link_new(0, 0), empty = { .rate = 1 }, some = link_new(0, 1);

	CU_ASSERT_FALSE(mst_sim_link_limits(&none));
	CU_ASSERT_FALSE(mst_sim_link_limits(&empty));
	CU_ASSERT_TRUE(mst_sim_link_limits(&some));
}

static CU_TestInfo cases[] = {
	{ "messages come out in order, however many", messages_come_out_in_order_however_many },
	{ "a message alone has the whole link", a_message_alone_has_the_whole_link },
	{ "those that begin together end together", those_that_begin_together_end_together },
	{ "one that comes later slows the first down", one_that_comes_later_slows_the_first_down },
	{ "a worker sends no faster than its own link",
	  a_worker_sends_no_faster_than_its_own_link },
	{ "without rates or bytes nothing is limited", without_rates_or_bytes_nothing_is_limited },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim_link", cases);
}
