/* SPDX-License-Identifier: MIT */
/*
 * The events of a link whose puts go through a queue, when its peer gets credits back, and how the
 * link ends: the same over every such network.
 */
#include <errno.h>

#include "common/transport/queue.h"

/* Polls without an event after which an end that never sleeps returns the last credits. They take
 * longer than a peer's answer, so that not each of its puts is followed by a credit. */
#define IDLE_POLLS 2048u

void mst_queue_end(struct mst_queue *q, int error)
{
	if (q->state != MST_QUEUE_LIVE)
		return;
	q->error = error;
	q->state = MST_QUEUE_ENDING;
	if (error != -EPIPE)
		mst_queue_forget_arrivals(q);
}

bool mst_queue_has_events(const struct mst_queue *q)
{
	if (q->state == MST_QUEUE_ENDING)
		return true;
	return q->state == MST_QUEUE_LIVE && (mst_queue_has_arrival(q) || mst_queue_has_sent(q));
}

static int take_sent(struct mst_queue *q, struct mst_net_event *ev, int max)
{
	uint64_t cookie;
	int n = 0;

	while (n < max && mst_queue_take_sent(q, &cookie))
		ev[n++] = (struct mst_net_event){ .kind = MST_SENT,
						  .link = q->link,
						  .cookie = cookie };
	return n;
}

static int take_arrived(struct mst_queue *q, struct mst_net_event *ev, int max)
{
	uint32_t imm = 0;
	int n = 0;

	while (n < max && !q->torn && mst_queue_has_arrival(q)) {
		q->torn = mst_queue_take_arrival(q, &imm) != 0;
		if (!q->torn)
			ev[n++] = (struct mst_net_event){ .kind = MST_ARRIVED,
							  .link = q->link,
							  .imm = imm };
	}
	if (q->torn)
		mst_queue_forget_arrivals(q);
	q->polled += (uint64_t)n;
	return n;
}

int mst_queue_take_events(struct mst_queue *q, struct mst_net_event *ev, int max)
{
	int n = take_sent(q, ev, max);

	return n + take_arrived(q, ev + n, max - n);
}

/* Half of the credits, or what is left of them after a while. */
static void return_credits(struct mst_queue *q, bool found)
{
	q->idle = found ? 0 : q->idle + 1;
	if (q->idle == IDLE_POLLS)
		mst_queue_return(q);
	else
		mst_queue_settle(q);
}

int mst_queue_finish_poll(struct mst_queue *q, struct mst_net_event *ev, int got, int max)
{
	if (q->state == MST_QUEUE_LIVE) {
		mst_queue_flush(q);
		return_credits(q, got > 0);
	}
	if (q->state == MST_QUEUE_ENDING && got < max && !mst_queue_has_arrival(q)) {
		q->state = MST_QUEUE_LOST;
		ev[got++] = (struct mst_net_event){ .kind = MST_LOST,
						    .link = q->link,
						    .error = q->error };
	}
	return got;
}
