/* SPDX-License-Identifier: MIT */
/*
 * One end of a session: completions become arrivals and ends. What the peer wrote in the tail is
 * copied once and checked; everything else this end decides by its own counters.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/reason.h"
#include "common/transport/verbs/verbs.h"

#define COMPLETIONS 16

int mst_verbs_lanes_check(const struct mst_lanes *lanes)
{
	if (lanes->up_bytes <= MST_VERBS_BYTES_MAX && lanes->down_bytes <= MST_VERBS_BYTES_MAX &&
	    lanes->up_credits <= MST_VERBS_CREDITS_MAX &&
	    lanes->down_credits <= MST_VERBS_CREDITS_MAX)
		return 0;
	return -EINVAL;
}

/* ---- beginning and end ---- */

static int memory_new(const struct mst_verbs_link *l, size_t bytes, struct mst_verbs_memory *out,
		      struct mst_reason *why)
{
	size_t all = mst_verbs_memory_of(bytes);

	return l->views ? mst_verbs_memory_new_viewed(all, out, why)
			: mst_verbs_memory_new(all, l->home->fabric.huge_pages, out, why);
}

static _Atomic uint64_t *credit_word(const struct mst_verbs_memory *m)
{
	return (_Atomic uint64_t *)(void *)(mst_verbs_tail(m) + MST_VERBS_CREDIT_AT);
}

static int make_memory(struct mst_verbs_link *l, struct mst_reason *why)
{
	l->link.outbound_bytes = mst_queue_outbound(&l->link.lanes, l->connector,
						    l->home->cfg.outbound_max);
	int rc = memory_new(l, l->queue.own_bytes, &l->inbound, why);
	if (rc == 0)
		rc = memory_new(l, l->link.outbound_bytes, &l->outbound, why);
	l->link.inbound = l->inbound.base;
	l->link.outbound = l->outbound.base;
	if (rc != 0)
		return rc;
	l->composed = (struct mst_region){ .base = l->outbound.base, .bytes = l->outbound.bytes };
	l->queue.in_word = credit_word(&l->inbound);
	l->queue.out_word = credit_word(&l->outbound);
	return 0;
}

static void prepare_queue(struct mst_verbs_link *l, uint32_t rails)
{
	struct mst_queue *q = &l->queue;

	q->ops = &mst_verbs_queue;
	q->link = &l->link;
	q->outbound = &l->composed;
	q->published = &l->home->versions;
	mst_queue_set_lanes(q, &l->link.lanes, l->connector);
	q->message = MST_VERBS_MESSAGE;
	q->word_at = mst_verbs_peer_tail(l) + MST_VERBS_CREDIT_AT;
	q->ordered = !l->home->fabric.relaxed_ordering;
	l->link.unordered = l->home->fabric.relaxed_ordering;
	q->rail_count = rails;
}

int mst_verbs_link_new(struct mst_verbs_net *net, const struct mst_verbs_link_cfg *cfg,
		       struct mst_verbs_link **out, struct mst_reason *why)
{
	struct mst_verbs_link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory for a link");
	l->link.ops = &mst_verbs;
	l->link.lanes = cfg->lanes;
	l->home = net;
	l->connector = cfg->connector;
	l->views = cfg->connector && net->cfg.views;
	l->rail_count = cfg->rails;
	prepare_queue(l, cfg->rails);
	for (uint32_t i = 0; i < cfg->rails; i++) {
		l->rail[i].link = l;
		l->rail[i].index = i;
	}
	int rc = make_memory(l, why);
	if (rc != 0) {
		mst_verbs_link_free(&l->link);
		return rc;
	}
	*out = l;
	return 0;
}

/* First the pairs and regions, then the memory: what is freed here nobody can write any more. */
void mst_verbs_link_free(struct mst_link *link)
{
	struct mst_verbs_link *l = (struct mst_verbs_link *)link;

	if (l == NULL)
		return;
	MST_ASSERT(l->queue.state == MST_QUEUE_IDLE);
	if (l->home->inherited) {
		free(l);
		return;
	}
	for (uint32_t i = 0; i < l->rail_count; i++) {
		if (l->rail[i].id != NULL)
			(void)rdma_disconnect(l->rail[i].id);
		mst_verbs_rail_destroy(&l->rail[i]);
	}
	mst_verbs_unpin(&l->composed);
	if (l->export.region != NULL)
		mst_region_take_back(l->export.region);
	mst_queue_fini(&l->queue);
	mst_verbs_memory_free(&l->inbound);
	mst_verbs_memory_free(&l->outbound);
	free(l);
}

int mst_verbs_link_view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes,
			void *at)
{
	const struct mst_verbs_link *l = (const struct mst_verbs_link *)link;

	if (!l->views)
		return -ENOTSUP;
	return mst_queue_view(&l->queue, what, offset, bytes, at);
}

/* ---- completions ---- */

/* A part of the peer's inbound region may lie in other memory: the same part on all rails. */
static int take_apart(struct mst_verbs_rail *r, const struct mst_verbs_region_exchange *exchange)
{
	struct mst_queue *q = &r->link->queue;
	bool first = true;

	if (exchange->bytes > q->peer_bytes || exchange->at > q->peer_bytes - exchange->bytes ||
	    exchange->base > UINT64_MAX - exchange->bytes)
		return -EPROTO;
	for (uint32_t i = 0; i < r->link->rail_count; i++)
		first &= !r->link->rail[i].open;
	size_t from = exchange->bytes > 0 ? exchange->at : 0, end = from + exchange->bytes;
	if (!first && (q->cut[0] != from || q->cut[1] != end))
		return -EPROTO;
	q->cut[0] = r->apart.from = from;
	q->cut[1] = r->apart.end = end;
	r->apart.remote = exchange->base;
	r->apart.rkey = exchange->base_rkey;
	return 0;
}

/* The connector's first write on a rail says where its inbound region is. */
static int take_region_exchange(struct mst_verbs_rail *r)
{
	struct mst_verbs_link *l = r->link;
	struct mst_verbs_region_exchange exchange;
	size_t bytes = mst_verbs_memory_of(l->queue.peer_bytes);

	memcpy(&exchange, mst_verbs_tail(&l->inbound) + r->index * MST_VERBS_REGION_EXCHANGE_LINE,
	       sizeof(exchange));
	if (exchange.magic != MST_VERBS_MAGIC || exchange.inbound > UINT64_MAX - bytes)
		return -EPROTO;
	if (take_apart(r, &exchange) != 0)
		return -EPROTO;
	r->remote = exchange.inbound;
	r->rkey = exchange.rkey;
	r->open = l->queue.open = true;
	for (uint32_t i = 0; i < l->rail_count; i++)
		l->queue.open &= l->rail[i].open;
	l->queue.dirty = true;
	return 0;
}

static int take_arrival(struct mst_verbs_rail *r, const struct ibv_wc *wc)
{
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		return -EPROTO;
	if (!r->open)
		return take_region_exchange(r);
	mst_queue_arrived(&r->link->queue, r->index, ntohl(wc->imm_data));
	return 0;
}

/* Return: what it ends the link with. */
static int explain_break(struct mst_verbs_rail *r)
{
	struct mst_verbs_link *l = r->link;

	if (l->link.why.text[0] == '\0')
		mst_reason_set(&l->link.why,
			       "%s sent what the transport does not know: it is of another version "
			       "of muster, or broken",
			       r->peer);
	return -EPROTO;
}

/* A receive has work request number 0, a send its own. Return: what the link is to end with. */
static int take(struct mst_verbs_rail *r, const struct ibv_wc *wc)
{
	struct mst_verbs_link *l = r->link;

	if (wc->status != IBV_WC_SUCCESS)
		return mst_verbs_reason_completion(r, wc);
	if (wc->wr_id == 0)
		return take_arrival(r, wc) == 0 ? 0 : explain_break(r);
	mst_queue_completed(&l->queue, r->index, wc->wr_id);
	return 0;
}

/* The link ends after all that has come is taken in, so that arrivals keep their order. */
static void gather(struct mst_verbs_rail *r)
{
	struct ibv_wc wc[COMPLETIONS];
	int n, end = 0;

	do {
		n = ibv_poll_cq(r->cq, COMPLETIONS, wc);
		for (int i = 0; i < n; i++) {
			int rc = take(r, &wc[i]);
			if (end == 0)
				end = rc;
		}
	} while (n == COMPLETIONS);
	if (end != 0)
		mst_verbs_link_end(r->link, end);
}

void mst_verbs_link_gather(struct mst_verbs_link *l)
{
	for (uint32_t i = 0; i < l->rail_count && l->queue.state == MST_QUEUE_LIVE; i++)
		gather(&l->rail[i]);
}

int mst_verbs_link_take_completions(struct mst_verbs_link *l)
{
	struct ibv_wc wc;
	int rc = 0;

	for (uint32_t i = 0; i < l->rail_count && rc == 0; i++) {
		while (rc == 0 && ibv_poll_cq(l->rail[i].cq, 1, &wc) > 0)
			rc = take(&l->rail[i], &wc);
	}
	return rc;
}

/* Room was counted, so it is a pair in error that refuses: mostly its completions tell why. */
void mst_verbs_link_break(struct mst_verbs_rail *r, int error)
{
	struct mst_verbs_link *l = r->link;

	mst_verbs_link_gather(l);
	if (l->queue.state != MST_QUEUE_LIVE)
		return;
	mst_reason_set(&l->link.why, "RDMA device %s refused a request: %s",
		       mst_verbs_rail_device(r), strerror(error));
	mst_verbs_link_end(l, -EPIPE);
}

void mst_verbs_link_end(struct mst_verbs_link *l, int error)
{
	if (l->queue.state != MST_QUEUE_LIVE)
		return;
	mst_queue_end(&l->queue, error);
	/* A peer that is gone puts no more: what has come by now is the last. */
	for (uint32_t i = 0; i < l->rail_count; i++) {
		if (error == -EPIPE)
			gather(&l->rail[i]);
		mst_verbs_rail_error(&l->rail[i]);
	}
}

/* ---- events ---- */

/* Posts a receive for each that was used, before the peer is told that it may use them. */
static void renew(struct mst_verbs_link *l, uint32_t count)
{
	for (uint32_t i = 0; i < l->rail_count && count > 0; i++) {
		int rc = mst_verbs_rail_post_receives(&l->rail[i], count);
		if (rc != 0)
			mst_verbs_link_break(&l->rail[i], -rc);
	}
}

int mst_verbs_link_poll(struct mst_verbs_link *l, struct mst_net_event *ev, int max)
{
	struct mst_queue *q = &l->queue;
	uint64_t before = q->polled;

	mst_verbs_link_gather(l);
	int n = mst_queue_take_events(q, ev, max);
	if (q->torn)
		mst_verbs_link_end(l, explain_break(&l->rail[0]));
	if (q->state == MST_QUEUE_LIVE)
		renew(l, (uint32_t)(q->polled - before));
	return mst_queue_finish_poll(q, ev, n, max);
}
