/* SPDX-License-Identifier: MIT */
/* The threads that step a server's data side: one for the ledger and the first shard, one for each
 * further shard. */
#ifndef MST_SERVER_WORKER_THREADS_H
#define MST_SERVER_WORKER_THREADS_H

#include "server/data/server.h"
#include "server/options/cpus.h"

struct mst_worker_threads;

/* Starts the threads. @cpus: each thread is pinned to one of them in turn; count 0: none is pinned.
 * Return: 0 or -errno; no thread runs then. */
int mst_worker_threads_start(struct mst_server *server, const struct mst_cpus *cpus,
			     struct mst_worker_threads **out);
/* Ends and joins the threads. Accepts NULL. */
void mst_worker_threads_stop(struct mst_worker_threads *c);

/* Has each thread passed its loop since this call last returned true? A thread with nothing to do
 * passes its loop once a second. Only one thread may call this.
 * @c: NULL: no thread runs, and none is stuck.
 * @stuck: gets the name of a thread that has not, such as "the data thread". */
bool mst_worker_threads_moved(struct mst_worker_threads *c, char *stuck, size_t len);

#endif
