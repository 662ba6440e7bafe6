/* SPDX-License-Identifier: MIT */
/*
 * A client's handle that has joined over a pipe, without a thread or a socket: what muster_open()
 * would have made. Its control connection takes everything, and hears what it is fed.
 */
#ifndef MST_TESTS_FUZZ_HANDLE_H
#define MST_TESTS_FUZZ_HANDLE_H

#include "client/api/handle.h"
#include "tests/fuzz/pipe.h"

struct handle {
	struct muster m;
	struct pipe_net net;
	const uint8_t *heard; /* what its control connection will receive next */
	size_t heard_bytes;
};

struct handle_figures {
	uint32_t rank, workers, slots, buffers;
	uint64_t elems;
	enum muster_owner owner;
};

/* A server's part of the vector: the connector's end, made, and the layout as on the other side. */
struct handle_part {
	struct pipe_link *link;
	const struct mst_lane_layout *layout;
	uint64_t first, count;
};

/* @parts: one after the other, all of f->elems. */
void handle_init(struct handle *h, const struct handle_figures *f, const struct handle_part *parts,
		 uint32_t count);
void handle_fini(struct handle *h);

#endif
