/* SPDX-License-Identifier: MIT */
/*
 * A write() that standard error does not take is interrupted by a timer, again and again; each time
 * is a tick in which nothing was taken. To look with poll() before each write would not do: another
 * process may take the room in between, and a terminal that has room for one byte blocks for the
 * rest of a line. A thread that gets no processor gets no tick either, so what it misses of a busy
 * host is not taken for the reader's silence.
 *
 * While another thread writes a line, poll() tells which of the two is late. A pipe, a socket or a
 * terminal that has room blocks no write() that is under way (a terminal has no room as long as
 * one is). So the thread only needs a processor then.
 */
#include "common/base/log_end.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"

#define TICK_MS 10
/* How often to look again at a line that another thread is writing, while there is room for it. */
#define LATE_LOOKS 10000u

/* RESTS to WRITES and back: of the thread that writes. ASKED: it writes, and gives its turn away
 * then. ENDS: of a thread that ends the process, as long as that writes. OVER: of the next that
 * ends the process.
 *
 * Each change is a compare-and-swap with acquire and release: the thread that has the turn sees the
 * queue as the one before has left it. */
enum turn { RESTS, WRITES, ASKED, ENDS, OVER };

/* A fatal signal may interrupt either. */
static _Thread_local volatile sig_atomic_t writes_here, ends_here;

/* Relaxed, since the timer starts after they are set. */
static _Atomic(pthread_t) ending;
static _Atomic unsigned ticks;

static bool pass(struct mst_log_output *o, int from, int to)
{
	return atomic_compare_exchange_strong_explicit(&o->turn, &from, to, memory_order_acq_rel,
						       memory_order_relaxed);
}

/* ---- the thread that writes ---- */

bool mst_log_turn_begin(struct mst_log_output *o)
{
	writes_here = 1;
	if (pass(o, RESTS, WRITES))
		return true;
	writes_here = 0;
	return false;
}

bool mst_log_turn_end(struct mst_log_output *o)
{
	bool goes_on = pass(o, WRITES, RESTS) || !pass(o, ASKED, OVER);

	writes_here = 0;
	return goes_on;
}

/* ---- the queue ---- */

size_t mst_log_output_take(struct mst_log_output *o, char text[MST_LOG_LINE_MAX])
{
	uint64_t dropped;
	size_t len = mst_log_queue_take(&o->queue, text, &dropped);

	return len == 0 && dropped > 0 ? mst_log_compose_dropped(text, dropped) : len;
}

/* First the queue: a line is taken from it in somebody's turn only. */
bool mst_log_output_waits(const struct mst_log_output *o)
{
	if (!mst_log_queue_is_empty(&o->queue))
		return true;
	/* Acquire: pairs with pass(). */
	int turn = atomic_load_explicit(&o->turn, memory_order_acquire);
	return turn != RESTS && turn != OVER;
}

/* ---- taking the turn ---- */

struct looks {
	unsigned silent, late;
};

/* Another thread writes. Return: false: that has been waited for long enough, or no reader is
 * left. */
static bool wait_a_moment(struct looks *l, unsigned silent_ms)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct timespec moment = { .tv_nsec = (long)MST_MS };

	if (poll(&fd, 1, TICK_MS) == 0)
		return ++l->silent * TICK_MS < silent_ms;
	(void)nanosleep(&moment, NULL);
	return (fd.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0 && ++l->late < LATE_LOOKS;
}

/* Return: false: another thread has it and keeps it. */
static bool take_turn(struct mst_log_output *o, unsigned silent_ms)
{
	struct looks looks = { 0 };

	for (;;) {
		int turn = atomic_load_explicit(&o->turn, memory_order_relaxed);
		bool is_own = turn != ENDS && writes_here; /* the thread that writes has crashed */

		if (turn == RESTS || turn == OVER || is_own) {
			if (pass(o, turn, ENDS))
				return true;
		} else if (turn == WRITES) {
			(void)pass(o, WRITES, ASKED);
		} else if (!wait_a_moment(&looks, silent_ms)) {
			return false;
		}
	}
}

/* ---- the timer ---- */

/* The signal is the process's, so it may come to another thread. */
static void on_tick(int signo)
{
	pthread_t by = atomic_load_explicit(&ending, memory_order_relaxed);
	int errno_kept = errno;

	if (pthread_equal(by, pthread_self()))
		atomic_fetch_add_explicit(&ticks, 1, memory_order_relaxed);
	else
		(void)pthread_kill(by, signo);
	errno = errno_kept;
}

static void set_timer(long us)
{
	struct itimerval span = { .it_interval.tv_usec = us, .it_value.tv_usec = us };

	(void)setitimer(ITIMER_REAL, &span, NULL);
}

struct guard {
	sigset_t before;
	bool pends; /* SIGPIPE, already before */
};

static void guard_begin(struct guard *g)
{
	struct sigaction tick = { .sa_handler = on_tick }; /* without SA_RESTART */
	sigset_t set;

	atomic_store_explicit(&ending, pthread_self(), memory_order_relaxed);
	(void)sigaction(SIGALRM, &tick, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &set, &g->before);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGALRM);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	g->pends = sigpending(&set) != 0 || sigismember(&set, SIGPIPE) == 1;
	set_timer(TICK_MS * 1000L);
}

/* A reader of standard error that is gone ends no process, but one of standard output may. */
static void guard_end(const struct guard *g)
{
	struct timespec at_once = { 0 };
	sigset_t broken;

	set_timer(0);
	(void)sigemptyset(&broken);
	(void)sigaddset(&broken, SIGPIPE);
	if (!g->pends)
		(void)sigtimedwait(&broken, NULL, &at_once);
	(void)pthread_sigmask(SIG_SETMASK, &g->before, NULL);
}

/* ---- the last lines ---- */

/* Return: false: standard error takes nothing, or is closed. */
static bool write_guarded(const char *text, size_t len, unsigned silent_ms)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

	atomic_store_explicit(&ticks, 0, memory_order_relaxed);
	while (len > 0) {
		ssize_t written = write(STDERR_FILENO, text, len);

		if (written > 0) {
			text += written;
			len -= (size_t)written;
			atomic_store_explicit(&ticks, 0, memory_order_relaxed);
		} else if (written < 0 && errno == EAGAIN) {
			(void)poll(&fd, 1, TICK_MS); /* another process has set O_NONBLOCK */
		} else if (written == 0 || errno != EINTR) {
			return false;
		}
		if (atomic_load_explicit(&ticks, memory_order_relaxed) * TICK_MS >= silent_ms)
			return false;
	}
	return true;
}

static bool write_rest(struct mst_log_output *o, const char *line, size_t len, unsigned silent_ms)
{
	char text[MST_LOG_LINE_MAX];
	struct guard guard;
	bool takes = true;

	guard_begin(&guard);
	for (size_t next; takes && (next = mst_log_output_take(o, text)) > 0;)
		takes = write_guarded(text, next, silent_ms);
	if (len > 0)
		takes = write_guarded(line, len, silent_ms);
	guard_end(&guard);
	return takes;
}

static bool end_here(struct mst_log_output *o, const char *line, size_t len, unsigned silent_ms)
{
	if (!take_turn(o, silent_ms))
		return false;
	bool written = write_rest(o, line, len, silent_ms);
	(void)pass(o, ENDS, OVER);
	return written;
}

bool mst_log_output_end(struct mst_log_output *o, const char *line, size_t len, unsigned silent_ms)
{
	int errno_kept = errno;
	bool is_nested = ends_here, written = true;

	if (len > 0 || mst_log_output_waits(o)) {
		ends_here = 1;
		written = !is_nested && end_here(o, line, len, silent_ms);
		ends_here = is_nested;
	}
	errno = errno_kept;
	return written;
}

void mst_log_output_clear(struct mst_log_output *o)
{
	mst_log_queue_clear(&o->queue);
	/* Relaxed: the child has one thread. */
	atomic_store_explicit(&o->turn, RESTS, memory_order_relaxed);
}
