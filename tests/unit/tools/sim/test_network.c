/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "tests/ut.h"
#include "tools/sim/network.h"

#define RANK 3u

static struct mst_sim_network net;

static void open_net(struct mst_sim_net_cfg cfg, uint32_t servers)
{
	CU_ASSERT_FATAL(mst_sim_network_init(&net, &cfg, servers) == 0);
}

static void push(uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_FULL, .who = { RANK, 1 } };

	CU_ASSERT(mst_sim_network_send(&net, &ev, now_ns) == 0);
}

static void answer(enum mst_where where, uint64_t now_ns)
{
	struct mst_decision d = { .kind = MST_DO_RELEASE, .who = { RANK, 1 } };

	d.answer.number = 7;
	d.answer.where = where;
	CU_ASSERT(mst_sim_network_tell(&net, &d, now_ns) == 0);
}

/* What arrives next, at @at_ns. */
static struct mst_sim_message arrives(uint64_t at_ns)
{
	struct mst_sim_message m = { .server = 99 };
	uint64_t due_ns;
	int rc = 0;

	while (rc == 0 && (due_ns = mst_sim_network_due(&net)) <= at_ns)
		rc = mst_sim_network_step(&net, due_ns, &m);
	CU_ASSERT_EQUAL_FATAL(rc, 1);
	CU_ASSERT_EQUAL(due_ns, at_ns);
	return m;
}

static void contribution(uint32_t server, uint64_t at_ns)
{
	struct mst_sim_message m = arrives(at_ns);

	CU_ASSERT_EQUAL(m.kind, MST_SIM_EVENT);
	CU_ASSERT_EQUAL(m.event.kind, MST_EV_FULL);
	CU_ASSERT_EQUAL(m.event.full.shard, server);
}

static void part(uint32_t server, uint64_t at_ns)
{
	struct mst_sim_message m = arrives(at_ns);

	CU_ASSERT_EQUAL(m.kind, MST_SIM_ORDER);
	CU_ASSERT_EQUAL(m.order.kind, MST_DO_RELEASE);
	CU_ASSERT_EQUAL(m.server, server);
}

static void sent(uint32_t server, uint64_t at_ns)
{
	struct mst_sim_message m = arrives(at_ns);

	CU_ASSERT_EQUAL(m.kind, MST_SIM_EVENT);
	CU_ASSERT_EQUAL(m.event.kind, MST_EV_ANSWERED);
	CU_ASSERT_EQUAL(m.event.answered.shard, server);
	CU_ASSERT_EQUAL(m.event.answered.number, 7);
	CU_ASSERT_EQUAL(m.event.who.rank, RANK);
}

static void close_net(void)
{
	CU_ASSERT_EQUAL(mst_sim_network_due(&net), MST_NEVER);
	mst_sim_network_fini(&net);
}

static void everything_takes_a_latency(void)
{
	struct mst_ledger_event ask = { .kind = MST_EV_ASK, .who = { RANK, 1 } };

	open_net((struct mst_sim_net_cfg){ .latency_ns = 10 }, 1);
	push(100);
	CU_ASSERT(mst_sim_network_send(&net, &ask, 105) == 0);
	answer(MST_WHERE_IN_PLACE, 107);
	contribution(0, 110);
	CU_ASSERT_EQUAL(arrives(115).event.kind, MST_EV_ASK);
	part(0, 117);
	close_net();
}

static void what_the_leader_posts_arrives_at_once(void)
{
	struct mst_ledger_event ev = { .kind = MST_EV_POLICY };

	open_net((struct mst_sim_net_cfg){ .latency_ns = 10 }, 1);
	push(90);
	CU_ASSERT(mst_sim_network_post(&net, &ev, 95) == 0);
	CU_ASSERT_EQUAL(arrives(95).event.kind, MST_EV_POLICY);
	contribution(0, 100);
	close_net();
}

/* Further servers report to the leader, and hear from it, one latency later. */
static void every_server_reports_and_answers(void)
{
	open_net((struct mst_sim_net_cfg){ .latency_ns = 10 }, 3);
	push(100);
	contribution(0, 110);
	contribution(1, 120);
	contribution(2, 120);
	answer(MST_WHERE_KEEP, 200);
	part(0, 210);
	part(1, 220);
	part(2, 220);
	close_net();
}

static void a_copy_is_reported_when_it_is_sent(void)
{
	open_net((struct mst_sim_net_cfg){ .latency_ns = 10 }, 2);
	answer(MST_WHERE_COPIED, 100);
	sent(0, 100);
	part(0, 110);
	sent(1, 120); /* at 110; then the report travels */
	part(1, 120);
	close_net();
}

/* 1000 bytes, 500 to each server, whose link carries 1 byte a ns; two workers share it. */
static void bytes_take_their_time_on_the_links_of_their_server(void)
{
	open_net((struct mst_sim_net_cfg){ .latency_ns = 10, .bytes = 1000, .server_rate = 1 }, 2);
	push(0);
	push(0);
	contribution(0, 1010);
	contribution(0, 1010);
	contribution(1, 1020);
	contribution(1, 1020);
	answer(MST_WHERE_COPIED, 2000);
	sent(0, 2500);
	part(0, 2510);
	sent(1, 2520); /* has begun at 2010 */
	part(1, 2520);
	answer(MST_WHERE_IN_PLACE, 3000);
	part(0, 3010);
	part(1, 3020);
	close_net();
}

static CU_TestInfo cases[] = {
	{ "everything takes a latency", everything_takes_a_latency },
	{ "what the leader posts arrives at once", what_the_leader_posts_arrives_at_once },
	{ "every server reports and answers", every_server_reports_and_answers },
	{ "a copy is reported when it is sent", a_copy_is_reported_when_it_is_sent },
	{ "bytes take their time on the links of their server",
	  bytes_take_their_time_on_the_links_of_their_server },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim_network", cases);
}
