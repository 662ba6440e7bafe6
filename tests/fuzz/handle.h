/* SPDX-License-Identifier: MIT */
/*
 * A client's handle that has joined over a pipe, without a thread or a socket: what muster_open()
 * would have made. Its control connection takes everything, and hears what it is fed.
 */
#ifndef MST_TESTS_FUZZ_HANDLE_H
#define MST_TESTS_FUZZ_HANDLE_H

#include "client/client.h"
#include "tests/fuzz/pipe.h"

struct handle {
	struct muster m;
	struct pipe_net net;
	struct pipe_link *link;
	const uint8_t *heard; /* what its control connection will receive next */
	size_t heard_bytes;
};

struct handle_figures {
	uint32_t rank, workers, slots, buffers;
	uint64_t elems;
	enum muster_owner owner;
};

/* @link: the connector's end, made; @layout as on the other side. */
void handle_init(struct handle *h, const struct handle_figures *f,
		 const struct mst_lane_layout *layout, struct pipe_link *link);
void handle_fini(struct handle *h);

#endif
