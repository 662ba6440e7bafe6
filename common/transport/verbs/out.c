/* SPDX-License-Identifier: MIT */
/*
 * The writes of a link's queue as work requests, posted in lists.
 */
#include <errno.h>

#include "common/transport/verbs/verbs.h"

static void post(struct mst_verbs_rail *r)
{
	struct mst_verbs_list *list = &r->list;
	struct ibv_send_wr *bad;

	if (list->count == 0)
		return;
	list->wr[list->count - 1].next = NULL;
	int rc = ibv_post_send(r->out, list->wr, &bad);
	list->count = 0;
	if (rc != 0)
		mst_verbs_link_break(r, rc);
}

static uint32_t key_of(const struct mst_verbs_rail *r, const struct mst_region *from)
{
	return ((const struct ibv_mr *)from->pin[r->device->index])->lkey;
}

/* Pieces do not go across the ends of what lies apart: the queue cuts them there. */
static void aim(const struct mst_verbs_rail *r, struct ibv_send_wr *wr, size_t offset)
{
	bool apart = offset >= r->apart.from && offset < r->apart.end;

	wr->wr.rdma.remote_addr = apart ? r->apart.remote + (offset - r->apart.from)
					: r->remote + offset;
	wr->wr.rdma.rkey = apart ? r->apart.rkey : r->rkey;
}

static void fill(const struct mst_verbs_rail *r, struct ibv_send_wr *wr,
		 const struct mst_queue_write *w)
{
	wr->opcode = w->notify ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	wr->imm_data = htonl(w->imm);
	wr->send_flags = w->report ? IBV_SEND_SIGNALED : 0;
	aim(r, wr, w->offset);
	if (w->bytes == 0)
		return;
	wr->num_sge = 1;
	*wr->sg_list = (struct ibv_sge){ .addr = (uintptr_t)w->src,
					 .length = (uint32_t)w->bytes,
					 .lkey = key_of(r, w->region) };
	if (w->bytes <= r->inline_max)
		wr->send_flags |= IBV_SEND_INLINE;
}

static void add(struct mst_verbs_rail *r, const struct mst_queue_write *w)
{
	struct mst_verbs_list *list = &r->list;

	if (list->count == MST_VERBS_LIST)
		post(r);
	struct ibv_send_wr *wr = &list->wr[list->count];
	*wr = (struct ibv_send_wr){ .wr_id = w->number,
				    .next = wr + 1,
				    .sg_list = &list->sge[list->count] };
	fill(r, wr, w);
	list->count++;
}

static struct mst_verbs_link *link_of(const struct mst_queue *q)
{
	return (struct mst_verbs_link *)q->link;
}

static void queue_write(struct mst_queue *q, uint32_t rail, const struct mst_queue_write *w)
{
	add(&link_of(q)->rail[rail], w);
}

static void queue_post(struct mst_queue *q, uint32_t rail)
{
	post(&link_of(q)->rail[rail]);
}

static void queue_gather(struct mst_queue *q)
{
	mst_verbs_link_gather(link_of(q));
}

const struct mst_queue_ops mst_verbs_queue = {
	.write = queue_write,
	.post = queue_post,
	.gather = queue_gather,
};

/* The write is posted at once, so that the dial can tell what is wrong with it. */
int mst_verbs_send_region_exchange(struct mst_verbs_rail *r)
{
	struct mst_verbs_link *l = r->link;
	size_t at = r->index * MST_VERBS_REGION_EXCHANGE_LINE;
	struct mst_verbs_region_exchange *exchange = (void *)(mst_verbs_tail(&l->outbound) + at);
	struct ibv_send_wr *bad;

	const struct mst_export *e = &l->export;
	*exchange = (struct mst_verbs_region_exchange){ .magic = MST_VERBS_MAGIC,
							.rkey = r->inbound->rkey,
							.inbound = (uintptr_t)l->inbound.base };
	if (r->exported != NULL) {
		exchange->at = e->at;
		exchange->bytes = e->bytes;
		exchange->base = (uintptr_t)e->region->base + e->offset;
		exchange->base_rkey = r->exported->rkey;
	}
	add(r, &(struct mst_queue_write){ .number = mst_queue_number(&l->queue, r->index),
					  .src = (const uint8_t *)exchange,
					  .bytes = sizeof(*exchange),
					  .offset = mst_verbs_peer_tail(l) + at,
					  .region = &l->composed,
					  .notify = true,
					  .report = true });
	r->list.wr[0].next = NULL;
	r->list.count = 0;
	return -ibv_post_send(r->out, r->list.wr, &bad);
}
