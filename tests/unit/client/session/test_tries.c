/* SPDX-License-Identifier: MIT */
/* Waits that another thread ends, tries and their descriptor, and many pieces in one call. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

static _Atomic bool goes_on;

static bool begin_only(struct fake_leader *f)
{
	return fake_begin(f) && fake_stay(f);
}

/* Answers the ask that follows the start once the test says so. */
static bool answer_when_told(struct fake_leader *f)
{
	const struct mst_lane_answer next = { 2, 1, 1, MST_WHERE_IN_PLACE, 1 };
	uint32_t imm;

	if (!fake_begin(f) || !fake_arrival(f, &imm))
		return false;
	while (!atomic_load(&goes_on))
		fake_turn(f);
	return fake_answer(f, &next) && fake_stay(f);
}

static bool never_start(struct fake_leader *f)
{
	return fake_link(f) && fake_hear(f, MST_MSG_START) && fake_stay(f);
}

/* ---- muster_wake() ---- */

static void *wake(void *handle)
{
	mst_sleep_ns(20 * MST_MS); /* most likely the wait sleeps by then; it ends in any case */
	muster_wake(handle);
	return NULL;
}

static void another_thread_ends_a_wait(void)
{
	pthread_t thread;

	client_begin(begin_only);
	client_handle->wait_ns = CLIENT_LONG_MS * MST_MS;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wake, client_handle), 0);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -EINTR);
	CU_ASSERT(client_says(muster_error(client_handle), "muster_wake()"));
	pthread_join(thread, NULL);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	client_close();
}

static void wakes_before_a_wait_end_the_next_one_alone(void)
{
	client_begin(begin_only);
	muster_wake(client_handle);
	muster_wake(client_handle);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -EINTR);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	muster_wake(client_handle);
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EINTR);
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EAGAIN);
	client_close();
}

static void another_thread_ends_a_start(void)
{
	pthread_t thread;

	CU_ASSERT_EQUAL_FATAL(client_open(never_start, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wake, client_handle), 0);
	CU_ASSERT_EQUAL(muster_start(client_handle, NULL, &client_outcome), -EINTR);
	pthread_join(thread, NULL);
	client_close();
}

/* ---- tries ---- */

static bool becomes_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, CLIENT_LONG_MS) == 1;
}

static void a_try_brings_what_a_wait_would_once_its_descriptor_is_readable(void)
{
	int rc;

	atomic_store(&goes_on, false);
	client_begin(answer_when_told);
	int fd = muster_fd(client_handle);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(muster_fd(client_handle), fd);
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EAGAIN);
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EAGAIN);
	atomic_store(&goes_on, true);
	do {
		CU_ASSERT_FATAL(becomes_readable(fd));
		rc = muster_try_wait(client_handle, &client_outcome);
	} while (rc == -EAGAIN);
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(client_outcome.version, 1);
	CU_ASSERT_PTR_NOT_NULL(client_outcome.result);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	client_close();
}

static void a_wake_makes_the_descriptor_readable(void)
{
	client_begin(begin_only);
	int fd = muster_fd(client_handle);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EAGAIN);
	muster_wake(client_handle);
	CU_ASSERT(becomes_readable(fd));
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EINTR);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int tries = 0;
	do { /* and no longer than until a try has found nothing */
		CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EAGAIN);
	} while (poll(&pfd, 1, 0) != 0 && ++tries < 1000);
	CU_ASSERT(tries < 1000);
	client_close();
}

static void the_end_of_the_session_makes_the_descriptor_readable(void)
{
	int rc;

	client_begin(begin_only);
	int fd = muster_fd(client_handle);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EAGAIN);
	fake_release(&client_fake); /* the leader hangs up */
	do {
		CU_ASSERT_FATAL(becomes_readable(fd));
		rc = muster_try_wait(client_handle, &client_outcome);
	} while (rc == -EAGAIN);
	CU_ASSERT_EQUAL(rc, -ENOTCONN);
	client_close();
}

static void a_try_before_the_start_is_refused(void)
{
	CU_ASSERT_EQUAL_FATAL(client_open(never_start, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "muster_try_wait()"));
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, NULL), -EINVAL);
	client_close();
}

/* ---- muster_push_ranges() ---- */

static void pieces_are_handed_over_up_to_the_first_that_is_refused(void)
{
	static float own[FAKE_ELEMS];
	struct muster_piece piece[] = {
		{ 0, 10, own }, { 30, 5, own + 30 }, { 8, 4, own + 8 }, { 100, 10, own }
	};

	for (unsigned i = 0; i < FAKE_ELEMS; i++)
		own[i] = (float)i + 1;
	client_begin(begin_only);
	CU_ASSERT_EQUAL(muster_push_ranges(client_handle, NULL, 1), -EINVAL);
	CU_ASSERT_EQUAL(muster_push_ranges(client_handle, NULL, 0), 0);
	CU_ASSERT_EQUAL(muster_push_ranges(client_handle, piece, 4), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "elements 8 to 11"));
	/* The first two have been given, and the last has not. */
	CU_ASSERT_EQUAL(muster_push_ranges(client_handle, piece, 1), -EINVAL);
	CU_ASSERT_EQUAL(muster_push_ranges(client_handle, piece + 1, 1), -EINVAL);
	CU_ASSERT_EQUAL(muster_push_ranges(client_handle, piece + 3, 1), 0);
	const float *slot = muster_gradient(client_handle);
	CU_ASSERT_PTR_NOT_NULL_FATAL(slot);
	CU_ASSERT_EQUAL(memcmp(slot, own, 10 * sizeof(float)), 0);
	CU_ASSERT_EQUAL(memcmp(slot + 30, own + 30, 5 * sizeof(float)), 0);
	CU_ASSERT_EQUAL(memcmp(slot + 100, own, 10 * sizeof(float)), 0);
	client_close();
}

static CU_TestInfo cases[] = {
	{ "another thread ends a wait", another_thread_ends_a_wait },
	{ "wakes before a wait end the next one alone",
	  wakes_before_a_wait_end_the_next_one_alone },
	{ "another thread ends a start", another_thread_ends_a_start },
	{ "a try brings what a wait would, once its descriptor is readable",
	  a_try_brings_what_a_wait_would_once_its_descriptor_is_readable },
	{ "a wake makes the descriptor readable", a_wake_makes_the_descriptor_readable },
	{ "the end of the session makes the descriptor readable",
	  the_end_of_the_session_makes_the_descriptor_readable },
	{ "a try before the start is refused", a_try_before_the_start_is_refused },
	{ "pieces are handed over up to the first that is refused",
	  pieces_are_handed_over_up_to_the_first_that_is_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("waits that others end, and tries", cases);
}
