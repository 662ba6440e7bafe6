/* SPDX-License-Identifier: MIT */
/*
 * The turn to write the lines of a program: which thread has it, and how a process that ends takes
 * it.
 *
 * While a program runs, one thread writes (log_writer.c). The thread that ends the process writes
 * what is left itself: by exit(), by a failed assertion, or in the handler of a fatal signal. So no
 * line is lost because a busy host gives the writing thread no processor. The turn passes by
 * compare-and-swap, and each line is taken in somebody's turn, so that each is written once and in
 * order. Only a line that is being written already must be waited for, since nobody can tell how
 * much of it has been.
 *
 * A process does not wait for ever. It gives up when standard error has taken nothing for a time
 * that the caller names; or, if a line is being written, when its writer has not ended it although
 * standard error has room and this thread has looked ten thousand times, at most once a
 * millisecond. One thing is waited for without a limit: the disk of a file to which standard error
 * goes.
 */
#ifndef MST_BASE_LOG_END_H
#define MST_BASE_LOG_END_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/log_queue.h"

/* Zeroed: nothing waits, and nobody writes. */
struct mst_log_output {
	struct mst_log_queue queue;
	_Atomic int turn; /* enum turn, in log_end.c */
};

/* For the thread that writes, around each piece that it takes from the queue and writes.
 * Return: false: the process ends, and the thread must take nothing, or nothing more. */
bool mst_log_turn_begin(struct mst_log_output *o);
bool mst_log_turn_end(struct mst_log_output *o);

/* Takes the next piece, in the caller's turn: a line, or the line that tells how many are missing.
 * Return: its length; 0: nothing waits. */
size_t mst_log_output_take(struct mst_log_output *o, char text[MST_LOG_LINE_MAX]);

/* Does a line wait, or is one being written? Any thread. */
bool mst_log_output_waits(const struct mst_log_output *o);

/* Writes all that waits, and then @line, of @len bytes, if there is one. The turn is not given back
 * to the thread that writes. Gives up when standard error has taken nothing for @silent_ms. Takes
 * no lock and allocates nothing: a signal handler may call it. It uses SIGALRM, and the timer of
 * the process that raises it.
 * Return: @line was written; without one, all that waits. */
bool mst_log_output_end(struct mst_log_output *o, const char *line, size_t len, unsigned silent_ms);

/* In a child of fork(), which has no thread that writes: nothing waits any more. */
void mst_log_output_clear(struct mst_log_output *o);

#endif
