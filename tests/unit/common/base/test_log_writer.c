/* SPDX-License-Identifier: MIT */
/*
 * The promises of common/base/log_writer.h. Each case is a process of its own, a program as it
 * were, whose standard error is a pipe that is read when the case says so.
 */
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
#include "tests/ut.h"

#define MANY 5000u
#define LIMIT_MS 120000
/* How long exit() waits for the writer, and how long a process that aborts (LAST_MS, log.c). If a
 * host stands still for longer, lines may be lost. */
#define EXIT_MS 1000
#define ABORT_MS 100
/* What fits into the queue whatever the pipe holds. */
#define SOME 200u

struct program {
	pid_t pid;
	int stderr_fd; /* to be read */
	int sign_fd;   /* it is closed when the program has come so far */
	uint64_t began_ns, took_ms;
	char text[1 << 20];
};

static int sign_fd; /* in the program: its end */

static void start(struct program *p, void (*body)(void))
{
	int err[2], sign[2];

	CU_ASSERT_FATAL(pipe2(err, O_CLOEXEC) == 0 && pipe2(sign, O_CLOEXEC) == 0);
	(void)fcntl(err[1], F_SETPIPE_SZ, 4096);
	(void)fflush(stdout);
	p->began_ns = mst_now_ns();
	p->pid = fork();
	CU_ASSERT_FATAL(p->pid >= 0);
	if (p->pid == 0) {
		dup2(err[1], STDERR_FILENO);
		close(err[0]);
		close(err[1]);
		close(sign[0]);
		sign_fd = sign[1];
		mst_log_open("m", MST_LOG_INFO);
		if (mst_log_start() != 0)
			_exit(9);
		body();
		exit(0);
	}
	close(err[1]);
	close(sign[1]);
	p->stderr_fd = err[0];
	p->sign_fd = sign[0];
}

static void give_sign(void)
{
	close(sign_fd);
}

static void await_sign(const struct program *p)
{
	struct pollfd fd = { .fd = p->sign_fd, .events = POLLIN };

	CU_ASSERT_EQUAL(poll(&fd, 1, LIMIT_MS), 1);
}

/* To the end: nobody has it open for writing any more. */
static void read_all(struct program *p)
{
	size_t used = 0;
	ssize_t got = 1;

	while (got > 0 && used < sizeof(p->text) - 1) {
		got = read(p->stderr_fd, p->text + used, sizeof(p->text) - 1 - used);
		used += got > 0 ? (size_t)got : 0;
	}
	p->text[used] = '\0';
	p->took_ms = (mst_now_ns() - p->began_ns) / MST_MS;
}

/* Return: its status, as of waitpid(); one that does not end is killed. */
static int end(struct program *p)
{
	uint64_t until = mst_now_ns() + LIMIT_MS * MST_MS;
	int status = 0;

	while (waitpid(p->pid, &status, WNOHANG) == 0) {
		if (mst_now_ns() > until)
			kill(p->pid, SIGKILL);
		mst_sleep_ns(MST_MS);
	}
	close(p->stderr_fd);
	close(p->sign_fd);
	return status;
}

/* What the program has said of "line 0", "line 1", ...: each is there, or counted as dropped in its
 * place. */
struct account {
	unsigned written, dropped;
	const char *rest; /* what stands behind them */
};

static struct account account_of(const char *text)
{
	struct account a = { .rest = text };
	unsigned number;

	for (const char *end; (end = strchr(a.rest, '\n')) != NULL; a.rest = end + 1) {
		if (sscanf(a.rest, "%*s info m: line %u", &number) == 1 &&
		    number == a.written + a.dropped)
			a.written++;
		else if (sscanf(a.rest, "%*s warn m: %u line", &number) == 1)
			a.dropped += number;
		else
			break;
	}
	return a;
}

static unsigned occurrences(const char *text, const char *word)
{
	unsigned count = 0;

	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		count++;
	return count;
}

static void say(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		mst_info("line %u", i);
}

/* ---- order, and what is dropped ---- */

static void say_some(void)
{
	say(SOME);
	(void)mst_log_flush(LIMIT_MS * MST_MS); /* exit() waits for a moment only */
}

static void lines_come_in_order(void)
{
	static struct program p;

	start(&p, say_some);
	read_all(&p);
	CU_ASSERT_EQUAL(end(&p), 0);
	struct account a = account_of(p.text);
	CU_ASSERT_EQUAL(a.written, SOME);
	CU_ASSERT_EQUAL(a.dropped, 0);
	CU_ASSERT_STRING_EQUAL(a.rest, "");
}

static void say_more_than_it_holds(void)
{
	say(MANY);
	mst_error("why it failed");
	give_sign();
	(void)mst_log_flush(LIMIT_MS * MST_MS);
	mst_info("afterwards");
	(void)mst_log_flush(LIMIT_MS * MST_MS);
}

static void pipe_that_nobody_reads_holds_up_nobody(void)
{
	static struct program p;

	start(&p, say_more_than_it_holds);
	await_sign(&p);
	read_all(&p);
	CU_ASSERT_EQUAL(end(&p), 0);
	struct account a = account_of(p.text);
	CU_ASSERT(a.written > SOME && a.dropped > 0);
	CU_ASSERT_EQUAL(a.written + a.dropped, MANY);
	const char *error = strstr(a.rest, "error m: why it failed\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(error);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "info m: afterwards\n"));
}

static void drop_and_say_no_more(void)
{
	say(MANY);
	give_sign();
	(void)mst_log_flush(LIMIT_MS * MST_MS);
}

static void number_is_said_without_another_line(void)
{
	static struct program p;

	start(&p, drop_and_say_no_more);
	await_sign(&p);
	read_all(&p);
	CU_ASSERT_EQUAL(end(&p), 0);
	struct account a = account_of(p.text);
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
	give_sign();
	bool flushed = mst_log_flush(LIMIT_MS * MST_MS);
	exit(taken > SOME && waited && flushed && !mst_log_waits() ? 0 : 1);
}

static void what_is_offered_is_not_counted_as_dropped(void)
{
	static struct program p;

	start(&p, offer_more_than_it_holds);
	await_sign(&p);
	read_all(&p);
	CU_ASSERT_EQUAL(end(&p), 0);
	CU_ASSERT_EQUAL(strspn(p.text, ".\r"), strlen(p.text));
}

/* ---- ends ---- */

static void fill_and_exit(void)
{
	say(MANY);
	give_sign();
}

static void exit_does_not_wait_for_ever(void)
{
	static struct program p;

	start(&p, fill_and_exit);
	await_sign(&p);
	CU_ASSERT_EQUAL(end(&p), 0);
}

static void exit_waits_for_a_slow_reader(void)
{
	static struct program p;

	start(&p, fill_and_exit);
	await_sign(&p);
	mst_sleep_ns(50 * MST_MS);
	read_all(&p);
	CU_ASSERT_EQUAL(end(&p), 0);
	struct account a = account_of(p.text);
	CU_ASSERT(a.written + a.dropped == MANY || p.took_ms >= EXIT_MS);
}

static void say_and_abort(void)
{
	say(20);
	abort();
}

static void abort_loses_nothing(void)
{
	static struct program p;
	unsigned whole = 0;

	for (unsigned i = 0; i < 20; i++) {
		start(&p, say_and_abort);
		read_all(&p);
		int status = end(&p);
		CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		bool all = account_of(p.text).written == 20;
		CU_ASSERT(all || p.took_ms >= ABORT_MS);
		whole += all;
	}
	CU_ASSERT(whole > 0);
}

static void say_and_assert(void)
{
	say(20);
	MST_ASSERT(sign_fd < 0);
}

static void failed_assertion_has_the_last_word(void)
{
	static struct program p;
	unsigned whole = 0;

	for (unsigned i = 0; i < 20; i++) {
		start(&p, say_and_assert);
		read_all(&p);
		int status = end(&p);
		CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		struct account a = account_of(p.text);
		bool last = strstr(a.rest, "muster: assertion failed at ") == a.rest;
		CU_ASSERT((a.written == 20 && last) || p.took_ms >= ABORT_MS);
		whole += a.written == 20 && last;
	}
	CU_ASSERT(whole > 0);
}

static void fill_and_assert(void)
{
	say(MANY);
	give_sign();
	MST_ASSERT(sign_fd < 0);
}

static void failed_assertion_does_not_hang(void)
{
	static struct program p;

	start(&p, fill_and_assert);
	await_sign(&p);
	int status = end(&p);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void say_without_reader(void)
{
	struct pollfd fd = { .fd = STDERR_FILENO };

	give_sign();
	(void)poll(&fd, 1, LIMIT_MS); /* until the reader is gone */
	say(MANY);
	exit(mst_log_flush(LIMIT_MS * MST_MS) ? 0 : 1);
}

static void reader_that_is_gone_ends_nothing(void)
{
	static struct program p;

	start(&p, say_without_reader);
	await_sign(&p);
	close(p.stderr_fd);
	p.stderr_fd = dup(p.sign_fd); /* for end() to close */
	CU_ASSERT_EQUAL(end(&p), 0);
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
	static struct program p;

	start(&p, fork_and_log);
	CU_ASSERT_EQUAL(end(&p), 0);
}

static void fork_with_lines_that_wait(void)
{
	int status = -1;

	say(MANY);
	pid_t pid = fork();
	if (pid == 0)
		_exit(mst_log_waits() || !mst_log_flush(LIMIT_MS * MST_MS));
	(void)waitpid(pid, &status, 0);
	give_sign();
	(void)mst_log_flush(LIMIT_MS * MST_MS);
	exit(status != 0);
}

static void child_of_fork_has_no_lines_that_wait(void)
{
	static struct program p;

	start(&p, fork_with_lines_that_wait);
	await_sign(&p);
	read_all(&p);
	CU_ASSERT_EQUAL(end(&p), 0);
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
	static struct program p;

	start(&p, fork_and_write);
	read_all(&p);
	CU_ASSERT_EQUAL(end(&p), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(p.text, " info m: from the child\n"));
}

static CU_TestInfo cases[] = {
	{ "lines come in the order in which they were said", lines_come_in_order },
	{ "a pipe that nobody reads holds up nobody, and what was dropped is said in its place",
	  pipe_that_nobody_reads_holds_up_nobody },
	{ "that is said even if nothing else is", number_is_said_without_another_line },
	{ "text that is offered is taken or not, but never counted as dropped",
	  what_is_offered_is_not_counted_as_dropped },
	{ "exit() does not wait for ever", exit_does_not_wait_for_ever },
	{ "exit() waits for a reader who is slow", exit_waits_for_a_slow_reader },
	{ "abort() loses no line that can be written", abort_loses_nothing },
	{ "a failed assertion has the last word", failed_assertion_has_the_last_word },
	{ "a failed assertion does not hang", failed_assertion_does_not_hang },
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
