/* SPDX-License-Identifier: MIT */
/* The promises of common/base/log.h, read back through a pipe in place of stderr. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/ut.h"

static char caught[65536];

/* Runs @say with stderr going to a pipe; what it wrote (less than the pipe holds) is in caught. */
static void catch_stderr(void (*say)(void))
{
	int ends[2], kept = dup(STDERR_FILENO);

	CU_ASSERT_FATAL(kept >= 0 && pipe(ends) == 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	say();
	dup2(kept, STDERR_FILENO); /* closes the last writing end: what follows ends */
	close(kept);
	size_t used = 0;

	for (ssize_t got = 1; got > 0; used += (size_t)got) {
		got = read(ends[0], caught + used, sizeof(caught) - 1 - used);
		CU_ASSERT_FATAL(got >= 0);
	}
	caught[used] = '\0';
	close(ends[0]);
}

static void say_one(void)
{
	mst_info("rank %d: lease of %.1f s is over", 3, 5.0);
}

static void before_the_log_is_opened_a_line_has_name_and_text(void)
{
	catch_stderr(say_one);
	CU_ASSERT_STRING_EQUAL(caught, "muster: rank 3: lease of 5.0 s is over\n");
}

static void open_and_say_one(void)
{
	mst_log_open("musterd", MST_LOG_INFO);
	say_one();
}

/* Takes the time from the start of each line that was caught; it is between the two. */
static void take_times(int64_t from_ms, int64_t to_ms)
{
	char first[MST_LOG_TIME_LEN], last[MST_LOG_TIME_LEN], *out = caught;
	size_t len = MST_LOG_TIME_LEN - 1;

	mst_log_time(from_ms, first);
	mst_log_time(to_ms, last);
	for (char *line = caught, *end; *line != '\0'; line = end) {
		end = strchr(line, '\n');
		CU_ASSERT_FATAL(end != NULL && (size_t)(++end - line) > len);
		CU_ASSERT(strncmp(line, first, len) >= 0 && strncmp(line, last, len) <= 0);
		memmove(out, line + len, (size_t)(end - line) - len);
		out += (size_t)(end - line) - len;
	}
	*out = '\0';
}

/* As catch_stderr(), of a log that has been opened: without the times. */
static void catch_lines(void (*say)(void))
{
	int64_t from_ms = mst_wall_ms();

	catch_stderr(say);
	take_times(from_ms, mst_wall_ms());
}

static void then_it_has_time_and_severity_too(void)
{
	catch_lines(open_and_say_one);
	CU_ASSERT_STRING_EQUAL(caught, " info musterd: rank 3: lease of 5.0 s is over\n");
}

static void is_at(int64_t ms, const char *want)
{
	char time[MST_LOG_TIME_LEN];

	mst_log_time(ms, time);
	CU_ASSERT_STRING_EQUAL(time, want);
}

static void times_are_utc(void)
{
	is_at(0, "1970-01-01T00:00:00.000Z");
	is_at(INT64_C(951782399999), "2000-02-28T23:59:59.999Z");
	is_at(INT64_C(951782400000), "2000-02-29T00:00:00.000Z");
	is_at(INT64_C(951868800000), "2000-03-01T00:00:00.000Z");
	is_at(INT64_C(4107542399000), "2100-02-28T23:59:59.000Z");
	is_at(INT64_C(4107542400000), "2100-03-01T00:00:00.000Z");
	is_at(INT64_C(1798761599001), "2026-12-31T23:59:59.001Z");
	is_at(-1, "1969-12-31T23:59:59.999Z");
}

/* Every day from 1600 to 2400, as the C library has it. */
static void days_are_the_c_librarys(void)
{
	char want[MST_LOG_TIME_LEN];
	int wrong = 0;

	for (int64_t day = -135140; day < 157054; day++) {
		time_t at = day * 86400 + 45296;
		char time[MST_LOG_TIME_LEN];
		struct tm tm;
		CU_ASSERT_FATAL(gmtime_r(&at, &tm) != NULL);
		strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.007Z", &tm);
		mst_log_time(at * 1000 + 7, time);
		wrong += strcmp(time, want) != 0;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void say_all_levels(void)
{
	mst_log_open("m", MST_LOG_WARN);
	mst_error("e");
	mst_warn("w");
	mst_info("i");
	mst_debug("d");
}

static void level_holds_back(void)
{
	catch_lines(say_all_levels);
	CU_ASSERT_STRING_EQUAL(caught, " error m: e\n warn m: w\n");
}

static void say_something_wild(void)
{
	mst_log_open("m", MST_LOG_INFO);
	errno = ENOTCONN;
	mst_warn("job \"%s\"", "a\nm: forged\033[2J\xff");
	CU_ASSERT_EQUAL(errno, ENOTCONN);
}

static void foreign_text_stays_on_its_line(void)
{
	catch_lines(say_something_wild);
	CU_ASSERT_STRING_EQUAL(caught, " warn m: job \"a?m: forged?[2J?\"\n");
}

static void say_too_much(void)
{
	char text[5000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	mst_info("%s", text);
}

static void long_line_is_cut(void)
{
	catch_stderr(say_too_much);
	CU_ASSERT_EQUAL(strlen(caught), 1024);
	CU_ASSERT_PTR_EQUAL(strchr(caught, '\n'), caught + 1023);
}

static void *say_hundred(void *arg)
{
	for (int i = 0; i < 100; i++)
		mst_info("%s", (const char *)arg);
	return NULL;
}

static void say_from_two_threads(void)
{
	pthread_t other;

	mst_log_open("m", MST_LOG_INFO);
	CU_ASSERT_FATAL(pthread_create(&other, NULL, say_hundred, "aaaaaaaaaaaaaaaaaaaa") == 0);
	say_hundred("bbbbbbbbbbbbbbbbbbbb");
	pthread_join(other, NULL);
}

static void threads_do_not_mix(void)
{
	unsigned lines[2] = { 0 };
	char *rest = caught;

	catch_lines(say_from_two_threads);
	for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n")) {
		lines[0] += strcmp(line, " info m: aaaaaaaaaaaaaaaaaaaa") == 0;
		lines[1] += strcmp(line, " info m: bbbbbbbbbbbbbbbbbbbb") == 0;
	}
	CU_ASSERT_EQUAL(lines[0], 100);
	CU_ASSERT_EQUAL(lines[1], 100);
}

/* Stderr is a pipe of which this is the other end, and which is full. Return: what stderr was. */
static int block_stderr(int *other)
{
	int ends[2], kept = dup(STDERR_FILENO);
	char byte = 'x';

	CU_ASSERT_FATAL(kept >= 0 && pipe2(ends, O_NONBLOCK) == 0);
	while (write(ends[1], &byte, 1) == 1)
		;
	CU_ASSERT_FATAL(fcntl(ends[1], F_SETFL, 0) == 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	*other = ends[0];
	return kept;
}

static void who_logs_is_not_held_up(void)
{
	int other, kept = block_stderr(&other);
	size_t used = 0;

	mst_log_open("m", MST_LOG_INFO);
	mst_info("one");
	mst_info("two");
	while (read(other, caught, sizeof(caught)) > 0)
		;
	mst_info("three");
	mst_info("four");
	dup2(kept, STDERR_FILENO);
	close(kept);
	for (ssize_t got = 1; got > 0; used += (size_t)got)
		got = read(other, caught + used, sizeof(caught) - 1 - used);
	caught[used] = '\0';
	close(other);
	char *first = strstr(caught, " warn m: 2 lines were dropped: standard error did not take "
				     "them\n");
	char *third = strstr(caught, " info m: three\n");
	CU_ASSERT_FATAL(first != NULL && third != NULL);
	CU_ASSERT(first < third && strstr(third, " info m: four\n") != NULL);
	CU_ASSERT_PTR_NULL(strstr(caught, "one"));
}

static void pipe_without_reader_kills_nobody(void)
{
	int other, kept = block_stderr(&other);

	close(other);
	mst_info("one");
	dup2(kept, STDERR_FILENO);
	close(kept);
	catch_stderr(say_one);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(caught, "1 line was dropped: standard error did not take it\n"));
}

static void levels_have_names(void)
{
	CU_ASSERT_EQUAL(mst_log_level_parse("error"), MST_LOG_ERROR);
	CU_ASSERT_EQUAL(mst_log_level_parse("warn"), MST_LOG_WARN);
	CU_ASSERT_EQUAL(mst_log_level_parse("info"), MST_LOG_INFO);
	CU_ASSERT_EQUAL(mst_log_level_parse("debug"), MST_LOG_DEBUG);
	CU_ASSERT_EQUAL(mst_log_level_parse("loud"), -EINVAL);
}

static CU_TestInfo cases[] = {
	{ "before the log is opened a line has the program's name and the text",
	  before_the_log_is_opened_a_line_has_name_and_text },
	{ "then it has time and severity, too", then_it_has_time_and_severity_too },
	{ "times are UTC", times_are_utc },
	{ "days are the C library's", days_are_the_c_librarys },
	{ "levels above the chosen one are held back", level_holds_back },
	{ "text from outside cannot start a line, and errno survives",
	  foreign_text_stays_on_its_line },
	{ "a line that is too long is cut and still ends", long_line_is_cut },
	{ "lines of two threads do not mix", threads_do_not_mix },
	{ "where stderr takes no line, it is dropped, counted and said later",
	  who_logs_is_not_held_up },
	{ "a pipe that nobody will ever read ends no process", pipe_without_reader_kills_nobody },
	{ "levels have names", levels_have_names },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("log", cases);
}
