/* SPDX-License-Identifier: MIT */
/*
 * A line is composed on the stack and written by one write(2), so lines of several threads, and of
 * several processes on one terminal, are never mixed. Nothing in this file takes a lock: a child of
 * fork() can log, whatever its parent's threads were doing. A line may contain what a user has
 * typed; it is cleaned, so that one call is one line.
 */
#include "common/base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/text.h"

/* Relaxed everywhere, since these words order nothing else. A thread that logs while another opens
 * the log uses the old name or the new one, and either is a whole string. */
static _Atomic(const char *) log_name = "muster";
static _Atomic int log_level = MST_LOG_INFO;
static _Atomic bool log_opened;
static _Atomic uint64_t log_dropped; /* by mst_log_write_now(), and not yet reported */

/* Set with release and read with acquire: a thread that sees the writer sees it completely made. */
static _Atomic(mst_log_put) log_put;
static _Atomic(mst_log_last) log_last;

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
	atomic_store_explicit(&log_opened, true, memory_order_relaxed);
}

bool mst_log_is_open(void)
{
	return atomic_load_explicit(&log_opened, memory_order_relaxed);
}

/* The calendar date of a day, counted from 1970. It is computed here because the C library takes a
 * lock and reads the time zone for it. Years begin in March here, so a leap day is the last day of
 * one. */
static void date_of(int64_t day, int *year, int *month, int *of_month)
{
	enum { DAYS_400_YEARS = 146097, DAYS_TO_1970 = 719468 }; /* from the first of March, 0 */
	int64_t from_0 = day + DAYS_TO_1970;
	int64_t era = (from_0 < 0 ? from_0 - DAYS_400_YEARS + 1 : from_0) / DAYS_400_YEARS;
	int64_t of_era = from_0 - era * DAYS_400_YEARS;
	int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 -
			       of_era / (DAYS_400_YEARS - 1)) /
			      365;
	int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t from_march = (5 * of_year + 2) / 153; /* 153 days are five months, from March on */

	*of_month = (int)(of_year - (153 * from_march + 2) / 5 + 1);
	*month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
	*year = (int)(era * 400 + year_of_era + (*month <= 2));
}

/* The last @count digits of @n. The C library's printf() may not be called by a signal handler. */
static void put_digits(char *out, size_t count, uint64_t n)
{
	for (; count > 0; n /= 10)
		out[--count] = (char)('0' + n % 10);
}

void mst_log_time(int64_t unix_ms, char out[MST_LOG_TIME_LEN])
{
	enum { MS_A_DAY = 24 * 60 * 60 * 1000 };
	int64_t day = unix_ms / MS_A_DAY - (unix_ms % MS_A_DAY < 0);
	unsigned ms = (unsigned)(unix_ms - day * MS_A_DAY);
	int year, month, of_month;

	date_of(day, &year, &month, &of_month);
	MST_ASSERT(year >= 0 && year <= 9999);
	memcpy(out, "0000-00-00T00:00:00.000Z", MST_LOG_TIME_LEN);
	put_digits(out, 4, (uint64_t)year);
	put_digits(out + 5, 2, (uint64_t)month);
	put_digits(out + 8, 2, (uint64_t)of_month);
	put_digits(out + 11, 2, ms / 3600000);
	put_digits(out + 14, 2, ms / 60000 % 60);
	put_digits(out + 17, 2, ms / 1000 % 60);
	put_digits(out + 20, 3, ms % 1000);
}

int mst_log_level_parse(const char *word)
{
	for (int level = MST_LOG_ERROR; level <= MST_LOG_DEBUG; level++) {
		if (strcmp(word, level_names[level]) == 0)
			return level;
	}
	return -EINVAL;
}

/* Appends to @line from @used on, never beyond @room.
 * Return: the bytes used then. */
static size_t line_add(char *line, size_t used, size_t room, const char *fmt, va_list args)
{
	int wanted = vsnprintf(line + used, room - used, fmt, args);

	if (wanted < 0)
		return used;
	return (size_t)wanted < room - used ? used + (size_t)wanted : room - 1;
}

/* As line_add(). */
static size_t line_add_text(char *line, size_t used, size_t room, const char *text)
{
	size_t len = strlen(text);

	if (len > room - 1 - used)
		len = room - 1 - used;
	memcpy(line + used, text, len);
	line[used + len] = '\0';
	return used + len;
}

static size_t line_add_number(char *line, size_t used, size_t room, uint64_t n)
{
	char text[21] = "";
	size_t digits = 1;

	for (uint64_t rest = n; rest >= 10; rest /= 10)
		digits++;
	put_digits(text, digits, n);
	return line_add_text(line, used, room, text);
}

/* Writes what stands before the text.
 * Return: how many bytes that is. */
static size_t line_head(char *line, size_t room, enum mst_log_level level)
{
	char time[MST_LOG_TIME_LEN];
	size_t used = 0;

	if (mst_log_is_open()) {
		mst_log_time(mst_wall_ms(), time);
		used = line_add_text(line, used, room, time);
		used = line_add_text(line, used, room, " ");
		used = line_add_text(line, used, room, level_names[level]);
		used = line_add_text(line, used, room, " ");
	}
	used = line_add_text(line, used, room,
			     atomic_load_explicit(&log_name, memory_order_relaxed));
	return line_add_text(line, used, room, ": ");
}

size_t mst_log_compose_dropped(char line[MST_LOG_LINE_MAX], uint64_t dropped)
{
	size_t used = line_head(line, MST_LOG_LINE_MAX, MST_LOG_WARN);
	const char *text = dropped == 1 ? " line was dropped: standard error did not take it"
					: " lines were dropped: standard error did not take them";

	used = line_add_number(line, used, MST_LOG_LINE_MAX, dropped);
	used = line_add_text(line, used, MST_LOG_LINE_MAX, text);
	line[used] = '\n';
	return used + 1;
}

/* ---- writing ---- */

static void write_line(const char *line, size_t len)
{
	ssize_t written = write(STDERR_FILENO, line, len);

	(void)written; /* if standard error is closed the loss cannot be reported anywhere */
}

/* Does standard error take a line now? A pipe that has room has room for a line. A pipe without any
 * reader is left out, for writing to it would raise SIGPIPE. */
static bool takes_a_line(int wait_ms)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&fd, 1, wait_ms) == 1 &&
	       (fd.revents & (POLLOUT | POLLERR | POLLNVAL)) == POLLOUT;
}

static void say_dropped(void)
{
	uint64_t dropped = atomic_exchange_explicit(&log_dropped, 0, memory_order_relaxed);
	char line[MST_LOG_LINE_MAX];

	if (dropped > 0)
		write_line(line, mst_log_compose_dropped(line, dropped));
}

bool mst_log_write_now(const char *line, size_t len)
{
	if (takes_a_line(0)) {
		say_dropped();
		if (takes_a_line(0)) {
			write_line(line, len);
			return true;
		}
	}
	atomic_fetch_add_explicit(&log_dropped, 1, memory_order_relaxed);
	return false;
}

void mst_log_divert(mst_log_put put)
{
	atomic_store_explicit(&log_put, put, memory_order_release);
}

void mst_log_end_by(mst_log_last last)
{
	atomic_store_explicit(&log_last, last, memory_order_release);
}

void mst_log_last_words(const char *line, size_t len)
{
	mst_log_last last = atomic_load_explicit(&log_last, memory_order_acquire);

	if ((last == NULL || !last(line, len)) && takes_a_line((int)MST_LOG_LAST_MS))
		write_line(line, len);
}

void mst_log(enum mst_log_level level, const char *fmt, ...)
{
	char line[MST_LOG_LINE_MAX];
	int errno_kept = errno; /* a caller logs, then returns -errno */
	va_list args;

	if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed))
		return;
	size_t used = line_head(line, sizeof(line), level);
	va_start(args, fmt);
	used = line_add(line, used, sizeof(line), fmt, args);
	va_end(args);
	mst_text_clean(line);
	line[used++] = '\n'; /* replaces the terminating zero, which is not written */
	mst_log_put put = atomic_load_explicit(&log_put, memory_order_acquire);
	if (put != NULL)
		put(level, line, used);
	else
		(void)mst_log_write_now(line, used);
	errno = errno_kept;
}

static bool is_in_window(const struct mst_ratelimit *r, uint64_t now_ns)
{
	return r->said > 0 && now_ns - r->began_ns < r->window_ns;
}

bool mst_ratelimit_pass(struct mst_ratelimit *r, uint64_t now_ns)
{
	if (!is_in_window(r, now_ns)) {
		r->began_ns = now_ns;
		r->said = 0;
	}
	if (r->said == r->burst) {
		r->held_back++;
		return false;
	}
	r->said++;
	return true;
}

uint64_t mst_ratelimit_take(struct mst_ratelimit *r, uint64_t now_ns)
{
	uint64_t held_back = r->held_back;

	if (held_back == 0 || is_in_window(r, now_ns))
		return 0;
	r->held_back = 0;
	return held_back;
}
