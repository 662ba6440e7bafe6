/* SPDX-License-Identifier: MIT */
/*
 * The queue of puts, over a network of this test's own: writes go nowhere, but are noted down;
 * completions and arrivals are what a case says.
 *
 *   test_queue [KIB]
 *
 * KIB is the size of the network's messages, 128 as RDMA has it, or as much as 1024.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/transport/queue.h"
#include "tests/ut.h"

#define WRITES_MAX 256
#define MESSAGE_MAX ((size_t)1 << 20)
#define PEER_MESSAGES 16u /* that the peer's inbound region has room for */
#define CREDITS 4u

static size_t message = (size_t)128 << 10, peer_bytes;
static uint8_t outbound[PEER_MESSAGES * MESSAGE_MAX], published[4096];
static struct mst_link link_;
static struct mst_region composed = { .base = outbound, .bytes = sizeof(outbound) };
static struct mst_region versions = { .base = published, .bytes = sizeof(published) };
static struct mst_region nothing; /* a net that publishes nothing */
static _Atomic uint64_t in_word, out_word;

/* What was written, in the order in which it was composed. */
static struct mst_queue_write written[WRITES_MAX];
static uint32_t way[WRITES_MAX], count, posts, gathers;

static void note_write(struct mst_queue *q, uint32_t rail, const struct mst_queue_write *w)
{
	(void)q;
	CU_ASSERT_FATAL(count < WRITES_MAX);
	written[count] = *w;
	way[count++] = rail;
}

static void note_post(struct mst_queue *q, uint32_t rail)
{
	(void)q;
	(void)rail;
	posts++;
}

static void note_gather(struct mst_queue *q)
{
	(void)q;
	gathers++;
}

static const struct mst_queue_ops ops = { note_write, note_post, note_gather };

static struct mst_queue queue_with(uint32_t rails, uint32_t sends, size_t bytes)
{
	struct mst_queue q = { .ops = &ops,
			       .link = &link_,
			       .outbound = &composed,
			       .published = &versions,
			       .peer_bytes = peer_bytes,
			       .message = bytes,
			       .in_credits = CREDITS,
			       .out_credits = CREDITS,
			       .in_word = &in_word,
			       .out_word = &out_word,
			       .word_at = peer_bytes,
			       .ordered = true,
			       .state = MST_QUEUE_LIVE,
			       .open = true,
			       .rail_count = rails };

	link_.outbound = outbound;
	link_.outbound_bytes = sizeof(outbound);
	atomic_store(&in_word, 0);
	atomic_store(&out_word, 0);
	count = posts = gathers = 0;
	for (uint32_t i = 0; i < rails; i++)
		CU_ASSERT_EQUAL_FATAL(mst_queue_rail_init(&q, i, sends), 0);
	CU_ASSERT_EQUAL_FATAL(mst_queue_init(&q), 0);
	return q;
}

static struct mst_queue queue_of(uint32_t rails, uint32_t sends)
{
	return queue_with(rails, sends, message);
}

static struct mst_put put_at(size_t offset, size_t bytes)
{
	return (struct mst_put){ .offset = offset, .bytes = bytes, .src = outbound + offset };
}

static void complete_all(struct mst_queue *q)
{
	for (uint32_t i = 0; i < q->rail_count; i++)
		mst_queue_completed(q, i, q->rail[i].posted);
}

/* Whatever way the pieces go, each byte goes once, and the immediate follows on every rail. */
static void a_large_put_is_dealt_over_the_rails(void)
{
	struct mst_queue q = queue_of(3, 64);
	struct mst_put put = put_at(1000, 7 * message - 1500);
	size_t bytes = 0, last[3] = { 0 };
	uint32_t notices = 0;

	put.notify = true;
	put.imm = 77;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	for (uint32_t i = 0; i < count; i++) {
		const struct mst_queue_write *w = &written[i];
		CU_ASSERT(w->bytes <= message);
		CU_ASSERT(w->bytes == 0 || w->src == outbound + w->offset);
		CU_ASSERT(w->bytes == 0 || !w->notify);
		CU_ASSERT(!w->notify || w->imm == 77);
		bytes += w->bytes;
		notices += w->notify;
		last[way[i]] = i;
	}
	CU_ASSERT_EQUAL(bytes, put.bytes);
	CU_ASSERT_EQUAL(notices, 3);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(written[last[i]].notify); /* after the data of its rail */
	CU_ASSERT_EQUAL(posts, 3);
	mst_queue_fini(&q);
}

static void what_is_put_to_one_place_goes_one_way(void)
{
	struct mst_queue q = queue_of(3, 64);
	struct mst_put under = put_at(0, peer_bytes), over = put_at(5 * message + 9, 8);
	uint32_t under_way = UINT32_MAX;

	CU_ASSERT_EQUAL(mst_queue_put(&q, &under), 0);
	for (uint32_t i = 0; i < count; i++)
		if (written[i].offset == 5 * message)
			under_way = way[i];
	CU_ASSERT_EQUAL(mst_queue_put(&q, &over), 0);
	CU_ASSERT_EQUAL(written[count - 1].offset, over.offset);
	CU_ASSERT_EQUAL(way[count - 1], under_way);
	mst_queue_fini(&q);
}

/* Where on its rail the one write is that begins there; -1: it is not there. */
static int turn_of(uint32_t rail, size_t offset)
{
	int turn = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (way[i] == rail && written[i].offset == offset)
			return turn;
		turn += way[i] == rail;
	}
	return -1;
}

/* Whatever rail brings a byte that was put after the word has brought a word before. */
static void a_word_of_every_rail_is_overtaken_by_nothing(void)
{
	uint64_t word = 0x1122334455667788;
	struct mst_put before = put_at(message, 3 * message),
		       after = put_at(4 * message, 9 * message);
	struct mst_put put = { .offset = 64, .src = &word, .bytes = 8, .every_rail = true };
	struct mst_queue q = queue_of(3, 64);

	CU_ASSERT_EQUAL(mst_queue_put(&q, &before), 0);
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 1);
	CU_ASSERT_EQUAL(mst_queue_put(&q, &after), 0);
	for (uint32_t i = 0; i < 3; i++) {
		int turn = turn_of(i, 64 + 8 * (size_t)i);
		CU_ASSERT_EQUAL(turn, 1); /* each rail has one piece of what was put before */
	}
	for (uint32_t i = 0; i < count; i++) {
		bool is_word = written[i].offset >= 64 && written[i].offset < 64 + 24;
		CU_ASSERT(!is_word || memcmp(written[i].src, &word, 8) == 0);
		CU_ASSERT(!is_word || (written[i].bytes == 8 && !written[i].notify));
	}
	CU_ASSERT_EQUAL(count, 3 + 3 + 9);
	mst_queue_fini(&q);
}

static void a_word_of_every_rail_waits_for_all_of_them(void)
{
	uint64_t word = 7;
	struct mst_put put = { .offset = 64, .src = &word, .bytes = 8, .every_rail = true };
	struct mst_put on_second = put_at(message, 8), after = put_at(2 * message, 8);
	struct mst_queue q = queue_of(2, 4);

	for (int i = 0; i < 3; i++) /* one place is kept for credits */
		CU_ASSERT_EQUAL(mst_queue_put(&q, &on_second), 0);
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 1);
	CU_ASSERT_EQUAL(mst_queue_put(&q, &after), 0);
	CU_ASSERT_EQUAL(count, 3); /* though the first rail has room */
	mst_queue_completed(&q, 1, 1);
	mst_queue_flush(&q);
	CU_ASSERT_EQUAL_FATAL(count, 6);
	CU_ASSERT(turn_of(0, 64) == 0 && turn_of(1, 72) == 3);
	CU_ASSERT_EQUAL(turn_of(0, 2 * message), 1);
	mst_queue_fini(&q);
}

/* The words of all rails must be inside. */
static void a_word_of_every_rail_has_room_for_all_of_them(void)
{
	uint64_t word = 7;
	struct mst_put put = {
		.offset = peer_bytes - 16, .src = &word, .bytes = 8, .every_rail = true
	};
	struct mst_queue q = queue_of(3, 64);

	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), -EINVAL);
	put.offset -= 8;
	link_.outbound_bytes = peer_bytes;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 1);
	mst_queue_fini(&q);
}

static void a_small_put_carries_its_immediate(void)
{
	struct mst_queue q = queue_of(1, 64);
	struct mst_put put = put_at(64, 100);

	put.notify = true;
	put.imm = 5;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	CU_ASSERT_EQUAL(count, 1);
	CU_ASSERT(written[0].notify && written[0].imm == 5 && written[0].bytes == 100);
	mst_queue_fini(&q);
}

static void an_arrival_is_one_when_all_rails_brought_it(void)
{
	struct mst_queue q = queue_of(2, 64);
	uint32_t imm = 0;

	mst_queue_arrived(&q, 0, 1);
	mst_queue_arrived(&q, 0, 2);
	CU_ASSERT_FALSE(mst_queue_has_arrival(&q));
	mst_queue_arrived(&q, 1, 1);
	CU_ASSERT_TRUE(mst_queue_has_arrival(&q));
	CU_ASSERT_EQUAL(mst_queue_take_arrival(&q, &imm), 0);
	CU_ASSERT_EQUAL(imm, 1);
	CU_ASSERT_FALSE(mst_queue_has_arrival(&q));
	mst_queue_arrived(&q, 1, 3); /* a peer that lies, or a rail that lost one */
	CU_ASSERT_EQUAL(mst_queue_take_arrival(&q, &imm), -EPROTO);
	mst_queue_fini(&q);
}

static void credits_are_what_the_peer_says(void)
{
	struct mst_queue q = queue_of(1, 64);
	struct mst_put put = put_at(0, 8);

	put.notify = true;
	for (uint32_t i = 0; i < CREDITS; i++)
		CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), -EAGAIN);
	atomic_store(&in_word, CREDITS + 1); /* more than there were: it lies */
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), -EAGAIN);
	atomic_store(&in_word, 1);
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), -EAGAIN);
	atomic_store(&in_word, 0); /* it does not run backwards */
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), -EAGAIN);
	mst_queue_fini(&q);
}

static uint32_t words_written(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		n += written[i].offset == peer_bytes;
	return n;
}

static void credits_go_back_when_half_are_used(void)
{
	struct mst_queue q = queue_of(1, 64);

	q.polled = 1;
	mst_queue_settle(&q);
	CU_ASSERT_EQUAL(words_written(), 0);
	q.polled = 2;
	mst_queue_settle(&q);
	CU_ASSERT_EQUAL(words_written(), 1);
	CU_ASSERT_EQUAL(atomic_load(&out_word), 2);
	q.polled = 3;
	mst_queue_return(&q); /* before a sleep: however few */
	CU_ASSERT_EQUAL(words_written(), 2);
	mst_queue_return(&q);
	CU_ASSERT_EQUAL(words_written(), 2);
	mst_queue_fini(&q);
}

static void credits_ride_with_a_put_where_that_is_cheap(void)
{
	struct mst_queue q = queue_of(1, 64);
	struct mst_put put = put_at(0, 8);

	q.polled = 1;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	CU_ASSERT_EQUAL(words_written(), 0);
	q.rides = true;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	CU_ASSERT_EQUAL(words_written(), 1);
	CU_ASSERT_EQUAL(written[1].offset, peer_bytes); /* before the put */
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	mst_queue_return(&q); /* there is nothing left to return */
	CU_ASSERT_EQUAL(words_written(), 1);
	q.polled = 2;
	mst_queue_settle(&q); /* nothing is put */
	CU_ASSERT_EQUAL(words_written(), 1);
	mst_queue_fini(&q);
}

/* Where writes may pass each other the last one may have been passed by the one before. */
static void credits_are_told_twice_without_order(void)
{
	struct mst_queue q = queue_of(1, 64);

	q.ordered = false;
	q.polled = 3;
	mst_queue_return(&q);
	mst_queue_return(&q);
	mst_queue_return(&q);
	CU_ASSERT_EQUAL(words_written(), 2);
	mst_queue_fini(&q);
}

static void sent_is_told_when_all_rails_are_through(void)
{
	struct mst_queue q = queue_of(2, 64);
	struct mst_put put = put_at(0, 2 * message), none = put_at(0, 0);
	uint64_t cookie = 0;

	put.signal = none.signal = true;
	put.cookie = 9;
	none.src = NULL;
	none.notify = true;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	CU_ASSERT(count == 2 && written[0].report && written[1].report); /* one on each rail */
	CU_ASSERT_EQUAL(mst_queue_put(&q, &none), 1); /* there is nothing to be lent */
	mst_queue_completed(&q, 0, q.rail[0].posted);
	CU_ASSERT_FALSE(mst_queue_take_sent(&q, &cookie));
	CU_ASSERT_FALSE(mst_queue_is_idle(&q));
	mst_queue_completed(&q, 1, q.rail[1].posted);
	CU_ASSERT_TRUE(mst_queue_take_sent(&q, &cookie));
	CU_ASSERT_EQUAL(cookie, 9);
	CU_ASSERT_FALSE(mst_queue_take_sent(&q, &cookie));
	CU_ASSERT_TRUE(mst_queue_is_idle(&q));
	mst_queue_fini(&q);
}

/* A rail never has more on its way than it has room for, and all of it goes in the end. */
static void what_finds_no_room_waits(void)
{
	struct mst_queue q = queue_of(2, 4);
	struct mst_put put = put_at(0, peer_bytes);
	size_t bytes = 0;

	put.notify = true;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	for (int round = 0; q.head != q.tail && round < 100; round++) {
		for (uint32_t i = 0; i < 2; i++)
			CU_ASSERT(q.rail[i].posted - q.rail[i].completed <= 4);
		complete_all(&q);
		mst_queue_flush(&q);
	}
	for (uint32_t i = 0; i < count; i++)
		bytes += written[i].bytes;
	CU_ASSERT_EQUAL(bytes, peer_bytes);
	CU_ASSERT(written[count - 1].notify && written[count - 2].notify);
	CU_ASSERT(gathers > 0);
	mst_queue_fini(&q);
}

static void nothing_is_written_before_the_peers_memory_is_known(void)
{
	struct mst_queue q = queue_of(1, 64);
	struct mst_put put = put_at(0, 8);

	q.open = false;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	CU_ASSERT_EQUAL(count, 0);
	q.open = q.dirty = true;
	mst_queue_flush(&q);
	CU_ASSERT_EQUAL(count, 1);
	mst_queue_end(&q, -EPIPE);
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), -EPIPE);
	mst_queue_fini(&q);
}

static void a_source_elsewhere_is_copied(void)
{
	struct mst_queue q = queue_of(1, 64);
	uint64_t word = UINT64_C(0x0102030405060708);
	struct mst_put put = { .offset = 16, .src = &word, .bytes = 8, .signal = true };
	struct mst_put in_place = { .offset = 32, .src = published, .bytes = sizeof(published) };
	uint64_t cookie;

	link_.copied = 0;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 1);
	CU_ASSERT_EQUAL(memcmp(outbound + 16, &word, 8), 0);
	CU_ASSERT(written[0].src == outbound + 16 && written[0].region == &composed);
	complete_all(&q);
	CU_ASSERT_FALSE(mst_queue_take_sent(&q, &cookie)); /* it was the caller's at once */
	CU_ASSERT_EQUAL(mst_queue_put(&q, &in_place), 0);
	CU_ASSERT(written[1].src == published && written[1].region == &versions);
	link_.outbound_bytes = 64;
	put.offset = 60;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), -EINVAL);
	CU_ASSERT_EQUAL(link_.copied, 8);
	mst_queue_fini(&q);
}

static void a_source_of_a_region_is_lent_until_it_is_through(void)
{
	static uint8_t own[3 * MESSAGE_MAX];
	struct mst_region region = { .base = own, .bytes = sizeof(own) };
	struct mst_queue q = queue_of(2, 64);
	struct mst_put put = { .src = own, .bytes = 3 * message, .region = &region };
	uint64_t cookie = 0;

	q.published = &nothing;
	link_.outbound_bytes = 64; /* which it need not fit */
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	for (uint32_t i = 0; i < count; i++)
		CU_ASSERT(written[i].region == &region &&
			  written[i].src == own + written[i].offset);
	put.signal = true;
	put.cookie = 3;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	CU_ASSERT_EQUAL(atomic_load(&region.lent), 2);
	mst_queue_completed(&q, 0, q.rail[0].posted);
	CU_ASSERT_EQUAL(atomic_load(&region.lent), 2);
	CU_ASSERT_FALSE(mst_queue_has_sent(&q));
	mst_queue_completed(&q, 1, q.rail[1].posted);
	CU_ASSERT_EQUAL(atomic_load(&region.lent), 1); /* of the other, somebody is to be told */
	CU_ASSERT_TRUE(mst_queue_take_sent(&q, &cookie));
	CU_ASSERT_EQUAL(cookie, 3);
	CU_ASSERT_EQUAL(atomic_load(&region.lent), 0);
	mst_queue_fini(&q);
}

/* Where the system puts two mappings is its own affair. */
static void what_is_published_may_follow_the_outbound_region(void)
{
	struct mst_region next = { .base = outbound + 4096, .bytes = 4096 };
	struct mst_queue q = queue_of(1, 64);
	struct mst_put put = put_at(4096, 4096);

	q.published = &next;
	link_.outbound_bytes = 4096;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	CU_ASSERT(count == 1 && written[0].region == &next && written[0].src == next.base);
	mst_queue_fini(&q);
}

static void a_source_outside_of_its_region_is_refused(void)
{
	struct mst_region region = { .base = outbound + 4096, .bytes = 100 };
	struct mst_region target = { .base = outbound + 4096, .bytes = 100, .target = true };
	struct mst_queue q = queue_of(1, 64);
	const struct mst_put bad[] = {
		{ .src = outbound + 4096, .bytes = 100, .region = &target },
		{ .src = outbound + 4095, .bytes = 100, .region = &region },
		{ .src = outbound + 4096, .bytes = 101, .region = &region },
		{ .src = outbound + 4196, .bytes = 1, .region = &region },
		{ .src = outbound, .bytes = 1, .region = &region },
		{ .src = outbound + 4096, .bytes = SIZE_MAX, .region = &region },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(mst_queue_put(&q, &bad[i]), -EINVAL);
	CU_ASSERT(count == 0 && atomic_load(&region.lent) == 0);
	mst_queue_fini(&q);
}

/* What was queued, posted and not told of all goes back: nothing reads it any more. */
static void a_link_that_ends_gives_its_sources_back(void)
{
	static uint8_t own[MESSAGE_MAX];
	struct mst_region region = { .base = own, .bytes = sizeof(own) };
	struct mst_queue q = queue_of(1, 4);
	struct mst_put put = { .bytes = message, .src = own, .region = &region };

	for (uint32_t i = 0; i < 8; i++) {
		put.signal = i % 2 == 0;
		CU_ASSERT_EQUAL(mst_queue_put(&q, &put), 0);
	}
	CU_ASSERT_EQUAL(atomic_load(&region.lent), 8);
	CU_ASSERT(q.head != q.tail && q.pending_head != q.pending_tail);
	mst_queue_fini(&q);
	CU_ASSERT_EQUAL(atomic_load(&region.lent), 0);
}

/* Where a piece that begins at @offset ends: at the next cut, the next multiple of the size of a
 * message, or the end of the put, whatever comes first. */
static size_t end_of_piece(const struct mst_queue *q, const struct mst_put *put, size_t offset)
{
	size_t end = (offset / q->message + 1) * q->message;

	for (int k = 0; k < 2; k++)
		if (q->cut[k] > offset && q->cut[k] < end)
			end = q->cut[k];
	return end < put->offset + put->bytes ? end : put->offset + put->bytes;
}

/* Looks at what was written: in order, without a gap. */
static void expect_pieces(const struct mst_queue *q, const struct mst_put *put)
{
	size_t at = put->offset;

	for (uint32_t i = 0; i < count; i++) {
		CU_ASSERT_EQUAL_FATAL(written[i].offset, at);
		CU_ASSERT_EQUAL_FATAL(written[i].bytes, end_of_piece(q, put, at) - at);
		CU_ASSERT_EQUAL(way[i], at / q->message % q->rail_count);
		at += written[i].bytes;
	}
	CU_ASSERT_EQUAL(at, put->offset + put->bytes);
}

/* Networks of one process need not have the same. */
static void pieces_have_the_size_of_the_network(void)
{
	const size_t size[3] = { message, message / 2, MESSAGE_MAX };
	const struct {
		size_t offset, bytes, cut[2];
	} given[] = {
		{ 0, 5 * message, { 0, 0 } },
		{ 9, 4 * message, { 0, 0 } },
		{ message - 1, 2, { 0, 0 } },
		{ 100, 6 * message, { 1000, 3 * message + 8 } },
		{ 100, 6 * message, { 3 * message, 3 * message + 1 } },
		{ 2 * message, 3 * message, { message, 5 * message } },
	};
	struct mst_queue q[3];

	for (int s = 0; s < 3; s++)
		q[s] = queue_with(2, 64, size[s]);
	for (int s = 0; s < 3; s++) {
		for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
			struct mst_put put = put_at(given[i].offset, given[i].bytes);
			memcpy(q[s].cut, given[i].cut, sizeof(q[s].cut));
			count = 0;
			CU_ASSERT_EQUAL(mst_queue_put(&q[s], &put), 0);
			expect_pieces(&q[s], &put);
			complete_all(&q[s]);
		}
	}
	for (int s = 0; s < 3; s++)
		mst_queue_fini(&q[s]);
}

/* A network that sets none, or one that would tear words, is a mistake of ours: it ends here. */
static bool init_aborts(size_t bytes)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		const struct rlimit none = { 0, 0 };
		int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
		struct mst_queue q = { .message = bytes };
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)dup2(sink, STDERR_FILENO);
		_exit(mst_queue_init(&q) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
	CU_ASSERT(WIFSIGNALED(status) || WEXITSTATUS(status) == EXIT_SUCCESS);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void a_size_of_messages_that_cannot_be_is_refused(void)
{
	CU_ASSERT_FALSE(init_aborts(message));
	CU_ASSERT_FALSE(init_aborts(MST_QUEUE_MESSAGE_MIN));
	CU_ASSERT(init_aborts(0));
	CU_ASSERT(init_aborts(MST_QUEUE_MESSAGE_MIN / 2));
	CU_ASSERT(init_aborts(message + 1));
	CU_ASSERT(init_aborts(3 * message));
}

/* What lies elsewhere in part is written apart, and the immediate still comes last. */
static void no_piece_goes_across_a_cut(void)
{
	struct mst_queue q = queue_of(2, 64);
	const size_t cut[] = { 1000, message + 8 };
	struct mst_put all = put_at(0, 2 * message), word = put_at(1000, 8);
	size_t bytes = 0;

	memcpy(q.cut, cut, sizeof(cut));
	CU_ASSERT_EQUAL(mst_queue_put(&q, &all), 0);
	for (uint32_t i = 0; i < count; i++) {
		size_t end = written[i].offset + written[i].bytes;
		for (int k = 0; k < 2; k++)
			CU_ASSERT(written[i].offset >= cut[k] || end <= cut[k]);
		bytes += written[i].bytes;
	}
	CU_ASSERT_EQUAL(bytes, 2 * message);
	CU_ASSERT_EQUAL(count, 4);
	word.notify = true;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &word), 0);
	CU_ASSERT(written[4].notify && written[4].bytes == 8); /* one piece carries it */
	struct mst_put over = put_at(992, 16);
	over.notify = true;
	count = 0;
	CU_ASSERT_EQUAL(mst_queue_put(&q, &over), 0);
	CU_ASSERT_EQUAL(count, 4);
	CU_ASSERT(!written[0].notify && !written[1].notify);
	CU_ASSERT(written[2].notify && written[3].notify);
	mst_queue_fini(&q);
}

static CU_TestInfo cases[] = {
	{ "a large put is dealt over the rails", a_large_put_is_dealt_over_the_rails },
	{ "what is put to one place goes one way", what_is_put_to_one_place_goes_one_way },
	{ "a word of every rail is overtaken by nothing",
	  a_word_of_every_rail_is_overtaken_by_nothing },
	{ "a word of every rail waits for all of them",
	  a_word_of_every_rail_waits_for_all_of_them },
	{ "a word of every rail has room for all of them",
	  a_word_of_every_rail_has_room_for_all_of_them },
	{ "a small put carries its immediate", a_small_put_carries_its_immediate },
	{ "an arrival is one when all rails brought it",
	  an_arrival_is_one_when_all_rails_brought_it },
	{ "credits are what the peer says", credits_are_what_the_peer_says },
	{ "credits go back when half are used", credits_go_back_when_half_are_used },
	{ "credits are told twice without order", credits_are_told_twice_without_order },
	{ "credits ride with a put where that is cheap",
	  credits_ride_with_a_put_where_that_is_cheap },
	{ "sent is told when all rails are through", sent_is_told_when_all_rails_are_through },
	{ "what finds no room waits", what_finds_no_room_waits },
	{ "nothing is written before the peer's memory is known",
	  nothing_is_written_before_the_peers_memory_is_known },
	{ "a source elsewhere is copied", a_source_elsewhere_is_copied },
	{ "pieces have the size of the network", pieces_have_the_size_of_the_network },
	{ "a size of messages that cannot be is refused",
	  a_size_of_messages_that_cannot_be_is_refused },
	{ "no piece goes across a cut", no_piece_goes_across_a_cut },
	{ "a source of a region is lent until it is through",
	  a_source_of_a_region_is_lent_until_it_is_through },
	{ "what is published may follow the outbound region",
	  what_is_published_may_follow_the_outbound_region },
	{ "a source outside of its region is refused", a_source_outside_of_its_region_is_refused },
	{ "a link that ends gives its sources back", a_link_that_ends_gives_its_sources_back },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	if (argc == 2)
		message = (size_t)strtoul(argv[1], NULL, 10) << 10;
	if (argc > 2 || message == 0 || message > MESSAGE_MAX) {
		fprintf(stderr, "usage: %s [KIB]\n", argv[0]);
		return EXIT_FAILURE;
	}
	peer_bytes = PEER_MESSAGES * message;
	return ut_main("queue of puts", cases);
}
