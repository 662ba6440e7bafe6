/* SPDX-License-Identifier: MIT */
/*
 * One end of a session. The first half of this file is the io's, which receives, sends and finds
 * the end; the second half is the net's thread's, which makes events of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/transport/tcp/tcp.h"

/* How long a link that is detached waits until the peer's kernel has what was put before. It may
 * have everything, and acknowledge it 40 ms later: for that nobody waits. */
#define LINGER_NS (5 * MST_MS)

/* ---- the io's half ---- */

/* The sentence is in link.why. */
static void end(struct mst_tcp_link *l, int error)
{
	l->ended = l->io_news = true;
	/* Release: pairs with the acquire in mst_tcp_link_gather(), which then sees the reason and
	 * all that has arrived. */
	atomic_store_explicit(&l->end, error, memory_order_release);
}

bool mst_tcp_link_send(struct mst_tcp_link *l)
{
	if (l->ended || l->broken != 0)
		return false;
	int rc = mst_tcp_out_step(l);
	if (rc >= 0)
		return rc > 0;
	/* What the peer sent before it went still arrives. */
	l->broken = rc;
	l->readable = l->hung_up = true;
	return true;
}

static void receive(struct mst_tcp_link *l)
{
	int rc = mst_tcp_in_step(l);

	l->readable = rc > 0;
	if (rc < 0) {
		end(l, rc);
	} else if (rc == 0 && l->broken != 0) {
		mst_reason_set(&l->link.why, "the connection to %s broke: %s", l->peer,
			       strerror(-l->broken));
		end(l, -EPIPE);
	}
}

bool mst_tcp_link_step(struct mst_tcp_link *l)
{
	if (l->ended)
		return false;
	if (l->readable)
		receive(l);
	bool more = l->writable && mst_tcp_link_send(l);
	return !l->ended && (l->readable || more);
}

void mst_tcp_link_look(struct mst_tcp_link *l, uint64_t now_ns)
{
	uint64_t dead_ns = l->net->fabric.link_timeout_ns;

	if (l->ended)
		return;
	mst_tcp_held_adjust(&l->held_bytes, l->conn.fd);
	switch (mst_tcp_pulse_look(&l->pulse, l->conn.fd, now_ns, dead_ns)) {
	case MST_TCP_QUIET:
		if (mst_tcp_out_is_idle(&l->out)) {
			mst_tcp_out_ask(&l->out);
			(void)mst_tcp_link_send(l);
			l->pulse.asked_ns = now_ns;
		}
		break;
	case MST_TCP_DEAD:
		mst_reason_set(&l->link.why,
			       "the host of %s has acknowledged nothing for %" PRIu64
			       " ms: it is down, or the path to it is cut (--link-timeout at the "
			       "server says how long that may be)",
			       l->peer, (now_ns - l->pulse.asked_ns) / MST_MS);
		end(l, -EPIPE);
		break;
	case MST_TCP_HEARD:
	case MST_TCP_ASKED:
		break;
	}
}

/* ---- beginning and end ---- */

static int make_memory(struct mst_tcp_link *l, size_t outbound_max, struct mst_reason *why)
{
	l->link.outbound_bytes = mst_queue_outbound(&l->link.lanes, l->connector, outbound_max);
	int rc = mst_tcp_memory_new(l->queue.own_bytes, l->views, &l->inbound, why);
	if (rc == 0)
		rc = mst_tcp_memory_new(l->link.outbound_bytes, l->views, &l->outbound, why);
	if (rc != 0)
		return rc;
	l->link.inbound = l->inbound.base;
	l->link.outbound = l->outbound.base;
	l->composed = (struct mst_region){ .base = l->outbound.base, .bytes = l->outbound.bytes };
	l->in.bounds.bytes = l->queue.own_bytes;
	return 0;
}

/* Credits have a place beyond all that can be put, so that out.c knows them. */
static int make_queue(struct mst_tcp_link *l, struct mst_region *published)
{
	struct mst_queue *q = &l->queue;

	q->ops = &mst_tcp_queue;
	q->link = &l->link;
	q->outbound = &l->composed;
	q->published = published;
	q->message = MST_TCP_MESSAGE;
	mst_queue_set_lanes(q, &l->link.lanes, l->connector);
	q->word_at = q->peer_bytes + sizeof(*q->out_word);
	q->in_word = &l->in_word;
	q->out_word = &l->out_word;
	q->ordered = q->rides = q->open = true;
	q->rail_count = 1;
	int rc = mst_queue_rail_init(q, 0, MST_TCP_SENDS);
	return rc != 0 ? rc : mst_queue_init(q);
}

static int make_rings(struct mst_tcp_link *l)
{
	l->writes = mst_spsc_new(mst_queue_pow2_above(MST_TCP_SENDS), sizeof(struct mst_tcp_write));
	l->arrivals = mst_spsc_new(mst_queue_pow2_above(l->queue.in_credits + 1u),
				   sizeof(uint32_t));
	return l->writes != NULL && l->arrivals != NULL ? 0 : -ENOMEM;
}

/* What lies apart at the connector: there it bounds what comes, at the acceptor it cuts what
 * goes. */
static void set_apart(struct mst_tcp_link *l, const struct mst_tcp_link_cfg *cfg)
{
	if (!l->connector) {
		l->queue.cut[0] = cfg->bytes > 0 ? cfg->at : 0;
		l->queue.cut[1] = cfg->bytes > 0 ? cfg->at + cfg->bytes : 0;
	} else if (cfg->export.region != NULL) {
		l->export = cfg->export;
		mst_region_lend(l->export.region);
		l->in.bounds.from = l->export.at;
		l->in.bounds.end = l->export.at + l->export.bytes;
	}
}

int mst_tcp_link_new(struct mst_tcp_net *net, const struct mst_tcp_link_cfg *cfg,
		     struct mst_tcp_link **out, struct mst_reason *why)
{
	struct mst_tcp_link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory for a link");
	l->link.ops = &mst_tcp;
	l->link.lanes = cfg->lanes;
	l->connector = cfg->connector;
	l->views = cfg->connector && net->cfg.views;
	l->conn = MST_TCP_NO_CONN;
	if (cfg->peer != NULL)
		mst_endpoint_text(cfg->peer, l->peer);
	int rc = make_queue(l, &net->versions);
	if (rc == 0)
		rc = make_memory(l, net->cfg.outbound_max, why);
	if (rc == 0)
		rc = make_rings(l);
	if (rc != 0) {
		mst_tcp_link_free(&l->link);
		return rc;
	}
	set_apart(l, cfg);
	*out = l;
	return 0;
}

void mst_tcp_link_free(struct mst_link *link)
{
	struct mst_tcp_link *l = (struct mst_tcp_link *)link;

	if (l == NULL)
		return;
	MST_ASSERT(l->queue.state == MST_QUEUE_IDLE);
	mst_tcp_hang_up(&l->conn);
	if (l->export.region != NULL)
		mst_region_take_back(l->export.region);
	mst_queue_fini(&l->queue);
	mst_spsc_free(l->writes);
	mst_spsc_free(l->arrivals);
	mst_tcp_memory_free(&l->inbound);
	mst_tcp_memory_free(&l->outbound);
	free(l);
}

int mst_tcp_link_view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes,
		      void *at)
{
	const struct mst_tcp_link *l = (const struct mst_tcp_link *)link;

	if (!l->views)
		return -ENOTSUP;
	return mst_queue_view(&l->queue, what, offset, bytes, at);
}

/* Is all that was put with the kernel? */
static bool is_out(const struct mst_tcp_link *l)
{
	return l->queue.head == l->queue.tail && mst_queue_is_idle(&l->queue) &&
	       mst_tcp_out_is_idle(&l->out) && !mst_tcp_out_is_urged(l);
}

/* A connection that is closed while something is unread is reset, and with it what the peer's
 * kernel does not have yet. So what comes is read and dropped, until the peer's kernel has all. */
void mst_tcp_link_linger(struct mst_tcp_link *l)
{
	uint64_t until_ns = mst_deadline_ns(LINGER_NS);
	bool speaks = true;

	do {
		mst_queue_flush(&l->queue);
		(void)mst_tcp_link_send(l);
		mst_tcp_link_gather(l);
		speaks = speaks && mst_tcp_in_discard(l);
		bool out = is_out(l);
		if (l->broken != 0 || (out && mst_tcp_socket_is_empty(l->conn.fd)))
			break;
		struct pollfd pfd = { .fd = l->conn.fd,
				      .events = (short)((speaks ? POLLIN : 0) |
							(out ? 0 : POLLOUT)) };
		(void)poll(&pfd, 1, 1);
	} while (mst_now_ns() < until_ns);
}

/* ---- the net's thread's half ---- */

void mst_tcp_link_gather(struct mst_tcp_link *l)
{
	/* Acquire: pairs with the release in end(). Before the arrivals: the end comes after
	 * them. */
	int error = atomic_load_explicit(&l->end, memory_order_acquire);
	/* Acquire: pairs with the release in out.c; the sources are the caller's again. */
	uint64_t sent = atomic_load_explicit(&l->sent, memory_order_acquire);
	uint32_t imm;

	if (sent != l->queue.rail[0].completed)
		mst_queue_completed(&l->queue, 0, sent);
	while (mst_spsc_pop(l->arrivals, &imm))
		mst_queue_arrived(&l->queue, 0, imm);
	if (error != 0)
		mst_queue_end(&l->queue, error);
}

int mst_tcp_link_poll(struct mst_tcp_link *l, struct mst_net_event *ev, int max)
{
	if (l->queue.state == MST_QUEUE_LIVE)
		mst_tcp_link_gather(l);
	int n = mst_queue_take_events(&l->queue, ev, max); /* one rail agrees with itself */
	return mst_queue_finish_poll(&l->queue, ev, n, max);
}
