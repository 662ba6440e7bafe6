/* SPDX-License-Identifier: MIT */
/*
 * Log lines to standard error. A program that runs for a while logs with the time in UTC, to the
 * millisecond, and the severity:
 *
 *   2026-11-22T10:00:39.123Z warn musterd: rank 3 was silent for its lease of 5 s
 *
 * A command that answers and ends, and any program before it opens its log, writes only its name
 * before the text: "muster: nobody listens on 127.0.0.1:17077". The function that first knows of an
 * error logs it, once, in lower case, with numbers. Nothing logs per push.
 *
 * No call waits for the reader of standard error. The programs of this tree pass their lines to a
 * thread that writes them (log_writer.h). In another process, which has loaded the library, the
 * caller writes the line itself if standard error takes it at once. Otherwise the line is dropped,
 * and the next line is preceded by one that says how many were dropped. If two processes write to
 * one pipe at the same moment a caller may still have to wait; but the library logs only a few
 * lines in a job, and never from the thread that sends heartbeats.
 */
#ifndef MST_BASE_LOG_H
#define MST_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MST_LOG_LINE_MAX 1024u /* with its line feed; longer lines are cut */

enum mst_log_level { MST_LOG_ERROR, MST_LOG_WARN, MST_LOG_INFO, MST_LOG_DEBUG };

/* From now on lines have the time and the severity, and lines less severe than @level are left out.
 * @name stands before the text ("musterd"); the string must stay valid. */
void mst_log_open(const char *name, enum mst_log_level level);
bool mst_log_is_open(void);

#define MST_LOG_TIME_LEN 25u /* with NUL */
/* Milliseconds since 1970, years 0 to 9999: "2026-11-22T10:00:39.123Z". */
void mst_log_time(int64_t unix_ms, char out[MST_LOG_TIME_LEN]);

/* "error", "warn", "info" or "debug". Return: the level, or -EINVAL. */
int mst_log_level_parse(const char *word);

void mst_log(enum mst_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define mst_error(...) mst_log(MST_LOG_ERROR, __VA_ARGS__)
#define mst_warn(...) mst_log(MST_LOG_WARN, __VA_ARGS__)
#define mst_info(...) mst_log(MST_LOG_INFO, __VA_ARGS__)
#define mst_debug(...) mst_log(MST_LOG_DEBUG, __VA_ARGS__)

/* Writes a complete line if standard error takes it at once. Takes no lock; for any thread.
 * Return: false: it was not written, and is counted as dropped. */
bool mst_log_write_now(const char *line, size_t len);

/* A limit on how often one kind of thing may be logged: the first few times in a window of time,
 * which begins with the first of them. In the rest of the window it is held back, and counted.
 * Pure: time is an argument. */
struct mst_ratelimit {
	uint64_t window_ns;
	uint32_t burst; /* how often in a window */
	/* Zeroed: */
	uint32_t said;
	uint64_t began_ns;
	uint64_t held_back;
};

/* May it be logged now? If not, it is counted as held back. Call mst_ratelimit_take() before, for
 * what the last window has held back. */
bool mst_ratelimit_pass(struct mst_ratelimit *r, uint64_t now_ns);

/* Return: how many were held back in a window that is over now; the count begins again. */
uint64_t mst_ratelimit_take(struct mst_ratelimit *r, uint64_t now_ns);

/* ---- for log_writer.c, log_end.c and the end of the process ---- */

/* From now on complete lines are passed to @put; NULL: to mst_log_write_now(). */
typedef void (*mst_log_put)(enum mst_log_level level, const char *line, size_t len);
void mst_log_divert(mst_log_put put);
/* Composes "7 lines were dropped: ...". A signal handler may call it.
 * Return: its length. */
size_t mst_log_compose_dropped(char line[MST_LOG_LINE_MAX], uint64_t dropped);

/* How long a process that crashes or aborts waits while standard error takes nothing. */
#define MST_LOG_LAST_MS 100u
/* From now on @last writes what waits, and then a last line. It returns whether that was
 * written. */
typedef bool (*mst_log_last)(const char *line, size_t len);
void mst_log_end_by(mst_log_last last);
/* Writes the last line of a process that ends itself, after all others. */
void mst_log_last_words(const char *line, size_t len);

#endif
