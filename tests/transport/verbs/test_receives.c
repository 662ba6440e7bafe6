/* SPDX-License-Identifier: MIT */
/*
 * How many receives are posted, against how many the peer may use. Needs no device: one that is
 * made here counts. A peer that finds no receive is retried for a moment, and then its link is
 * broken, so one receive too few shows only under load.
 */
#include <string.h>

#include "common/transport/verbs/verbs.h"
#include "tests/ut.h"

#undef ibv_query_port /* the header has a macro of this name, for its callers */

static uint64_t posted; /* receives */
static uint64_t posted_at_receive;
static uint64_t posted_at_credit, told; /* when the credit word was written, and what it said */
static int coming;                      /* arrivals that the next look at the queue finds */

/* ---- the device ---- */

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp, (void)bad;
	for (; wr != NULL; wr = wr->next)
		posted++;
	return 0;
}

/* All that a link without puts writes is its credit word. */
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp, (void)bad;
	CU_ASSERT_EQUAL_FATAL(wr->num_sge, 1);
	CU_ASSERT_EQUAL_FATAL(wr->sg_list->length, sizeof(told));
	memcpy(&told, (const void *)(uintptr_t)wr->sg_list->addr, sizeof(told));
	posted_at_credit = posted;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	int n = coming < most ? coming : most;

	(void)cq;
	for (int i = 0; i < n; i++)
		wc[i] = (struct ibv_wc){ .status = IBV_WC_SUCCESS,
					 .opcode = IBV_WC_RECV_RDMA_WITH_IMM };
	coming -= n;
	return n;
}

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp, (void)mask;
	if (attr->qp_state == IBV_QPS_RTR)
		posted_at_receive = posted;
	return 0;
}

int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	(void)id, (void)attr;
	*mask = 0;
	return 0;
}

int __wrap_ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr);
int __wrap_ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)c, (void)port, (void)attr;
	return 0;
}

/* ---- a link over it ---- */

static struct ibv_context context = {
	.ops = { .post_recv = post_recv, .post_send = post_send, .poll_cq = poll_cq }
};
static struct mst_verbs_device device = { .context = &context };
static struct ibv_qp pair = { .context = &context };
static struct ibv_cq completions = { .context = &context };
static struct ibv_mr pinned;
static struct rdma_cm_id id;
static struct mst_verbs_net net;

static struct mst_verbs_link *link_of(uint32_t credits)
{
	const struct mst_verbs_link_cfg cfg = { .rails = 1, .lanes = { 4096, 4096, credits, 4 } };
	struct mst_verbs_link *l = NULL;

	posted = posted_at_receive = posted_at_credit = told = 0;
	net.fabric = (struct mst_fabric)MST_FABRIC_DEFAULT;
	CU_ASSERT_EQUAL_FATAL(mst_verbs_link_new(&net, &cfg, &l, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_queue_rail_init(&l->queue, 0, MST_QUEUE_SENDS_MIN), 0);
	CU_ASSERT_EQUAL_FATAL(mst_queue_init(&l->queue), 0);
	l->rail[0].device = &device;
	l->rail[0].id = &id;
	l->rail[0].in = l->rail[0].out = &pair;
	l->rail[0].cq = &completions;
	l->composed.pin[0] = &pinned;
	return l;
}

static void link_end(struct mst_verbs_link *l)
{
	l->queue.state = MST_QUEUE_IDLE;
	l->composed.pin[0] = NULL;
	l->rail[0].id = NULL;
	l->rail[0].in = l->rail[0].out = NULL;
	l->rail[0].cq = NULL;
	mst_verbs_link_free(&l->link);
}

static void connect_rail(struct mst_verbs_link *l)
{
	const struct mst_verbs_far far = { .qpn = 1, .psn = 1, .mtu = IBV_MTU_1024 };

	CU_ASSERT_EQUAL(mst_verbs_rail_connect(&l->rail[0], &far, UT_UNREAD), 0);
}

/* The peer has taken all credits at once. */
static void attach(struct mst_verbs_link *l)
{
	l->queue.state = MST_QUEUE_LIVE;
	l->rail[0].open = l->queue.open = true;
}

/* ---- the promises ---- */

static void one_for_each_credit_and_one_for_the_exchange(void)
{
	static const uint32_t credits[] = { 1, 2, 5, 31, 32, 33, 64, 1000 };

	for (size_t i = 0; i < sizeof(credits) / sizeof(credits[0]); i++) {
		struct mst_verbs_link *l = link_of(credits[i]);
		connect_rail(l);
		CU_ASSERT_EQUAL(posted_at_receive, credits[i] + 1);
		CU_ASSERT_EQUAL(posted, credits[i] + 1);
		link_end(l);
	}
}

/* @most arrivals are polled at a time. */
static void use_all_credits(uint32_t credits, int most)
{
	struct mst_net_event ev[64];
	struct mst_verbs_link *l = link_of(credits);
	uint64_t polled = 0;

	connect_rail(l);
	attach(l);
	for (int round = 0; round < 5; round++) {
		coming = (int)credits;
		while (polled < (uint64_t)credits * (uint64_t)(round + 1)) {
			int n = mst_verbs_link_poll(l, ev, most);
			CU_ASSERT_FATAL(n > 0 && n <= most);
			polled += (uint64_t)n;
			CU_ASSERT_EQUAL(posted, credits + 1 + polled);
			CU_ASSERT(posted_at_credit >= told);
		}
		mst_queue_return(&l->queue);
		CU_ASSERT_EQUAL(told, polled);
		CU_ASSERT_EQUAL(posted_at_credit, credits + 1 + told);
	}
	link_end(l);
}

static void what_was_used_is_posted_again_before_the_peer_is_told(void)
{
	use_all_credits(1, 4);
	use_all_credits(8, 3);
	use_all_credits(8, 64);
	use_all_credits(40, 64);
}

static CU_TestInfo cases[] = {
	{ "a rail that receives has one for each credit and one for the exchange",
	  one_for_each_credit_and_one_for_the_exchange },
	{ "what was used is posted again before the peer is told",
	  what_was_used_is_posted_again_before_the_peer_is_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("receives of a verbs rail", cases);
}
