/* SPDX-License-Identifier: MIT */
/* Messages on their way, in a queue: the first that is put in is the first that is taken out. The
 * queue grows as needed, for how many messages are on their way at once depends on the job. */
#ifndef MST_TOOLS_SIM_NETWORK_QUEUE_H
#define MST_TOOLS_SIM_NETWORK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/ledger/ledger.h"

enum mst_sim_message_kind {
	MST_SIM_EVENT, /* for the ledger */
	MST_SIM_ORDER, /* a decision, for the worker that it is about */
	MST_SIM_RELAY, /* a decision, for a further server, which sends its part of a result */
};

struct mst_sim_message {
	enum mst_sim_message_kind kind;
	uint32_t server;  /* that sends or receives it */
	uint32_t hops;    /* how often it is sent on when it arrives */
	uint64_t due_ns;  /* when it arrives */
	double due_bytes; /* on a link: when it has been sent, on the link's own scale (link.h) */
	union {
		struct mst_ledger_event event;
		struct mst_decision order;
	};
};

struct mst_sim_queue {
	struct mst_sim_message *ring;
	uint32_t room; /* 0, or a power of two */
	uint32_t head, count;
};

void mst_sim_queue_fini(struct mst_sim_queue *q); /* accepts a queue that is all zero */

/* Adds a message at the end. Return: the message, to be filled; NULL: no memory. It is valid until
 * the next call. */
struct mst_sim_message *mst_sim_queue_add(struct mst_sim_queue *q);

/* The first message; the queue must not be empty. It is valid until the next call. */
static inline const struct mst_sim_message *mst_sim_queue_first(const struct mst_sim_queue *q)
{
	return &q->ring[q->head];
}

/* Takes the first message out; the queue must not be empty. */
void mst_sim_queue_take(struct mst_sim_queue *q, struct mst_sim_message *out);

#endif
