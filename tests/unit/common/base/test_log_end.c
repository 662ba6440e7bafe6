/* SPDX-License-Identifier: MIT */
/*
 * The promises of common/base/log_end.h: what a program has said is on standard error when it has
 * ended, also if its writing thread is late, or gets no processor at all.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/log_writer.h"
#include "tests/unit/common/base/log_case.h"
#include "tests/ut.h"

/* Longer than exit() waits while standard error takes nothing; and than a process that aborts. */
#define LATE_AT_EXIT_MS 1500
#define LATE_AT_ABORT_MS 300

/* ---- a host that gives the writing thread no processor ---- */

/* The program whose writing thread is late. */
static struct {
	bool never_starts;
	/* What its next write() does, before or after it has written: */
	void (*before)(void), (*after)(void);
	bool never_sleeps; /* others, to look more often */
	_Atomic bool in_write;
} host;
static _Thread_local bool is_writer;
static void *(*writer_body)(void *arg);

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *arg),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *arg),
			  void *arg);
ssize_t __real_write(int fd, const void *src, size_t bytes);
ssize_t __wrap_write(int fd, const void *src, size_t bytes);
int __real_nanosleep(const struct timespec *span, struct timespec *left);
int __wrap_nanosleep(const struct timespec *span, struct timespec *left);

static void stand_still(void)
{
	for (;;)
		(void)poll(NULL, 0, -1);
}

static void *writer_thread(void *arg)
{
	is_writer = true;
	if (host.never_starts)
		stand_still();
	return writer_body(arg);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *arg),
			  void *arg)
{
	if (writer_body != NULL)
		return __real_pthread_create(thread, attr, body, arg);
	writer_body = body;
	return __real_pthread_create(thread, attr, writer_thread, arg);
}

ssize_t __wrap_write(int fd, const void *src, size_t bytes)
{
	void (*before)(void) = is_writer ? host.before : NULL;
	void (*after)(void) = is_writer ? host.after : NULL;

	if (is_writer) {
		host.before = host.after = NULL;
		atomic_store(&host.in_write, true);
	}
	if (before != NULL)
		before();
	ssize_t written = __real_write(fd, src, bytes);
	if (after != NULL)
		after();
	return written;
}

int __wrap_nanosleep(const struct timespec *span, struct timespec *left)
{
	return host.never_sleeps && !is_writer ? 0 : __real_nanosleep(span, left);
}

/* The writing thread is in the middle of a line. */
static void await_write(void)
{
	while (!atomic_load(&host.in_write))
		mst_sleep_ns(MST_MS);
}

/* ---- ends ---- */

static void fill_and_exit(void)
{
	log_say(MANY);
	log_program_sign();
}

static void exit_does_not_wait_for_ever(void)
{
	static struct log_program p;

	log_program_start(&p, fill_and_exit);
	log_program_await_sign(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
}

static void exit_waits_for_a_slow_reader(void)
{
	static struct log_program p;

	log_program_start(&p, fill_and_exit);
	log_program_await_sign(&p);
	mst_sleep_ns(50 * MST_MS);
	log_program_read(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
	struct log_account a = log_account_of(p.text);
	CU_ASSERT(a.written + a.dropped == MANY || p.took_ms >= EXIT_MS);
}

static void say_and_abort(void)
{
	log_say(20);
	abort();
}

static void abort_loses_nothing(void)
{
	static struct log_program p;
	unsigned whole = 0;

	for (unsigned i = 0; i < 20; i++) {
		log_program_start_roomy(&p, say_and_abort);
		log_program_read(&p);
		int status = log_program_end(&p);
		CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		whole += log_account_of(p.text).written == 20;
	}
	CU_ASSERT_EQUAL(whole, 20);
}

static void say_and_assert(void)
{
	log_say(20);
	MST_ASSERT(getpid() < 0);
}

static bool said_and_asserted(const char *text, unsigned count)
{
	struct log_account a = log_account_of(text);

	return a.written == count && strstr(a.rest, "muster: assertion failed at ") == a.rest &&
	       strchr(a.rest, '\n')[1] == '\0';
}

static void failed_assertion_has_the_last_word(void)
{
	static struct log_program p;
	unsigned whole = 0;

	for (unsigned i = 0; i < 20; i++) {
		log_program_start_roomy(&p, say_and_assert);
		log_program_read(&p);
		int status = log_program_end(&p);
		CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		whole += said_and_asserted(p.text, 20);
	}
	CU_ASSERT_EQUAL(whole, 20);
}

static void fill_and_assert(void)
{
	log_say(MANY);
	log_program_sign();
	MST_ASSERT(getpid() < 0);
}

static void failed_assertion_does_not_hang(void)
{
	static struct log_program p;

	log_program_start(&p, fill_and_assert);
	log_program_await_sign(&p);
	int status = log_program_end(&p);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* A reader that takes a page at a time, for longer in all than exit() waits for one that takes
 * nothing. */
static void exit_waits_for_a_reader_who_goes_on(void)
{
	static struct log_program p;
	uint64_t longest_ns = 0, last_ns;
	size_t used = 0;

	log_program_start(&p, fill_and_exit);
	log_program_await_sign(&p);
	last_ns = mst_now_ns();
	for (ssize_t got = 1; got > 0 && used < sizeof(p.text) - 4097;) {
		mst_sleep_ns(150 * MST_MS);
		got = read(p.stderr_fd, p.text + used, 4096);
		used += got > 0 ? (size_t)got : 0;
		uint64_t now_ns = mst_now_ns();
		longest_ns = now_ns - last_ns > longest_ns ? now_ns - last_ns : longest_ns;
		last_ns = now_ns;
	}
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
	struct log_account a = log_account_of(p.text);
	CU_ASSERT(a.written + a.dropped == MANY || longest_ns >= EXIT_MS * MST_MS / 2);
	CU_ASSERT(a.dropped > 0);
}

/* ---- ends on a busy host ---- */

/* Lines 0 to @count - 1 once each, and nothing else. */
static void said_all(const struct log_program *p, unsigned count)
{
	struct log_account a = log_account_of(p->text);

	CU_ASSERT_EQUAL(a.written, count);
	CU_ASSERT_EQUAL(a.dropped, 0);
	CU_ASSERT_STRING_EQUAL(a.rest, "");
}

static void ends_with(void (*body)(void), int signo, unsigned count)
{
	static struct log_program p;

	log_program_start_roomy(&p, body);
	log_program_read(&p);
	int status = log_program_end(&p);
	if (signo == 0)
		CU_ASSERT_EQUAL(status, 0);
	if (signo != 0)
		CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == signo);
	said_all(&p, count);
}

static void say_and_exit(void)
{
	log_say(SOME);
}

static void exit_needs_no_other_thread(void)
{
	host.never_starts = true;
	ends_with(say_and_exit, 0, SOME);
	host.never_starts = false;
}

static void abort_needs_no_other_thread(void)
{
	host.never_starts = true;
	ends_with(say_and_abort, SIGABRT, 20);
	host.never_starts = false;
}

static void failed_assertion_needs_no_other_thread(void)
{
	static struct log_program p;

	host.never_starts = true;
	log_program_start_roomy(&p, say_and_assert);
	host.never_starts = false;
	log_program_read(&p);
	int status = log_program_end(&p);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CU_ASSERT(said_and_asserted(p.text, 20));
}

/* What finds no room is counted by the ending thread, too. */
static void number_needs_no_other_thread(void)
{
	static struct log_program p;

	host.never_starts = true;
	log_program_start(&p, fill_and_exit);
	host.never_starts = false;
	log_program_read(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
	struct log_account a = log_account_of(p.text);
	CU_ASSERT(a.dropped > 0);
	CU_ASSERT(a.written + a.dropped == MANY || p.took_ms >= EXIT_MS);
}

static void exit_without_a_writer_does_not_wait_for_ever(void)
{
	static struct log_program p;

	host.never_starts = true;
	log_program_start(&p, fill_and_exit);
	host.never_starts = false;
	log_program_await_sign(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
}

static void assertion_without_a_writer_does_not_hang(void)
{
	static struct log_program p;

	host.never_starts = true;
	log_program_start(&p, fill_and_assert);
	host.never_starts = false;
	log_program_await_sign(&p);
	int status = log_program_end(&p);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void exit_without_reader(void)
{
	log_program_sign();
	log_program_await_no_reader();
	log_say(SOME);
}

static void reader_that_is_gone_kills_no_exit(void)
{
	static struct log_program p;

	host.never_starts = true;
	log_program_start(&p, exit_without_reader);
	host.never_starts = false;
	log_program_await_sign(&p);
	log_program_leave(&p);
	CU_ASSERT_EQUAL(log_program_end(&p), 0);
}

static void pause_at_exit(void)
{
	mst_sleep_ns(LATE_AT_EXIT_MS * MST_MS);
}

static void pause_at_abort(void)
{
	mst_sleep_ns(LATE_AT_ABORT_MS * MST_MS);
}

static void exit_amid_a_line(void)
{
	log_say(SOME);
	await_write();
}

static void abort_amid_a_line(void)
{
	log_say(SOME);
	await_write();
	abort();
}

/* Whether the line has been written already cannot be told from outside. */
static void line_that_is_being_written_is_written_once(void)
{
	host.before = pause_at_exit;
	ends_with(exit_amid_a_line, 0, SOME);
	host.before = NULL;
	host.after = pause_at_exit;
	ends_with(exit_amid_a_line, 0, SOME);
	host.after = pause_at_abort;
	ends_with(abort_amid_a_line, SIGABRT, SOME);
	host.after = NULL;
}

static void say_one_and_exit_amid_it(void)
{
	log_say(1);
	await_write();
}

/* Then nothing is left in the queue. */
static void last_line_is_waited_for(void)
{
	host.before = pause_at_abort;
	ends_with(say_one_and_exit_amid_it, 0, 1);
	host.before = NULL;
}

static void exit_does_not_wait_for_ever_for_a_line(void)
{
	host.after = stand_still;
	host.never_sleeps = true;
	ends_with(exit_amid_a_line, 0, 1);
	host.after = NULL;
	host.never_sleeps = false;
}

static _Atomic bool all_is_said;

/* SIGABRT, since a sanitizer keeps the others for itself. */
static void crash(void)
{
	while (!atomic_load(&all_is_said))
		mst_sleep_ns(MST_MS);
	abort();
}

static void say_and_wait(void)
{
	log_say(20);
	atomic_store(&all_is_said, true);
	stand_still();
}

/* After its first line, which is not written again. */
static void crash_of_the_writer_loses_nothing(void)
{
	host.after = crash;
	ends_with(say_and_wait, SIGABRT, 20);
	host.after = NULL;
}

static bool speaks_late; /* the program */

static void say_at_the_very_end(void)
{
	if (speaks_late)
		mst_info("line %u", SOME);
}

/* It was registered before the log has started, so it comes after the log's end. */
static void late_handler_of_exit_is_heard(void)
{
	host.never_starts = speaks_late = true;
	ends_with(say_and_exit, 0, SOME + 1);
	host.never_starts = speaks_late = false;
}

static CU_TestInfo cases[] = {
	{ "exit() does not wait for ever", exit_does_not_wait_for_ever },
	{ "exit() waits for a reader who is slow", exit_waits_for_a_slow_reader },
	{ "exit() waits for a reader as long as that takes something",
	  exit_waits_for_a_reader_who_goes_on },
	{ "abort() loses no line that can be written", abort_loses_nothing },
	{ "a failed assertion has the last word", failed_assertion_has_the_last_word },
	{ "a failed assertion does not hang", failed_assertion_does_not_hang },
	{ "exit() writes what waits though the writing thread never starts",
	  exit_needs_no_other_thread },
	{ "so does abort()", abort_needs_no_other_thread },
	{ "so does a failed assertion", failed_assertion_needs_no_other_thread },
	{ "so it is with the number of lines that were dropped", number_needs_no_other_thread },
	{ "exit() does not wait for ever then, either",
	  exit_without_a_writer_does_not_wait_for_ever },
	{ "nor does a failed assertion", assertion_without_a_writer_does_not_hang },
	{ "nor does a reader that is gone kill the process", reader_that_is_gone_kills_no_exit },
	{ "a line that the writing thread has begun is waited for, and written once",
	  line_that_is_being_written_is_written_once },
	{ "so is the last one", last_line_is_waited_for },
	{ "but not for ever", exit_does_not_wait_for_ever_for_a_line },
	{ "a writing thread that crashes loses no line, and repeats none",
	  crash_of_the_writer_loses_nothing },
	{ "a handler that exit() calls later is heard", late_handler_of_exit_is_heard },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	if (atexit(say_at_the_very_end) != 0)
		return 1;
	return ut_main("log_end", cases);
}
