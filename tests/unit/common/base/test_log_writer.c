/* SPDX-License-Identifier: MIT */
/* The promises of common/base/log_writer.h, without the end of the process (test_log_end.c). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/log_writer.h"
#include "tests/unit/common/base/log_case.h"
#include "tests/ut.h"

static unsigned occurrences(const char *text, const char *word)
{
	unsigned count = 0;

	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		count++;
	return count;
}

/* ---- order, and what is dropped ---- */

static void say_some(void)
{
	log_say(SOME);
	(void)mst_log_flush(LIMIT_MS * MST_MS); /* exit() waits for a moment only */
}

static void lines_come_in_order(void)
{
	static struct log_program p;

	log_program_start(&p, say_some);
	log_program_read(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
	struct log_account a = log_account_of(p.text);
	CU_ASSERT_EQUAL(a.written, SOME);
	CU_ASSERT_EQUAL(a.dropped, 0);
	CU_ASSERT_STRING_EQUAL(a.rest, "");
}

static void say_more_than_it_holds(void)
{
	log_say(MANY);
	mst_error("why it failed");
	log_program_sign();
	(void)mst_log_flush(LIMIT_MS * MST_MS);
	mst_info("afterwards");
	(void)mst_log_flush(LIMIT_MS * MST_MS);
}

static void pipe_that_nobody_reads_holds_up_nobody(void)
{
	static struct log_program p;

	log_program_start(&p, say_more_than_it_holds);
	log_program_await_sign(&p);
	log_program_read(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
	struct log_account a = log_account_of(p.text);
	CU_ASSERT(a.written > SOME && a.dropped > 0);
	CU_ASSERT_EQUAL(a.written + a.dropped, MANY);
	const char *error = strstr(a.rest, "error m: why it failed\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(error);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "info m: afterwards\n"));
}

static void drop_and_say_no_more(void)
{
	log_say(MANY);
	log_program_sign();
	(void)mst_log_flush(LIMIT_MS * MST_MS);
}

static void number_is_said_without_another_line(void)
{
	static struct log_program p;

	log_program_start(&p, drop_and_say_no_more);
	log_program_await_sign(&p);
	log_program_read(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
	struct log_account a = log_account_of(p.text);
	CU_ASSERT(a.dropped > 0);
	CU_ASSERT_EQUAL(a.written + a.dropped, MANY);
}

/* ---- text that is offered ---- */

static void offer_more_than_it_holds(void)
{
	static const char piece[] = "................................................\r";
	unsigned taken = 0;

	while (mst_log_offer(piece, sizeof(piece) - 1))
		taken++;
	bool waited = mst_log_waits() && !mst_log_flush(MST_MS);
	log_program_sign();
	bool flushed = mst_log_flush(LIMIT_MS * MST_MS);
	exit(taken > SOME && waited && flushed && !mst_log_waits() ? 0 : 1);
}

static void what_is_offered_is_not_counted_as_dropped(void)
{
	static struct log_program p;

	log_program_start(&p, offer_more_than_it_holds);
	log_program_await_sign(&p);
	log_program_read(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
	CU_ASSERT_EQUAL(strspn(p.text, ".\r"), strlen(p.text));
}

static void say_without_reader(void)
{
	log_program_sign();
	log_program_await_no_reader();
	log_say(MANY);
	exit(mst_log_flush(LIMIT_MS * MST_MS) ? 0 : 1);
}

static void reader_that_is_gone_ends_nothing(void)
{
	static struct log_program p;

	log_program_start(&p, say_without_reader);
	log_program_await_sign(&p);
	log_program_leave(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
}

/* ---- fork() ---- */

static _Atomic bool forks_go_on;

static void *say_all_the_while(void *unused)
{
	(void)unused;
	while (atomic_load(&forks_go_on))
		mst_info("noise");
	return NULL;
}

/* With threads that log all the while, so that some fork finds the queue locked. */
static void fork_and_log(void)
{
	pthread_t noise[2];
	int failed = 0;

	atomic_store(&forks_go_on, true);
	for (unsigned i = 0; i < 2; i++)
		failed += pthread_create(&noise[i], NULL, say_all_the_while, NULL);
	for (unsigned i = 0; i < 200 && failed == 0; i++) {
		int status = -1;
		pid_t pid = fork();
		if (pid == 0) {
			mst_info("child");
			_exit(0);
		}
		failed += pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
	}
	atomic_store(&forks_go_on, false);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(noise[i], NULL);
	exit(failed);
}

static void child_of_fork_does_not_hang(void)
{
	static struct log_program p;

	log_program_start(&p, fork_and_log);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
}

static void fork_with_lines_that_wait(void)
{
	int status = -1;

	log_say(MANY);
	pid_t pid = fork();
	if (pid == 0)
		_exit(mst_log_waits() || !mst_log_flush(LIMIT_MS * MST_MS));
	(void)waitpid(pid, &status, 0);
	log_program_sign();
	(void)mst_log_flush(LIMIT_MS * MST_MS);
	exit(status != 0);
}

static void child_of_fork_has_no_lines_that_wait(void)
{
	static struct log_program p;

	log_program_start(&p, fork_with_lines_that_wait);
	log_program_await_sign(&p);
	log_program_read(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
	CU_ASSERT_EQUAL(occurrences(p.text, " line 0\n"), 1);
	CU_ASSERT_EQUAL(occurrences(p.text, " line 300\n"), 1);
}

static void fork_and_write(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		mst_info("from the child");
		_exit(0);
	}
	(void)waitpid(pid, &status, 0);
	exit(status != 0);
}

static void child_of_fork_writes_itself(void)
{
	static struct log_program p;

	log_program_start(&p, fork_and_write);
	log_program_read(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(p.text, " info m: from the child\n"));
}

static CU_TestInfo cases[] = {
	{ "lines come in the order in which they were said", lines_come_in_order },
	{ "a pipe that nobody reads holds up nobody, and what was dropped is said in its place",
	  pipe_that_nobody_reads_holds_up_nobody },
	{ "that is said even if nothing else is", number_is_said_without_another_line },
	{ "text that is offered is taken or not, but never counted as dropped",
	  what_is_offered_is_not_counted_as_dropped },
	{ "a reader that is gone ends no process, and nothing waits for it",
	  reader_that_is_gone_ends_nothing },
	{ "a child of fork() does not hang", child_of_fork_does_not_hang },
	{ "in a child of fork() none of its parent's lines wait",
	  child_of_fork_has_no_lines_that_wait },
	{ "a child of fork() writes its lines itself", child_of_fork_writes_itself },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("log_writer", cases);
}
