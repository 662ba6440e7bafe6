/* SPDX-License-Identifier: MIT */
/*
 * Peers over TCP that die, and such as only stand still: of the first the host is gone, or the
 * process; of the others the kernel goes on to answer.
 *
 *   test_transport_tcp_ends [IO_THREADS]
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/transport/tcp/attack.h"

#define DEAD_NS MST_SECOND
#define MUCH ((size_t)32 << 20) /* more than both kernels take */

static void play_dead_until_lost(struct tcp_attack *g, uint64_t at_least_ns)
{
	uint64_t began_ns = mst_now_ns();

	play_dead(g->fd);
	expect_lost(g, -EPIPE, "has acknowledged nothing for");
	CU_ASSERT(mst_now_ns() - began_ns >= at_least_ns);
}

static void a_host_that_is_gone_is_noticed_by_an_idle_link(void)
{
	struct tcp_attack g;

	attack_begin(&g);
	play_dead_until_lost(&g, DEAD_NS / 2);
	attack_end(&g);
}

static void a_host_that_is_gone_is_noticed_in_the_middle_of_a_put(void)
{
	struct tcp_attack g;
	struct mst_put put = { .bytes = 4096 };

	attack_begin(&g);
	put.src = g.target.net->published;
	play_dead(g.fd);
	CU_ASSERT(mst_tcp.put(g.link, &put) >= 0);
	play_dead_until_lost(&g, DEAD_NS / 2);
	attack_end(&g);
}

/* Fills the window of a peer that does not read. */
static void fill(struct tcp_attack *g)
{
	struct mst_put put = { .src = g->target.net->published, .bytes = MUCH };
	struct mst_net_event ev;

	CU_ASSERT(mst_tcp.put(g->link, &put) >= 0);
	CU_ASSERT_EQUAL(poll_for(g->target.net, &ev, 1, DEAD_NS / 4), 0);
}

static void a_full_window_ends_no_link_and_a_dead_host_does(void)
{
	struct tcp_attack g;
	struct mst_net_event ev;

	attack_begin(&g);
	fill(&g);
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, 5 * MST_SECOND), 0);
	play_dead_until_lost(&g, 0);
	attack_end(&g);
}

/* Receives exactly so many bytes, while this thread sends, too. */
static void read_while_polling(struct tcp_attack *g, void *into, size_t bytes)
{
	uint64_t until_ns = mst_deadline_ns(PATIENCE_NS);
	struct mst_net_event ev;
	size_t got = 0;

	while (got < bytes) {
		ssize_t n = recv(g->fd, (uint8_t *)into + got, bytes - got, MSG_DONTWAIT);
		CU_ASSERT_FATAL(n != 0 && mst_left_ns(until_ns) > 0);
		got += n > 0 ? (size_t)n : 0;
		CU_ASSERT_EQUAL(mst_tcp.poll(g->target.net, &ev, 1), 0);
	}
}

static void read_frame(struct tcp_attack *g, struct mst_tcp_frame *f)
{
	static uint8_t payload[MST_TCP_MESSAGE];
	uint8_t head[MST_TCP_FRAME_BYTES];

	read_while_polling(g, head, sizeof(head));
	mst_tcp_frame_decode(head, f);
	CU_ASSERT_FATAL(f->length <= sizeof(payload));
	read_while_polling(g, payload, f->length);
}

/* A preemption hint is such a word, and results are what it would wait for. */
static void an_urgent_word_passes_a_large_put(void)
{
	static const uint64_t word = UINT64_C(0x0123456789abcdef);
	struct tcp_attack g;
	struct mst_tcp_frame f = { 0 };
	uint64_t before = 0;
	int little = 128 << 10;

	attack_begin(&g);
	(void)setsockopt(((struct mst_tcp_link *)g.link)->conn.fd, SOL_SOCKET, SO_SNDBUF, &little,
			 sizeof(little));
	const size_t place = g.link->lanes.down_bytes - sizeof(word);
	struct mst_put large = { .src = g.target.net->published, .bytes = place };
	struct mst_put urgent = { .offset = place, .src = &word, .bytes = 8, .urgent = true };
	CU_ASSERT(mst_tcp.put(g.link, &large) >= 0);
	read_frame(&g, &f); /* it is under way */
	CU_ASSERT_EQUAL(mst_tcp.put(g.link, &urgent), 1);
	for (; f.offset != place; before += f.length)
		read_frame(&g, &f);
	CU_ASSERT_EQUAL(f.length, sizeof(word));
	CU_ASSERT(before < MUCH / 4);
	attack_end(&g);
}

/* ---- processes ---- */

static void a_killed_process_is_lost_at_once(void)
{
	struct tcp_attack g;

	attack_begin(&g);
	fill(&g);
	pid_t pid = fork();
	if (pid == 0) { /* of the link this process has nothing but the peer's end */
		mst_tcp.disown(g.target.net);
		for (;;)
			pause();
	}
	close(g.fd);
	g.fd = -1;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect_lost(&g, -EPIPE, "");
	attack_end(&g);
}

/* Reads the frames of puts to @fd until one notifies, and counts their bytes. */
static uint64_t read_puts(int fd)
{
	static uint8_t payload[MST_TCP_MESSAGE];
	uint8_t head[MST_TCP_FRAME_BYTES];
	struct mst_tcp_frame f = { 0 };
	uint64_t bytes = 0;

	while (!mst_tcp_frame_notifies(&f)) {
		if (recv(fd, head, sizeof(head), MSG_WAITALL) != (ssize_t)sizeof(head))
			break;
		mst_tcp_frame_decode(head, &f);
		if (f.length > 0 && recv(fd, payload, f.length, MSG_WAITALL) != (ssize_t)f.length)
			break;
		bytes += f.length;
	}
	return bytes;
}

/* Stands still for 3 s while 32 MiB and a notice are on their way to it; then it takes them, and
 * answers by a notice of its own. */
static void a_process_that_stands_still_keeps_its_link(void)
{
	struct tcp_attack g;
	struct mst_net_event ev = { 0 };
	int go[2];

	target_fabric.link_timeout_ns = 2 * MST_SECOND;
	attack_begin(&g);
	CU_ASSERT_EQUAL_FATAL(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		mst_tcp.disown(g.target.net);
		if (read(go[0], &byte, 1) == 1 && read_puts(g.fd) == MUCH) {
			uint8_t head[MST_TCP_FRAME_BYTES];
			mst_tcp_frame_encode(
				&(struct mst_tcp_frame){ .kind = MST_TCP_NOTIFY, .imm = 5 }, head);
			(void)!write(g.fd, head, sizeof(head));
			pause();
		}
		_exit(1);
	}
	kill(pid, SIGSTOP);
	struct mst_put put = { .src = g.target.net->published, .bytes = MUCH, .notify = true };
	CU_ASSERT(mst_tcp.put(g.link, &put) >= 0);
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, 3 * MST_SECOND), 0);
	kill(pid, SIGCONT);
	CU_ASSERT_EQUAL(write(go[1], "g", 1), 1);
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, PATIENCE_NS), 1);
	CU_ASSERT(ev.kind == MST_ARRIVED && ev.imm == 5);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(go[0]);
	close(go[1]);
	attack_end(&g);
	target_fabric.link_timeout_ns = DEAD_NS;
}

/* A kernel that can be told asks a peer with a full window each second, however long it has stood
 * still, and repeats data for longer than the time is. */
static void the_kernel_repeats_often_enough(void)
{
	struct tcp_attack g;
	int most_ms = 0;
	socklen_t len = sizeof(most_ms);

	for (uint64_t dead_ns = MST_SECOND; dead_ns <= MST_LINK_TIMEOUT_MAX_NS; dead_ns *= 10) {
		target_fabric.link_timeout_ns = dead_ns;
		attack_begin(&g);
		int fd = ((struct mst_tcp_link *)g.link)->conn.fd;
		if (getsockopt(fd, IPPROTO_TCP, 44, &most_ms, &len) == 0) { /* TCP_RTO_MAX_MS */
			CU_ASSERT(most_ms >= 1000 && (uint64_t)most_ms * 15 * MST_MS > dead_ns);
			CU_ASSERT(most_ms == 1000 || (uint64_t)most_ms * MST_MS <= dead_ns / 7);
		}
		attack_end(&g);
	}
	target_fabric.link_timeout_ns = DEAD_NS;
}

/* By the first look after the link is attached. */
static void the_kernel_is_told_how_much_to_hold(void)
{
	struct tcp_attack g = { .target = target_open() };
	struct mst_tcp_hello hello = hello_of(1);
	struct mst_link_request request;
	struct mst_net_event ev;
	int bytes = 1;
	socklen_t len = sizeof(bytes);

	g.fd = call(&g.target);
	say_hello(g.fd, &hello);
	CU_ASSERT_EQUAL_FATAL(next_request(&g.target, &request), 0);
	CU_ASSERT_EQUAL_FATAL(
		mst_tcp_listener.answer(g.target.listener, &request, &g.link, UT_UNREAD), 0);
	int fd = ((struct mst_tcp_link *)g.link)->conn.fd;
	mst_tcp_socket_hold(fd, 1);
	CU_ASSERT_EQUAL_FATAL(mst_tcp.attach(g.target.net, g.link, UT_UNREAD), 0);
	uint64_t until_ns = mst_deadline_ns(PATIENCE_NS);
	while (bytes == 1 && mst_left_ns(until_ns) > 0) {
		CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, 20 * MST_MS), 0);
		CU_ASSERT_EQUAL(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, &len), 0);
	}
	CU_ASSERT(bytes >= (int)MST_TCP_HELD_MIN);
	attack_end(&g);
}

/* This end stands still, too, for as long as it likes: nobody looks meanwhile, and nothing ends. */
static void an_end_that_does_not_look_for_long_loses_no_link(void)
{
	struct tcp_attack g;
	struct mst_net_event ev;

	attack_begin(&g);
	fill(&g);
	mst_sleep_ns(3 * DEAD_NS);
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, DEAD_NS), 0);
	attack_end(&g);
}

/* The rest of a payload of 80 KiB and a frame after it fill exactly the room that a receive has:
 * so there may be more, and there is not. */
static void what_comes_after_a_full_receive_is_heard_of(void)
{
	enum { HALF = 40 << 10, AFTER = MST_TCP_STASH_BYTES - MST_TCP_FRAME_BYTES };
	static uint8_t bytes[HALF + MST_TCP_STASH_BYTES];
	const struct mst_tcp_frame large = { .kind = MST_TCP_WRITE, .length = 2 * HALF },
				   small = { .kind = MST_TCP_WRITE, .length = AFTER };
	struct tcp_attack g;
	struct mst_net_event ev;

	target_lane = (size_t)1 << 20;
	attack_begin(&g);
	send_frame(g.fd, large, NULL);
	say(g.fd, bytes, HALF);
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, 20 * MST_MS), 0);
	mst_tcp_frame_encode(&small, bytes + HALF);
	say(g.fd, bytes, sizeof(bytes));
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, 20 * MST_MS), 0);
	send_frame(g.fd, (struct mst_tcp_frame){ .kind = MST_TCP_NOTIFY, .imm = 3 }, NULL);
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, PATIENCE_NS), 1);
	CU_ASSERT(ev.kind == MST_ARRIVED && ev.imm == 3);
	attack_end(&g);
	target_lane = LANE;
}

/* ---- an owner that computes ---- */

/* It has just polled, so that its thread was standing by. */
static void a_thread_receives_while_its_owner_is_away(void)
{
	struct mst_net_event ev;
	struct tcp_attack g;
	uint64_t word = 7, until_ns = mst_deadline_ns(PATIENCE_NS);

	if (target_fabric.io_threads == 0)
		return;
	attack_begin(&g);
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, 10 * MST_MS), 0);
	send_frame(g.fd, (struct mst_tcp_frame){ .kind = MST_TCP_WRITE, .length = sizeof(word) },
		   &word);
	const _Atomic uint64_t *at = g.link->inbound;
	while (atomic_load(at) != word && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	CU_ASSERT_EQUAL(atomic_load(at), word);
	attack_end(&g);
}

/* More than its kernel takes at once. */
static void a_thread_sends_while_its_owner_is_away(void)
{
	static uint8_t bytes[1 << 16];
	struct tcp_attack g;
	struct timeval patience = { .tv_sec = PATIENCE_NS / MST_SECOND };
	size_t got = 0;
	ssize_t n = 1;

	if (target_fabric.io_threads == 0)
		return;
	attack_begin(&g);
	struct mst_put put = { .src = g.target.net->published, .bytes = MUCH };
	CU_ASSERT(mst_tcp.put(g.link, &put) >= 0);
	setsockopt(g.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	for (; n > 0 && got<MUCH; got += n> 0 ? (size_t)n : 0)
		n = recv(g.fd, bytes, sizeof(bytes), 0);
	CU_ASSERT(got >= MUCH);
	attack_end(&g);
}

/* ---- what is claimed and inherited ---- */

static void a_net_takes_what_it_claims(void)
{
	struct mst_net_cfg cfg = { .links_max = 8, .fabric = &target_fabric };
	struct mst_claim net, accepting, link;
	struct tcp_attack g;

	mst_tcp.claim(&cfg, NULL, false, &net);
	mst_tcp.claim(&cfg, NULL, true, &accepting);
	mst_tcp.claim(&cfg, &(struct mst_lanes){ 1, 1, 1, 1 }, true, &link);
	int before = descriptors();
	g.target = target_open();
	int open = descriptors() - before, listener = 2;
	CU_ASSERT_EQUAL((uint32_t)(open - listener), net.descriptors);
	CU_ASSERT(accepting.descriptors - net.descriptors >= 64 + 2);
	CU_ASSERT_EQUAL(net.threads, target_fabric.io_threads);
	g.link = let_in(&g.target, &g.fd);
	CU_ASSERT_EQUAL((uint32_t)(descriptors() - before - open), link.descriptors + 1);
	CU_ASSERT(net.bytes == 0 && link.bytes == 0);
	attack_end(&g);
	CU_ASSERT_EQUAL(descriptors(), before);
}

static void a_forked_child_holds_no_descriptor_and_ends_no_link(void)
{
	struct tcp_attack g;
	struct mst_net_event ev;
	int before = descriptors(), status;

	g.target = target_open();
	int listener = 2;
	g.link = let_in(&g.target, &g.fd);
	pid_t pid = fork();
	if (pid == 0) {
		mst_tcp.disown(g.target.net);
		int left = descriptors() - before - listener - 1; /* the peer's end is the test's */
		mst_tcp.link_free(g.link);
		mst_tcp.net_close(g.target.net);
		_exit(left);
	}
	waitpid(pid, &status, 0);
	CU_ASSERT_TRUE(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	send_frame(g.fd, (struct mst_tcp_frame){ .kind = MST_TCP_NOTIFY, .imm = 3 }, NULL);
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, PATIENCE_NS), 1);
	CU_ASSERT(ev.kind == MST_ARRIVED && ev.imm == 3);
	attack_end(&g);
}

int main(int argc, char **argv)
{
	static CU_TestInfo cases[] = {
		{ "a host that is gone is noticed by an idle link",
		  a_host_that_is_gone_is_noticed_by_an_idle_link },
		{ "a host that is gone is noticed in the middle of a put",
		  a_host_that_is_gone_is_noticed_in_the_middle_of_a_put },
		{ "a full window ends no link, and a dead host does",
		  a_full_window_ends_no_link_and_a_dead_host_does },
		{ "an urgent word passes a large put", an_urgent_word_passes_a_large_put },
		{ "a killed process is lost at once", a_killed_process_is_lost_at_once },
		{ "a process that stands still keeps its link",
		  a_process_that_stands_still_keeps_its_link },
		{ "the kernel repeats often enough", the_kernel_repeats_often_enough },
		{ "the kernel is told how much to hold", the_kernel_is_told_how_much_to_hold },
		{ "an end that does not look for long loses no link",
		  an_end_that_does_not_look_for_long_loses_no_link },
		{ "what comes after a full receive is heard of",
		  what_comes_after_a_full_receive_is_heard_of },
		{ "a thread receives while its owner is away",
		  a_thread_receives_while_its_owner_is_away },
		{ "a thread sends while its owner is away",
		  a_thread_sends_while_its_owner_is_away },
		{ "a net takes what it claims", a_net_takes_what_it_claims },
		{ "a forked child holds no descriptor and ends no link",
		  a_forked_child_holds_no_descriptor_and_ends_no_link },
		CU_TEST_INFO_NULL,
	};

	target_fabric.link_timeout_ns = DEAD_NS;
	if (argc > 1)
		target_fabric.io_threads = (uint32_t)strtoul(argv[1], NULL, 10);
	return ut_main("tcp_ends", cases);
}
