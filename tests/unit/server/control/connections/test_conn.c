/* SPDX-License-Identifier: MIT */
/* A control connection, over a stream that gives out what a test has written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/control/connections/conn.h"
#include "tests/ut.h"

#define SMALL 60000u
#define PIECE MST_STATE_CHUNK

static char *wire;
static size_t wire_have, wire_at;
static size_t at_once; /* bytes that one read gives at most */
static uint32_t reads;
static uint64_t moved; /* bytes, by memmove() */

void *__real_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
	moved += bytes;
	return __real_memmove(to, from, bytes);
}

static ssize_t receive(struct mst_stream *s, void *out, size_t room)
{
	size_t left = wire_have - wire_at, bytes = left < room ? left : room;

	(void)s;
	reads++;
	if (bytes == 0)
		return -EAGAIN;
	bytes = bytes < at_once ? bytes : at_once;
	memcpy(out, wire + wire_at, bytes);
	wire_at += bytes;
	return (ssize_t)bytes;
}

static void close_stream(struct mst_stream *s)
{
	(void)s;
}

static const struct mst_stream_ops ops = { .receive = receive,
					   .close = close_stream,
					   .buffered = mst_stream_unbuffered,
					   .why = mst_stream_no_why,
					   .principal = mst_stream_unproven };

static void begin(struct mst_conn *c, size_t bytes)
{
	static int stream;

	wire = calloc(1, bytes);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wire);
	wire_have = wire_at = 0;
	at_once = SIZE_MAX;
	*c = (struct mst_conn){ 0 };
	mst_conn_open(c, &ops, (struct mst_stream *)(void *)&stream, 1);
	CU_ASSERT(mst_conn_enter(&c->role, MST_CONN_HELLO));
	CU_ASSERT(mst_conn_enter(&c->role, MST_CONN_ADMIT));
}

static void end(struct mst_conn *c)
{
	mst_conn_close(c);
	free(wire);
}

static void write_message(const struct mst_message *msg, size_t room)
{
	int64_t length = mst_message_encode(msg, wire + wire_have, room - wire_have);

	CU_ASSERT_FATAL(length > 0);
	wire_have += (size_t)length;
}

static struct mst_unknown unknown;

/* Return: how many messages of this kind came, all of them in order. */
static uint32_t read_all(struct mst_conn *c, enum mst_message_kind kind)
{
	static struct mst_message got;
	uint32_t count = 0, protocol = 0;
	size_t before;

	do {
		before = wire_at;
		CU_ASSERT_EQUAL_FATAL(mst_conn_receive(c), 0);
		while (mst_conn_next(c, &got, &protocol, &unknown) > 0)
			count += got.kind == kind;
	} while (wire_at != before || c->in_have > 0);
	return count;
}

/* The buffer has grown for a large frame; what follows it is many small ones. */
static void many_small_frames_cost_their_bytes(void)
{
	static struct mst_message m;
	size_t room = PIECE + SMALL * 64u + 4096;
	char *piece = calloc(1, PIECE);
	struct mst_conn c;

	begin(&c, room);
	c.sends_state = true;
	memset(&m, 0, sizeof(m));
	m.kind = MST_MSG_STATE;
	m.state = (struct mst_state_piece){ .total = PIECE, .length = PIECE, .data = piece };
	write_message(&m, room);
	memset(&m, 0, sizeof(m));
	m.kind = MST_MSG_HEARTBEAT;
	for (uint32_t i = 0; i < SMALL; i++)
		write_message(&m, room);
	moved = 0;
	CU_ASSERT_EQUAL(read_all(&c, MST_MSG_HEARTBEAT), SMALL);
	CU_ASSERT(moved < wire_have);
	end(&c);
	free(piece);
}

/* A message that cannot be taken yet comes again, however often, and what follows it comes after
 * it. */
static void a_message_that_waits_comes_again(void)
{
	static struct mst_message m, got;
	struct mst_conn c;
	uint32_t protocol;

	begin(&c, 1 << 16);
	memset(&m, 0, sizeof(m));
	m.kind = MST_MSG_LEAVE;
	for (m.seq = 1; m.seq <= 3; m.seq++)
		write_message(&m, 1 << 16);
	for (uint64_t seq = 1; seq <= 3; seq++) {
		for (int again = 0; again < 5; again++) {
			CU_ASSERT_EQUAL(mst_conn_receive(&c), 0);
			CU_ASSERT_EQUAL_FATAL(mst_conn_next(&c, &got, &protocol, &unknown), 1);
			CU_ASSERT_EQUAL(got.seq, seq);
			mst_conn_again(&c);
		}
		CU_ASSERT_EQUAL(mst_conn_next(&c, &got, &protocol, &unknown), 1);
	}
	CU_ASSERT_EQUAL(mst_conn_next(&c, &got, &protocol, &unknown), 0);
	end(&c);
}

/* Over TLS a record may hold one byte, and have many before it that hold none. */
static void a_peer_whose_bytes_come_one_by_one_is_read_in_portions(void)
{
	static struct mst_message m, got;
	struct mst_conn c;
	uint32_t protocol, calls = 0;

	begin(&c, 1 << 16);
	memset(&m, 0, sizeof(m));
	m.kind = MST_MSG_FINISH;
	memset(m.why, 'x', sizeof(m.why) - 1);
	write_message(&m, 1 << 16);
	at_once = 1;
	do {
		reads = 0;
		CU_ASSERT_EQUAL(mst_conn_receive(&c), 0);
		CU_ASSERT(reads <= 8);
		CU_ASSERT_FALSE(c.dry);
		calls++;
	} while (mst_conn_next(&c, &got, &protocol, &unknown) == 0 && calls < wire_have);
	CU_ASSERT_EQUAL(c.in_used, wire_have);
	CU_ASSERT_STRING_EQUAL(got.why, m.why);
	end(&c);
}

/* The beginning of a frame that is as long as any may be.
 * Return: is more of it waited for? */
static bool may_send_a_long_frame(struct mst_conn *c)
{
	struct mst_message *got = calloc(1, sizeof(*got));
	struct mst_message beat = { .kind = MST_MSG_HEARTBEAT };
	static const uint32_t length = MST_FRAME_BODY_MAX; /* little-endian, as in the header */
	uint32_t protocol;

	CU_ASSERT_PTR_NOT_NULL_FATAL(got);
	wire_have = wire_at = 0;
	write_message(&beat, 1 << 16);
	memcpy(wire + MST_FRAME_HEADER - sizeof(length), &length, sizeof(length));
	wire_have = 1 << 15;
	CU_ASSERT_EQUAL(mst_conn_receive(c), 0);
	int rc = mst_conn_next(c, got, &protocol, &unknown);
	CU_ASSERT(rc == 0 || (rc == -EMSGSIZE && c->in_room <= 4096));
	c->in_at = c->in_have = 0;
	free(got);
	return rc == 0;
}

static void only_a_leader_and_who_is_asked_for_a_state_may_send_long_frames(void)
{
	struct mst_conn c;

	begin(&c, 1 << 16);
	for (int role = 0; role < MST_CONN_ROLES; role++) {
		c.role = (enum mst_conn_role)role;
		if (c.role != MST_CONN_LEAD)
			CU_ASSERT_FALSE(may_send_a_long_frame(&c));
	}
	c.role = MST_CONN_WORKER;
	c.sends_state = true;
	CU_ASSERT(may_send_a_long_frame(&c));
	c.sends_state = false;
	c.state_asks = 1;
	CU_ASSERT(may_send_a_long_frame(&c));
	c.state_asks = 0;
	c.role = MST_CONN_LEAD;
	CU_ASSERT(may_send_a_long_frame(&c));
	end(&c);
}

static CU_TestInfo cases[] = {
	{ "many small frames cost their bytes", many_small_frames_cost_their_bytes },
	{ "a message that waits comes again", a_message_that_waits_comes_again },
	{ "a peer whose bytes come one by one is read in portions",
	  a_peer_whose_bytes_come_one_by_one_is_read_in_portions },
	{ "only a leader and who is asked for a state may send long frames",
	  only_a_leader_and_who_is_asked_for_a_state_may_send_long_frames },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("conn", cases);
}
