/* SPDX-License-Identifier: MIT */
/*
 * A shard: a contiguous range of an aggregator's part of the vector. It does the aggregator's work
 * that moves data on this range, task by task in order, chunk by chunk. The first shard belongs to
 * the aggregator's own thread; each other one to a thread of its own, or to whoever steps it.
 *
 * It decides nothing, knows no session and puts nothing: between the aggregator's telling it of a
 * task and its own telling that the task is done it reads that task, writes its range of where the
 * task says, and touches nothing else.
 */
#ifndef MST_SERVER_DATA_SHARD_H
#define MST_SERVER_DATA_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/exact_sum.h"
#include "common/optim/norms.h"

struct mst_aggregator;
struct mst_shard;

/* Borders between shards are at multiples of this: no two threads write to one page. */
#define MST_SHARD_ELEMS_MIN UINT64_C(4096)
#define MST_SHARDS_MAX 16u /* of a server: more threads than any memory keeps up with */

/* Elements. */
struct mst_span {
	uint64_t begin, end;
};

/* Bytes mst_shard_new() will allocate. */
uint64_t mst_shard_bytes(uint32_t entries_max, uint64_t tasks_max, bool examines);
/* 0 or -ENOMEM. */
int mst_shard_new(const struct mst_aggregator *a, uint32_t index, struct mst_shard **out);
void mst_shard_free(struct mst_shard *s); /* accepts NULL */

/* Its thread: one chunk. Return: false if there is nothing to do. */
bool mst_shard_step(struct mst_shard *s);
/* Its thread: returns when there may be something to do, or after a second. */
void mst_shard_wait(struct mst_shard *s);
/* Ends the present wait. Any thread, after what there is to do has been posted. */
void mst_shard_wake(struct mst_shard *s);

/* Any thread: no wait lasts any more. */
void mst_shard_stop(struct mst_shard *s);

struct mst_span mst_shard_range(const struct mst_shard *s);
/* Any thread. How far the shard is with work number @work: it has written the elements of its range
 * before this one, and they are visible to the caller. */
uint64_t mst_shard_reached(const struct mst_shard *s, uint64_t work);
bool mst_shard_is_done(const struct mst_shard *s, uint64_t work);
/* Valid after the shard is done with a REDUCE task, and before the next one begins: the sum of the
 * squares of the mean, over the shard's range. */
const struct mst_exact_sum *mst_shard_squares(const struct mst_shard *s);
/* The sum of squares of the distance of two versions, over the shard's range. */
const struct mst_exact_sum *mst_shard_distance(const struct mst_shard *s);
/* The same with norms of tensors: of the tensors that go on beyond the shard. */
const struct mst_edges *mst_shard_edges(const struct mst_shard *s);
/* What it has found in its range of a contribution. */
struct mst_examined {
	struct mst_exact_sum squares; /* where the aggregator measures */
	uint32_t sum;                 /* where it checks: mst_crc32c_linear() */
};
/* Valid after the shard is done with @work, which is EXAMINE, and until that is over. */
const struct mst_examined *mst_shard_examined(const struct mst_shard *s, uint64_t work);
/* The version that the vectors updated in place have on that side, over the shard's range;
 * MST_VERSION_NONE: they are being written. Its thread, or anybody while no commit writes to that
 * side and every task before has been done. */
uint64_t mst_shard_kept(const struct mst_shard *s, unsigned side);
/* The job starts: those of the first side are of that version. Before there is any task. */
void mst_shard_start(struct mst_shard *s, uint64_t version);
/* Bytes of results that it has copied to workers. Its thread, or anybody while it has nothing to
 * do. */
uint64_t mst_shard_copied(const struct mst_shard *s);
/* Valid after the shard is done with @work, which is a commit or a group. Is an element that it has
 * written not finite? */
bool mst_shard_spoilt(const struct mst_shard *s, uint64_t work);

#endif
