/* SPDX-License-Identifier: MIT */
/*
 * The thread that writes a program's log, so that no other thread ever waits for the reader of
 * standard error: a terminal stopped by Ctrl-S, a pager, a log collector that hangs. The programs
 * of this tree start it. The library does not, since it runs in somebody else's process (log.h says
 * what it does instead).
 *
 * Lines wait in a bounded queue (log_queue.h). At exit() the calling thread writes the last ones
 * itself (log_end.h), and gives up when standard error has taken nothing for a second. A process
 * that crashes or aborts does the same, and gives up after a tenth of a second.
 *
 * A child of fork() has no such thread: it logs as the library does until it starts one of its own.
 */
#ifndef MST_BASE_LOG_WRITER_H
#define MST_BASE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts the thread; from now on lines are passed to it. It runs until the process ends.
 * Return: 0, also if it already runs; -errno: it could not be started. */
int mst_log_start(void);

/* Writes lines or other text to standard error, in order with the lines of mst_log(); 1 to
 * MST_LOG_LINE_MAX bytes. Without the thread the text is written as a line of the library would be.
 * Return: false: there is no room now; the text is not counted as dropped. */
bool mst_log_offer(const char *text, size_t len);

/* Does a line wait, or is one being written? */
bool mst_log_waits(void);

/* Waits until all lines are written, or the time is over.
 * Return: no line waits any more. */
bool mst_log_flush(uint64_t timeout_ns);

/* Was any text not written because standard error could not be written to: a full disk, a pipe
 * without a reader? It cannot be told there. */
bool mst_log_lost(void);

#endif
