/* SPDX-License-Identifier: MIT */
/*
 * What a hostile peer can do over shared memory, and that nothing is left behind. What
 * makes a close() sleep: test_linger.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/transport/shm/attack.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define CALLERS 64 /* that a listener keeps */

uint64_t __real_mst_now_ns(void);
uint64_t __wrap_mst_now_ns(void);

static int fds_at_first; /* open descriptors */

static uint64_t stands_at_ns; /* the clock; 0: it goes on */

uint64_t __wrap_mst_now_ns(void)
{
	return stands_at_ns != 0 ? stands_at_ns : __real_mst_now_ns();
}
/* One who says this is not shown to the owner of the listener, and hears that it is not welcome. */
static void expect_unseen(const struct mst_shm_hello *hello, int fd, unsigned fds)
{
	struct shm_target h = target_open();
	struct mst_link_request request;
	int s = call(&h);

	CU_ASSERT(fd >= 0);
	say(s, *hello, fd, fds);
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), -EAGAIN);
	CU_ASSERT(answer_to(s) < 0);
	close(s);
	target_close(&h);
}

/* One who brings this with a hello in order is shown to the owner, who may know its token; but it
 * is not let in. Its memory is not looked at before: where the owner sends it away, it hears that.
 */
static void expect_refused(const struct mst_shm_hello *hello, int fd)
{
	struct shm_target h = target_open();
	struct mst_link_request request;
	struct mst_link *link = NULL;
	int again = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	CU_ASSERT(again >= 0);
	for (int let_in = 0; let_in < 2; let_in++) {
		int s = call(&h);
		say(s, *hello, let_in ? fd : again, 1);
		CU_ASSERT_EQUAL_FATAL(
			mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), 0);
		int rc = mst_shm.listener->answer(h.listener, &request, let_in ? &link : NULL,
						  UT_UNREAD);
		CU_ASSERT_EQUAL(rc, let_in ? -EPROTO : 0);
		CU_ASSERT_EQUAL(answer_to(s), let_in ? -EPROTO : -EACCES);
		close(s);
	}
	CU_ASSERT_PTR_NULL(link);
	target_close(&h);
}

static void memory_of_the_wrong_kind_is_refused(void)
{
	struct mst_shm_hello hello = hello_of(&lanes);
	size_t right = memory_bytes();

	expect_refused(&hello, memfd_of(right - 4096, 0, SEALS));
	expect_refused(&hello, memfd_of(right + 1, 0, SEALS));
	expect_refused(&hello, memfd_of(0, 0, SEALS));
	expect_refused(&hello, memfd_of(right, 0, F_SEAL_GROW | F_SEAL_SEAL));
	expect_refused(&hello, memfd_of(right, 0, F_SEAL_SHRINK | F_SEAL_SEAL));
	expect_refused(&hello, memfd_of(right, 0, F_SEAL_SHRINK | F_SEAL_GROW));
	expect_refused(&hello, memfd_of(right, 0, SEALS | F_SEAL_WRITE));
	expect_refused(&hello, memfd_of(right, 0, SEALS | F_SEAL_FUTURE_WRITE));
	expect_refused(&hello, open("/dev/zero", O_RDWR | O_CLOEXEC));
	expect_refused(&hello, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
}

static void memory_of_huge_pages_is_refused(void)
{
	struct mst_lanes huge = { 2 * 1024 * 1024 - 2 * 4096, 4096, 4, 4 };
	struct mst_shm_hello hello = hello_of(&huge);
	struct mst_shm_layout layout;

	CU_ASSERT_EQUAL(mst_shm_layout(&huge, &layout), 0);
	CU_ASSERT_EQUAL(layout.bytes, 2 * 1024 * 1024); /* so that its size is not what is wrong */
	expect_refused(&hello, memfd_of(layout.bytes, MFD_HUGETLB, SEALS));
}

static void read_only_memory_is_refused(void)
{
	struct mst_shm_hello hello = hello_of(&lanes);
	int fd = good_memfd();
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	expect_refused(&hello, open(path, O_RDONLY | O_CLOEXEC));
	close(fd);
}

static void number_of_descriptors_is_one(void)
{
	struct mst_shm_hello hello = hello_of(&lanes);

	for (unsigned fds = 0; fds <= MST_SHM_FD_MESSAGE_FDS; fds++)
		if (fds != 1)
			expect_unseen(&hello, good_memfd(), fds);
}

static void hello_out_of_order_is_refused(void)
{
	const struct mst_shm_hello right = hello_of(&lanes);
	struct mst_shm_hello wrong[] = { right, right, right, right };

	wrong[0].magic++;
	wrong[1].version++;
	wrong[2].up_bytes += 4096;
	wrong[3].down_bytes += 4096;
	for (size_t i = 0; i < 2; i++)
		expect_unseen(&wrong[i], good_memfd(), 1);
	for (size_t i = 2; i < 4; i++)
		expect_refused(&wrong[i], good_memfd());
}

/* A ring of so many slots, memory as large as it takes: the figure alone is what is wrong. */
static void more_credits_than_any_link_has_are_refused(void)
{
	struct mst_lanes most = { 0, 0, MST_SHM_CREDITS_MAX, MST_SHM_CREDITS_MAX };
	struct mst_shm_layout layout;

	CU_ASSERT_EQUAL(mst_shm_layout(&most, &layout), 0);
	for (int i = 0; i < 2; i++) {
		struct mst_shm_hello hello = hello_of(&most);
		*(i == 0 ? &hello.up_credits : &hello.down_credits) += 1;
		expect_unseen(
			&hello,
			memfd_of(layout.bytes + sizeof(uint32_t) * MST_SHM_CREDITS_MAX, 0, SEALS),
			1);
	}
}

/* Added up they come round to as much memory as there is. */
static void lengths_that_come_round_are_refused(void)
{
	const uint64_t minus_a_page = UINT64_MAX - 4095;

	for (int i = 0; i < 2; i++) {
		struct mst_shm_hello hello = hello_of(&lanes);
		size_t left = memory_bytes() - 4096;
		left -= i == 0 ? lanes.up_bytes : lanes.down_bytes;
		*(i == 0 ? &hello.up_bytes : &hello.down_bytes) = minus_a_page;
		expect_unseen(&hello, memfd_of(left, 0, SEALS), 1);
	}
}

static void other_version_is_told_so(void)
{
	struct shm_target h = target_open();
	struct mst_shm_hello hello = hello_of(&lanes);
	struct mst_link_request request;
	int s = call(&h);

	hello.version = 99;
	say(s, hello, good_memfd(), 1);
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), -EAGAIN);
	CU_ASSERT_EQUAL(answer_to(s), -EPROTONOSUPPORT);
	close(s);
	target_close(&h);
}

static void rubbish_and_silence_keep_nobody_out(void)
{
	struct shm_target h = target_open();
	char rubbish[3000];
	int silent[200];
	struct mst_link_request request;

	memset(rubbish, 'x', sizeof(rubbish));
	for (int i = 0; i < 200; i++) {
		silent[i] = call(&h);
		if (i % 2 == 1) {
			ssize_t n = send(silent[i], rubbish, i % 4 == 1 ? sizeof(rubbish) : 1, 0);
			CU_ASSERT(n > 0);
		}
		/* More come than may wait, before and after one who is in order. */
		if (i == 100)
			say(silent[i], hello_of(&lanes), good_memfd(), 1);
		if (i == 0 || i == 50)
			CU_ASSERT_EQUAL(
				mst_shm.listener->next_request(h.listener, &request, UT_UNREAD),
				-EAGAIN);
	}
	int rc = -EAGAIN;
	for (int i = 0; i < 60000 && rc == -EAGAIN; i++) {
		rc = mst_shm.listener->next_request(h.listener, &request, UT_UNREAD);
		if (i > 10 && rc == -EAGAIN) /* those who were sent away are being closed */
			mst_sleep_ns(MST_MS);
	}
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(mst_shm.listener->answer(h.listener, &request, NULL, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(answer_to(silent[100]), -EACCES);
	for (int i = 0; i < 200; i++)
		close(silent[i]);
	target_close(&h);
}

static void silent_caller_is_sent_away_in_time(void)
{
	struct shm_target h = target_open();
	struct mst_link_request request;
	char byte;
	int s = call(&h);

	stands_at_ns = mst_now_ns();
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), -EAGAIN);
	stands_at_ns += 10 * MST_SECOND - 1;
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), -EAGAIN);
	CU_ASSERT(recv(s, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	stands_at_ns++;
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), -EAGAIN);
	stands_at_ns = 0;
	CU_ASSERT_EQUAL(answer_to(s), -ETIMEDOUT);
	close(s);
	target_close(&h);
}

/* The oldest silent caller makes room for the next; one that has been shown does not. */
static void callers_that_were_shown_keep_their_place(void)
{
	struct shm_target h = target_open();
	struct mst_link_request request[CALLERS + 2];
	int s[CALLERS + 2];

	stands_at_ns = mst_now_ns();        /* so that nobody is silent for too long meanwhile */
	for (int i = 0; i < CALLERS; i++) { /* of which two are silent */
		s[i] = call(&h);
		for (int said = 0; said < (i > 1) + (i == 9); said++) /* one of them twice */
			say(s[i], hello_of(&lanes), good_memfd(), 1);
		CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request[i], UT_UNREAD),
				i > 1 ? 0 : -EAGAIN);
	}
	s[CALLERS] = call(&h);
	say(s[CALLERS], hello_of(&lanes), good_memfd(), 1);
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request[CALLERS], UT_UNREAD),
			0);
	CU_ASSERT_EQUAL(answer_to(s[0]), -ETIMEDOUT);
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request[1], UT_UNREAD),
			-EAGAIN); /* nobody waits */
	say(s[1], hello_of(&lanes), good_memfd(), 1);
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request[1], UT_UNREAD), 0);
	s[CALLERS + 1] = call(&h);
	say(s[CALLERS + 1], hello_of(&lanes), good_memfd(), 1);
	CU_ASSERT_EQUAL(
		mst_shm.listener->next_request(h.listener, &request[CALLERS + 1], UT_UNREAD),
		-EAGAIN);
	CU_ASSERT_EQUAL(mst_shm.listener->answer(h.listener, &request[7], NULL, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(answer_to(s[7]), -EACCES);
	CU_ASSERT_EQUAL(
		mst_shm.listener->next_request(h.listener, &request[CALLERS + 1], UT_UNREAD), 0);
	stands_at_ns = 0;
	for (int i = 0; i < CALLERS + 2; i++)
		close(s[i]);
	target_close(&h);
}

static void impossible_tail_is_a_lost_link(void)
{
	static const uint32_t tails[] = { 5, 8, 100, 0x80000000u, UINT32_MAX };

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct shm_attack g = { .target = target_open() };
		attack_begin(&g);
		set(&g.control->up.tail, tails[i]);
		expect_lost(&g, -EPROTO);
		set(&g.control->up.tail, 1); /* too late */
		CU_ASSERT_EQUAL(mst_shm.poll(g.target.net, &(struct mst_net_event){ 0 }, 1), 0);
		attack_lift(&g);
		target_close(&g.target);
	}
}

static void tail_that_goes_back_is_a_lost_link(void)
{
	struct shm_attack g = { .target = target_open() };
	struct mst_net_event ev[4];

	attack_begin(&g);
	set(&g.control->up.tail, 3);
	CU_ASSERT_EQUAL(mst_shm.poll(g.target.net, ev, 4), 3);
	set(&g.control->up.tail, 2);
	expect_lost(&g, -EPROTO);
	attack_lift(&g);
	target_close(&g.target);
}

static void impossible_head_is_a_lost_link(void)
{
	static const uint32_t heads[] = { 5, 1000, 0x80000000u, UINT32_MAX };
	struct mst_put put = { .notify = true };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct shm_attack g = { .target = target_open() };
		attack_begin(&g);
		for (int k = 0; k < 4; k++)
			CU_ASSERT_EQUAL(mst_shm.put(g.link, &put), 1);
		set(&g.control->down.head, heads[i]);
		CU_ASSERT_EQUAL(mst_shm.put(g.link, &put), -EPIPE);
		CU_ASSERT_EQUAL(mst_shm.put(g.link, &put), -EPIPE);
		expect_lost(&g, -EPROTO);
		attack_lift(&g);
		target_close(&g.target);
	}
}

static void words_on_the_socket_are_a_lost_link(void)
{
	struct shm_attack g = { .target = target_open() };

	attack_begin(&g);
	CU_ASSERT_EQUAL(send(g.socket, "hello?", 6, 0), 6);
	expect_lost(&g, -EPROTO);
	attack_lift(&g);
	target_close(&g.target);
}

static void hole_punched_in_the_memory_reads_as_zero(void)
{
	struct shm_attack g = { .target = target_open() };
	struct mst_net_event ev;
	int fd = good_memfd();
	struct mst_link_request request;

	g.control = mmap(NULL, memory_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	g.socket = call(&g.target);
	say(g.socket, hello_of(&lanes), dup(fd), 1);
	CU_ASSERT_EQUAL_FATAL(
		mst_shm.listener->next_request(g.target.listener, &request, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(
		mst_shm.listener->answer(g.target.listener, &request, &g.link, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_shm.attach(g.target.net, g.link, UT_UNREAD), 0);
	set(&g.control->up.tail, 1);
	CU_ASSERT_EQUAL(mst_shm.poll(g.target.net, &ev, 1), 1);
	CU_ASSERT(ftruncate(fd, 0) < 0);
	CU_ASSERT_EQUAL(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)memory_bytes()),
		0);
	CU_ASSERT_EQUAL(*(uint8_t *)g.link->inbound, 0);
	expect_lost(&g, -EPROTO); /* the tail went back, to 0 */
	close(fd);
	attack_lift(&g);
	target_close(&g.target);
}

/* The descriptor that the connector gets to hear the acceptor's notify descriptor by: nobody can
 * ring with it, and the notify descriptor it rings itself is one that the acceptor never reads. */
static void notify_fds_cannot_make_the_acceptor_block(void)
{
	struct shm_attack g = { .target = target_open() };
	struct mst_shm_welcome welcome;
	struct mst_shm_fd_message p = { .body = &welcome, .bytes = sizeof(welcome) };
	uint64_t full = UINT64_MAX - 1;
	struct mst_put put = { .notify = true };

	attack_begin(&g);
	CU_ASSERT_EQUAL_FATAL(mst_shm_receive(g.socket, &p), 0);
	CU_ASSERT_EQUAL_FATAL(p.fd_count, MST_SHM_WELCOME_FDS);
	CU_ASSERT(write(p.fd[MST_SHM_FD_DOWN_WAIT_FD], &full, sizeof(full)) < 0);
	CU_ASSERT_EQUAL(write(p.fd[MST_SHM_FD_UP_NOTIFY_FD], &full, sizeof(full)), 8);
	CU_ASSERT_EQUAL(fcntl(p.fd[MST_SHM_FD_UP_NOTIFY_FD], F_SETFL, 0), 0);
	set(&g.control->asleep, 1);
	uint64_t begin = mst_now_ns();
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(mst_shm.put(g.link, &put), 1);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(mst_shm.wait(g.target.net, MST_MS), 0);
	CU_ASSERT(mst_now_ns() - begin < 60 * MST_SECOND);
	set(&g.control->up.tail, 1); /* and the link lives */
	CU_ASSERT_EQUAL(mst_shm.poll(g.target.net, &(struct mst_net_event){ 0 }, 1), 1);
	mst_shm_fd_message_close(&p);
	attack_lift(&g);
	target_close(&g.target);
}

/* Lets this process open @more descriptors. Return: the limit that there was. */
static struct rlimit leave_descriptors(rlim_t more)
{
	struct rlimit was, low;
	int next = dup(STDIN_FILENO);

	close(next);
	getrlimit(RLIMIT_NOFILE, &was);
	low = was;
	low.rlim_cur = (rlim_t)next + more;
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &low), 0);
	return was;
}

static void want_of_descriptors_passes(void)
{
	CU_ASSERT_EQUAL(fds_in_the_end(fds_at_first), fds_at_first);
	struct shm_target h = target_open();
	struct mst_link *link = NULL;
	struct mst_link_request request;
	int first = call(&h), second = call(&h);

	say(first, hello_of(&lanes), good_memfd(), 1);
	say(second, hello_of(&lanes), good_memfd(), 1);
	struct rlimit was = leave_descriptors(0);
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &was);
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), 0);
	leave_descriptors(2); /* of the three that letting in takes */
	CU_ASSERT_EQUAL(mst_shm.listener->answer(h.listener, &request, &link, UT_UNREAD), -EMFILE);
	CU_ASSERT_PTR_NULL(link);
	CU_ASSERT_EQUAL(answer_to(first), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &was);
	CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_shm.listener->answer(h.listener, &request, &link, UT_UNREAD), 0);
	mst_shm.link_free(link);
	close(first);
	close(second);
	target_close(&h);
}

/* The kernel passes on as many as there is room for, and drops the rest. */
static void descriptors_that_were_cut_off_are_told(void)
{
	char body = 'x';
	struct mst_shm_fd_message p = { .body = &body,
					.bytes = 1,
					.fd_count = MST_SHM_WELCOME_FDS };
	int pair[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (unsigned i = 0; i < p.fd_count; i++)
		p.fd[i] = STDIN_FILENO;
	CU_ASSERT_EQUAL(mst_shm_send(pair[0], &p), 0);
	struct rlimit was = leave_descriptors(1);
	CU_ASSERT_EQUAL(mst_shm_receive(pair[1], &p), -EMFILE);
	CU_ASSERT_EQUAL(p.fd_count, 1);
	mst_shm_fd_message_close(&p);
	setrlimit(RLIMIT_NOFILE, &was);
	close(pair[0]);
	close(pair[1]);
}

static void nothing_is_left_behind(void)
{
	int fds = fds_in_the_end(fds_at_first), shm = entries("/dev/shm");
	int maps = entries("/proc/self/map_files");

	for (int i = 0; i < 300; i++) {
		struct shm_attack g = { .target = target_open() };
		attack_begin(&g);
		attack_lift(&g);
		attack_begin(&g);
		attack_lift(&g);
		int unanswered = call(&g.target);
		target_close(&g.target);
		close(unanswered);
	}
	CU_ASSERT_EQUAL(fds_in_the_end(fds), fds);
	CU_ASSERT_EQUAL(entries("/dev/shm"), shm);
	CU_ASSERT(entries("/proc/self/map_files") <= maps + 16); /* malloc's own may come */
}

static CU_TestInfo cases[] = {
	{ "memory of the wrong kind is refused", memory_of_the_wrong_kind_is_refused },
	{ "memory of huge pages is refused", memory_of_huge_pages_is_refused },
	{ "read-only memory is refused", read_only_memory_is_refused },
	{ "a hello has one descriptor", number_of_descriptors_is_one },
	{ "a hello out of order is refused", hello_out_of_order_is_refused },
	{ "more credits than any link has are refused",
	  more_credits_than_any_link_has_are_refused },
	{ "lengths that come round are refused", lengths_that_come_round_are_refused },
	{ "callers that were shown keep their place", callers_that_were_shown_keep_their_place },
	{ "another version is told so", other_version_is_told_so },
	{ "rubbish and silence keep nobody out", rubbish_and_silence_keep_nobody_out },
	{ "a silent caller is sent away in time", silent_caller_is_sent_away_in_time },
	{ "an impossible tail is a lost link, others go on", impossible_tail_is_a_lost_link },
	{ "a tail that goes back is a lost link", tail_that_goes_back_is_a_lost_link },
	{ "an impossible head is a lost link", impossible_head_is_a_lost_link },
	{ "words on the socket are a lost link", words_on_the_socket_are_a_lost_link },
	{ "a hole punched in the memory reads as zero", hole_punched_in_the_memory_reads_as_zero },
	{ "notify descriptors cannot make the acceptor block",
	  notify_fds_cannot_make_the_acceptor_block },
	{ "want of descriptors is told, and passes", want_of_descriptors_passes },
	{ "descriptors that were cut off are told", descriptors_that_were_cut_off_are_told },
	{ "nothing is left behind", nothing_is_left_behind },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	fds_at_first = entries("/proc/self/fd");
	return ut_main("shm hostile", cases);
}
