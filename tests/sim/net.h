/* SPDX-License-Identifier: MIT */
/*
 * Two transports of the simulated world, after the contract of common/transport/transport.h:
 *
 *   sim_near   maps, as shared memory does: a put is a copy, in pieces between which anybody may
 *              run
 *   sim_far    does not, as RDMA: puts travel, each lane at its own pace; their bytes are read, and
 *              land piece by piece, at any later time, in order on a lane; MST_SENT comes later
 *              still
 *
 * sim_near reaches processes of its own host alone. A server that offers both has a net of
 * mst_joint over them: it sleeps in poll(), which seams.c hands to sim_nets_poll().
 *
 * A lane's inbound region exists until its owner frees the link, and pieces on their way land in it
 * until then, also after detach() of either end: whoever reads it then reads what a late write can
 * do. What is freed is first filled with rubbish, and stays allocated, so that a reader of freed
 * memory is found by its sums.
 *
 * A sender that lets go has its sources back at once. Of what was on its way the network then has
 * all, if it detached; if it was lost or died, a beginning of it, of any length.
 *
 * A ghost's puts are -EPIPE, its polls say MST_LOST once for each link, and its remote mapping is
 * its own.
 */
#ifndef MST_TESTS_SIM_NET_H
#define MST_TESTS_SIM_NET_H

#include <poll.h>

#include "common/transport/transport.h"
#include "tests/sim/world.h"

extern const struct mst_transport sim_near, sim_far;

/* How fast and how even a network is. */
struct sim_manner {
	uint64_t latency_ns, jitter_ns; /* of a put or a piece of it: latency + [0, jitter] */
	uint64_t ns_per_kib;
	size_t piece_bytes; /* at most; a multiple of 8 */
	double slow_chance; /* of a piece that takes slow_ns more */
	uint64_t slow_ns;
	uint64_t linger_ns;  /* at most, from the last piece to MST_SENT */
	uint64_t give_up_ns; /* an unacknowledged put ends the link after so long */
	uint32_t room;       /* puts that can be on their way from a connector (sim_far) */
};
#define SIM_MANNER                                                                                 \
	{                                                                                          \
		.latency_ns = 2000, .jitter_ns = 3000, .ns_per_kib = 100, .piece_bytes = 2048,     \
		.slow_chance = 0.01, .slow_ns = 500 * 1000, .linger_ns = 20 * 1000,                \
		.give_up_ns = 300 * MST_MS, .room = 64                                             \
	}
/* To be set before there are nets; at first SIM_MANNER. */
extern struct sim_manner sim_manner;

/* Faults of the path between @p and all its peers; sim_far only. Nothing moves in the span, then it
 * goes on; a put that is on its way for longer than give_up_ns ends its link at both ends: at the
 * sender then, at the other when it next puts something or returns credits, or never. */
void sim_path_stall(struct sim_process *p, uint64_t span_ns);
/* The same of the path between those two alone. */
void sim_path_stall_between(struct sim_process *p, struct sim_process *q, uint64_t span_ns);
/* The address from which the process dials. */
struct mst_origin sim_origin(const struct sim_process *p);
/* Every link between the two is lost at both ends, now; both live, and can link anew. @q NULL:
 * whoever @p is linked with. */
void sim_links_break(struct sim_process *p, struct sim_process *q);

/* What the observer sees of every link. Followers may be NULL. @up: from the connector. */
struct sim_net_watch {
	void (*linked)(struct mst_link *connector, struct mst_link *acceptor);
	/* A put was taken (rc >= 0), by a process that is alive. */
	void (*put)(const struct mst_link *from, bool up, const struct mst_put *put);
	/* A piece of a put has landed in this end's memory. */
	void (*landed)(const struct mst_link *at, bool up);
	/* Its immediate is about to be handed out by poll(). */
	void (*arrived)(const struct mst_link *at, bool up, uint32_t imm);
	/* The bytes of a put have changed before they were reported sent. */
	void (*spoiled)(const struct mst_link *from);
	/* The acceptor, which is alive, has detached a link that is not lost, after a put with this
	 * immediate. */
	void (*detached)(const struct mst_link *acceptor, uint32_t imm);
	/* The acceptor has freed this link. */
	void (*freed)(const struct mst_link *acceptor);
	/* A thief was let in by a token that had let its owner in. There are thieves, who show
	 * each such token once more, only where this is not NULL. */
	void (*let_in_again)(void);
};
void sim_net_watch(const struct sim_net_watch *watch);

/* As poll(), for descriptors that arm() of these nets has returned. */
int sim_nets_poll(const struct pollfd *fds, nfds_t count, int timeout_ms);
/* Is it such a descriptor? */
bool sim_nets_has(int fd);

/* The process an end belongs to, and the other end (NULL: it was freed). */
struct sim_process *sim_link_owner(const struct mst_link *link);
struct mst_link *sim_link_peer(const struct mst_link *link);

/* A write that no muster would make: into the peer's inbound region, at once, from a process that
 * breaks the rules. Nothing happens if the inbound region is freed. */
void sim_scribble(struct mst_link *link, size_t offset, const void *src, size_t bytes);

#endif
