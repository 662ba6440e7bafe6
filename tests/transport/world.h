/* SPDX-License-Identifier: MIT */
/*
 * What the conformance cases stand on: an acceptor's net and listener in this thread, and peers
 * that dial it. Which transport, and whether peers are threads or processes, main() is told.
 */
#ifndef MST_TESTS_TRANSPORT_WORLD_H
#define MST_TESTS_TRANSPORT_WORLD_H

#include "tests/transport/peer.h"
#include "tests/ut.h"

#define WORLD_PEERS 3

extern const struct mst_transport *transport;
/* That of the world's net: the same, or mst_joint with `transport` and another network, over which
 * a further peer is joined that says nothing. */
extern const struct mst_transport *acceptor, *other_network;
extern bool in_processes;
extern uint64_t haste; /* cases that repeat for long do so this much less often */

struct world {
	bool restless;
	struct mst_net *net;
	struct mst_link_listener *listener;
	struct peer *peer[WORLD_PEERS];
	struct mst_link *link[WORLD_PEERS]; /* NULL: none */
	struct peer *other_peer;            /* NULL: there is no other network */
	struct mst_link *other_link;
};

struct world_cfg {
	int peers;
	size_t published_bytes;
	size_t outbound_max;
	uint32_t links_max; /* 0: as many as peers */
	bool restless;      /* sleep at every chance */
};

/* Starts the peers, then opens net and listener. */
struct world world_open(const struct world_cfg *cfg);
/* Frees all links that there are, and ends the peers. */
void world_close(struct world *w);

/* Lanes of 64 KiB each way with 4 credits, which most cases use. */
extern const struct mst_lanes usual_lanes;

/* The order to dial this world's listener with token 7. */
struct peer_command world_call(const struct world *w, const struct mst_lanes *lanes);
/* The next caller; waits for it. -EAGAIN: nobody came. */
int world_next_request(struct world *w, struct mst_link_request *out);
/* Joins peer @i: it dials, is let in and attached. False, and a failed assertion, if it cannot. */
bool world_join(struct world *w, int i, const struct mst_lanes *lanes);
/* The same of one that calls in another way. */
bool world_let_in(struct world *w, int i, const struct peer_command *call);
/* One peer, joined over the usual lanes. */
struct world world_of_one(void);

/* Polls until @count events have come, or @timeout_ns is over. Returns how many. */
int world_poll(struct world *w, struct mst_net_event *ev, int count, uint64_t timeout_ns);
/* Puts pattern(seed) from here. */
int world_put(const struct world *w, size_t offset, size_t bytes, uint64_t seed);
/* The same, and raises @imm. */
int world_notify(const struct world *w, size_t offset, size_t bytes, uint64_t seed, uint32_t imm);

extern CU_TestInfo put_cases[], listener_cases[], wait_cases[], end_cases[], process_cases[];
extern CU_TestInfo region_cases[], copy_cases[];
/* With threads or descriptors of their own: not of a simulated world. */
extern CU_TestInfo answer_cases[], shared_region_cases[], ring_cases[];

#endif
