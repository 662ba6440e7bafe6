/* SPDX-License-Identifier: MIT */
/* What the decider is told of a worker's link that has come up: whether its network maps memory,
 * where links of one server are over several networks. */
#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "server/data/decider.h"
#include "server/data/server.h"
#include "tests/fixtures.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"

#define WORKERS 2u

/* ---- a decider that keeps the last event, and a net to which every link may be attached ---- */

static struct mst_ledger_event heard;
static uint32_t heard_count;
static int attach_rc;

static void nothing(struct mst_decider *d)
{
	(void)d;
}

static bool takes(const struct mst_decider *d)
{
	(void)d;
	return true;
}

static void hear(struct mst_decider *d, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	(void)d, (void)now_ns;
	heard = *ev;
	heard_count++;
}

static bool reports_none(struct mst_decider *d, struct mst_ledger_event *out, uint64_t now_ns)
{
	(void)d, (void)out, (void)now_ns;
	return false;
}

static bool orders_none(struct mst_decider *d, struct mst_orders *out, uint64_t now_ns)
{
	(void)d, (void)out, (void)now_ns;
	return false;
}

static bool wants(const struct mst_decider *d, struct mst_identity who)
{
	(void)d, (void)who;
	return true;
}

static bool flushes(struct mst_decider *d, uint64_t now_ns)
{
	(void)d, (void)now_ns;
	return true;
}

static void lags(struct mst_decider *d, uint64_t lag_ns)
{
	(void)d, (void)lag_ns;
}

static uint64_t never(const struct mst_decider *d)
{
	(void)d;
	return MST_NEVER;
}

static const struct mst_decider_ops ops = {
	.free = nothing,
	.takes = takes,
	.handle = hear,
	.reported = reports_none,
	.next = orders_none,
	.wants = wants,
	.flush = flushes,
	.lags = lags,
	.deadline = never,
};

static int decider_new(const struct mst_server_cfg *cfg, struct mst_net *net,
		       struct mst_decider **out)
{
	static struct mst_decider decider = { .ops = &ops };

	(void)cfg, (void)net;
	*out = &decider;
	return 0;
}

static int attach(struct mst_net *net, struct mst_link *link, struct mst_reason *why)
{
	(void)net, (void)link, (void)why;
	return attach_rc;
}

static struct mst_transport mixed;

static int net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	int rc = mst_shm.net_open(cfg, out, why);

	if (rc == 0)
		(*out)->ops = &mixed;
	return rc;
}

static void notify(void *ctx)
{
	(void)ctx;
}

static struct mst_server *begin(void)
{
	struct mst_lane_figures figures = { 64, 4, 4, 2, WORKERS, false };
	struct mst_server_cfg cfg = { .transport = &mixed,
				      .notify = notify,
				      .decider = decider_new };
	struct mst_server *server;

	fix_net_begin(NULL, NULL);
	heard_count = 0;
	mixed = mst_shm;
	mixed.net_open = net_open;
	mixed.attach = attach;
	cfg.ledger = (struct mst_ledger_cfg){ .workers = WORKERS, .shards = 1 };
	cfg.aggregator = (struct mst_aggregator_cfg){ .shards = 1,
						      .elems = 64,
						      .chunk_elems = 1024,
						      .group = 8,
						      .workers = WORKERS,
						      .slots = 2,
						      .sessions_max = 2 * WORKERS,
						      .buffers = 4,
						      .entries_max = 2 * WORKERS,
						      .optimizer = optim_case_sgd(0.1, 0) };
	mst_lane_layout(&figures, &cfg.aggregator.layout);
	CU_ASSERT_EQUAL_FATAL(mst_server_new(&cfg, &server, UT_UNREAD), 0);
	return server;
}

/* ---- cases ---- */

/* The link of rank 1 comes up, over this network. */
static void comes_up_over(bool maps, int rc)
{
	struct mst_server *server = begin();
	struct mst_transport network = fix_transport;
	struct mst_link link = { .ops = &network };
	struct mst_session session = { .who = { 1, 7 }, .link = &link };
	struct mst_request linked = { .kind = MST_REQ_LINKED, .session = &session };

	attach_rc = rc;
	network.maps = maps;
	link.outbound_bytes = 1 << 16;
	link.outbound = calloc(1, link.outbound_bytes);
	link.inbound = calloc(1, 1 << 16);
	CU_ASSERT(mst_server_request(server, &linked));
	(void)mst_server_step(server, MST_SECOND);
	CU_ASSERT_EQUAL_FATAL(heard_count, 1);
	CU_ASSERT_EQUAL(heard.who.rank, 1);
	CU_ASSERT_EQUAL(heard.who.incarnation, 7);
	mst_server_hang_up(server, -ENOTCONN);
	mst_server_free(server);
	free(link.outbound);
	free(link.inbound);
}

static void link_that_is_up_says_whether_it_is_far(void)
{
	for (int maps = 0; maps < 2; maps++) {
		comes_up_over(maps, 0);
		CU_ASSERT_EQUAL(heard.kind, MST_EV_LINKED);
		CU_ASSERT_EQUAL(heard.shard, 0);
		CU_ASSERT_EQUAL(heard.far, !maps);
	}
}

static void link_that_is_lost_at_once_says_why(void)
{
	for (int maps = 0; maps < 2; maps++) {
		comes_up_over(maps, -ENOSPC);
		CU_ASSERT_EQUAL(heard.kind, MST_EV_LOST);
		CU_ASSERT_EQUAL(heard.error, -ENOSPC);
	}
}

static CU_TestInfo cases[] = {
	{ "a link that is up says whether it is far", link_that_is_up_says_whether_it_is_far },
	{ "a link that is lost at once says why", link_that_is_lost_at_once_says_why },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("server links", cases);
}
