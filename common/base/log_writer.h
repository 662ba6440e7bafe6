/* SPDX-License-Identifier: MIT */
/*
 * The thread that writes a program's log, so that no other thread ever waits for the reader of
 * standard error: a terminal stopped by Ctrl-S, a pager, a log collector that hangs. The programs
 * of this tree start it. The library does not, since it runs in somebody else's process (log.h says
 * what it does instead).
 *
 * Lines wait in a bounded queue (log_queue.h). At exit() the process waits at most a second for the
 * last ones to be written; a process that crashes or aborts waits a tenth of a second.
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

/* Waits until all lines are written, or the time is over.
 * Return: no line waits any more. */
bool mst_log_flush(uint64_t timeout_ns);

#endif
