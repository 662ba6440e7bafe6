/* SPDX-License-Identifier: MIT */
/* The promises of common/base/log.h, read back through a pipe in place of stderr. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
	mst_log_open("musterd", MST_LOG_INFO);
	mst_info("rank %d: lease of %.1f s is over", 3, 5.0);
}

static void line_has_name_and_text(void)
{
	catch_stderr(say_one);
	CU_ASSERT_STRING_EQUAL(caught, "musterd: rank 3: lease of 5.0 s is over\n");
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
	catch_stderr(say_all_levels);
	CU_ASSERT_STRING_EQUAL(caught, "m: e\nm: w\n");
}

static void say_something_wild(void)
{
	mst_log_open("m", MST_LOG_INFO);
	errno = ENOTCONN;
	mst_warn("job \"%s\"", "a\nm: forged\033[2J");
	CU_ASSERT_EQUAL(errno, ENOTCONN);
}

static void foreign_text_stays_on_its_line(void)
{
	catch_stderr(say_something_wild);
	CU_ASSERT_STRING_EQUAL(caught, "m: job \"a?m: forged?[2J\"\n");
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

	catch_stderr(say_from_two_threads);
	for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n")) {
		lines[0] += strcmp(line, "m: aaaaaaaaaaaaaaaaaaaa") == 0;
		lines[1] += strcmp(line, "m: bbbbbbbbbbbbbbbbbbbb") == 0;
	}
	CU_ASSERT_EQUAL(lines[0], 100);
	CU_ASSERT_EQUAL(lines[1], 100);
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
	{ "a line has the program's name and the text", line_has_name_and_text },
	{ "levels above the chosen one are held back", level_holds_back },
	{ "text from outside cannot start a line, and errno survives",
	  foreign_text_stays_on_its_line },
	{ "a line that is too long is cut and still ends", long_line_is_cut },
	{ "lines of two threads do not mix", threads_do_not_mix },
	{ "levels have names", levels_have_names },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("log", cases);
}
