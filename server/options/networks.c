/* SPDX-License-Identifier: MIT */
/* Which networks the options of a server mean. */
#include "common/transport/reach.h"
#include "common/transport/transport.h"
#include "server/options/options.h"

/* What is to be encrypted does not go over a network that sends plain bytes. */
static void leave_out_plain(struct mst_networks *n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n->count; i++)
		if (n->item[i]->maps || n->item[i]->encrypts)
			n->item[kept++] = n->item[i];
	n->count = kept;
}

/* Only processes of this host reach a server that listens at an address of this host alone, and
 * they reach its memory, too. A follower hears from its leader which networks the job has. */
int mst_server_options_networks(const struct mst_server_options *o, struct mst_networks *out,
				struct mst_reason *why)
{
	int rc = mst_networks_read(o->transport, out, why);

	if (rc != 0)
		return mst_reason_fail(why, rc, "option --transport: %s", why->text);
	if (out->optional && o->fabric.data_tls == MST_DATA_TLS_ON)
		leave_out_plain(out);
	if (out->optional && o->join == NULL && mst_reach_of(o->listen) != MST_REACH_BEYOND)
		return mst_networks_read("shm", out, why);
	return 0;
}
