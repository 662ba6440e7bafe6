/* SPDX-License-Identifier: MIT */
/*
 * A line is put together on the stack and leaves by one write(2), so that lines of several threads
 * and of several processes on one terminal never run into each other, and no lock is needed. What a
 * peer sent may end up in a line: control characters become '?', so that one call is one line.
 */
#include "common/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"

#define LINE_MAX_BYTES 1024

/* Relaxed everywhere: each is a word of its own that orders nothing. A thread that logs while
 * another opens the log uses the old name or the new one, and either is a whole string. */
static _Atomic(const char *) log_name = "muster";
static _Atomic int log_level = MST_LOG_INFO;

static const char *const level_names[] = {
	[MST_LOG_ERROR] = "error",
	[MST_LOG_WARN] = "warn",
	[MST_LOG_INFO] = "info",
	[MST_LOG_DEBUG] = "debug",
};

void mst_log_open(const char *name, enum mst_log_level level)
{
	MST_ASSERT(name != NULL);
	atomic_store_explicit(&log_name, name, memory_order_relaxed);
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

int mst_log_level_parse(const char *word)
{
	for (int level = MST_LOG_ERROR; level <= MST_LOG_DEBUG; level++) {
		if (strcmp(word, level_names[level]) == 0)
			return level;
	}
	return -EINVAL;
}

/* Appends to @line from @used on, never beyond @room. Return: bytes used then. */
static size_t line_add(char *line, size_t used, size_t room, const char *fmt, va_list args)
{
	int wanted = vsnprintf(line + used, room - used, fmt, args);

	if (wanted < 0)
		return used;
	return (size_t)wanted < room - used ? used + (size_t)wanted : room - 1;
}

static size_t line_begin(char *line, size_t room, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	size_t used = line_add(line, 0, room, fmt, args);
	va_end(args);
	return used;
}

static void blank_controls(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' || text[i] == '\x7f')
			text[i] = '?';
	}
}

void mst_log(enum mst_log_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	int errno_kept = errno; /* a caller logs, then returns -errno */
	va_list args;

	if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed))
		return;
	size_t used = line_begin(line, sizeof(line),
				 "%s: ", atomic_load_explicit(&log_name, memory_order_relaxed));
	va_start(args, fmt);
	used = line_add(line, used, sizeof(line), fmt, args);
	va_end(args);
	blank_controls(line, used);
	line[used] = '\n'; /* over the terminating zero, which is not written */
	ssize_t written = write(STDERR_FILENO, line, used + 1);

	(void)written; /* if stderr is gone there is nowhere left to complain */
	errno = errno_kept;
}
