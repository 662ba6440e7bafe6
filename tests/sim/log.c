/* SPDX-License-Identifier: MIT */
#include "tests/sim/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/log_writer.h"
#include "common/base/text.h"
#include "tests/sim/observer.h"

#define NAME "musterd"
/* The pipe holds so many pieces, however long they are: what happens in a world must not depend on
 * how long the numbers in a line are. */
#define PIPE_PIECES 32u
#define LINES_MAX 8192u
/* A reader that does not stand still reads so long after a write. */
#define READ_NS_MIN 1000u
#define READ_NS_MAX 100000u
/* A thread that waits for a lock looks so often whether it is free. */
#define LOOK_NS 100000u
/* exit() gives the writer so long. */
#define EXIT_NS MST_SECOND

/* What mst_log_start() has given to its thread. There is one such log in this program, which serves
 * one world after the other. */
static void *(*writer_main)(void *arg);
static bool starts;

/* What one write has put into the pipe: a line, without its line feed. */
struct piece {
	char text[MST_LOG_LINE_MAX];
};

static struct {
	struct sim_process *of;
	jmp_buf end;         /* of the writer's fiber */
	bool over, complete; /* complete: all lines were written before the process ended */
	bool read_is_due;
	struct sim_wakeup work; /* there is a line to write */
	struct sim_wakeup room; /* there is room in the pipe */
	uint64_t blocked_until;
	uint32_t said; /* lines */
	uint32_t read; /* of them; with those of which the log says that they were dropped */
	uint64_t line[LINES_MAX]; /* hashes of what was said */
	uint32_t used;            /* pieces in the pipe */
	struct piece pipe[PIPE_PIECES];
} world_log;

void __real_mst_log(enum mst_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *arg),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *arg),
			  void *arg);
int __real_pthread_detach(pthread_t thread);
int __wrap_pthread_detach(pthread_t thread);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);
ssize_t __real_write(int fd, const void *src, size_t bytes);
ssize_t __wrap_write(int fd, const void *src, size_t bytes);

static bool runs_here(void)
{
	return world_log.of != NULL && sim_self() == world_log.of;
}

/* ---- what is said, and what is read ---- */

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0;

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

void log_line(enum mst_log_level level, char *line)
{
	if (!runs_here() || level > MST_LOG_INFO)
		return;
	MST_ASSERT(world_log.said < LINES_MAX);
	mst_text_clean(line);
	world_log.line[world_log.said++] = hash_of(line);
	uint64_t began_ns = sim_now();
	__real_mst_log(level, "%s", line);
	if (sim_now() != began_ns && !world_log.of->dead)
		obs_violated("%s has waited %.3f s for whoever reads its log", world_log.of->name,
			     (double)(sim_now() - began_ns) / (double)MST_SECOND);
}

static void read_line(const char *line)
{
	const char *text = strstr(line, NAME ": ");
	uint32_t dropped = 0;

	text = text != NULL ? text + sizeof(NAME ": ") - 1 : line;
	bool is_next = world_log.read < world_log.said &&
		       world_log.line[world_log.read] == hash_of(text);
	if (!is_next && sscanf(text, "%" SCNu32 " line", &dropped) == 1)
		sim_say("the log of %s: %s", world_log.of->name, text);
	if (!is_next && (dropped == 0 || dropped > world_log.said - world_log.read))
		obs_violated("the log of %s says \"%s\" where line %" PRIu32 " of %" PRIu32
			     " must be, or how many are missing",
			     world_log.of->name, text, world_log.read + 1, world_log.said);
	world_log.read += is_next ? 1 : dropped;
}

static void check_complete(void)
{
	if (world_log.over && world_log.complete && world_log.used == 0 &&
	    world_log.read != world_log.said)
		obs_violated("of %" PRIu32 " lines of %s's log %" PRIu32
			     " were neither read nor counted as dropped",
			     world_log.said, world_log.of->name, world_log.said - world_log.read);
}

static void read_all(void *ctx, uint64_t arg)
{
	if (sim_now() < world_log.blocked_until) {
		sim_after(world_log.blocked_until - sim_now(), read_all, ctx, arg);
		return;
	}
	for (uint32_t i = 0; i < world_log.used; i++)
		read_line(world_log.pipe[i].text);
	world_log.used = 0;
	world_log.read_is_due = false;
	sim_ring(&world_log.room);
	check_complete();
}

/* ---- its life ---- */

static void writer_fiber(void *unused)
{
	if (setjmp(world_log.end) == 0)
		(void)writer_main(unused);
}

void log_begin(struct sim_process *of)
{
	memset(&world_log, 0, sizeof(world_log));
	if (of == NULL)
		return;
	if (writer_main == NULL) {
		starts = true;
		int rc = mst_log_start();
		starts = false;
		MST_ASSERT(rc == 0 && writer_main != NULL);
	}
	mst_log_open(NAME, MST_LOG_INFO);
	world_log.of = of;
	sim_spawn(of, writer_fiber, NULL);
}

void log_end(struct sim_process *p)
{
	if (world_log.of != p)
		return;
	world_log.complete = mst_log_flush(EXIT_NS) && !p->dead;
	world_log.over = true;
	sim_ring(&world_log.work);
	sim_ring(&world_log.room);
	check_complete();
}

void log_block(uint64_t span_ns)
{
	sim_say("whoever reads the log of %s stands still for %.3f s", world_log.of->name,
		(double)span_ns / (double)MST_SECOND);
	world_log.blocked_until = sim_now() + span_ns;
}

/* ---- what the log takes from the operating system ---- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *arg),
			  void *arg)
{
	if (!starts)
		return __real_pthread_create(thread, attr, body, arg);
	writer_main = body;
	return 0;
}

int __wrap_pthread_detach(pthread_t thread)
{
	return starts ? 0 : __real_pthread_detach(thread);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	if (!runs_here())
		return __real_pthread_mutex_lock(lock);
	while (pthread_mutex_trylock(lock) != 0)
		sim_sleep(LOOK_NS);
	return 0;
}

/* A wakeup wakes one sleeper. Others look again after a while, as any waiter for a condition
 * may. */
static void wait_for(struct sim_wakeup *wakeup)
{
	if (wakeup->sleeper == NULL)
		(void)sim_wait(wakeup, MST_SECOND);
	else
		sim_sleep(LOOK_NS);
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	if (!runs_here())
		return __real_pthread_cond_signal(cond);
	sim_ring(&world_log.work);
	return 0;
}

/* The writer's loop has no end. When its process has ended and nothing is left to be written, its
 * fiber ends here. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	if (!runs_here())
		return __real_pthread_cond_wait(cond, lock);
	pthread_mutex_unlock(lock);
	if (world_log.over)
		longjmp(world_log.end, 1);
	wait_for(&world_log.work);
	return __wrap_pthread_mutex_lock(lock);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	uint64_t until_ns = (uint64_t)until->tv_sec * MST_SECOND + (uint64_t)until->tv_nsec;

	if (!runs_here())
		return __real_pthread_cond_timedwait(cond, lock, until);
	if (mst_now_ns() >= until_ns)
		return ETIMEDOUT;
	pthread_mutex_unlock(lock);
	sim_sleep(MST_MS);
	return __wrap_pthread_mutex_lock(lock);
}

/* Nobody reads what a process writes that has ended. */
ssize_t __wrap_write(int fd, const void *src, size_t bytes)
{
	if (fd != STDERR_FILENO || !runs_here())
		return __real_write(fd, src, bytes);
	while (world_log.used == PIPE_PIECES && !world_log.over && !world_log.of->dead)
		wait_for(&world_log.room);
	if (world_log.over || world_log.of->dead) {
		errno = EPIPE;
		return -1;
	}
	MST_ASSERT(bytes > 0 && bytes <= MST_LOG_LINE_MAX);
	(void)snprintf(world_log.pipe[world_log.used].text, sizeof(world_log.pipe[0].text), "%.*s",
		       (int)bytes - 1, (const char *)src);
	world_log.used++;
	if (!world_log.read_is_due)
		sim_after(sim_between(READ_NS_MIN, READ_NS_MAX), read_all, NULL, 0);
	world_log.read_is_due = true;
	return (ssize_t)bytes;
}
