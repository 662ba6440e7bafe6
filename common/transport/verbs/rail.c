/* SPDX-License-Identifier: MIT */
/*
 * A rail: two queue pairs over one connection of the connection manager. It finds the path and
 * tells the peers of each other; states and timers are set here, for its own choice (retries for
 * ever, 655 ms for a receiver that is not ready) would hide what is wrong.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rand.h"
#include "common/transport/verbs/verbs.h"

#define PSN_MASK 0xffffffu
#define RECEIVES_AT_A_TIME 32u

/* ---- making ---- */

static uint32_t sends_of(const struct mst_verbs_rail *r)
{
	return r->link->queue.rail[r->index].sends;
}

static int make_queue(struct mst_verbs_rail *r, struct mst_reason *why)
{
	/* Every receive and every send may complete, if only in error. */
	uint64_t entries = (uint64_t)r->link->queue.in_credits + 1 + sends_of(r) + 1;

	if (entries > (uint64_t)r->device->limits.max_cqe)
		return mst_reason_fail(
			why, -EINVAL,
			"a link needs a completion queue of %llu entries, RDMA device %s has "
			"%d at most",
			(unsigned long long)entries, mst_verbs_rail_device(r),
			r->device->limits.max_cqe);
	r->cq = ibv_create_cq(r->device->context, (int)entries, r, r->device->channel, 0);
	if (r->cq != NULL)
		return 0;
	return mst_reason_fail(why, -errno,
			       "RDMA device %s has no completion queue left (%d in all): %s",
			       mst_verbs_rail_device(r), r->device->limits.max_cq, strerror(errno));
}

static struct ibv_qp *make_pair(struct mst_verbs_rail *r, struct ibv_pd *pd, uint32_t sends,
				uint32_t receives, uint32_t inline_bytes)
{
	struct ibv_qp_init_attr init = { .qp_context = r,
					 .send_cq = r->cq,
					 .recv_cq = r->cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = sends,
						  .max_recv_wr = receives,
						  .max_send_sge = 1,
						  .max_recv_sge = 1,
						  .max_inline_data = inline_bytes } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (qp != NULL && sends > 1)
		r->inline_max = init.cap.max_inline_data;
	return qp;
}

static int make_pairs(struct mst_verbs_rail *r, struct mst_reason *why)
{
	static const uint32_t inline_bytes[] = { 256, 64, 0 };

	r->in = make_pair(r, r->pd, 1, r->link->queue.in_credits + 1, 0);
	for (size_t i = 0; i < 3 && r->out == NULL && r->in != NULL; i++)
		r->out = make_pair(r, r->device->pd, sends_of(r), 1, inline_bytes[i]);
	if (r->in != NULL && r->out != NULL)
		return 0;
	return mst_reason_fail(
		why, -errno,
		"RDMA device %s has no queue pair left for this link (%d in all, each with "
		"%d requests at most; this one takes %u sends, %u receives): %s",
		mst_verbs_rail_device(r), r->device->limits.max_qp, r->device->limits.max_qp_wr,
		sends_of(r), r->link->queue.in_credits + 1, strerror(errno));
}

static int register_memory(struct mst_verbs_rail *r, struct mst_reason *why)
{
	if (r->index == 0) {
		mst_verbs_memory_near(&r->link->inbound, r->device->context);
		mst_verbs_memory_near(&r->link->outbound, r->device->context);
		if (r->link->views && r->link->home->fabric.huge_pages) {
			mst_verbs_memory_gather(&r->link->inbound);
			mst_verbs_memory_gather(&r->link->outbound);
		}
	}
	unsigned from_afar = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	if (r->link->home->fabric.relaxed_ordering)
		from_afar |= IBV_ACCESS_RELAXED_ORDERING;
	struct mst_verbs_registration written = { .pd = r->pd,
						  .base = r->link->inbound.base,
						  .bytes = r->link->inbound.bytes,
						  .access = from_afar,
						  .what = "what the peer writes" };
	int rc = mst_verbs_register(&written, &r->inbound, why);
	if (rc == 0 && r->link->export.region != NULL)
		rc = mst_verbs_export(r, from_afar, why);
	if (rc != 0)
		return rc;
	return mst_verbs_pin(r->device, &r->link->composed, "what it is sent", why);
}

int mst_verbs_rail_make(struct mst_verbs_rail *r, struct mst_reason *why)
{
	struct mst_queue *q = &r->link->queue;
	struct mst_verbs_lane out = { q->peer_bytes, q->out_credits, q->rail_count };
	struct {
		uint32_t in, out;
	} psn;

	if (r->device->limits.max_qp_wr < (int)MST_QUEUE_SENDS_MIN)
		return mst_reason_fail(
			why, -EINVAL, "RDMA device %s takes %d requests at a time, too few (%u)",
			mst_verbs_rail_device(r), r->device->limits.max_qp_wr, MST_QUEUE_SENDS_MIN);
	if (mst_rand_secret(&psn, sizeof(psn)) != 0)
		return mst_reason_fail(why, -EIO, "no random numbers for a link");
	r->in_psn = psn.in & PSN_MASK;
	r->out_psn = psn.out & PSN_MASK;
	r->pd = ibv_alloc_pd(r->device->context);
	if (mst_queue_rail_init(q, r->index, mst_verbs_send_depth(&out, &r->device->limits)) != 0 ||
	    r->pd == NULL)
		return mst_reason_fail(why, -ENOMEM,
				       "no memory, or no protection domain of RDMA device %s left",
				       mst_verbs_rail_device(r));
	int rc = make_queue(r, why);
	if (rc == 0)
		rc = make_pairs(r, why);
	if (rc == 0)
		rc = register_memory(r, why);
	return rc;
}

/* The pair goes first: the device may hold the region in the middle of a write. */
void mst_verbs_rail_revoke(struct mst_verbs_rail *r)
{
	if (r->exported == NULL)
		return;
	ibv_destroy_qp(r->in);
	ibv_dereg_mr(r->exported);
	r->in = NULL;
	r->exported = NULL;
}

/* Nothing is in flight once this has returned: destroying a pair and deregistering a region wait
 * for whoever uses them. */
void mst_verbs_rail_destroy(struct mst_verbs_rail *r)
{
	if (r->in != NULL)
		ibv_destroy_qp(r->in);
	if (r->out != NULL)
		ibv_destroy_qp(r->out);
	if (r->inbound != NULL)
		ibv_dereg_mr(r->inbound);
	if (r->exported != NULL)
		ibv_dereg_mr(r->exported);
	if (r->cq != NULL)
		ibv_destroy_cq(r->cq);
	if (r->pd != NULL)
		ibv_dealloc_pd(r->pd);
	/* Last: it keeps the pair's numbers from being reused for a while. */
	if (r->id != NULL)
		rdma_destroy_id(r->id);
}

int mst_verbs_rail_post_receives(struct mst_verbs_rail *r, uint32_t count)
{
	struct ibv_recv_wr wr[RECEIVES_AT_A_TIME], *bad;

	while (count > 0) {
		uint32_t n = count < RECEIVES_AT_A_TIME ? count : RECEIVES_AT_A_TIME;
		/* Writes name their own memory, so a receive has none: a send finds no room. */
		for (uint32_t i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr){ .next = i + 1 < n ? &wr[i + 1] : NULL };
		int rc = ibv_post_recv(r->in, wr, &bad);
		if (rc != 0)
			return -rc;
		count -= n;
	}
	return 0;
}

/* ---- what the device can do ---- */

/* The connection manager's list of devices is the first thing that one leaves, and to bind a
 * connection to an address asks for that list. */
int mst_verbs_rail_check_device(const struct mst_verbs_rail *r)
{
	union mst_endpoint own = { 0 };
	struct rdma_cm_id *id;
	int rc = 0;

	if (r->id == NULL)
		return 0;
	const struct sockaddr *at = rdma_get_local_addr(r->id);
	memcpy(&own, at, at->sa_family == AF_INET ? sizeof(own.v4) : sizeof(own.v6));
	own.v4.sin_port = 0; /* at the same place in both families */
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0)
		return 0;
	if (rdma_bind_addr(id, &own.any) != 0 && (errno == ENODEV || errno == EADDRNOTAVAIL))
		rc = -errno;
	rdma_destroy_id(id);
	return rc;
}

uint8_t mst_verbs_rail_mtu(const struct mst_verbs_rail *r)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(r->device->context, r->id->port_num, &attr) != 0)
		return IBV_MTU_256;
	return (uint8_t)attr.active_mtu;
}

/* ---- connecting ---- */

/* What the connection manager found for this state. */
static int attributes(const struct mst_verbs_rail *r, enum ibv_qp_state state,
		      struct ibv_qp_attr *attr, int *mask, struct mst_reason *why)
{
	*attr = (struct ibv_qp_attr){ .qp_state = state };
	if (rdma_init_qp_attr(r->id, attr, mask) == 0)
		return 0;
	return errno != EINVAL
		       ? -errno
		       : mst_reason_fail(why, -EPIPE, "%s has gone before the connection was up",
					 r->peer);
}

static int pkey_index(const struct mst_verbs_rail *r, struct ibv_qp_attr *attr,
		      struct mst_reason *why)
{
	int32_t want = r->link->home->fabric.pkey;
	int index = want < 0 ? 0
			     : ibv_get_pkey_index(r->device->context, r->id->port_num,
						  htons((uint16_t)want));

	if (index < 0)
		return mst_reason_fail(why, -EINVAL,
				       "port %u of RDMA device %s has no partition key 0x%04x",
				       r->id->port_num, mst_verbs_rail_device(r), (unsigned)want);
	if (want >= 0)
		attr->pkey_index = (uint16_t)index;
	return 0;
}

static int to_init(struct mst_verbs_rail *r, struct mst_reason *why)
{
	struct ibv_qp_attr attr;
	int mask;
	int rc = attributes(r, IBV_QPS_INIT, &attr, &mask, why);

	if (rc == 0)
		rc = pkey_index(r, &attr, why);
	if (rc != 0)
		return rc;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	rc = ibv_modify_qp(r->in, &attr, mask);
	attr.qp_access_flags = 0;
	if (rc == 0)
		rc = ibv_modify_qp(r->out, &attr, mask);
	return -rc;
}

static void adjust_path(const struct mst_verbs_rail *r, const struct mst_verbs_far *far,
			struct ibv_qp_attr *attr)
{
	const struct mst_fabric *f = &r->link->home->fabric;
	uint8_t own = mst_verbs_rail_mtu(r);

	if (far->mtu >= IBV_MTU_256 && far->mtu < (uint8_t)attr->path_mtu)
		attr->path_mtu = (enum ibv_mtu)far->mtu;
	if (own < (uint8_t)attr->path_mtu)
		attr->path_mtu = (enum ibv_mtu)own;
	attr->min_rnr_timer = MST_VERBS_RNR_TIMER;
	attr->max_dest_rd_atomic = 0; /* nobody reads here */
	if (f->gid_index >= 0)
		attr->ah_attr.grh.sgid_index = (uint8_t)f->gid_index;
	if (f->traffic_class != 0)
		attr->ah_attr.grh.traffic_class = f->traffic_class;
	if (f->service_level != 0)
		attr->ah_attr.sl = f->service_level;
}

/* The connection manager knows only the queue pair @own. The pair @other takes the same path, to
 * the pair of the peer that @far names. */
static int to_receive(struct mst_verbs_rail *r, const struct mst_verbs_far *far, struct ibv_qp *own,
		      struct ibv_qp *other, struct mst_reason *why)
{
	struct ibv_qp_attr attr;
	int mask;
	int rc = attributes(r, IBV_QPS_RTR, &attr, &mask, why);

	if (rc != 0)
		return rc;
	adjust_path(r, far, &attr);
	rc = ibv_modify_qp(own, &attr, mask);
	attr.dest_qp_num = far->qpn;
	attr.rq_psn = far->psn;
	if (rc == 0)
		rc = ibv_modify_qp(other, &attr, mask);
	return -rc;
}

static int to_send(struct mst_verbs_rail *r, struct ibv_qp *own, struct ibv_qp *other,
		   uint32_t other_psn, struct mst_reason *why)
{
	struct ibv_qp_attr attr;
	int mask;
	int rc = attributes(r, IBV_QPS_RTS, &attr, &mask, why);

	if (rc != 0)
		return rc;
	struct mst_verbs_tries tries = mst_verbs_tries(r->link->home->fabric.link_timeout_ns);
	attr.timeout = tries.timer;
	attr.retry_cnt = tries.retries;
	attr.rnr_retry = MST_VERBS_RNR_RETRIES;
	attr.max_rd_atomic = 0;
	rc = ibv_modify_qp(own, &attr, mask);
	attr.sq_psn = other_psn;
	if (rc == 0)
		rc = ibv_modify_qp(other, &attr, mask);
	return -rc;
}

int mst_verbs_rail_connect(struct mst_verbs_rail *r, const struct mst_verbs_far *far,
			   struct mst_reason *why)
{
	/* The request is for the up lane: the connector sends on it. */
	bool connector = r->link->connector;
	struct ibv_qp *own = connector ? r->out : r->in;
	struct ibv_qp *other = connector ? r->in : r->out;

	mst_reason_clear(why);
	int rc = to_init(r, why);
	if (rc == 0)
		rc = mst_verbs_rail_post_receives(r, r->link->queue.in_credits + 1);
	if (rc == 0)
		rc = to_receive(r, far, own, other, why);
	if (rc == 0)
		rc = to_send(r, own, other, connector ? r->in_psn : r->out_psn, why);
	if (rc == 0 || why->text[0] != '\0')
		return rc;
	return mst_reason_fail(why, rc,
			       "cannot bring the queue pairs to %s up on RDMA device %s: %s",
			       r->peer, mst_verbs_rail_device(r), strerror(-rc));
}

void mst_verbs_rail_error(struct mst_verbs_rail *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (r->in != NULL)
		ibv_modify_qp(r->in, &attr, IBV_QP_STATE);
	if (r->out != NULL)
		ibv_modify_qp(r->out, &attr, IBV_QP_STATE);
}
