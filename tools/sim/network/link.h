/* SPDX-License-Identifier: MIT */
/*
 * One direction of a server's link, which many workers share: what arrives when, if all send at
 * once (incast). A fluid model: each of n messages on the link gets the same share, rate / n, but
 * never more than its worker's own link can carry. Networks of RDMA share a link between queue
 * pairs in this way; a queue that sends one message after the other would let the first of them
 * arrive n times too early.
 *
 * All messages have the same length. So they are finished in the order in which they began, and
 * one queue is enough: with every message goes the number of bytes that each message on the link
 * has to have sent before this one is finished (due_bytes). An event costs the same for any number
 * of messages. Pure.
 */
#ifndef MST_TOOLS_SIM_NETWORK_LINK_H
#define MST_TOOLS_SIM_NETWORK_LINK_H

#include "tools/sim/network/queue.h"

struct mst_sim_link {
	double rate;      /* of the link, in bytes per ns; 0: no limit */
	double rate_each; /* that one message cannot exceed; 0: no limit */
	double bytes;     /* of a message */
	double sent;    /* bytes that a message has sent that was there since the link was empty */
	uint64_t at_ns; /* of `sent` */
	struct mst_sim_queue queue;
};

/* Does the link delay anything? If not, it must not be used. */
static inline bool mst_sim_link_limits(const struct mst_sim_link *l)
{
	return l->bytes > 0 && (l->rate > 0 || l->rate_each > 0);
}

/* A message begins to be sent. Return: the message, to be filled but for due_bytes; NULL: no
 * memory. */
struct mst_sim_message *mst_sim_link_begin(struct mst_sim_link *l, uint64_t now_ns);
/* When the first message will have been sent, if no other begins before; MST_NEVER: the link is
 * empty. */
uint64_t mst_sim_link_due(const struct mst_sim_link *l);
/* Takes the first message out, at the time that mst_sim_link_due() has given. */
void mst_sim_link_end(struct mst_sim_link *l, struct mst_sim_message *out, uint64_t now_ns);

#endif
