/* SPDX-License-Identifier: MIT */
/*
 * How far the parameters have moved since a worker read them: the square of the distance between
 * two versions, which the rate of a commit depends on (--lr-distance). Both are compared as workers
 * read them, also where results have 16 bits and the parameters are kept in f32: so a gradient that
 * is not stale has the distance 0.
 *
 * An element's difference is rounded to f32. The squares of a block are added in double, and the
 * sums of blocks without rounding. Blocks end at multiples of MST_SHARD_ELEMS_MIN of the whole
 * vector, and each lies in one shard: so the bits do not depend on the borders of shards and
 * servers.
 */
#ifndef MST_SERVER_DATA_DISTANCE_H
#define MST_SERVER_DATA_DISTANCE_H

#include "common/base/exact_sum.h"
#include "server/data/shard.h"

struct mst_aggregator_cfg;
struct mst_distance_pass;

/* Bytes that mst_distance_new() allocates; 0: no distance is wanted. */
uint64_t mst_distance_bytes(const struct mst_aggregator_cfg *cfg);
/* For the range of one shard. @out: NULL if no distance is wanted. Return: 0 or -ENOMEM. */
int mst_distance_new(const struct mst_aggregator_cfg *cfg, struct mst_span range,
		     struct mst_distance_pass **out);
void mst_distance_free(struct mst_distance_pass *p); /* accepts NULL */

/* The shard's thread: compares @now with @read, two versions of the server's part, which are not
 * written to while it goes on. */
void mst_distance_begin(struct mst_distance_pass *p, const void *now, const void *read);
/* Goes on with all blocks up to element @reached of the server's part. */
void mst_distance_go_on(struct mst_distance_pass *p, uint64_t reached);
/* The square of the distance over the shard's range. Valid when the pass has gone on to its end,
 * until it begins again. */
const struct mst_exact_sum *mst_distance_square(const struct mst_distance_pass *p);

#endif
