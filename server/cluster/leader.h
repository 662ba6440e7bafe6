/* SPDX-License-Identifier: MIT */
/* The decider of the leader of several servers. */
#ifndef MST_SERVER_CLUSTER_LEADER_H
#define MST_SERVER_CLUSTER_LEADER_H

#include "server/data/decider.h"
#include "server/data/server.h"

struct mst_leader_cfg {
	struct mst_ledger_cfg ledger;    /* shards: the number of servers, two or more */
	struct mst_net *net;             /* server links are attached to it */
	uint32_t window;                 /* of each resend queue */
	uint64_t server_lease_ns;        /* a follower without a link for this time is gone */
	struct mst_recording *recording; /* NULL: the job is not recorded */
};
/* Makes the decider. The caller sets `note` and `note_ctx`.
 * Return: 0 or -errno. */
int mst_leader_new(const struct mst_leader_cfg *cfg, struct mst_decider **out);
/* Makes the decider of a leader for a data side: a mst_decider_maker. */
int mst_leader_make(const struct mst_server_cfg *cfg, struct mst_net *net,
		    struct mst_decider **out);

#endif
