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
#include "common/transport/pages.h"
#include "common/transport/verbs/verbs.h"
#include "common/transport/why.h"

#define COMPLETIONS 16
/* Whoever never sleeps returns the last credits after so many: longer than a peer takes to answer,
 * lest each of its puts has a credit behind it. */
#define IDLE_POLLS 2048u

int mst_verbs_lanes_check(const struct mst_lanes *lanes)
{
	if (lanes->up_bytes <= MST_VERBS_BYTES_MAX && lanes->down_bytes <= MST_VERBS_BYTES_MAX &&
	    lanes->up_credits <= MST_VERBS_CREDITS_MAX &&
	    lanes->down_credits <= MST_VERBS_CREDITS_MAX)
		return 0;
	return mst_fail(-EINVAL, "lanes of %zu and %zu bytes, with %u and %u credits, cannot be",
			lanes->up_bytes, lanes->down_bytes, lanes->up_credits, lanes->down_credits);
}

/* ---- beginning and end ---- */

static int memory_new(const struct mst_verbs_link *l, size_t bytes, struct mst_verbs_memory *out)
{
	size_t all = mst_verbs_memory_of(bytes);

	return l->views ? mst_verbs_memory_new_viewed(all, out)
			: mst_verbs_memory_new(all, l->home->fabric.huge_pages, out);
}

static int make_memory(struct mst_verbs_link *l)
{
	size_t in = l->connector ? l->link.lanes.down_bytes : l->link.lanes.up_bytes;

	l->peer_bytes = l->connector ? l->link.lanes.up_bytes : l->link.lanes.down_bytes;
	l->link.outbox_bytes = mst_verbs_outbox(&l->link.lanes, !l->connector,
						l->home->cfg.outbox_max);
	int rc = memory_new(l, in, &l->landing);
	if (rc == 0)
		rc = memory_new(l, l->link.outbox_bytes, &l->outbox);
	l->link.landing = l->landing.base;
	l->link.outbox = l->outbox.base;
	return rc;
}

int mst_verbs_link_new(struct mst_verbs_net *net, bool connector, const struct mst_lanes *lanes,
		       uint32_t rails, struct mst_verbs_link **out)
{
	struct mst_verbs_link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return mst_fail(-ENOMEM, "no memory for a link");
	l->link.ops = &mst_verbs;
	l->link.lanes = *lanes;
	l->home = net;
	l->connector = connector;
	l->views = connector && net->cfg.views;
	l->in_credits = connector ? lanes->down_credits : lanes->up_credits;
	l->out_credits = connector ? lanes->up_credits : lanes->down_credits;
	l->rail_count = rails;
	for (uint32_t i = 0; i < rails; i++) {
		l->rail[i].link = l;
		l->rail[i].index = i;
	}
	int rc = make_memory(l);
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
	MST_ASSERT(l->state == MST_VERBS_IDLE);
	for (uint32_t i = 0; i < l->rail_count; i++) {
		if (l->rail[i].id != NULL)
			(void)rdma_disconnect(l->rail[i].id);
		mst_verbs_rail_destroy(&l->rail[i]);
	}
	mst_verbs_out_free(&l->out);
	mst_verbs_memory_free(&l->landing);
	mst_verbs_memory_free(&l->outbox);
	free(l);
}

int mst_verbs_link_view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes,
			void *at)
{
	const struct mst_verbs_link *l = (const struct mst_verbs_link *)link;
	size_t landing = l->connector ? link->lanes.down_bytes : link->lanes.up_bytes;

	if (!l->views)
		return -ENOTSUP;
	switch (what) {
	case MST_VIEW_OUTBOX:
		return mst_pages_view(link->outbox, link->outbox_bytes, offset, bytes, at);
	case MST_VIEW_LANDING:
		return mst_pages_view(link->landing, landing, offset, bytes, at);
	case MST_VIEW_SHARED: /* nothing of the acceptor's is mapped here */
		return -EINVAL;
	}
	return -EINVAL;
}

/* ---- completions ---- */

/* The connector's first write on a rail says where its landing is. */
static int take_introduction(struct mst_verbs_rail *r)
{
	struct mst_verbs_link *l = r->link;
	struct mst_verbs_introduction intro;
	size_t bytes = mst_verbs_memory_of(l->peer_bytes);

	memcpy(&intro, mst_verbs_tail(&l->landing) + r->index * MST_VERBS_INTRODUCTION_LINE,
	       sizeof(intro));
	if (intro.magic != MST_VERBS_MAGIC || intro.landing > UINT64_MAX - bytes)
		return -EPROTO;
	r->remote = intro.landing;
	r->rkey = intro.rkey;
	r->open = l->open = true;
	for (uint32_t i = 0; i < l->rail_count; i++)
		l->open &= l->rail[i].open;
	l->out.dirty = true;
	return 0;
}

static int take_arrival(struct mst_verbs_rail *r, const struct ibv_wc *wc)
{
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		return -EPROTO;
	if (!r->open)
		return take_introduction(r);
	/* There are no more receives than slots. */
	r->imm[r->imm_tail++ & r->imm_mask] = ntohl(wc->imm_data);
	return 0;
}

/* Return: what it ends the link with. */
static int explain_break(struct mst_verbs_rail *r)
{
	struct mst_verbs_link *l = r->link;

	if (l->link.why[0] == '\0')
		(void)snprintf(l->link.why, sizeof(l->link.why),
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
		return mst_verbs_sentence_completion(r, wc);
	if (wc->wr_id == 0)
		return take_arrival(r, wc) == 0 ? 0 : explain_break(r);
	r->completed = wc->wr_id;
	l->out.dirty |= l->out.head != l->out.tail;
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
	for (uint32_t i = 0; i < l->rail_count && l->state == MST_VERBS_LIVE; i++)
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
	if (l->state != MST_VERBS_LIVE)
		return;
	(void)snprintf(l->link.why, sizeof(l->link.why), "RDMA device %s refused a request: %s",
		       mst_verbs_rail_device(r), strerror(error));
	mst_verbs_link_end(l, -EPIPE);
}

void mst_verbs_link_end(struct mst_verbs_link *l, int error)
{
	if (l->state != MST_VERBS_LIVE)
		return;
	l->error = error;
	l->state = MST_VERBS_ENDING;
	/* A peer that is gone puts no more: what has come by now is the last. */
	for (uint32_t i = 0; i < l->rail_count; i++) {
		struct mst_verbs_rail *r = &l->rail[i];
		if (error == -EPIPE)
			gather(r);
		else
			r->imm_head = r->imm_tail;
		mst_verbs_rail_error(r);
	}
}

/* ---- events ---- */

static bool has_arrival(const struct mst_verbs_link *l)
{
	for (uint32_t i = 0; i < l->rail_count; i++)
		if (l->rail[i].imm_head == l->rail[i].imm_tail)
			return false;
	return true;
}

/* All rails have brought it: they must agree on what it is. */
static int take_immediate(struct mst_verbs_link *l, uint32_t *imm)
{
	int rc = 0;

	for (uint32_t i = 0; i < l->rail_count; i++) {
		struct mst_verbs_rail *r = &l->rail[i];
		uint32_t one = r->imm[r->imm_head++ & r->imm_mask];
		if (i > 0 && one != *imm)
			rc = -EPROTO;
		*imm = one;
	}
	return rc;
}

bool mst_verbs_link_stirs(const struct mst_verbs_link *l)
{
	if (l->state == MST_VERBS_ENDING)
		return true;
	if (l->state != MST_VERBS_LIVE)
		return false;
	return has_arrival(l) || mst_verbs_out_stirs(l);
}

static int poll_sent(struct mst_verbs_link *l, struct mst_net_event *ev, int max)
{
	uint64_t cookie;
	int n = 0;

	while (n < max && mst_verbs_out_sent(l, &cookie))
		ev[n++] = (struct mst_net_event){ .kind = MST_SENT,
						  .link = &l->link,
						  .cookie = cookie };
	return n;
}

static int poll_arrived(struct mst_verbs_link *l, struct mst_net_event *ev, int max)
{
	uint32_t imm = 0;
	int n = 0;

	while (n < max && has_arrival(l)) {
		if (take_immediate(l, &imm) != 0) {
			mst_verbs_link_end(l, explain_break(&l->rail[0]));
			break;
		}
		ev[n++] = (struct mst_net_event){ .kind = MST_ARRIVED,
						  .link = &l->link,
						  .imm = imm };
	}
	return n;
}

/* As many receives again as were used, before the peer is told that it may use them. */
static void renew(struct mst_verbs_link *l, uint32_t count)
{
	l->polled += count;
	for (uint32_t i = 0; i < l->rail_count && count > 0; i++) {
		int rc = mst_verbs_rail_post_receives(&l->rail[i], count);
		if (rc != 0)
			mst_verbs_link_break(&l->rail[i], -rc);
	}
}

int mst_verbs_link_poll(struct mst_verbs_link *l, struct mst_net_event *ev, int max)
{
	mst_verbs_link_gather(l);
	int n = poll_sent(l, ev, max);
	int arrived = poll_arrived(l, ev + n, max - n);
	n += arrived;
	if (l->state == MST_VERBS_LIVE) {
		renew(l, (uint32_t)arrived);
		mst_verbs_out_flush(l);
		l->idle = n > 0 ? 0 : l->idle + 1;
		if (l->idle == IDLE_POLLS)
			mst_verbs_out_return(l);
		else
			mst_verbs_out_settle(l);
	}
	if (l->state == MST_VERBS_ENDING && n < max && !has_arrival(l)) {
		l->state = MST_VERBS_LOST;
		ev[n++] = (struct mst_net_event){ .kind = MST_LOST,
						  .link = &l->link,
						  .error = l->error };
	}
	return n;
}
