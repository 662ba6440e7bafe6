/* SPDX-License-Identifier: MIT */
/* How much an io takes from one link before it is the next one's turn, whatever the peer sends. */
#include <errno.h>
#include <string.h>

#include "common/transport/channel.h"
#include "common/transport/tcp/tcp.h"
#include "tests/ut.h"

#define LANE_BYTES ((size_t)MST_TCP_FRAME_BYTES << 18)
/* So many receives are more than any turn has. */
#define ENDLESS 100000u

/* ---- a channel that never has nothing ---- */

static uint32_t receives;
static size_t given;
static size_t piece; /* bytes that it gives at a time, at most */
static uint8_t frame[MST_TCP_FRAME_BYTES];
static size_t at; /* of the frame */

static ssize_t give(struct mst_stream *s, const struct iovec *to, uint32_t count)
{
	size_t done = 0;

	(void)s;
	if (++receives > ENDLESS)
		return -EAGAIN;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *out = to[i].iov_base;
		for (size_t n = 0; n < to[i].iov_len && done < piece; n++, done++) {
			out[n] = frame[at];
			at = (at + 1) % sizeof(frame);
		}
	}
	given += done;
	return (ssize_t)done;
}

static bool holds(struct mst_stream *s)
{
	(void)s;
	return receives <= ENDLESS;
}

static void close_none(struct mst_stream *s)
{
	(void)s;
}

static const struct mst_stream_ops stream = { .why = mst_stream_no_why, .close = close_none };
static const struct mst_channel_ops channel = { .stream = &stream,
						.receive = give,
						.holds = holds };

/* ---- turns ---- */

static struct mst_tcp_net net;
static uint64_t bytes; /* the stream, which nothing looks into */
static struct mst_tcp_link *l;

static void begin(size_t at_a_time, uint32_t kind)
{
	struct mst_tcp_link_cfg cfg = { .connector = true, .lanes = { .down_bytes = LANE_BYTES } };
	struct mst_tcp_frame f = { .kind = kind };

	CU_ASSERT_EQUAL_FATAL(mst_tcp_link_new(&net, &cfg, &l, UT_UNREAD), 0);
	l->conn.channel = &channel;
	l->conn.stream = (struct mst_stream *)&bytes;
	receives = 0;
	given = 0;
	at = 0;
	piece = at_a_time;
	if (kind == MST_TCP_WRITE)
		f.length = LANE_BYTES; /* of which the header comes again and again */
	mst_tcp_frame_encode(&f, frame);
}

static void end(void)
{
	l->conn = MST_TCP_NO_CONN;
	mst_tcp_link_free(&l->link);
}

/* Records of one byte each are what a peer can make most of. */
static void a_turn_ends_though_each_receive_brings_a_byte(void)
{
	static const uint32_t kinds[] = { MST_TCP_STILL, MST_TCP_CREDIT, MST_TCP_WRITE };

	for (size_t i = 0; i < 3; i++) {
		begin(1, kinds[i]);
		CU_ASSERT_EQUAL(mst_tcp_in_step(l), 1); /* there may be more */
		CU_ASSERT(receives <= 256);
		uint32_t once = receives;
		CU_ASSERT_EQUAL(mst_tcp_in_step(l), 1);
		CU_ASSERT_EQUAL(receives, 2 * once);
		end();
	}
}

static void a_turn_ends_though_frames_that_hold_nothing_never_end(void)
{
	static const uint32_t kinds[] = { MST_TCP_STILL, MST_TCP_CREDIT };

	for (size_t i = 0; i < 2; i++) {
		begin(SIZE_MAX, kinds[i]);
		CU_ASSERT_EQUAL(mst_tcp_in_step(l), 1);
		CU_ASSERT(receives <=
			  ((size_t)1 << 20) / (MST_TCP_STASH_BYTES - sizeof(frame)) + 1);
		end();
	}
}

/* No lawful peer makes frames as long as a lane. */
static void a_turn_ends_though_a_frame_is_longer(void)
{
	begin(SIZE_MAX, MST_TCP_WRITE);
	CU_ASSERT_EQUAL(mst_tcp_in_step(l), 1);
	CU_ASSERT(given <= 2 * (((size_t)1 << 20) + MST_TCP_STASH_BYTES));
	while (given < LANE_BYTES + sizeof(frame) && receives < 100)
		CU_ASSERT_EQUAL(mst_tcp_in_step(l), 1);
	CU_ASSERT(given > LANE_BYTES);
	CU_ASSERT_EQUAL(memcmp(l->inbound.base, frame, sizeof(frame)), 0);
	end();
}

static CU_TestInfo cases[] = {
	{ "a turn ends though a frame is longer", a_turn_ends_though_a_frame_is_longer },
	{ "a turn ends though each receive brings a byte",
	  a_turn_ends_though_each_receive_brings_a_byte },
	{ "a turn ends though frames that hold nothing never end",
	  a_turn_ends_though_frames_that_hold_nothing_never_end },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("tcp, turn", cases);
}
