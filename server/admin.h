/* SPDX-License-Identifier: MIT */
/*
 * The control plane: hellos, welcomes, start state, heartbeats, leaves, status, ends. It has a
 * thread of its own, because a join maps or registers memory and must not stall a step; and it is a
 * step function over stream, transport and clock, so that a simulated world can run it too.
 *
 * The data side is made by the first valid hello: it fixes what the options leave open (length and
 * types).
 */
#ifndef MST_SERVER_ADMIN_H
#define MST_SERVER_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/stream.h"
#include "common/transport/transport.h"
#include "server/budget.h"
#include "server/options.h"
#include "server/server.h"

struct mst_admin;

struct mst_admin_cfg {
	const struct mst_server_options *options; /* checked; outlive the admin */
	const struct mst_stream_ops *stream;
	const struct mst_transport *transport;
	uint32_t cores; /* for the data side's threads; 0: one */
};

/* What the job of these options takes at each server, of which this one leads, where a gradient has
 * so many elements of f32: by what its servers would be made with. Those beside the lead are taken
 * to have the same options and as many processors. @why: on failure a sentence. Return: 0 or
 * -errno. */
int mst_admin_budget(const struct mst_admin_cfg *cfg, uint64_t elems,
		     struct mst_budget out[MST_SERVERS_MAX], char *why, size_t why_len);

/* Listens. @why: on failure a sentence. Return: 0 or -errno. */
int mst_admin_new(const struct mst_admin_cfg *cfg, struct mst_admin **out, char *why,
		  size_t why_len);
/* Frees the data side too: nobody steps it any more. */
void mst_admin_free(struct mst_admin *a); /* accepts NULL */

/* "127.0.0.1:17077" */
const char *mst_admin_address(const struct mst_admin *a);

/* Does what there is to do. */
void mst_admin_step(struct mst_admin *a, uint64_t now_ns);
/* Sleeps until there may be something, at most @timeout_ns. */
void mst_admin_wait(struct mst_admin *a, uint64_t timeout_ns);
/* How long that may be for what it has to do by itself. */
uint64_t mst_admin_nap(const struct mst_admin *a);
/* Ends the present or next wait. Any thread, also a signal handler's. */
void mst_admin_wake(struct mst_admin *a);

/* The data side, once there is one; its steps are the caller's to call, from any one thread. */
struct mst_server *mst_admin_server(struct mst_admin *a);

/* Ends everything: workers are told @why. */
void mst_admin_stop(struct mst_admin *a, const char *why, uint64_t now_ns);

/* Is the job over, and everybody told? 0 not yet; 1 finished; -1 failed. */
int mst_admin_over(const struct mst_admin *a);

#endif
