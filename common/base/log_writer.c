/* SPDX-License-Identifier: MIT */
/*
 * One mutex orders the threads that log. The writer takes it only to sleep, so a thread that logs
 * waits at most while a line is copied. What a process does that ends, log_end.h says.
 *
 * Standard error stays blocking. O_NONBLOCK belongs to the open file, which other processes share;
 * their own writes would be cut short. To call poll() before each write would not be enough,
 * either: another process may take the room in between, and a terminal that has room for one byte
 * blocks for the rest of a line.
 */
#include "common/base/log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/log_end.h"

/* How long exit() waits while standard error takes nothing. */
#define EXIT_MS 1000u

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work; /* the writer waits for it: there is something in the queue */
	pthread_cond_t idle; /* all is written */
	bool runs;
	_Atomic bool lost;
	struct mst_log_output output;
} writer = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const int fatal[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
#define FATALS (sizeof(fatal) / sizeof(fatal[0]))

/* ---- the thread ---- */

/* Writes all of @text, however long that takes. If standard error is closed, or is a file on a full
 * disk, the text is lost: the loss cannot be reported there. */
static void write_all(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t written = write(STDERR_FILENO, text, len);
		struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

		if (written > 0) {
			text += written;
			len -= (size_t)written;
			/* another process has set O_NONBLOCK */
		} else if (written < 0 && errno == EAGAIN) {
			(void)poll(&fd, 1, -1);
		} else if (written == 0 || errno != EINTR) {
			atomic_store_explicit(&writer.lost, true, memory_order_relaxed);
			return;
		}
	}
}

static void await_work(void)
{
	pthread_mutex_lock(&writer.lock);
	while (mst_log_queue_is_empty(&writer.output.queue)) {
		pthread_cond_broadcast(&writer.idle);
		pthread_cond_wait(&writer.work, &writer.lock);
	}
	pthread_mutex_unlock(&writer.lock);
}

/* Return: false: the process ends, and what is left is not this thread's to write. */
static bool write_next(void)
{
	char text[MST_LOG_LINE_MAX];

	if (!mst_log_turn_begin(&writer.output))
		return false;
	write_all(text, mst_log_output_take(&writer.output, text));
	return mst_log_turn_end(&writer.output);
}

static void *writer_main(void *unused)
{
	(void)unused;
	do
		await_work();
	while (write_next());
	return NULL;
}

/* ---- passing lines to the writer ---- */

static void put_locked(const char *text, size_t len, bool urgent)
{
	(void)mst_log_queue_put(&writer.output.queue, text, len, urgent);
	pthread_cond_signal(&writer.work);
}

static void put(enum mst_log_level level, const char *line, size_t len)
{
	pthread_mutex_lock(&writer.lock);
	put_locked(line, len, level == MST_LOG_ERROR);
	pthread_mutex_unlock(&writer.lock);
}

bool mst_log_offer(const char *text, size_t len)
{
	pthread_mutex_lock(&writer.lock);
	bool runs = writer.runs;
	bool takes = runs && mst_log_queue_has_room(&writer.output.queue, len, false);
	if (takes)
		put_locked(text, len, false);
	pthread_mutex_unlock(&writer.lock);
	if (!runs)
		(void)mst_log_write_now(text, len);
	return takes || !runs;
}

bool mst_log_waits(void)
{
	return mst_log_output_waits(&writer.output);
}

bool mst_log_lost(void)
{
	return atomic_load_explicit(&writer.lost, memory_order_relaxed);
}

bool mst_log_flush(uint64_t timeout_ns)
{
	uint64_t until_ns = mst_now_ns() + timeout_ns;
	struct timespec until = { .tv_sec = (time_t)(until_ns / MST_SECOND),
				  .tv_nsec = (long)(until_ns % MST_SECOND) };
	int rc = 0;

	pthread_mutex_lock(&writer.lock);
	while (writer.runs && mst_log_waits() && rc == 0)
		rc = pthread_cond_timedwait(&writer.idle, &writer.lock, &until);
	bool waits = writer.runs && mst_log_waits();
	pthread_mutex_unlock(&writer.lock);
	return !waits;
}

/* ---- ends of the process ---- */

/* From then on lines are written by the thread that logs, for other handlers of exit(). A line may
 * have been put just before. */
static void at_exit(void)
{
	bool takes = mst_log_output_end(&writer.output, NULL, 0, EXIT_MS);

	mst_log_divert(NULL);
	if (takes)
		(void)mst_log_output_end(&writer.output, NULL, 0, EXIT_MS);
}

static bool write_last(const char *line, size_t len)
{
	return mst_log_output_end(&writer.output, line, len, MST_LOG_LAST_MS);
}

/* Writes what waits, then the process ends as it would have without this handler. */
static void on_fatal(int signo)
{
	(void)mst_log_output_end(&writer.output, NULL, 0, MST_LOG_LAST_MS);
	(void)raise(signo);
}

/* A handler that is already set, for example by a sanitizer, stays. */
static void catch_fatal(void)
{
	struct sigaction last = { .sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND }, before;

	for (unsigned i = 0; i < FATALS; i++)
		if (sigaction(fatal[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
			(void)sigaction(fatal[i], &last, NULL);
}

static void lock_for_fork(void)
{
	pthread_mutex_lock(&writer.lock);
}

static void unlock_in_parent(void)
{
	pthread_mutex_unlock(&writer.lock);
}

/* The parent's thread writes what waits in the queue. The child has no such thread, so its copy is
 * dropped. */
static void reset_in_child(void)
{
	writer.runs = false;
	mst_log_output_clear(&writer.output);
	mst_log_divert(NULL);
	pthread_mutex_unlock(&writer.lock);
}

/* ---- its start ---- */

/* Signals are handled by other threads, except two kinds: those by which this thread itself
 * crashes, and SIGTTOU, which stops a process in the background that must not write to its terminal
 * (stty tostop). */
static int create(void)
{
	sigset_t none, before;
	pthread_t thread;

	(void)sigfillset(&none);
	(void)sigdelset(&none, SIGTTOU);
	for (unsigned i = 0; i < FATALS; i++)
		(void)sigdelset(&none, fatal[i]);
	(void)pthread_sigmask(SIG_SETMASK, &none, &before);
	int rc = pthread_create(&thread, NULL, writer_main, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		(void)pthread_detach(thread);
	return -rc;
}

/* Also made again in a child of fork(), since threads of the parent may have waited for them. */
static void init_conditions(void)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* the clock of mst_now_ns() */
	(void)pthread_cond_init(&writer.work, &attr);
	(void)pthread_cond_init(&writer.idle, &attr);
	(void)pthread_condattr_destroy(&attr);
}

int mst_log_start(void)
{
	static bool registered;
	int rc = 0;

	pthread_mutex_lock(&writer.lock);
	if (!writer.runs) {
		init_conditions();
		rc = create();
		writer.runs = rc == 0;
	}
	bool first = rc == 0 && !registered;
	registered |= first;
	pthread_mutex_unlock(&writer.lock);
	if (first) {
		(void)atexit(at_exit);
		(void)pthread_atfork(lock_for_fork, unlock_in_parent, reset_in_child);
		catch_fatal();
	}
	if (rc == 0) {
		mst_log_end_by(write_last);
		mst_log_divert(put);
	}
	return rc;
}
