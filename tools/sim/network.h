/* SPDX-License-Identifier: MIT */
/*
 * The network between workers and servers, and between servers. Everything that is sent arrives
 * one latency later; gradients and results also take their time on the links of their server, each
 * server having an equal part of the vector.
 *
 * Contributions are reported by every server: by further ones to the leader, one latency later.
 * The leader's decisions reach further servers one latency later, and then their part of a result
 * is sent. An answer is there when all its parts are: mst_sim_worker_told() counts them. Pure.
 */
#ifndef MST_TOOLS_SIM_NETWORK_H
#define MST_TOOLS_SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "server/core/heap.h"
#include "server/core/ledger/ledger.h"
#include "tools/sim/cfg.h"

/* Messages on their way, in a queue: the first that is put in is the first that is taken out. The
 * queue grows as needed, for how many messages are on their way at once depends on the job. */
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
	double due_bytes; /* on a link: when it has been sent, on the link's own scale */
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

struct mst_sim_network {
	uint64_t latency_ns;
	uint32_t servers;
	struct mst_sim_queue mail;      /* on its way for a latency, so in order of time */
	struct mst_sim_queue ready;     /* arrives at once */
	struct mst_sim_link *up, *down; /* of each server */
	struct mst_heap busy; /* links that carry something: server, or servers + server for down */
};

/* Return: 0 or -ENOMEM. Call mst_sim_network_fini() in any case. */
int mst_sim_network_init(struct mst_sim_network *n, const struct mst_sim_net_cfg *cfg,
			 uint32_t servers);
void mst_sim_network_fini(struct mst_sim_network *n); /* accepts one that is all zero */

/* What follows returns 0 or -ENOMEM. */
/* A worker sends an event: a contribution to all servers, anything else to the leader. */
int mst_sim_network_send(struct mst_sim_network *n, const struct mst_ledger_event *ev,
			 uint64_t now_ns);
/* An event that comes about at the leader itself. */
int mst_sim_network_post(struct mst_sim_network *n, const struct mst_ledger_event *ev,
			 uint64_t now_ns);
/* A decision is told to its worker; an answer comes from all servers. */
int mst_sim_network_tell(struct mst_sim_network *n, const struct mst_decision *order,
			 uint64_t now_ns);

/* When something happens next; MST_NEVER: nothing is on its way. */
uint64_t mst_sim_network_due(const struct mst_sim_network *n);
/* Makes that happen. Return: 1: @out has arrived, an EVENT at the ledger or an ORDER at its
 * worker; 0: nothing has arrived yet; -ENOMEM. */
int mst_sim_network_step(struct mst_sim_network *n, uint64_t now_ns, struct mst_sim_message *out);

#endif
