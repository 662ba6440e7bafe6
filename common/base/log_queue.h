/* SPDX-License-Identifier: MIT */
/*
 * A bounded queue of lines that wait to be written, in order. A line for which there is no room is
 * dropped and counted; where lines are missing, the reader gets their number.
 *
 * Pure: no thread, no clock, no descriptor. If several threads share a queue they must lock it.
 */
#ifndef MST_BASE_LOG_QUEUE_H
#define MST_BASE_LOG_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/log.h"

#define MST_LOG_QUEUE_BYTES (64u << 10)
/* Only urgent lines may use the last bytes: the reason why a job failed must not be lost because
 * less important lines have filled the queue. */
#define MST_LOG_QUEUE_RESERVE (8u << 10)

/* Zeroed: empty. */
struct mst_log_queue {
	size_t first, used;
	uint64_t dropped; /* lines dropped after the last one in the queue */
	unsigned char bytes[MST_LOG_QUEUE_BYTES];
};

/* @len: from 1 to MST_LOG_LINE_MAX. */
bool mst_log_queue_has_room(const struct mst_log_queue *q, size_t len, bool urgent);

/* Appends a line.
 * Return: false: there was no room, and the line is counted as dropped. */
bool mst_log_queue_put(struct mst_log_queue *q, const char *line, size_t len, bool urgent);

/* Would mst_log_queue_take() return nothing? */
bool mst_log_queue_is_empty(const struct mst_log_queue *q);

/* Takes what comes next: either a line, or the number of lines that are missing there.
 * @dropped: that number, or 0.
 * Return: the line's length, or 0. */
size_t mst_log_queue_take(struct mst_log_queue *q, char line[MST_LOG_LINE_MAX], uint64_t *dropped);

#endif
