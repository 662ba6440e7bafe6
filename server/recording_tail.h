/* SPDX-License-Identifier: MIT */
/*
 * Where a recording goes on that an earlier generation of the same run has begun. It is a file that
 * anybody may have written, so it is only looked at: its header, its first remark, which names the
 * run, and the end of its last whole line. A server that was killed may have cut the last one.
 */
#ifndef MST_SERVER_RECORDING_TAIL_H
#define MST_SERVER_RECORDING_TAIL_H

#include "server/data/recording.h"

/* The beginning of the remark before the rows of each generation: number and run. */
#define MST_RECORDING_REMARK "# generation %" PRIu64 " of run %s"

/* @header: the first line.
 * @end: true: the length of the file up to its last whole line; else 0.
 * Return: is it a recording of an earlier generation of this run? */
bool mst_recording_tail_find(const char *path, const char *header,
			     const struct mst_recorded_generation *now, uint64_t *end);

#endif
