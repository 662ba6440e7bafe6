/* SPDX-License-Identifier: MIT */
/* What a server takes of its host: memory, and of an RDMA device queue pairs and registered memory.
 * Reckoned from what the server is made with, by those who will take it. */
#ifndef MST_SERVER_BUDGET_H
#define MST_SERVER_BUDGET_H

#include <stdio.h>

#include "server/server.h"

struct mst_budget {
	uint32_t servers, workers;
	uint64_t first, elems; /* of the vector: this server's part */
	uint32_t shards;
	uint64_t worker_bytes; /* for each worker: its slots, and what is composed for it */
	uint64_t own_bytes;    /* sums, versions, what other servers are told */
	/* Zeroes where peers map each other's memory. */
	struct mst_claim worker; /* of the link with a worker, here */
	struct mst_claim all;    /* of all that is linked and published here */
	struct mst_claim far;    /* of that link, at the worker's end */
};

/* @cfg: all that mst_server_new() needs, `net` with its lanes. `servers` and `first` are the
 * caller's to set. */
void mst_budget_of(const struct mst_server_cfg *cfg, struct mst_budget *out);

/* Bytes here, pinned or not. */
static inline uint64_t mst_budget_bytes(const struct mst_budget *b)
{
	return b->workers * b->worker_bytes + b->own_bytes;
}

/* A table of servers, and what a worker takes. @have: memory that a server may use; 0: not
 * known. */
void mst_budget_print(const struct mst_budget *b, uint64_t have, FILE *out);

#endif
