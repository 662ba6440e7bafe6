/* SPDX-License-Identifier: MIT */
/* The wire: frames survive the way there and back. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/reason.h"
#include "common/wire/message_fields.h"
#include "tests/unit/common/wire/wire_case.h"
#include "tests/ut.h"

#define ROOM (MST_FRAME_HEADER + MST_FRAME_BODY_MAX)

static uint8_t frame[ROOM], again[ROOM];
static struct mst_message got;

static size_t encode(enum mst_message_kind kind)
{
	wire_make(kind);
	int64_t length = mst_message_encode(&wire_sent, frame, sizeof(frame));
	CU_ASSERT_FATAL(length >= MST_FRAME_HEADER);
	return (size_t)length;
}

static int decode(size_t length)
{
	memset(&got, 0, sizeof(got));
	return mst_message_decode(frame, length, &got, NULL);
}

/* ---- what is in the frame ---- */

#define FIELD_HEADER 6u /* u16 tag, u32 length */

/* The value of the field with this tag, which the frame has. */
static uint8_t *value_of(uint16_t tag)
{
	uint8_t *at = frame + MST_FRAME_HEADER;
	uint32_t length;

	while (memcmp(at, &tag, sizeof(tag)) != 0) {
		memcpy(&length, at + 2, sizeof(length));
		at += FIELD_HEADER + length;
	}
	return at + FIELD_HEADER;
}

/* Sets the length of the last field of a frame, and so that of its body. */
static void set_length(const uint8_t *value, uint32_t length)
{
	uint32_t body = (uint32_t)(value - frame) - MST_FRAME_HEADER + length;

	memcpy(frame + (value - frame) - sizeof(length), &length, sizeof(length));
	memcpy(frame + 8, &body, sizeof(body));
}

#define EACH_KIND(kind)                                                                            \
	enum mst_message_kind kind = MST_MSG_HELLO;                                                \
	kind <= MST_MSG_WORKERS;                                                                   \
	kind++

/* ---- promises ---- */

static void every_kind_comes_back(void)
{
	CU_ASSERT_PTR_NULL(mst_body_of(MST_MSG_WORKERS + 1)); /* else the tests leave one out */
	for (EACH_KIND(kind)) {
		size_t length = encode(kind);
		CU_ASSERT_EQUAL(mst_frame_length(frame, length, NULL), (int64_t)length);
		CU_ASSERT_EQUAL(decode(length), 0);
		CU_ASSERT_EQUAL(got.kind, kind);
		if (kind == MST_MSG_STATE) {
			CU_ASSERT_EQUAL(memcmp(got.state.data, wire_piece, sizeof(wire_piece)), 0);
			got.state.data = wire_piece;
		}
		if (kind == MST_MSG_GIVE || kind == MST_MSG_TAKE || kind == MST_MSG_AVERAGE) {
			CU_ASSERT_EQUAL(
				memcmp(got.handed.piece.data, wire_piece, sizeof(wire_piece)), 0);
			got.handed.piece.data = wire_piece;
		}
		CU_ASSERT_EQUAL(memcmp(&got, &wire_sent, sizeof(wire_sent)), 0);
	}
}

static bool is_optional(enum mst_message_kind kind, uint16_t tag)
{
	const struct mst_shape *shape = &mst_body_of(kind)->shape;

	for (size_t i = 0; i < shape->count; i++) {
		if (shape->field[i].tag == (tag & (uint16_t)~MST_TAG_MUST_KNOW))
			return (shape->field[i].flags & MST_FIELD_OPTIONAL) != 0;
	}
	return false;
}

/* Does the cut leave out whole fields, all of which may be absent? */
static bool leaves_out_optional(enum mst_message_kind kind, size_t cut, size_t length)
{
	size_t at = MST_FRAME_HEADER;
	uint16_t tag;
	uint32_t bytes;

	while (at < length) {
		memcpy(&tag, frame + at, sizeof(tag));
		memcpy(&bytes, frame + at + 2, sizeof(bytes));
		if (at >= cut && !is_optional(kind, tag))
			return false;
		if (at < cut && at + FIELD_HEADER + bytes > cut)
			return false;
		at += FIELD_HEADER + bytes;
	}
	return true;
}

static void every_truncation_is_refused(void)
{
	for (EACH_KIND(kind)) {
		size_t length = encode(kind);
		for (size_t cut = 0; cut < length; cut++) {
			/* Cut as it comes, and cut with a header that agrees with the cut. */
			uint8_t *exact = malloc(cut > 0 ? cut : 1); /* ASan looks beyond it */
			memcpy(exact, frame, cut);
			CU_ASSERT_EQUAL(mst_message_decode(exact, cut, &got, NULL), -EPROTO);
			if (cut >= MST_FRAME_HEADER) {
				uint32_t body = (uint32_t)(cut - MST_FRAME_HEADER);
				int rc = leaves_out_optional(kind, cut, length) ? 0 : -EPROTO;
				memcpy(exact + 8, &body, sizeof(body));
				CU_ASSERT_EQUAL(mst_message_decode(exact, cut, &got, NULL), rc);
			}
			free(exact);
		}
	}
}

static void a_byte_too_many_is_refused(void)
{
	for (EACH_KIND(kind)) {
		size_t length = encode(kind);
		uint32_t body = (uint32_t)(length + 1 - MST_FRAME_HEADER);
		CU_ASSERT_EQUAL(mst_message_decode(frame, length + 1, &got, NULL), -EPROTO);
		memcpy(frame + 8, &body, sizeof(body));
		frame[length] = 0;
		CU_ASSERT_EQUAL(mst_message_decode(frame, length + 1, &got, NULL), -EPROTO);
	}
}

static void too_small_a_buffer_is_refused(void)
{
	for (EACH_KIND(kind)) {
		size_t length = encode(kind);
		for (size_t room = 0; room < length; room++)
			CU_ASSERT_EQUAL(mst_message_encode(&wire_sent, again, room), -ENOSPC);
		CU_ASSERT_EQUAL(mst_message_encode(&wire_sent, again, length), (int64_t)length);
		CU_ASSERT_EQUAL(memcmp(frame, again, length), 0);
	}
}

static void a_stranger_is_known_by_the_first_byte(void)
{
	uint32_t protocol = 99;

	CU_ASSERT_EQUAL(mst_frame_length("HTTP/1.1 400 Bad", 1, &protocol), -EPROTO);
	CU_ASSERT_EQUAL(protocol, 0);
	CU_ASSERT_EQUAL(mst_frame_length("mst", 3, &protocol), 0);
	CU_ASSERT_EQUAL(mst_frame_length("msT", 3, &protocol), -EPROTO);
}

static void another_protocol_is_named(void)
{
	uint32_t protocol = 0;
	size_t length = encode(MST_MSG_HEARTBEAT);

	frame[4] = 99;
	CU_ASSERT_EQUAL(mst_frame_length(frame, length, &protocol), -EPROTO);
	CU_ASSERT_EQUAL(protocol, 99);
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
}

/* A tool of a release with another number understands the status of a job. */
static void the_status_is_of_all_protocols(void)
{
	for (uint32_t kind = MST_MSG_HELLO; kind <= MST_MSG_WORKERS; kind++) {
		bool for_all = kind == MST_MSG_ASK_STATUS || kind == MST_MSG_STATUS ||
			       kind == MST_MSG_STATUS_RANKS || kind == MST_MSG_ERROR;
		int64_t length = (int64_t)encode(kind);
		uint32_t protocol = 0;
		frame[4] = 99;
		CU_ASSERT_EQUAL(mst_frame_length(frame, (size_t)length, &protocol),
				for_all ? length : -EPROTO);
		CU_ASSERT_EQUAL(protocol, 99);
		CU_ASSERT_EQUAL(decode((size_t)length), for_all ? 0 : -EPROTO);
		frame[4] = MST_PROTOCOL_FIELDS - 1; /* its bodies were no lists of fields */
		CU_ASSERT_EQUAL(mst_frame_length(frame, (size_t)length, NULL), -EPROTO);
	}
}

static void a_frame_too_long_is_refused(void)
{
	uint32_t body = MST_FRAME_BODY_MAX;

	encode(MST_MSG_HEARTBEAT);
	memcpy(frame + 8, &body, sizeof(body));
	CU_ASSERT_EQUAL(mst_frame_length(frame, 12, NULL), (int64_t)ROOM);
	body++;
	memcpy(frame + 8, &body, sizeof(body));
	CU_ASSERT_EQUAL(mst_frame_length(frame, 12, NULL), -EMSGSIZE);
}

static void a_length_is_told_from_the_header_alone(void)
{
	size_t length = encode(MST_MSG_WELCOME);

	CU_ASSERT_EQUAL(mst_frame_length(frame, MST_FRAME_HEADER - 1, NULL), 0);
	CU_ASSERT_EQUAL(mst_frame_length(frame, MST_FRAME_HEADER, NULL), (int64_t)length);
}

static void an_unknown_kind_is_refused(void)
{
	size_t length = encode(MST_MSG_HEARTBEAT);

	frame[6] = 0;
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
	frame[6] = MST_MSG_WORKERS + 1;
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
	frame[7] = 0xff;
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
}

static void an_enum_out_of_range_is_refused(void)
{
	static const uint8_t past[] = { MUSTER_F16 + 1, MUSTER_F16 + 1, MUSTER_WORKERS_OWN + 1 };

	for (uint16_t i = 0; i < 3; i++) {
		size_t length = encode(MST_MSG_HELLO);
		uint8_t *at = value_of(4 + i);
		at[0] = past[i];
		CU_ASSERT_EQUAL(decode(length), -EPROTO);
		at[0] = 0;
		at[3] = 0x80;
		CU_ASSERT_EQUAL(decode(length), -EPROTO);
	}
}

static void a_fabric_that_cannot_be_is_refused(void)
{
	static const uint32_t past[] = { 256, 16 }; /* from tag 26 of a welcome on */

	for (uint16_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
		size_t length = encode(MST_MSG_WELCOME);
		memcpy(value_of(26 + i), &past[i], sizeof(past[i]));
		CU_ASSERT_EQUAL(decode(length), -EPROTO);
		uint32_t most = past[i] - 1;
		memcpy(value_of(26 + i), &most, sizeof(most));
		CU_ASSERT_EQUAL(decode(length), 0);
	}
}

static void a_text_with_a_nul_is_refused(void)
{
	size_t length = encode(MST_MSG_HELLO);

	value_of(1)[1] = 0;
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
}

/* A FINISH whose text has @text_len bytes. Return: the frame's length. */
static size_t finish_of(uint32_t text_len)
{
	encode(MST_MSG_FINISH);
	memset(value_of(1), 'x', text_len);
	set_length(value_of(1), text_len);
	return MST_FRAME_HEADER + FIELD_HEADER + text_len;
}

static void a_text_without_room_for_its_nul_is_refused(void)
{
	CU_ASSERT_EQUAL(decode(finish_of(MST_REASON_LEN - 1)), 0);
	CU_ASSERT_EQUAL(strlen(got.why), MST_REASON_LEN - 1);
	CU_ASSERT_EQUAL(decode(finish_of(MST_REASON_LEN)), -EPROTO);
	CU_ASSERT_EQUAL(decode(finish_of(UINT16_MAX)), -EPROTO);
}

/* Each kind's texts in `got`; NULL ends them. */
static void texts_of(enum mst_message_kind kind, char *text[10])
{
	memset(text, 0, 10 * sizeof(text[0]));
	if (kind == MST_MSG_HELLO)
		text[0] = got.hello.job, text[1] = got.hello.returning.in_force.policy;
	else if (kind == MST_MSG_WELCOME)
		text[0] = got.welcome.job, text[1] = got.welcome.policy,
		text[2] = got.welcome.server[0].address, text[3] = got.welcome.server[1].address,
		text[4] = got.welcome.in_force.policy;
	else if (kind == MST_MSG_BEGINS)
		text[0] = got.begins.policy, text[1] = got.begins.in_force.policy;
	else if (kind == MST_MSG_IN_FORCE)
		text[0] = got.in_force.policy;
	else if (kind == MST_MSG_ERROR)
		text[0] = got.error.reason;
	else if (kind == MST_MSG_FINISH || kind == MST_MSG_FINISHED || kind == MST_MSG_DONE)
		text[0] = got.why;
	else if (kind == MST_MSG_POLICY)
		text[0] = got.change.policy;
	else if (kind == MST_MSG_REPORT)
		text[0] = got.metric.name;
	else if (kind == MST_MSG_STATUS)
		text[0] = got.status.job, text[1] = got.status.policy, text[2] = got.status.why,
		text[3] = got.status.server[0].listener, text[4] = got.status.next_policy,
		text[5] = got.status.under[0].policy, text[6] = got.status.policy_now,
		text[7] = got.status.policy_why, text[8] = got.status.metric[1].newest.name;
	else if (kind == MST_MSG_SERVE)
		text[0] = got.serve.job, text[1] = got.serve.schemes;
	else if (kind == MST_MSG_APPOINT)
		text[0] = got.appoint.job, text[1] = got.appoint.address;
	else if (kind == MST_MSG_READY)
		text[0] = got.listener;
}

/* A frame of @kind in which the text that reads @was begins with bytes that are not clean. */
static size_t encode_spoilt(enum mst_message_kind kind, const char *was)
{
	size_t length = encode(kind);
	uint8_t *at = memmem(frame + MST_FRAME_HEADER, length - MST_FRAME_HEADER, was, strlen(was));

	CU_ASSERT_FATAL(at != NULL && strlen(was) >= 3);
	memcpy(at, "\033\xff\n", 3);
	return length;
}

static void every_text_is_clean_when_decoded(void)
{
	char *text[10];

	for (EACH_KIND(kind)) {
		CU_ASSERT_EQUAL(decode(encode(kind)), 0);
		texts_of(kind, text);
		for (int i = 0; text[i] != NULL; i++) {
			CU_ASSERT_EQUAL(decode(encode_spoilt(kind, text[i])), 0);
			CU_ASSERT_EQUAL(strncmp(text[i], "???", 3), 0);
			CU_ASSERT_EQUAL(decode(encode(kind)), 0);
		}
	}
}

static void an_error_is_always_a_negative_errno(void)
{
	static const int32_t bad[] = { 0, 1, EINVAL, -4096, INT32_MIN };
	size_t length = encode(MST_MSG_ERROR);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(value_of(1), &bad[i], sizeof(bad[i]));
		CU_ASSERT_EQUAL(decode(length), -EPROTO);
	}
}

static void more_rows_than_there_is_room_for_are_refused(void)
{
	size_t length = encode(MST_MSG_STATUS_RANKS);
	uint32_t count = MST_STATUS_RANKS + 1;

	memcpy(value_of(1), &count, sizeof(count));
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
	count = UINT32_MAX;
	memcpy(value_of(1), &count, sizeof(count));
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
}

/* Whole in all but their number. */
static void one_row_more_than_there_is_room_for_is_refused(void)
{
	wire_make(MST_MSG_STATUS_RANKS);
	wire_sent.ranks.count = MST_STATUS_RANKS;
	size_t full = (size_t)mst_message_encode(&wire_sent, frame, sizeof(frame));
	size_t row = (full - (size_t)(value_of(1) - frame) - sizeof(uint32_t)) / MST_STATUS_RANKS;
	uint32_t count = MST_STATUS_RANKS + 1;

	CU_ASSERT_EQUAL(decode(full), 0);
	memcpy(frame + full, frame + full - row, row);
	memcpy(value_of(1), &count, sizeof(count));
	set_length(value_of(1), (uint32_t)(sizeof(count) + count * row));
	CU_ASSERT_EQUAL(decode(full + row), -EPROTO);
}

static void as_many_rows_as_fit_come_back(void)
{
	wire_make(MST_MSG_STATUS_RANKS);
	wire_sent.ranks.count = MST_STATUS_RANKS;
	wire_sent.ranks.row[MST_STATUS_RANKS - 1].counted = 77;
	int64_t length = mst_message_encode(&wire_sent, frame, sizeof(frame));

	CU_ASSERT_FATAL(length > 0);
	CU_ASSERT_EQUAL(decode((size_t)length), 0);
	CU_ASSERT_EQUAL(got.ranks.row[MST_STATUS_RANKS - 1].counted, 77);
}

/* The last field of those who announce addresses gets @count of them.
 * Return: the frame's length. */
static size_t announce(uint16_t tag, uint32_t count)
{
	const uint32_t row_bytes = FIELD_HEADER + sizeof(struct mst_origin);
	uint8_t *first = value_of(tag), *at = first;

	memcpy(at, &count, sizeof(count));
	at += sizeof(count);
	for (uint32_t i = 0; i < count; i++) {
		static const uint16_t address = 1;
		static const uint32_t bytes = sizeof(struct mst_origin);
		memcpy(at, &row_bytes, sizeof(row_bytes));
		memcpy(at + 4, &address, sizeof(address));
		memcpy(at + 6, &bytes, sizeof(bytes));
		memset(at + 4 + FIELD_HEADER, 7, bytes);
		at += sizeof(row_bytes) + row_bytes;
	}
	set_length(first, (uint32_t)(at - first));
	return (size_t)(at - frame);
}

static void more_addresses_than_fit_are_refused(void)
{
	static const struct {
		enum mst_message_kind kind;
		uint16_t tag;
	} who[] = { { MST_MSG_HELLO, 15 }, { MST_MSG_SERVE, 4 }, { MST_MSG_EXPECT, 4 } };

	for (size_t i = 0; i < sizeof(who) / sizeof(who[0]); i++) {
		encode(who[i].kind);
		CU_ASSERT_EQUAL(decode(announce(who[i].tag, MST_ORIGINS_MAX + 1)), -EPROTO);
		CU_ASSERT_EQUAL(decode(announce(who[i].tag, MST_ORIGINS_MAX)), 0);
	}
	CU_ASSERT_EQUAL(got.expect.origins.at[MST_ORIGINS_MAX - 1].address[15], 7);
}

static int decode_piece(uint64_t offset, uint64_t total)
{
	size_t length = encode(MST_MSG_STATE);

	memcpy(value_of(1), &offset, sizeof(offset));
	memcpy(value_of(2), &total, sizeof(total));
	return decode(length);
}

static void a_piece_outside_its_whole_is_refused(void)
{
	CU_ASSERT_EQUAL(decode_piece(0, sizeof(wire_piece)), 0);
	CU_ASSERT_EQUAL(decode_piece(1, sizeof(wire_piece)), -EPROTO);
	CU_ASSERT_EQUAL(decode_piece(0, sizeof(wire_piece) - 1), -EPROTO);
	CU_ASSERT_EQUAL(decode_piece(UINT64_MAX, UINT64_MAX), -EPROTO);
	CU_ASSERT_EQUAL(decode_piece(UINT64_MAX - 500, 8192), -EPROTO);
}

static void a_piece_is_no_longer_than_a_chunk(void)
{
	static char long_piece[MST_STATE_CHUNK + 1];
	uint32_t length = MST_STATE_CHUNK;

	wire_make(MST_MSG_STATE);
	wire_sent.state = (struct mst_state_piece){ 0, sizeof(long_piece), length, long_piece };
	CU_ASSERT_FATAL(mst_message_encode(&wire_sent, frame, sizeof(frame)) > 0);
	CU_ASSERT_EQUAL(decode((size_t)mst_frame_length(frame, sizeof(frame), NULL)), 0);
	set_length(value_of(3), ++length);
	CU_ASSERT_EQUAL(decode((size_t)(value_of(3) - frame) + length), -EPROTO);
}

/* ---- fields that another release has ---- */

/* Adds a field with this tag, and the value of four bytes.
 * Return: the frame's length. */
static size_t add_field(size_t length, uint16_t tag)
{
	static const uint32_t bytes = 4;
	uint32_t body = (uint32_t)(length + FIELD_HEADER + bytes - MST_FRAME_HEADER);

	memcpy(frame + 8, &body, sizeof(body));
	memcpy(frame + length, &tag, sizeof(tag));
	memcpy(frame + length + 2, &bytes, sizeof(bytes));
	memset(frame + length + FIELD_HEADER, 7, bytes);
	return length + FIELD_HEADER + bytes;
}

static void an_unknown_field_of_any_message_is_skipped(void)
{
	for (EACH_KIND(kind)) {
		size_t length = add_field(encode(kind), 1000);
		CU_ASSERT_EQUAL(decode(length), 0);
		CU_ASSERT_EQUAL(mst_message_encode(&got, again, sizeof(again)),
				(int64_t)length - FIELD_HEADER - 4);
	}
}

static void an_unknown_field_that_must_be_known_is_refused_and_named(void)
{
	struct mst_unknown unknown;

	for (EACH_KIND(kind)) {
		size_t length = add_field(encode(kind), 0x8000 | 1000);
		CU_ASSERT_EQUAL(mst_message_decode(frame, length, &got, &unknown), -EPROTO);
		CU_ASSERT_EQUAL(unknown.kind, kind);
		CU_ASSERT_EQUAL(unknown.tag, 1000);
	}
	CU_ASSERT_STRING_EQUAL(
		mst_unknown_say(&unknown).text,
		"sent a message WORKERS with field 1000, which this release of muster "
		"does not know and may not skip; use one release on both sides, or a "
		"newer one here");
	/* Rubbish of another kind names none. */
	frame[8]++;
	CU_ASSERT_EQUAL(mst_message_decode(frame, 20, &got, &unknown), -EPROTO);
	CU_ASSERT_EQUAL(unknown.tag, 0);
}

/* ---- room ---- */

static size_t most_of(const struct mst_shape *shape);

static size_t most_of_field(const struct mst_field *f)
{
	switch (f->type) {
	case MST_FIELD_TEXT:
		return f->limit - 1;
	case MST_FIELD_ROWS:
		return sizeof(uint32_t) + f->limit * (sizeof(uint32_t) + most_of(&f->rows->shape));
	case MST_FIELD_PIECE:
		return 0; /* who reads them has room for them besides */
	default:
		return mst_field_bytes(f);
	}
}

static size_t most_of(const struct mst_shape *shape)
{
	size_t bytes = 0;

	for (size_t i = 0; i < shape->count; i++)
		bytes += FIELD_HEADER + most_of_field(&shape->field[i]);
	return bytes;
}

static size_t most_of_kind(enum mst_message_kind kind)
{
	return MST_FRAME_HEADER + most_of(&mst_body_of(kind)->shape);
}

static void the_longest_messages_have_room(void)
{
	static const enum mst_message_kind to_server[] = {
		MST_MSG_HELLO,     MST_MSG_ERROR,  MST_MSG_START,  MST_MSG_STATE,
		MST_MSG_HEARTBEAT, MST_MSG_LEAVE,  MST_MSG_FINISH, MST_MSG_SERVE,
		MST_MSG_READY,     MST_MSG_EXPECT, MST_MSG_RELINK, MST_MSG_BEAT,
		MST_MSG_POLICY,    MST_MSG_REST,   MST_MSG_REPORT, MST_MSG_END_JOB,
		MST_MSG_EVICT,     MST_MSG_GIVE,   MST_MSG_TOOK,   MST_MSG_AVERAGE,
		MST_MSG_FORGET,    MST_MSG_FETCH,  MST_MSG_BEHIND, MST_MSG_ASK_STATUS,
		MST_MSG_CLAIM,     MST_MSG_SET,    MST_MSG_WORKERS
	};

	for (size_t i = 0; i < sizeof(to_server) / sizeof(to_server[0]); i++)
		CU_ASSERT(most_of_kind(to_server[i]) <= MST_FRAME_STRANGER);
	CU_ASSERT(most_of(&mst_body_of(MST_MSG_TENSORS)->shape) / MST_TENSORS_PIECE *
			  (MST_TENSORS_FEW + 1) <=
		  MST_FRAME_STRANGER);
	CU_ASSERT(most_of_kind(MST_MSG_WELCOME) <= MST_FRAME_TO_WORKER);
	for (EACH_KIND(kind))
		CU_ASSERT(most_of_kind(kind) <= MST_FRAME_PLAIN);
}

/* It has the one or the other. */
static void a_comparison_of_parts_or_of_tensors_has_room(void)
{
	static unsigned char bytes[MST_FRAME_BODY_MAX];
	static struct mst_message m;
	struct mst_comparison *c = &m.comparison;

	m.kind = MST_MSG_COMPARE;
	c->part_count = MUSTER_PARTS_MAX;
	for (uint32_t i = 0; i < MUSTER_PARTS_MAX; i++) {
		memset(c->part[i].name, 'n', MST_NAME_LEN - 1);
		memset(c->part[i].value, 'v', MST_NAME_LEN - 1);
	}
	CU_ASSERT(mst_message_encode(&m, bytes, sizeof(bytes)) <= MST_FRAME_STRANGER);
	c->part_count = 0;
	c->count = MUSTER_COMPARE_MAX;
	CU_ASSERT(mst_message_encode(&m, bytes, sizeof(bytes)) <= MST_FRAME_STRANGER);
}

static void a_loss_nobody_told_stays_a_nan(void)
{
	wire_make(MST_MSG_STATUS);
	wire_sent.status.loss = NAN;
	int64_t length = mst_message_encode(&wire_sent, frame, sizeof(frame));

	CU_ASSERT_EQUAL(decode((size_t)length), 0);
	CU_ASSERT(isnan(got.status.loss));
}

static CU_TestInfo cases[] = {
	{ "a message of every kind comes back as it was", every_kind_comes_back },
	{ "every truncation of every message is refused", every_truncation_is_refused },
	{ "a byte too many is refused", a_byte_too_many_is_refused },
	{ "a buffer that is too small is -ENOSPC, whatever is missing",
	  too_small_a_buffer_is_refused },
	{ "a stranger is known by the first wrong byte", a_stranger_is_known_by_the_first_byte },
	{ "another protocol is refused, and named", another_protocol_is_named },
	{ "the status is of all protocols", the_status_is_of_all_protocols },
	{ "a frame beyond the limit is -EMSGSIZE", a_frame_too_long_is_refused },
	{ "the header alone tells the length", a_length_is_told_from_the_header_alone },
	{ "an unknown kind is refused", an_unknown_kind_is_refused },
	{ "an enum out of range is refused", an_enum_out_of_range_is_refused },
	{ "a fabric's figures out of range are refused", a_fabric_that_cannot_be_is_refused },
	{ "a text with a NUL in it is refused", a_text_with_a_nul_is_refused },
	{ "a text that leaves no room for its NUL is refused",
	  a_text_without_room_for_its_nul_is_refused },
	{ "every text of every message is clean when it is decoded",
	  every_text_is_clean_when_decoded },
	{ "an error is a negative errno, else it is refused", an_error_is_always_a_negative_errno },
	{ "more rows than a message holds are refused",
	  more_rows_than_there_is_room_for_are_refused },
	{ "one row more than a message holds is refused",
	  one_row_more_than_there_is_room_for_is_refused },
	{ "more addresses than a message holds are refused", more_addresses_than_fit_are_refused },
	{ "as many rows as a message holds come back", as_many_rows_as_fit_come_back },
	{ "a piece that lies outside its whole is refused", a_piece_outside_its_whole_is_refused },
	{ "a piece is no longer than a chunk", a_piece_is_no_longer_than_a_chunk },
	{ "an unknown field of any message is skipped",
	  an_unknown_field_of_any_message_is_skipped },
	{ "an unknown field that must be known is refused, and named",
	  an_unknown_field_that_must_be_known_is_refused_and_named },
	{ "the longest messages fit what their receivers read", the_longest_messages_have_room },
	{ "so does a comparison of parts, and one of tensors",
	  a_comparison_of_parts_or_of_tensors_has_room },
	{ "a loss that nobody told stays a NaN", a_loss_nobody_told_stays_a_nan },
	CU_TEST_INFO_NULL,
};

/* The first inputs of the fuzzer, tests/fuzz/corpus/message: one of every kind, by its number, and
 * one with a field that only another release knows. */
static int write_input(const char *folder, const char *name, size_t length)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	return f == NULL || fwrite(frame, 1, length, f) != length || fclose(f) != 0;
}

static int write_inputs(const char *folder)
{
	int failed = 0;

	for (EACH_KIND(kind)) {
		char name[16];
		wire_make(kind);
		size_t length = (size_t)mst_message_encode(&wire_sent, frame, sizeof(frame));
		(void)snprintf(name, sizeof(name), "%02d", (int)kind);
		failed |= write_input(folder, name, length);
		if (kind == MST_MSG_HELLO)
			failed |= write_input(folder, "unknown", add_field(length, 1000));
	}
	return failed;
}

int main(int argc, char **argv)
{
	return argc > 1 ? write_inputs(argv[1]) : ut_main("wire", cases);
}
