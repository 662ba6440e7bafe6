/* SPDX-License-Identifier: MIT */
/* The threads that step a server's data side: one for the ledger and the first shard, one for each
 * further shard. */
#ifndef MST_SERVER_CREW_H
#define MST_SERVER_CREW_H

#include "server/cpus.h"
#include "server/server.h"

struct mst_crew;

/* Starts them. @cpus: where each is pinned, round and round; of count 0: nowhere. Return: 0 or
 * -errno; nothing runs then. */
int mst_crew_start(struct mst_server *server, const struct mst_cpus *cpus, struct mst_crew **out);
/* Ends and joins them. Accepts NULL. */
void mst_crew_stop(struct mst_crew *c);

#endif
