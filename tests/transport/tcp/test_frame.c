/* SPDX-License-Identifier: MIT */
/* What travels over a connection, as it is encoded and checked. */
#include <errno.h>
#include <string.h>

#include "common/transport/tcp/tcp.h"
#include "tests/ut.h"

static void a_frame_comes_back_as_it_was(void)
{
	const struct mst_tcp_frame f = { .kind = MST_TCP_WRITE_NOTIFY,
					 .imm = 0xfedcba98u,
					 .offset = UINT64_C(0x0102030405060708),
					 .length = UINT64_C(0x1112131415161718) };
	static const uint8_t wire[MST_TCP_FRAME_BYTES] = { 2,    0,    0,    0,    0x98, 0xba,
							   0xdc, 0xfe, 8,    7,    6,    5,
							   4,    3,    2,    1,    0x18, 0x17,
							   0x16, 0x15, 0x14, 0x13, 0x12, 0x11 };
	uint8_t text[MST_TCP_FRAME_BYTES];
	struct mst_tcp_frame back;

	mst_tcp_frame_encode(&f, text);
	CU_ASSERT_EQUAL(memcmp(text, wire, sizeof(wire)), 0);
	mst_tcp_frame_decode(text, &back);
	CU_ASSERT(back.kind == f.kind && back.imm == f.imm && back.offset == f.offset &&
		  back.length == f.length);
}

static void a_write_is_checked_at_every_edge(void)
{
	static const struct mst_tcp_bounds bounds = { .bytes = 100, .from = 40, .end = 60 };
	static const struct {
		uint64_t offset, length;
		int rc;
	} row[] = {
		{ 0, 40, 0 },
		{ 0, 41, -EPROTO },
		{ 39, 1, 0 },
		{ 39, 2, -EPROTO },
		{ 40, 20, 0 },
		{ 40, 21, -EPROTO },
		{ 41, 19, 0 },
		{ 59, 2, -EPROTO },
		{ 60, 40, 0 },
		{ 60, 41, -EPROTO },
		{ 99, 1, 0 },
		{ 100, 1, -EPROTO },
		{ 0, 100, -EPROTO },
		{ 100, 0, -EPROTO },
		{ 0, 0, -EPROTO },
		{ 101, 0, -EPROTO },
		{ UINT64_MAX, 1, -EPROTO },
		{ 1, UINT64_MAX, -EPROTO },
	};
	struct mst_reason why;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct mst_tcp_frame f = { .kind = MST_TCP_WRITE,
					   .offset = row[i].offset,
					   .length = row[i].length };
		mst_reason_clear(&why);
		CU_ASSERT_EQUAL(mst_tcp_frame_check(&f, &bounds, &why), row[i].rc);
		CU_ASSERT_EQUAL(why.text[0] != '\0', row[i].rc != 0);
		f.kind = MST_TCP_WRITE_NOTIFY;
		CU_ASSERT_EQUAL(mst_tcp_frame_check(&f, &bounds, &why), row[i].rc);
	}
}

static void a_hello_comes_back_as_it_was_and_is_judged(void)
{
	struct mst_tcp_hello h = { .version = MST_TCP_VERSION,
				   .lanes = { 1000, 70000, 5, 9 },
				   .at = 60000,
				   .bytes = 10000 },
			     back;
	uint8_t text[MST_TCP_HELLO_BYTES];

	memset(h.token, 0x7e, sizeof(h.token));
	mst_tcp_hello_encode(&h, text);
	CU_ASSERT_EQUAL(mst_tcp_hello_decode(text, &back), 0);
	CU_ASSERT_EQUAL(memcmp(back.token, h.token, sizeof(h.token)), 0);
	CU_ASSERT_EQUAL(memcmp(&back.lanes, &h.lanes, sizeof(h.lanes)), 0);
	CU_ASSERT(back.at == h.at && back.bytes == h.bytes);
	for (size_t i = 0; i <= sizeof(text); i++)
		CU_ASSERT_TRUE(mst_tcp_hello_begins(text, i));
	for (size_t i = 0; i < 4; i++) {
		text[i] ^= 1;
		CU_ASSERT_FALSE(mst_tcp_hello_begins(text, sizeof(text)));
		CU_ASSERT_EQUAL(mst_tcp_hello_decode(text, &back), -EPROTO);
		text[i] ^= 1;
	}
	h.bytes++;
	mst_tcp_hello_encode(&h, text);
	CU_ASSERT_EQUAL(mst_tcp_hello_decode(text, &back), -EINVAL);
	h.bytes = 0;
	h.lanes.up_credits = MST_TCP_CREDITS_MAX + 1;
	mst_tcp_hello_encode(&h, text);
	CU_ASSERT_EQUAL(mst_tcp_hello_decode(text, &back), -EINVAL);
	h.version = 77;
	mst_tcp_hello_encode(&h, text);
	CU_ASSERT_EQUAL(mst_tcp_hello_decode(text, &back), -EPROTONOSUPPORT);
	CU_ASSERT_EQUAL(back.version, 77);
}

static void an_answer_comes_back_as_it_was(void)
{
	struct mst_tcp_answer a = { .version = MST_TCP_VERSION, .error = -EACCES }, back;
	uint8_t text[MST_TCP_ANSWER_BYTES];

	mst_tcp_answer_encode(&a, text);
	CU_ASSERT_EQUAL(mst_tcp_answer_decode(text, &back), 0);
	CU_ASSERT_EQUAL(back.error, -EACCES);
	text[4]++;
	CU_ASSERT_EQUAL(mst_tcp_answer_decode(text, &back), -EPROTONOSUPPORT);
	text[0]++;
	CU_ASSERT_EQUAL(mst_tcp_answer_decode(text, &back), -EPROTO);
}

int main(void)
{
	static CU_TestInfo cases[] = {
		{ "a frame comes back as it was", a_frame_comes_back_as_it_was },
		{ "a write is checked at every edge", a_write_is_checked_at_every_edge },
		{ "a hello comes back as it was, and is judged",
		  a_hello_comes_back_as_it_was_and_is_judged },
		{ "an answer comes back as it was", an_answer_comes_back_as_it_was },
		CU_TEST_INFO_NULL,
	};

	return ut_main("tcp_frame", cases);
}
