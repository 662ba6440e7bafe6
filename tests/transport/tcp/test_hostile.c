/* SPDX-License-Identifier: MIT */
/* Peers and strangers over TCP that send what they like: what it does to them, and to nobody else.
 *
 *   test_transport_tcp_hostile [IO_THREADS]
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/transport/tcp/attack.h"

/* ---- the clock of listeners ---- */

uint64_t __real_mst_now_ns(void);
uint64_t __wrap_mst_now_ns(void);
static _Atomic uint64_t ahead_ns;

uint64_t __wrap_mst_now_ns(void)
{
	return __real_mst_now_ns() + atomic_load(&ahead_ns);
}

/* ---- streams that are cut ---- */

#define WORD UINT64_C(0x5a5a5a5a5a5a5a5a)

/* A word at 8, a notice, and 100 bytes at 1000 with a notice. Return: its length. */
static size_t compose(uint8_t out[512])
{
	const struct mst_tcp_frame f[] = {
		{ .kind = MST_TCP_WRITE, .offset = 8, .length = 8 },
		{ .kind = MST_TCP_NOTIFY, .imm = 1 },
		{ .kind = MST_TCP_WRITE_NOTIFY, .imm = 2, .offset = 1000, .length = 100 },
	};
	size_t at = 0;

	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
		mst_tcp_frame_encode(&f[i], out + at);
		at += MST_TCP_FRAME_BYTES;
		memset(out + at, i == 0 ? 0x5a : 0x77, f[i].length);
		at += f[i].length;
	}
	return at;
}

static uint64_t word_of(const struct mst_link *link)
{
	/* Relaxed: nothing is read besides. */
	return atomic_load_explicit((_Atomic uint64_t *)link->inbound + 1, memory_order_relaxed);
}

/* How many of the two notices are complete in the first @cut bytes. */
static int complete(size_t cut, size_t all)
{
	return cut < 56 ? 0 : cut < all ? 1 : 2;
}

static void a_stream_that_ends_anywhere_is_taken_as_far_as_it_is_whole(void)
{
	uint8_t text[512];
	size_t all = compose(text);
	struct tcp_target h = target_open();
	struct mst_net_event ev[4];

	for (size_t cut = 0; cut <= all; cut++) {
		int fd, want = complete(cut, all);
		struct mst_link *link = let_in(&h, &fd);
		if (cut > 0)
			say(fd, text, cut);
		close(fd);
		CU_ASSERT_EQUAL_FATAL(poll_for(h.net, ev, want + 1, PATIENCE_NS), want + 1);
		for (int i = 0; i < want; i++)
			CU_ASSERT(ev[i].kind == MST_ARRIVED && ev[i].imm == (uint32_t)i + 1);
		CU_ASSERT(ev[want].kind == MST_LOST && ev[want].error == -EPIPE);
		CU_ASSERT_EQUAL(word_of(link), cut < 32 ? 0 : WORD);
		mst_tcp.detach(link);
		mst_tcp.link_free(link);
	}
	target_close(&h);
}

static void a_stream_that_pauses_anywhere_shows_no_torn_word(void)
{
	uint8_t text[512];
	size_t all = compose(text);
	struct tcp_target h = target_open();
	struct mst_net_event ev[4];

	for (size_t cut = 1; cut < all; cut++) {
		int fd, want = complete(cut, all);
		struct mst_link *link = let_in(&h, &fd);
		say(fd, text, cut);
		CU_ASSERT_EQUAL(poll_for(h.net, ev, want, PATIENCE_NS), want);
		CU_ASSERT_EQUAL(poll_for(h.net, ev, 1, 2 * MST_MS), 0);
		uint64_t word = word_of(link);
		CU_ASSERT(word == 0 || word == WORD);
		say(fd, text + cut, all - cut);
		CU_ASSERT_EQUAL(poll_for(h.net, ev, 2 - want, PATIENCE_NS), 2 - want);
		CU_ASSERT_EQUAL(word_of(link), WORD);
		CU_ASSERT_EQUAL(((uint8_t *)link->inbound)[1099], 0x77);
		CU_ASSERT_EQUAL(((uint8_t *)link->inbound)[1100], 0);
		mst_tcp.detach(link);
		mst_tcp.link_free(link);
		close(fd);
	}
	target_close(&h);
}

/* ---- frames that cannot be ---- */

static const struct {
	struct mst_tcp_frame frame;
	const char *words;
} wrong[] = {
	{ { .kind = 0 }, "kind 0" },
	{ { .kind = MST_TCP_STILL + 1 }, "kind 6" },
	{ { .kind = UINT32_MAX, .length = 8 }, "kind 4294967295" },
	{ { .kind = MST_TCP_WRITE }, "no bytes" },
	{ { .kind = MST_TCP_WRITE_NOTIFY }, "no bytes" },
	{ { .kind = MST_TCP_WRITE, .length = LANE + 1 }, "4097 bytes at 0" },
	{ { .kind = MST_TCP_WRITE, .offset = LANE, .length = 1 }, "1 bytes at 4096" },
	{ { .kind = MST_TCP_WRITE, .offset = LANE - 7, .length = 8 }, "8 bytes at 4089" },
	{ { .kind = MST_TCP_WRITE, .offset = UINT64_MAX - 7, .length = 8 }, "where it may write" },
	{ { .kind = MST_TCP_WRITE, .offset = 8, .length = UINT64_MAX }, "where it may write" },
	{ { .kind = MST_TCP_WRITE_NOTIFY, .offset = UINT64_MAX, .length = UINT64_MAX },
	  "where it may write" },
	{ { .kind = MST_TCP_NOTIFY, .length = 1 }, "which has no bytes" },
	{ { .kind = MST_TCP_STILL, .length = UINT64_MAX }, "which has no bytes" },
	{ { .kind = MST_TCP_CREDIT, .offset = 1 }, "acknowledgement of 1 notices, where 0" },
	{ { .kind = MST_TCP_CREDIT, .offset = UINT64_MAX }, "acknowledgement" },
};

/* Beside it a link goes on, and its memory is as it was. */
static void a_frame_that_cannot_be_ends_its_link_alone(void)
{
	static uint8_t bytes[LANE + 64];

	memset(bytes, 0xee, sizeof(bytes));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct tcp_attack g;
		struct mst_net_event ev;
		int fd;
		attack_begin(&g);
		struct mst_link *other = let_in(&g.target, &fd);
		send_frame(g.fd, wrong[i].frame, NULL);
		say(g.fd, bytes, sizeof(bytes));
		expect_lost(&g, -EPROTO, wrong[i].words);
		CU_ASSERT_EQUAL(((uint8_t *)g.link->inbound)[0], 0);
		CU_ASSERT_EQUAL(((uint8_t *)g.link->inbound)[LANE - 1], 0);
		send_frame(fd, (struct mst_tcp_frame){ .kind = MST_TCP_NOTIFY, .imm = 9 }, NULL);
		CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, PATIENCE_NS), 1);
		CU_ASSERT(ev.kind == MST_ARRIVED && ev.link == other && ev.imm == 9);
		mst_tcp.detach(other);
		mst_tcp.link_free(other);
		close(fd);
		attack_end(&g);
	}
}

static void a_write_may_go_to_the_very_end(void)
{
	struct tcp_attack g;
	struct mst_net_event ev;
	uint8_t bytes[LANE];

	attack_begin(&g);
	memset(bytes, 0x33, sizeof(bytes));
	send_frame(g.fd, (struct mst_tcp_frame){ .kind = MST_TCP_WRITE, .length = LANE }, bytes);
	send_frame(g.fd,
		   (struct mst_tcp_frame){
			   .kind = MST_TCP_WRITE_NOTIFY, .offset = LANE - 1, .length = 1 },
		   "x");
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, PATIENCE_NS), 1);
	CU_ASSERT_EQUAL(ev.kind, MST_ARRIVED);
	CU_ASSERT_EQUAL(((uint8_t *)g.link->inbound)[LANE - 2], 0x33);
	CU_ASSERT_EQUAL(((uint8_t *)g.link->inbound)[LANE - 1], 'x');
	attack_end(&g);
}

static void one_notice_too_many_ends_the_link(void)
{
	struct tcp_attack g;

	attack_begin(&g);
	for (uint32_t i = 0; i <= CREDITS; i++)
		send_frame(g.fd, (struct mst_tcp_frame){ .kind = MST_TCP_NOTIFY, .imm = i }, NULL);
	/* All at once, so that none was polled in between. */
	mst_sleep_ns(20 * MST_MS);
	expect_lost(&g, -EPROTO, "notice 5, of which 0");
	attack_end(&g);
}

/* What has been acknowledged stays so. */
static void an_acknowledgement_that_goes_back_ends_the_link(void)
{
	struct tcp_attack g;
	struct mst_put put = { .notify = true };

	attack_begin(&g);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(mst_tcp.put(g.link, &put), 1);
	mst_tcp.wait(g.target.net, MST_MS);
	send_frame(g.fd, (struct mst_tcp_frame){ .kind = MST_TCP_CREDIT, .offset = 2 }, NULL);
	send_frame(g.fd, (struct mst_tcp_frame){ .kind = MST_TCP_CREDIT, .offset = 1 }, NULL);
	expect_lost(&g, -EPROTO, "acknowledgement of 1 notices, where 3 were sent and 2");
	attack_end(&g);
}

/* ---- a reader that never reads ---- */

static void one_who_never_reads_holds_up_itself_alone(void)
{
	struct tcp_attack g;
	struct mst_net_event ev;
	size_t bytes = (size_t)32 << 20;
	int fd, rc = 0, taken = 0;

	attack_begin(&g);
	struct mst_link *other = let_in(&g.target, &fd);
	struct mst_put put = { .src = g.target.net->published, .bytes = bytes };
	for (; rc >= 0 && taken < 100000; taken++) {
		rc = mst_tcp.put(g.link, &put);
		(void)mst_tcp.poll(g.target.net, &ev, 1);
	}
	CU_ASSERT_EQUAL(rc, -EAGAIN);
	CU_ASSERT(taken < 1000);
	send_frame(fd, (struct mst_tcp_frame){ .kind = MST_TCP_NOTIFY }, NULL);
	CU_ASSERT_EQUAL(poll_for(g.target.net, &ev, 1, PATIENCE_NS), 1);
	CU_ASSERT(ev.kind == MST_ARRIVED && ev.link == other);
	uint64_t began_ns = mst_now_ns();
	mst_tcp.detach(g.link);
	CU_ASSERT(mst_now_ns() - began_ns < PATIENCE_NS / 4);
	mst_tcp.link_free(g.link);
	close(g.fd);
	g.link = other;
	g.fd = fd;
	attack_end(&g);
}

/* ---- strangers ---- */

static void take_nobody(struct tcp_target *h)
{
	struct mst_link_request request;

	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(mst_tcp_listener.next_request(h->listener, &request, UT_UNREAD),
				-EAGAIN);
}

static void the_silent_cost_a_bounded_number_of_descriptors(void)
{
	struct tcp_target h = target_open();
	int before = descriptors(), fd[300], honest;

	for (int i = 0; i < 300; i++) {
		fd[i] = call(&h);
		if (i % 3 == 0) /* some begin well */
			say(fd[i], "mtcp", 4);
		if (i % 10 == 0)
			take_nobody(&h);
	}
	take_nobody(&h);
	CU_ASSERT(descriptors() - before - 300 <= 64);
	struct mst_link *link = let_in(&h, &honest);
	atomic_fetch_add(&ahead_ns, 6 * MST_SECOND);
	take_nobody(&h);
	CU_ASSERT_EQUAL(descriptors() - before - 300, 2); /* both ends of the honest one */
	for (int i = 0; i < 300; i++)
		close(fd[i]);
	mst_tcp.detach(link);
	mst_tcp.link_free(link);
	close(honest);
	target_close(&h);
}

static void who_speaks_another_protocol_is_sent_away_at_once(void)
{
	struct tcp_target h = target_open();
	struct mst_tcp_hello other = hello_of(1), beyond = hello_of(1), apart = hello_of(1);
	int fd[4];

	for (int i = 0; i < 4; i++)
		fd[i] = call(&h);
	say(fd[0], "GET / HTTP/1.1\r\n\r\n", 18);
	other.version++;
	say_hello(fd[1], &other);
	beyond.lanes.up_bytes = SIZE_MAX;
	say_hello(fd[2], &beyond);
	apart.at = apart.lanes.down_bytes;
	apart.bytes = 1;
	say_hello(fd[3], &apart);
	take_nobody(&h);
	CU_ASSERT_EQUAL(answer_to(fd[0]), -EPROTO);
	CU_ASSERT_EQUAL(answer_to(fd[1]), -EPROTONOSUPPORT);
	CU_ASSERT_EQUAL(answer_to(fd[2]), -EINVAL);
	CU_ASSERT_EQUAL(answer_to(fd[3]), -EINVAL);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	target_close(&h);
}

/* Callers wait meanwhile, and nobody is sent away. */
static void want_of_descriptors_passes(void)
{
	struct tcp_target h = target_open();
	struct mst_tcp_hello seven = hello_of(7);
	struct mst_link_request request;
	struct mst_reason why;
	struct rlimit was, low;
	int first = call(&h), second = call(&h), next = dup(first);

	say_hello(first, &seven);
	say_hello(second, &seven);
	close(next);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = was;
	low.rlim_cur = (rlim_t)next; /* the lowest that is free */
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &low), 0);
	CU_ASSERT_EQUAL(mst_tcp_listener.next_request(h.listener, &request, &why), -EMFILE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "accept4"));
	setrlimit(RLIMIT_NOFILE, &was);
	for (int i = 0; i < 2; i++) {
		struct mst_link *link = NULL;
		CU_ASSERT_EQUAL_FATAL(next_request(&h, &request), 0);
		CU_ASSERT_EQUAL(mst_tcp_listener.answer(h.listener, &request, &link, UT_UNREAD), 0);
		mst_tcp.link_free(link);
	}
	close(first);
	close(second);
	target_close(&h);
}

static bool expects_seven(void *ctx, const uint8_t token[MST_TOKEN_LEN],
			  const struct mst_origin *from)
{
	const uint8_t loopback[4] = { 127, 0, 0, 1 };

	++*(int *)ctx;
	CU_ASSERT_EQUAL(memcmp(from->address + 12, loopback, 4), 0);
	return token[0] == 7;
}

static void who_is_not_expected_is_never_seen(void)
{
	struct tcp_target h = target_open();
	struct mst_tcp_hello six = hello_of(6), seven = hello_of(7);
	struct mst_link_request request;
	int asked = 0, fd[2] = { call(&h), call(&h) };

	h.listener->filter = (struct mst_link_filter){ expects_seven, &asked };
	say_hello(fd[0], &six);
	take_nobody(&h);
	CU_ASSERT_EQUAL(answer_to(fd[0]), MST_TCP_UNKNOWN);
	say_hello(fd[1], &seven);
	CU_ASSERT_EQUAL(next_request(&h, &request), 0);
	CU_ASSERT_EQUAL(request.token[0], 7);
	CU_ASSERT_EQUAL(request.from.count, 1);
	CU_ASSERT_EQUAL(asked, 2);
	CU_ASSERT_EQUAL(mst_tcp_listener.answer(h.listener, &request, NULL, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(answer_to(fd[1]), -EACCES);
	close(fd[0]);
	close(fd[1]);
	target_close(&h);
}

static void who_goes_on_before_the_answer_is_not_let_in(void)
{
	struct tcp_target h = target_open();
	struct mst_tcp_hello hello = hello_of(1);
	struct mst_link_request request;
	struct mst_link *link = NULL;
	struct mst_reason why;
	int fd = call(&h);

	say_hello(fd, &hello);
	say(fd, "x", 1);
	CU_ASSERT_EQUAL(next_request(&h, &request), 0);
	CU_ASSERT_EQUAL(mst_tcp_listener.answer(h.listener, &request, &link, &why), -EPROTO);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "went on before"));
	CU_ASSERT_PTR_NULL(link);
	close(fd);
	target_close(&h);
}

int main(int argc, char **argv)
{
	static CU_TestInfo cases[] = {
		{ "a stream that ends anywhere is taken as far as it is whole",
		  a_stream_that_ends_anywhere_is_taken_as_far_as_it_is_whole },
		{ "a stream that pauses anywhere shows no torn word",
		  a_stream_that_pauses_anywhere_shows_no_torn_word },
		{ "a frame that cannot be ends its link alone",
		  a_frame_that_cannot_be_ends_its_link_alone },
		{ "a write may go to the very end", a_write_may_go_to_the_very_end },
		{ "one notice too many ends the link", one_notice_too_many_ends_the_link },
		{ "an acknowledgement that goes back ends the link",
		  an_acknowledgement_that_goes_back_ends_the_link },
		{ "one who never reads holds up itself alone",
		  one_who_never_reads_holds_up_itself_alone },
		{ "the silent cost a bounded number of descriptors",
		  the_silent_cost_a_bounded_number_of_descriptors },
		{ "who speaks another protocol is sent away at once",
		  who_speaks_another_protocol_is_sent_away_at_once },
		{ "want of descriptors passes", want_of_descriptors_passes },
		{ "who is not expected is never seen", who_is_not_expected_is_never_seen },
		{ "who goes on before the answer is not let in",
		  who_goes_on_before_the_answer_is_not_let_in },
		CU_TEST_INFO_NULL,
	};

	if (argc > 1)
		target_fabric.io_threads = (uint32_t)strtoul(argv[1], NULL, 10);
	return ut_main("tcp_hostile", cases);
}
