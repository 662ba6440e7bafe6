/* SPDX-License-Identifier: MIT */
/*
 * A bounded queue of lines that wait to be written, in order. A line for which there is no room is
 * dropped and counted; where lines are missing, the reader gets their number.
 *
 * One thread at a time puts lines in, and one at a time takes them. Neither needs a lock against
 * the other: a line is put, or taken, by the one store that ends it. So the taker may do so in
 * a signal handler, whatever the handler has interrupted.
 *
 * Pure: no thread, no clock, no descriptor.
 */
#ifndef MST_BASE_LOG_QUEUE_H
#define MST_BASE_LOG_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/log.h"

#define MST_LOG_QUEUE_BYTES (64u << 10)
/* Only urgent lines may use the last bytes: the reason why a job failed must not be lost because
 * less important lines have filled the queue. */
#define MST_LOG_QUEUE_RESERVE (8u << 10)

/* Zeroed: empty. What is put and taken is counted from the beginning on. */
struct mst_log_queue {
	_Atomic size_t put;       /* bytes; of the thread that puts */
	_Atomic uint64_t dropped; /* lines; of the thread that puts */
	uint64_t noted;           /* of them, those that a record in the ring tells; the same */
	_Atomic size_t taken;     /* bytes; of the thread that takes */
	_Atomic uint64_t told;    /* lines dropped, as far as their number was taken; the same */
	unsigned char bytes[MST_LOG_QUEUE_BYTES];
};

/* For the thread that puts. @len: from 1 to MST_LOG_LINE_MAX. */
bool mst_log_queue_has_room(const struct mst_log_queue *q, size_t len, bool urgent);

/* Appends a line.
 * Return: false: there was no room, and the line is counted as dropped. */
bool mst_log_queue_put(struct mst_log_queue *q, const char *line, size_t len, bool urgent);

/* Would mst_log_queue_take() return nothing? Any thread. */
bool mst_log_queue_is_empty(const struct mst_log_queue *q);

/* Takes what comes next: either a line, or the number of lines that are missing there. A signal
 * handler may call it.
 * @dropped: that number, or 0.
 * Return: the line's length, or 0. */
size_t mst_log_queue_take(struct mst_log_queue *q, char line[MST_LOG_LINE_MAX], uint64_t *dropped);

/* Forgets all that is in it. No other thread may use the queue meanwhile. */
void mst_log_queue_clear(struct mst_log_queue *q);

#endif
