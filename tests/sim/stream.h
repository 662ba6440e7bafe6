/* SPDX-License-Identifier: MIT */
/* The control stream of the simulated world: bytes in order, late, in pieces of any size; links
 * that break, and such that only one end knows to be broken. */
#ifndef MST_TESTS_SIM_STREAM_H
#define MST_TESTS_SIM_STREAM_H

#include "common/transport/stream.h"
#include "tests/sim/world.h"

/* Descriptors are -1: the wakeup sim_process.control rings when there is something to
 * read. All ports are of one host, whatever it is called. */
extern const struct mst_stream_ops sim_stream;

struct sim_stream_manner {
	uint64_t latency_ns, jitter_ns;
	size_t room; /* bytes that can be on their way or unread */
};
#define SIM_STREAM_MANNER                                                                          \
	{                                                                                          \
		.latency_ns = 20 * 1000, .jitter_ns = 60 * 1000, .room = 32 * 1024                 \
	}
/* To be set before there are streams; at first SIM_STREAM_MANNER. */
extern struct sim_stream_manner sim_stream_manner;

/* Faults of all connections of @p. */
void sim_streams_reset(struct sim_process *p); /* both ends learn it */
void sim_streams_cut(struct sim_process *p);   /* nothing moves any more, and nobody is told */
/* The connections that @caller has made to @callee are cut. @told: the caller is told. */
void sim_streams_cut_between(struct sim_process *caller, const struct sim_process *callee,
			     bool told);
/* A process that connects finds what another process listens to at the same address. */
void sim_streams_hide(const struct sim_process *p);
void sim_streams_stall(struct sim_process *p, uint64_t span_ns); /* nothing moves in the span */

#endif
