/* SPDX-License-Identifier: MIT */
/* The decider of a follower: it executes what its leader decides. */
#ifndef MST_SERVER_CLUSTER_FOLLOWER_H
#define MST_SERVER_CLUSTER_FOLLOWER_H

#include "server/data/decider.h"
#include "server/data/server.h"

struct mst_follower_cfg {
	struct mst_net *net;
	uint32_t window;
	uint32_t workers, slots, buffers;
	uint64_t lease_ns;
	uint64_t server_lease_ns; /* a follower without a link for this time gives its leader up */
	const char *address;      /* the leader's listener; copied */
};
/* Makes the decider. The caller sets `note` and `note_ctx`.
 * Return: 0 or -errno. */
int mst_follower_new(const struct mst_follower_cfg *cfg, struct mst_decider **out);
/* Makes the decider of a follower for a data side: a mst_decider_maker. */
int mst_follower_make(const struct mst_server_cfg *cfg, struct mst_net *net,
		      struct mst_decider **out);

#endif
