/* SPDX-License-Identifier: MIT */
/*
 * The norms of tensors, for optimisers whose rate depends on them. The reduce phase of a shard adds
 * up the squares of the parameters and of the direction, tensor by tensor. Of a tensor that lies in
 * the shard it makes the trust ratio at once. Of a tensor that goes on in the next shard, the
 * aggregator adds up what the shards have; of one that goes on at another server, the leader does.
 *
 * The squares of a block are added in double. Blocks end at multiples of MST_SHARD_ELEMS_MIN of the
 * whole vector, and where a tensor does: so each lies in one shard, and the bits of a norm do not
 * depend on the borders of shards and servers.
 */
#ifndef MST_SERVER_DATA_NORMS_H
#define MST_SERVER_DATA_NORMS_H

#include "common/optim/optim.h"
#include "common/wire/part.h"
#include "server/data/shard.h"

struct mst_norms_pass;
struct mst_task;

/* Bytes that mst_norms_new() allocates; 0: the optimiser wants no norms of tensors. */
uint64_t mst_norms_bytes(const struct mst_optimizer *o);
/* For the range of one shard. @out: NULL if the optimiser wants no norms of tensors.
 * Return: 0 or -ENOMEM. */
int mst_norms_new(const struct mst_aggregator *a, struct mst_span range,
		  struct mst_norms_pass **out);
void mst_norms_free(struct mst_norms_pass *p); /* accepts NULL */

/* The shard's thread: begins the reduce phase @task, and goes on with all blocks of which the mean
 * is there, up to element @reached of the server's part. */
void mst_norms_begin(struct mst_norms_pass *p, const struct mst_task *task);
void mst_norms_go_on(struct mst_norms_pass *p, uint64_t reached);
/* Valid after the shard is done with the task, before the next one begins. */
const struct mst_edges *mst_norms_edges(const struct mst_norms_pass *p);

/* The aggregator's thread, when all shards are done: makes the trust ratios of the tensors that go
 * on from shard to shard, and reports the edges of the server. */
void mst_norms_report(struct mst_aggregator *a, uint64_t version);
/* The leader has said the trust ratios of the tensors that are cut by borders between servers.
 * Without norms of tensors nothing happens. */
void mst_norms_take(struct mst_aggregator *a, const float trust[MST_SERVERS_MAX - 1]);

#endif
