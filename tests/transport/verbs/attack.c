/* SPDX-License-Identifier: MIT */
#include "tests/transport/verbs/attack.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/clock.h"

const struct mst_lanes usual_lanes = { 4096, 8192, 4, 4 };

/* ---- the target ---- */

struct verbs_target house_open_at(const char *addresses)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .published_bytes = 4096, .links_max = 8, .fabric = &fabric };
	struct verbs_target h;

	fabric.addresses = addresses;
	fabric.link_timeout_ns = 140 * MST_MS; /* four tries of 34 ms */
	CU_ASSERT_EQUAL_FATAL(mst_verbs.net_open(&cfg, &h.net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(h.net, &h.listener, UT_UNREAD), 0);
	return h;
}

struct verbs_target target_open(void)
{
	return house_open_at(NULL);
}

void target_close(struct verbs_target *h)
{
	mst_verbs.listener->close(h->listener);
	mst_verbs.net_close(h->net);
}

int house_next_request(const struct verbs_target *h, struct mst_link_request *out)
{
	uint64_t end = mst_now_ns() + PATIENCE_NS;
	int rc;

	while ((rc = mst_verbs.listener->next_request(h->listener, out, UT_UNREAD)) == -EAGAIN &&
	       mst_now_ns() < end) {
		struct pollfd pfd = { .fd = mst_verbs.listener->fd(h->listener), .events = POLLIN };
		(void)poll(&pfd, 1, 10);
	}
	return rc;
}

/* ---- dialling ---- */

struct mst_net *attacker_net(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .links_max = 1, .fabric = &fabric };
	struct mst_net *net;

	fabric.link_timeout_ns = 140 * MST_MS;
	CU_ASSERT_EQUAL_FATAL(mst_verbs.net_open(&cfg, &net, UT_UNREAD), 0);
	return net;
}

static void *dial_it(void *arg)
{
	struct dialling *d = arg;

	d->rc = mst_verbs.dial(d->net, &d->dial, &d->link, &d->why);
	return NULL;
}

void dialling_begin(struct dialling *d, const char *address, const struct mst_lanes *lanes)
{
	pthread_t thread;

	d->dial = (struct mst_dial){
		.address = address, .lanes = *lanes, .timeout_ns = PATIENCE_NS, .export = d->export
	};
	memset(d->dial.token, 7, sizeof(d->dial.token));
	d->link = NULL;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, dial_it, d), 0);
	d->thread = thread;
}

int dialling_end(struct dialling *d)
{
	pthread_join(d->thread, NULL);
	return d->rc;
}

/* ---- an attack ---- */

void attack_begin(const struct verbs_target *h, struct verbs_attack *g,
		  const struct mst_lanes *lanes)
{
	struct dialling d = { .net = attacker_net() };
	struct mst_link_request request;

	dialling_begin(&d, h->listener->address, lanes);
	CU_ASSERT_EQUAL_FATAL(house_next_request(h, &request), 0);
	CU_ASSERT_EQUAL_FATAL(
		mst_verbs.listener->answer(h->listener, &request, &g->near, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(dialling_end(&d), 0);
	CU_ASSERT_EQUAL_FATAL(mst_verbs.attach(h->net, g->near, UT_UNREAD), 0);
	g->net = d.net;
	g->far = d.link;
	g->arms = canary_map(NULL, ARMS_BYTES);
	g->mr = ibv_reg_mr(rail_of(g->far)->device->pd, g->arms, ARMS_BYTES,
			   IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(g->mr);
	memset(g->arms, 'x', ARMS_BYTES);
}

void attack_drop_near(struct verbs_attack *g)
{
	if (g->near == NULL)
		return;
	mst_verbs.detach(g->near);
	mst_verbs.link_free(g->near);
	g->near = NULL;
}

void attack_lift(struct verbs_attack *g)
{
	attack_drop_near(g);
	ibv_dereg_mr(g->mr);
	mst_verbs.detach(g->far);
	mst_verbs.link_free(g->far);
	mst_verbs.net_close(g->net);
	munmap(g->arms, ARMS_BYTES);
}

struct strike strike_at(const struct mst_link *far, enum ibv_wr_opcode opcode, size_t offset,
			uint32_t bytes)
{
	const struct mst_verbs_rail *r = rail_of(far);

	return (struct strike){
		.opcode = opcode, .remote = r->remote + offset, .rkey = r->rkey, .bytes = bytes
	};
}

int strike_post(const struct verbs_attack *g, const struct strike *s)
{
	struct ibv_sge sge = { (uintptr_t)g->arms, s->bytes, g->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = STRIKE_ID,
				  .sg_list = &sge,
				  .num_sge = s->bytes > 0,
				  .opcode = s->opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htonl(s->imm) };
	struct ibv_send_wr *bad;

	if (s->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || s->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = s->remote;
		wr.wr.atomic.rkey = s->rkey;
		wr.wr.atomic.compare_add = UINT64_C(0x0101010101010101) * CANARY;
	} else {
		wr.wr.rdma.remote_addr = s->remote;
		wr.wr.rdma.rkey = s->rkey;
	}
	return ibv_post_send(rail_of(g->far)[s->rail].out, &wr, &bad);
}

bool strike_ended(const struct verbs_attack *g, uint64_t ns, enum ibv_wc_status *status)
{
	uint64_t end = mst_now_ns() + ns;
	struct ibv_wc wc;

	do {
		while (ibv_poll_cq(rail_of(g->far)->cq, 1, &wc) > 0) {
			if (wc.wr_id != STRIKE_ID)
				continue;
			*status = wc.status;
			return true;
		}
		mst_sleep_ns(50000);
	} while (mst_now_ns() < end);
	return false;
}

enum ibv_wc_status strike(const struct verbs_attack *g, const struct strike *s)
{
	enum ibv_wc_status status = IBV_WC_GENERAL_ERR;

	CU_ASSERT_EQUAL(strike_post(g, s), 0);
	CU_ASSERT(strike_ended(g, PATIENCE_NS, &status));
	return status;
}

void attack_rearm(const struct verbs_attack *g, uint8_t reads, uint8_t rnr_retries)
{
	struct ibv_qp *qp = rail_of(g->far)->out;
	struct ibv_qp_attr was, attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_init_attr init;
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	const int all = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | rtr | rts;

	CU_ASSERT_EQUAL(ibv_query_qp(qp, &was, all, &init), 0);
	CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr = was;
	attr.qp_state = IBV_QPS_INIT;
	CU_ASSERT_EQUAL(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr.qp_state = IBV_QPS_RTR;
	attr.max_dest_rd_atomic = reads;
	CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, rtr), 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.rnr_retry = rnr_retries;
	if (rnr_retries == 7) { /* for ever: so what a busy host makes late is no reason, either */
		attr.timeout = 18; /* 1.07 s */
		attr.retry_cnt = 7;
	}
	attr.max_rd_atomic = reads;
	CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, rts), 0);
}

/* ---- canaries ---- */

void inbound_fill(const struct mst_link *near, bool tail)
{
	const struct mst_verbs_memory *m = inbound_of(near);

	memset(m->base, CANARY, m->bytes - (tail ? 0 : MST_VERBS_PAGE));
}

bool is_canary(const void *at, size_t bytes)
{
	const uint8_t *b = at;

	return bytes == 0 || (b[0] == CANARY && memcmp(b, b + 1, bytes - 1) == 0);
}

bool comes_to_rest(const struct mst_verbs_memory *m)
{
	uint64_t end = mst_now_ns() + PATIENCE_NS;
	bool rests = false;

	while (!rests && mst_now_ns() < end) {
		memset(m->base, CANARY, m->bytes);
		mst_sleep_ns(MST_MS);
		rests = is_canary(m->base, m->bytes);
	}
	return rests;
}

uint8_t *canary_map(void *at, size_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *m = mmap(at, bytes, PROT_READ | PROT_WRITE,
		       flags | (at != NULL ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (m == MAP_FAILED)
		m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	CU_ASSERT_NOT_EQUAL_FATAL(m, MAP_FAILED);
	memset(m, CANARY, bytes);
	return m;
}

/* ---- what the target hears ---- */

struct heard house_listen(const struct verbs_target *h, const struct mst_link *offender,
			  const struct mst_link *honest, uint64_t ns)
{
	struct heard heard = { 0 };
	struct mst_net_event ev[8];
	uint64_t end = mst_now_ns() + ns;
	bool enough = false;

	while (!enough && mst_now_ns() < end) {
		int n = mst_verbs.poll(h->net, ev, 8);
		for (int i = 0; i < n; i++) {
			if (ev[i].kind == MST_LOST) {
				CU_ASSERT_PTR_EQUAL(ev[i].link, offender);
				heard.lost++;
				heard.error = ev[i].error;
			}
			heard.arrived += ev[i].kind == MST_ARRIVED && ev[i].link == offender;
			heard.arrived_other += ev[i].kind == MST_ARRIVED && ev[i].link == honest;
		}
		enough = heard.lost > 0 && (honest == NULL || heard.arrived_other > 0);
		if (n == 0)
			CU_ASSERT_EQUAL(mst_verbs.wait(h->net, MST_MS), 0);
	}
	return heard;
}

int expect_lost(const struct verbs_target *h, const struct verbs_attack *g,
		const struct verbs_attack *honest)
{
	struct mst_put put = { .src = "still here", .bytes = 10, .notify = true };

	CU_ASSERT_EQUAL(mst_verbs.put(honest->far, &put), 1);
	struct heard first = house_listen(h, g->near, honest->near, PATIENCE_NS);
	struct heard later = house_listen(h, g->near, NULL, 5 * MST_MS);
	CU_ASSERT_EQUAL(first.lost, 1);
	CU_ASSERT_EQUAL(first.arrived + later.arrived, 0);
	CU_ASSERT_EQUAL(first.arrived_other, 1);
	CU_ASSERT_EQUAL(memcmp(honest->near->inbound, put.src, put.bytes), 0);
	CU_ASSERT_EQUAL(later.lost, 0);
	CU_ASSERT(g->near->why.text[0] != '\0');
	CU_ASSERT_EQUAL(mst_verbs.put(g->near, &put), -EPIPE);
	return first.error;
}

void expect_alive(const struct verbs_target *h, const struct verbs_attack *g)
{
	struct mst_put put = { .src = "good day", .bytes = 8, .notify = true, .imm = 5 };
	struct mst_net_event ev = { 0 };
	uint64_t end = mst_now_ns() + PATIENCE_NS;

	CU_ASSERT_EQUAL(mst_verbs.put(g->far, &put), 1);
	while (mst_verbs.poll(h->net, &ev, 1) == 0 && mst_now_ns() < end)
		CU_ASSERT_EQUAL(mst_verbs.wait(h->net, MST_MS), 0);
	CU_ASSERT(ev.kind == MST_ARRIVED && ev.link == g->near && ev.imm == 5);
	CU_ASSERT_EQUAL(memcmp(g->near->inbound, put.src, put.bytes), 0);
	ev = (struct mst_net_event){ 0 };
	CU_ASSERT_EQUAL(mst_verbs.put(g->near, &put), 1);
	while (mst_verbs.poll(g->net, &ev, 1) == 0 && mst_now_ns() < end)
		CU_ASSERT_EQUAL(mst_verbs.wait(g->net, MST_MS), 0);
	CU_ASSERT(ev.kind == MST_ARRIVED && ev.link == g->far && ev.imm == 5);
	CU_ASSERT_EQUAL(memcmp(g->far->inbound, put.src, put.bytes), 0);
}
