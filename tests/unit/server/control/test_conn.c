/* SPDX-License-Identifier: MIT */
/* A control connection, over a stream that gives out what a test has written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/control/conn.h"
#include "tests/ut.h"

#define SMALL 60000u
#define PIECE MST_STATE_CHUNK

static char *wire;
static size_t wire_have, wire_at;
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
	if (bytes == 0)
		return -EAGAIN;
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

/* Return: how many messages of this kind came, all of them in order. */
static uint32_t read_all(struct mst_conn *c, enum mst_message_kind kind)
{
	static struct mst_message got;
	uint32_t count = 0, protocol = 0;
	size_t before;

	do {
		before = wire_at;
		CU_ASSERT_EQUAL_FATAL(mst_conn_receive(c), 0);
		while (mst_conn_next(c, &got, &protocol) > 0)
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

/* A message that cannot be taken yet comes again, however often, and what is behind it after it. */
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
			CU_ASSERT_EQUAL_FATAL(mst_conn_next(&c, &got, &protocol), 1);
			CU_ASSERT_EQUAL(got.seq, seq);
			mst_conn_again(&c);
		}
		CU_ASSERT_EQUAL(mst_conn_next(&c, &got, &protocol), 1);
	}
	CU_ASSERT_EQUAL(mst_conn_next(&c, &got, &protocol), 0);
	end(&c);
}

static CU_TestInfo cases[] = {
	{ "many small frames cost their bytes", many_small_frames_cost_their_bytes },
	{ "a message that waits comes again", a_message_that_waits_comes_again },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("conn", cases);
}
