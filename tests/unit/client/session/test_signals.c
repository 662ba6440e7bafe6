/* SPDX-License-Identifier: MIT */
/* Signals while a worker waits: a stop is none of the program's business, a caught signal is. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

#define NAP_NS (60 * MST_MS)

static void on_signal(int number)
{
	(void)number;
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(number, &action, NULL);
}

/* ---- a process that stops this one for a while once it is told to ---- */

struct stopper {
	pid_t pid;
	int go; /* a byte: the wait begins */
};

static void stop_parent(int go)
{
	pid_t parent = getppid();
	char byte;

	if (read(go, &byte, 1) == 1) {
		mst_sleep_ns(NAP_NS);
		kill(parent, SIGSTOP);
		mst_sleep_ns(NAP_NS);
		kill(parent, SIGCONT);
	}
	_exit(0);
}

static struct stopper stopper_new(void)
{
	struct stopper s = { 0 };
	int ends[2];

	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	s.pid = fork();
	if (s.pid == 0) {
		close(ends[1]);
		stop_parent(ends[0]);
	}
	close(ends[0]);
	s.go = ends[1];
	return s;
}

/* Waits, and is stopped meanwhile. */
static int wait_stopped(const struct stopper *s)
{
	CU_ASSERT_EQUAL(write(s->go, "", 1), 1);
	int rc = muster_wait(client_handle, &client_outcome);
	close(s->go);
	waitpid(s->pid, NULL, 0);
	return rc;
}

/* ---- cases ---- */

static bool begin_only(struct fake_leader *f)
{
	return fake_begin(f) && fake_stay(f);
}

static void a_wait_goes_on_after_a_stop(void)
{
	struct stopper s = stopper_new();

	client_begin(begin_only);
	CU_ASSERT_EQUAL(wait_stopped(&s), -ETIMEDOUT);
	CU_ASSERT(client_took_ms() >= CLIENT_SHORT_MS);
	client_close();
}

static void so_it_does_where_a_handler_could_have_run(void)
{
	struct stopper s = stopper_new();

	handle(SIGUSR1, on_signal);
	client_begin(begin_only);
	CU_ASSERT_EQUAL(wait_stopped(&s), -ETIMEDOUT);
	CU_ASSERT(client_took_ms() >= CLIENT_SHORT_MS);
	client_close();
	handle(SIGUSR1, SIG_DFL);
}

static _Atomic bool waits;

/* Does the main thread sleep? */
static bool is_asleep(void)
{
	char stat[1024] = "";
	FILE *file = fopen("/proc/self/stat", "re");

	if (file == NULL)
		return false;
	(void)!fread(stat, 1, sizeof(stat) - 1, file);
	(void)fclose(file);
	const char *name_end = strrchr(stat, ')');
	return name_end != NULL && strncmp(name_end, ") S", 3) == 0;
}

/* At several looks in turn, so that it is no short sleep on the way. */
static void *interrupt(void *waiter)
{
	for (int looks = 0; looks < 5; mst_sleep_ns(2 * MST_MS))
		looks = atomic_load(&waits) && is_asleep() ? looks + 1 : 0;
	pthread_kill(*(pthread_t *)waiter, SIGINT);
	return NULL;
}

/* The signal comes while muster_wait() sleeps. */
static void is_interrupted(void)
{
	pthread_t self = pthread_self(), thread;

	client_begin(begin_only);
	client_handle->wait_ns = CLIENT_LONG_MS * MST_MS;
	atomic_store(&waits, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, interrupt, &self), 0);
	atomic_store(&waits, true);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -EINTR);
	CU_ASSERT(client_says(muster_error(client_handle), "signal"));
	pthread_join(thread, NULL);
	client_handle->wait_ns = CLIENT_SHORT_MS * MST_MS;
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	client_close();
}

static void a_caught_signal_ends_it(void)
{
	handle(SIGINT, on_signal);
	is_interrupted();
	handle(SIGINT, SIG_DFL);
}

static void so_does_one_that_is_caught_once(void)
{
	struct sigaction once = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &once, NULL);
	is_interrupted();
}

static void take_leave(int number)
{
	handle(number, SIG_DFL);
}

static void so_does_one_whose_handler_takes_itself_away(void)
{
	handle(SIGINT, take_leave);
	is_interrupted();
}

static void so_does_one_whose_calls_are_to_be_restarted(void)
{
	struct sigaction restart = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigaction(SIGINT, &restart, NULL);
	is_interrupted();
	handle(SIGINT, SIG_DFL);
}

static CU_TestInfo cases[] = {
	{ "a wait goes on after SIGSTOP and SIGCONT", a_wait_goes_on_after_a_stop },
	{ "so it does where a handler could have run", so_it_does_where_a_handler_could_have_run },
	{ "a caught signal ends it", a_caught_signal_ends_it },
	{ "so does one that is caught once", so_does_one_that_is_caught_once },
	{ "so does one whose handler takes itself away",
	  so_does_one_whose_handler_takes_itself_away },
	{ "so does one whose calls are to be restarted",
	  so_does_one_whose_calls_are_to_be_restarted },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("signals while a worker waits", cases);
}
