/* SPDX-License-Identifier: MIT */
/*
 * A transport within one thread: a put is a copy and an event in the peer's queue. The test owns
 * nets and links, and may write into an inbound region and queue events as a peer that breaks all
 * rules would.
 */
#ifndef MST_TESTS_FUZZ_PIPE_H
#define MST_TESTS_FUZZ_PIPE_H

#include "common/transport/transport.h"

#define PIPE_EVENTS 512u

struct pipe_net {
	struct mst_net net;
	struct mst_net_event event[PIPE_EVENTS];
	unsigned head, count;
};

struct pipe_link {
	struct mst_link link;
	struct pipe_net *net;   /* attached to */
	struct pipe_link *peer; /* NULL: it has gone */
};

extern const struct mst_transport pipe_transport;

void pipe_net_init(struct pipe_net *n, size_t published_bytes);
void pipe_net_fini(struct pipe_net *n);

/* Makes both ends; the connector sees what @server publishes. */
void pipe_link_init(struct pipe_link *acceptor, struct pipe_link *connector,
		    const struct mst_lanes *lanes, const struct pipe_net *server);
void pipe_link_fini(struct pipe_link *acceptor, struct pipe_link *connector);

/* An immediate arrives at @to. */
void pipe_arrive(struct pipe_link *to, uint32_t imm);
/* And: it is lost. */
void pipe_lose(struct pipe_link *to);

/* The link that answers the next dial, once; NULL: none. */
extern struct mst_link *pipe_answers;

#endif
