/* SPDX-License-Identifier: MIT */
/*
 * Descriptors whose close() sleeps, passed to an acceptor over shared memory: with a hello, after
 * it, by a caller that is never accepted, and over the socket of a link. Nothing waits for them.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/transport/shm/attack.h"

static int fds_at_first; /* open descriptors */

#define LINGER_S 200
#define SOON_NS (LINGER_S * MST_SECOND / 4)

static int far_end = -1; /* of the last lingering socket: it reads nothing */

/* A TCP socket that cannot get rid of what it has to send: the process that closes it last
 * sleeps. */
static int lingering(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const struct linger linger = { 1, LINGER_S };
	static const char data[65536];
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_EQUAL_FATAL(bind(listener, (struct sockaddr *)&at, len), 0);
	CU_ASSERT_EQUAL_FATAL(listen(listener, 1), 0);
	CU_ASSERT_EQUAL(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	CU_ASSERT_EQUAL_FATAL(connect(s, (struct sockaddr *)&at, len), 0);
	mst_shm_close(&far_end);
	far_end = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	while (send(s, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	CU_ASSERT_EQUAL(setsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return s;
}

/* Sends @fd with a word, and closes it here: the other side has the last one. */
static void pass(int s, int fd)
{
	char word = 'x';
	struct mst_shm_fd_message p = { .body = &word, .bytes = 1, .fd = { fd }, .fd_count = 1 };

	CU_ASSERT_EQUAL(mst_shm_send(s, &p), 0);
	close(fd);
}

/* A socket with a lingering one in its queue, so that nothing can be done about that one. */
static int with_lingering_inside(void)
{
	int pair[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pass(pair[0], lingering());
	close(pair[0]);
	return pair[1];
}

enum when { WITH_THE_HELLO, BEHIND_THE_HELLO, NEVER_ACCEPTED, WHEN_COUNT };

/* One caller passes @fd; then another, who does nothing wrong, comes and is let in. */
static void expect_no_wait_for_a_caller(enum when when, int fd)
{
	struct shm_target h = target_open();
	struct shm_attack good = { .target = h };
	struct mst_link_request request;
	int s = call(&h);
	uint64_t begin = mst_now_ns();

	if (when == BEHIND_THE_HELLO) {
		say(s, hello_of(&lanes), good_memfd(), 1);
		pass(s, fd);
		CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), 0);
		CU_ASSERT_EQUAL(mst_shm.listener->answer(h.listener, &request, NULL, UT_UNREAD), 0);
	} else if (when == WITH_THE_HELLO) {
		say(s, hello_of(&lanes), fd, 1);
		CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), 0);
		int rc = mst_shm.listener->answer(h.listener, &request, &good.link, UT_UNREAD);
		CU_ASSERT_EQUAL(rc, -EPROTO); /* it is no memory */
	} else {
		pass(s, fd);
	}
	close(s);
	if (when != NEVER_ACCEPTED) {
		attack_begin(&good);
		attack_lift(&good);
	}
	target_close(&h);
	CU_ASSERT(mst_now_ns() - begin < SOON_NS);
}

static void callers_that_linger_hold_nobody_up(void)
{
	for (int when = 0; when < WHEN_COUNT; when++) {
		expect_no_wait_for_a_caller((enum when)when, lingering());
		expect_no_wait_for_a_caller((enum when)when, with_lingering_inside());
	}
}

/* It is reported lost, other links of the same net go on, and their end is seen at once. */
static void links_that_linger_hold_nobody_up(void)
{
	for (int i = 0; i < 2; i++) {
		struct shm_attack g = { .target = target_open() };
		attack_begin(&g);
		uint64_t begin = mst_now_ns();
		pass(g.socket, i == 0 ? lingering() : with_lingering_inside());
		expect_lost(&g, -EPROTO);
		attack_lift(&g);
		struct shm_attack next = { .target = g.target };
		attack_begin(&next);
		mst_shm.detach(next.link);
		struct pollfd end = { .fd = next.socket, .events = POLLRDHUP };
		CU_ASSERT_EQUAL(poll(&end, 1, LINGER_S * 1000 / 4), 1);
		CU_ASSERT(end.revents & POLLRDHUP);
		mst_shm.link_free(next.link);
		munmap(next.control, memory_bytes());
		close(next.socket);
		target_close(&g.target);
		CU_ASSERT(mst_now_ns() - begin < SOON_NS);
	}
}

/* Where something can be done about it, the next caller's descriptors do not wait behind it. An
 * empty message before it is not the end of the queue. */
static void what_lingers_is_closed_at_once(void)
{
	CU_ASSERT_EQUAL(fds_in_the_end(fds_at_first), fds_at_first);
	struct shm_target h = target_open();
	struct mst_link_request request;
	int fds = entries("/proc/self/fd");
	int s = call(&h);

	say(s, hello_of(&lanes), good_memfd(), 1);
	CU_ASSERT_EQUAL(send(s, "", 0, 0), 0);
	pass(s, lingering());
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_shm.listener->answer(h.listener, &request, NULL, UT_UNREAD), 0);
	close(s);
	s = call(&h);
	say(s, hello_of(&lanes), good_memfd(), 2);
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), -EAGAIN);
	close(s);
	CU_ASSERT_EQUAL(fds_in_the_end(fds + 1), fds + 1); /* the far end */
	target_close(&h);
}

static CU_TestInfo cases[] = {
	{ "what lingers is closed at once", what_lingers_is_closed_at_once },
	{ "callers that linger hold nobody up", callers_that_linger_hold_nobody_up },
	{ "links that linger hold nobody up", links_that_linger_hold_nobody_up },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	fds_at_first = entries("/proc/self/fd");
	return ut_main("shm linger", cases);
}
