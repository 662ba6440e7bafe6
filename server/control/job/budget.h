/* SPDX-License-Identifier: MIT */
/* Computes what a server needs of its host: memory and descriptors; and of an RDMA device, queue
 * pairs and registered memory. It is computed from the configuration of the server, by the modules
 * that will allocate it. */
#ifndef MST_SERVER_CONTROL_JOB_BUDGET_H
#define MST_SERVER_CONTROL_JOB_BUDGET_H

#include <stdio.h>

#include "server/control/connections/descriptors.h"
#include "server/data/server.h"
#include "server/plan/plan.h"

struct mst_budget {
	uint32_t servers, workers;
	uint64_t first, elems; /* this server's part of the vector */
	uint32_t shards;
	/* for each worker: its slots, and what is composed to be sent to it */
	uint64_t worker_bytes;
	uint64_t own_bytes; /* sums, versions, and what is sent to other servers */
	struct mst_descriptors files;
	/* Where peers map each other's memory these are zero, except for descriptors. */
	struct mst_claim worker; /* of the link with one worker, at this server */
	struct mst_claim all;    /* of all links and published results of this server */
	struct mst_claim far;    /* of the link with one worker, at the worker */
};

/* @cfg: all that mst_server_new() needs, `net` with its lanes. The caller sets `servers` and
 * `first` of @out itself. */
void mst_budget_of(const struct mst_server_cfg *cfg, struct mst_budget *out);

/* What a job needs at each of its servers, of which the first is the leader, if a gradient has
 * @elems elements of f32. The followers are assumed to have the same options and as many
 * processors. @cfg: without terms, which are read here.
 * @why: on failure a sentence.
 * Return: 0 or -EINVAL. */
int mst_budget_job(const struct mst_plan_cfg *cfg, uint64_t elems,
		   struct mst_budget out[MST_SERVERS_MAX], struct mst_reason *why);

/* The bytes that this server needs, pinned or not. */
static inline uint64_t mst_budget_bytes(const struct mst_budget *b)
{
	return b->workers * b->worker_bytes + b->own_bytes;
}

/* The memory that a server may use on this host. */
struct mst_budget_room {
	uint64_t bytes; /* MST_MEMORY_UNKNOWN: the host does not say, so any amount */
	char text[320]; /* "225.0 MiB, 3/4 of what is free in control group /job, ..." */
};

/* @given: what --memory says; 0: use what the host says now. */
void mst_budget_room(uint64_t given, struct mst_budget_room *out);

/* Prints a table of servers, and what each worker needs. */
void mst_budget_print(const struct mst_budget *b, const struct mst_budget_room *room, FILE *out);

#endif
