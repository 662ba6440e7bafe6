/* SPDX-License-Identifier: MIT */
/* Children of fork(): none can act for its parent's session, or keep it alive. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

#define PATIENCE_NS (60 * MST_SECOND)

static bool begin_only(struct fake_leader *f)
{
	return fake_begin(f) && fake_stay(f);
}

/* What the child's calls return: its exit status is the number of those that are wrong. */
static int wrong_in_child(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit((muster_finish(client_handle, "a child") != -ECHILD) +
		      (muster_report(client_handle, "loss", 1) != -ECHILD) +
		      (muster_goal(client_handle, 1, NULL) != -ECHILD) +
		      (muster_wait(client_handle, NULL) != -ECHILD) +
		      (muster_start(client_handle, NULL, NULL) != -ECHILD));
	waitpid(child, &status, 0);
	return status;
}

static void what_is_wrong_besides_does_not_matter_in_a_child(void)
{
	client_begin(begin_only);
	CU_ASSERT_EQUAL(wrong_in_child(), 0);
	client_close();
}

static void a_child_is_told_so_where_the_end_was_asked_for(void)
{
	client_begin(begin_only);
	CU_ASSERT_EQUAL(muster_finish(client_handle, "enough"), 0);
	CU_ASSERT_EQUAL(muster_finish(client_handle, "enough"), 0);
	CU_ASSERT_EQUAL(wrong_in_child(), 0);
	client_close();
}

static void a_child_has_no_descriptor_of_muster_fd(void)
{
	int status = -1;

	client_begin(begin_only);
	int fd = muster_fd(client_handle);
	CU_ASSERT_FATAL(fd >= 0);
	pid_t child = fork();
	if (child == 0)
		_exit((fcntl(fd, F_GETFD) >= 0) + (muster_fd(client_handle) != -ECHILD));
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	client_close();
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), -1);
}

static _Atomic bool leaves, hung_up;

/* Never lets the worker go, which waits some seconds for it. */
static bool hear_leave_and_end(struct fake_leader *f)
{
	if (!fake_begin(f) || !fake_hear(f, MST_MSG_LEAVE))
		return false;
	atomic_store(&leaves, true);
	while (fake_hear(f, MST_MSG_HEARTBEAT))
		;
	atomic_store(&hung_up, true);
	return true;
}

static bool comes(_Atomic bool *what)
{
	uint64_t until_ns = mst_now_ns() + PATIENCE_NS;

	while (!atomic_load(what) && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	return atomic_load(what);
}

static void *close_handle(void *arg)
{
	muster_close(client_handle);
	return arg;
}

static void a_child_forked_while_a_thread_closes_keeps_nothing_open(void)
{
	pthread_t thread;

	client_begin(hear_leave_and_end);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, close_handle, NULL), 0);
	CU_ASSERT(comes(&leaves));
	pid_t child = fork();
	if (child == 0)
		for (;;)
			pause();
	pthread_join(thread, NULL);
	CU_ASSERT(comes(&hung_up));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	fake_close(&client_fake);
}

static CU_TestInfo cases[] = {
	{ "what is wrong besides does not matter in a child",
	  what_is_wrong_besides_does_not_matter_in_a_child },
	{ "a child is told so where the end was asked for",
	  a_child_is_told_so_where_the_end_was_asked_for },
	{ "a child has no descriptor of muster_fd()", a_child_has_no_descriptor_of_muster_fd },
	{ "a child forked while a thread closes the handle keeps nothing open",
	  a_child_forked_while_a_thread_closes_keeps_nothing_open },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client forks", cases);
}
