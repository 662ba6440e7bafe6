/* SPDX-License-Identifier: MIT */
/* Fields with tags: what another release may add, leave out or send in another order, and what is
 * refused. By shapes of this test's own, with each type that a table has. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/message_fields.h"
#include "tests/ut.h"

struct inner {
	uint32_t id;
	char name[8];
	uint64_t added;
};

struct outer {
	uint32_t small;
	uint64_t large;
	int32_t code;
	float ratio;
	uint8_t key[3];
	char text[8];
	uint32_t count;
	struct inner row[3];
	/* What a later release has added. */
	uint32_t flag;
	double figure, figure_or_nan;
	char note[8];
	uint8_t added_key[2];
	uint32_t added_count;
	struct inner added_row[2];
	uint32_t must;
	uint64_t whole_or_ones;
};

static const struct mst_field inner_fields[] = {
	FIELD(1, U32, inner, id),
	TEXT(2, inner, name),
	OPTIONAL(3, U64, inner, added, 0),
};
static const struct mst_rows rows = {
	offsetof(struct outer, row),
	sizeof(struct inner),
	SHAPE(inner_fields),
};
static const struct mst_rows added_rows = {
	offsetof(struct outer, added_row),
	sizeof(struct inner),
	SHAPE(inner_fields),
};
static const struct mst_field new_fields[] = {
	FIELD(1, U32, outer, small),
	FIELD(2, U64, outer, large),
	FIELD(3, ERRNO, outer, code),
	FIELD(4, F32, outer, ratio),
	BYTES(5, outer, key),
	TEXT(7, outer, text), /* 6 is gone */
	ROWS(8, outer, count, 3, rows),
	OPTIONAL(9, ENUM, outer, flag, 2),
	OPTIONAL(10, F64, outer, figure, 0),
	OPTIONAL_NAN(11, outer, figure_or_nan),
	OPTIONAL(12, TEXT, outer, note, sizeof(((struct outer *)NULL)->note)),
	OPTIONAL(13, BYTES, outer, added_key, sizeof(((struct outer *)NULL)->added_key)),
	OPTIONAL_ROWS(14, outer, added_count, 2, added_rows),
	OPTIONAL_MUST_KNOW(15, U32, outer, must, 0),
	OPTIONAL_ONES(16, outer, whole_or_ones),
};
static const struct mst_shape new_shape = SHAPE(new_fields);
/* An older release. */
static const struct mst_shape old_shape = { new_fields, 7 };

static struct outer sent, got;
static uint8_t bytes[1024];
static size_t length;
static uint16_t unknown;

/* Only what is required has a value. */
static void make(void)
{
	memset(&sent, 0, sizeof(sent));
	sent = (struct outer){ .small = 1,
			       .large = UINT64_MAX,
			       .code = -EIO,
			       .ratio = 0.5f,
			       .key = { 1, 2, 3 },
			       .text = "text",
			       .count = 2,
			       .row = { { 7, "seven", 0 }, { 8, "", 0 } },
			       .figure_or_nan = NAN,
			       .whole_or_ones = UINT64_MAX };
}

static void make_all(void)
{
	make();
	sent.row[1].added = 9;
	sent.flag = 1;
	sent.figure = -0.0; /* is not 0 to the bit, and so is written */
	sent.figure_or_nan = 0;
	memcpy(sent.note, "note", sizeof("note"));
	sent.added_key[1] = 5;
	sent.added_count = 1;
	sent.added_row[0] = (struct inner){ 3, "three", 4 };
	sent.must = 6;
	sent.whole_or_ones = 0;
}

static void encode(const struct mst_shape *shape)
{
	int64_t n = mst_fields_encode(shape, &sent, bytes, sizeof(bytes));

	CU_ASSERT_FATAL(n > 0);
	length = (size_t)n;
}

/* Into a struct that had another message before. The bytes lie where ASan sees a read beyond
 * them. */
static int decode_some(const struct mst_shape *shape, size_t count)
{
	uint8_t *exact = malloc(count > 0 ? count : 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(exact);
	memcpy(exact, bytes, count);
	memset(&got, 0xa5, sizeof(got));
	int rc = mst_fields_decode(shape, exact, count, &got, &unknown);
	free(exact);
	return rc;
}

static int decode(const struct mst_shape *shape)
{
	return decode_some(shape, length);
}

static void append(uint16_t tag, const void *value, uint32_t count)
{
	memcpy(bytes + length, &tag, sizeof(tag));
	memcpy(bytes + length + 2, &count, sizeof(count));
	memcpy(bytes + length + MST_FIELD_HEADER, value, count);
	length += MST_FIELD_HEADER + count;
}

/* The field at @at, with its head. */
static size_t field_bytes(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at + 2, sizeof(value));
	return MST_FIELD_HEADER + value;
}

static uint8_t *find(uint16_t tag)
{
	for (uint8_t *at = bytes; at < bytes + length; at += field_bytes(at)) {
		if (memcmp(at, &tag, sizeof(tag)) == 0)
			return at;
	}
	return NULL;
}

static void leave_out(uint16_t tag)
{
	uint8_t *at = find(tag);
	size_t gone = field_bytes(at);

	memmove(at, at + gone, (size_t)(bytes + length - at) - gone);
	length -= gone;
}

static bool is_inner(const struct inner *a, const struct inner *b)
{
	return a->id == b->id && strcmp(a->name, b->name) == 0 && a->added == b->added;
}

/* In all members that have fields; after a text's end anything may be. */
static void expect_sent(void)
{
	CU_ASSERT_EQUAL(got.small, sent.small);
	CU_ASSERT_EQUAL(got.large, sent.large);
	CU_ASSERT_EQUAL(got.code, sent.code);
	CU_ASSERT_EQUAL(got.ratio, sent.ratio);
	CU_ASSERT_EQUAL(memcmp(got.key, sent.key, sizeof(got.key)), 0);
	CU_ASSERT_STRING_EQUAL(got.text, sent.text);
	CU_ASSERT_EQUAL_FATAL(got.count, sent.count);
	for (uint32_t i = 0; i < got.count; i++)
		CU_ASSERT(is_inner(&got.row[i], &sent.row[i]));
	CU_ASSERT_EQUAL(got.flag, sent.flag);
	CU_ASSERT_EQUAL(memcmp(&got.figure, &sent.figure, sizeof(got.figure)), 0);
	CU_ASSERT(isnan(sent.figure_or_nan) ? isnan(got.figure_or_nan)
					    : got.figure_or_nan == sent.figure_or_nan);
	CU_ASSERT_STRING_EQUAL(got.note, sent.note);
	CU_ASSERT_EQUAL(memcmp(got.added_key, sent.added_key, sizeof(got.added_key)), 0);
	CU_ASSERT_EQUAL_FATAL(got.added_count, sent.added_count);
	for (uint32_t i = 0; i < got.added_count; i++)
		CU_ASSERT(is_inner(&got.added_row[i], &sent.added_row[i]));
	CU_ASSERT_EQUAL(got.must, sent.must);
	CU_ASSERT_EQUAL(got.whole_or_ones, sent.whole_or_ones);
}

/* ---- promises ---- */

static void all_fields_come_back(void)
{
	make_all();
	encode(&new_shape);
	CU_ASSERT_EQUAL(decode(&new_shape), 0);
	expect_sent();
}

static void the_bytes_are_those_of_the_protocol(void)
{
	static const struct mst_shape one = { inner_fields, 2 };
	static const uint8_t told[] = { 1, 0, 4, 0, 0, 0,   7,   0,   0,   0,  2,
					0, 5, 0, 0, 0, 's', 'e', 'v', 'e', 'n' };
	const struct inner row = { .id = 7, .name = "seven" };

	CU_ASSERT_EQUAL(mst_fields_encode(&one, &row, bytes, sizeof(bytes)), sizeof(told));
	CU_ASSERT_EQUAL(memcmp(bytes, told, sizeof(told)), 0);
}

static void an_older_release_leaves_defaults(void)
{
	make();
	encode(&old_shape);
	CU_ASSERT_EQUAL(decode(&new_shape), 0);
	expect_sent();
}

static void an_older_release_skips_what_it_does_not_know(void)
{
	make_all();
	sent.must = 0;
	encode(&new_shape);
	CU_ASSERT_EQUAL(decode(&old_shape), 0);
	CU_ASSERT_EQUAL(got.large, sent.large);
	CU_ASSERT_EQUAL(got.count, sent.count);
	CU_ASSERT(is_inner(&got.row[1], &sent.row[1]));
}

static void an_older_release_refuses_what_it_must_know(void)
{
	make_all();
	encode(&new_shape);
	CU_ASSERT_EQUAL(decode(&old_shape), -EPROTO);
	CU_ASSERT_EQUAL(unknown, 15);
	CU_ASSERT_EQUAL(decode(&new_shape), 0);
	CU_ASSERT_EQUAL(unknown, 0);
	/* Where it is not used, it makes no difference. */
	make();
	encode(&new_shape);
	CU_ASSERT_EQUAL(decode(&old_shape), 0);
}

static void an_unknown_field_may_come_anywhere_and_twice(void)
{
	static const uint16_t tags[] = { 0, 6, 17, 1000, 0x7fff };

	make();
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		length = 0;
		append(tags[i], "anything", 8);
		int64_t n = mst_fields_encode(&new_shape, &sent, bytes + length,
					      sizeof(bytes) - length);
		length += (size_t)n;
		append(tags[i], "", 0);
		CU_ASSERT_EQUAL(decode(&new_shape), 0);
		expect_sent();
	}
}

static void an_unknown_field_of_a_row_is_skipped_or_refused(void)
{
	static const uint16_t foreign[] = { 99, 0x8000 | 99 };

	make();
	for (int i = 0; i < 2; i++) {
		length = 0;
		append(1, &(uint32_t){ 7 }, 4);
		append(foreign[i], "??", 2);
		append(2, "seven", 5);
		uint8_t row[64];
		uint32_t count = 1, row_length = (uint32_t)length;
		memcpy(row, &count, 4);
		memcpy(row + 4, &row_length, 4);
		memcpy(row + 8, bytes, length);
		encode(&new_shape);
		leave_out(8);
		append(8, row, 8 + row_length);
		CU_ASSERT_EQUAL(decode(&new_shape), i == 0 ? 0 : -EPROTO);
		CU_ASSERT_EQUAL(unknown, i == 0 ? 0 : 99);
		CU_ASSERT(i > 0 || is_inner(&got.row[0], &sent.row[0]));
	}
}

/* Each field in turn comes last, and once all come backwards. */
static void any_order_is_accepted(void)
{
	uint8_t field[256];

	make_all();
	encode(&new_shape);
	for (size_t i = 0; i < new_shape.count; i++) {
		size_t count = field_bytes(bytes);
		memcpy(field, bytes, count);
		memmove(bytes, bytes + count, length - count);
		memcpy(bytes + length - count, field, count);
		CU_ASSERT_EQUAL(decode(&new_shape), 0);
		expect_sent();
	}
	size_t at = length;
	for (uint8_t *from = bytes; from < bytes + length; from += field_bytes(from)) {
		at -= field_bytes(from);
		memcpy(bytes + sizeof(bytes) / 2 + at, from, field_bytes(from));
	}
	memcpy(bytes, bytes + sizeof(bytes) / 2, length);
	CU_ASSERT_EQUAL(decode(&new_shape), 0);
	expect_sent();
}

static void a_field_that_is_there_twice_is_refused(void)
{
	make_all();
	encode(&new_shape);
	size_t once = length, count;
	for (const uint8_t *at = bytes; at < bytes + once; at += count) {
		count = field_bytes(at);
		memcpy(bytes + once, at, count);
		length = once + count;
		CU_ASSERT_EQUAL(decode(&new_shape), -EPROTO);
		CU_ASSERT_EQUAL(unknown, 0);
	}
}

static void a_required_field_that_is_missing_is_refused(void)
{
	for (size_t i = 0; i < old_shape.count; i++) {
		make();
		encode(&new_shape);
		leave_out(new_fields[i].tag);
		CU_ASSERT_EQUAL(decode(&new_shape), -EPROTO);
	}
}

/* Unless whole fields are cut off, and only optional ones. */
static void every_truncation_is_refused(void)
{
	make();
	encode(&new_shape);
	for (size_t cut = 0; cut < length; cut++)
		CU_ASSERT_EQUAL(decode_some(&new_shape, cut), -EPROTO);
	size_t required = length;
	make_all();
	encode(&new_shape);
	size_t whole = 0;
	for (size_t cut = required; cut < length; cut++)
		whole += decode_some(&new_shape, cut) == 0;
	CU_ASSERT_EQUAL(whole, 8); /* after none of the eight optional ones, one, ... seven */
}

static void a_length_of_another_type_is_refused(void)
{
	for (uint16_t tag = 1; tag <= 5; tag++) {
		for (int more = -1; more <= 1; more += 2) {
			make();
			encode(&new_shape);
			uint32_t had = (uint32_t)(field_bytes(find(tag)) - MST_FIELD_HEADER);
			leave_out(tag);
			append(tag, "\xff\xff\xff\xff\xff\xff\xff\xff\xff", had + (uint32_t)more);
			CU_ASSERT_EQUAL(decode(&new_shape), -EPROTO);
		}
	}
}

/* A value of an optional field that cannot be is refused too, and not taken for absent. */
static void a_value_out_of_range_is_refused(void)
{
	static const struct {
		uint16_t tag;
		const char *value;
		uint32_t length;
	} wrong[] = {
		{ 3, "\0\0\0\0", 4 },                 /* no error */
		{ 7, "eight...", 8 },                 /* no room for the NUL */
		{ 7, "a\0b", 3 },                     /* a NUL inside */
		{ 8, "\4\0\0\0", 4 },                 /* too many rows */
		{ 8, "\1\0\0\0", 4 },                 /* fewer than it says */
		{ 8, "\0\0\0\0\0", 5 },               /* and more */
		{ 8, "\1\0\0\0\0\0\0\0", 8 },         /* a row without its fields */
		{ 8, "\1\0\0\0\xff\xff\xff\xff", 8 }, /* longer than the value */
		{ 9, "\2\0\0\0", 4 },
		{ 12, "eight...", 8 },
		{ 13, "abc", 3 },
		{ 14, "\3\0\0\0", 4 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		make();
		encode(&new_shape);
		if (find(wrong[i].tag) != NULL)
			leave_out(wrong[i].tag);
		append(wrong[i].tag, wrong[i].value, wrong[i].length);
		CU_ASSERT_EQUAL(decode(&new_shape), -EPROTO);
	}
}

static void too_small_a_buffer_is_refused(void)
{
	make_all();
	encode(&new_shape);
	for (size_t room = 0; room < length; room++)
		CU_ASSERT_EQUAL(mst_fields_encode(&new_shape, &sent, bytes, room), -ENOSPC);
	CU_ASSERT_EQUAL(mst_fields_encode(&new_shape, &sent, bytes, length), (int64_t)length);
}

/* ---- the tables of messages ---- */

static bool is_sane(const struct mst_field *f)
{
	bool optional = f->flags & MST_FIELD_OPTIONAL;

	return f->tag > 0 && f->tag < MST_TAG_MUST_KNOW && (optional || f->flags == 0) &&
	       (!(f->flags & MST_FIELD_NAN) || f->type == MST_FIELD_F64) &&
	       (!(f->flags & MST_FIELD_ONES) || f->type == MST_FIELD_U64) &&
	       (f->type == MST_FIELD_ROWS) == (f->rows != NULL) &&
	       !(optional && f->type == MST_FIELD_PIECE);
}

static void check_shape(const struct mst_shape *shape)
{
	CU_ASSERT_FATAL(shape->count <= MST_SHAPE_FIELDS_MAX);
	for (size_t i = 0; i < shape->count; i++) {
		CU_ASSERT(is_sane(&shape->field[i]));
		CU_ASSERT(i == 0 || shape->field[i].tag > shape->field[i - 1].tag);
		if (shape->field[i].rows != NULL)
			check_shape(&shape->field[i].rows->shape);
	}
}

static void each_table_is_in_the_order_of_its_tags(void)
{
	const struct mst_body *body;

	check_shape(&new_shape);
	for (uint32_t kind = MST_MSG_HELLO; (body = mst_body_of(kind)) != NULL; kind++)
		check_shape(&body->shape);
}

static CU_TestInfo cases[] = {
	{ "fields of each type come back", all_fields_come_back },
	{ "tag, length and value are where the protocol says",
	  the_bytes_are_those_of_the_protocol },
	{ "what an older release does not send is 0, empty, a NaN or all ones",
	  an_older_release_leaves_defaults },
	{ "an older release skips what it does not know",
	  an_older_release_skips_what_it_does_not_know },
	{ "an older release refuses what it must know, where that is used",
	  an_older_release_refuses_what_it_must_know },
	{ "an unknown field may come anywhere, and twice",
	  an_unknown_field_may_come_anywhere_and_twice },
	{ "an unknown field of a row is skipped or refused",
	  an_unknown_field_of_a_row_is_skipped_or_refused },
	{ "fields may come in any order", any_order_is_accepted },
	{ "a field that is there twice is refused", a_field_that_is_there_twice_is_refused },
	{ "a required field that is missing is refused",
	  a_required_field_that_is_missing_is_refused },
	{ "every truncation within a field is refused", every_truncation_is_refused },
	{ "a length of another type is refused", a_length_of_another_type_is_refused },
	{ "a value out of range is refused", a_value_out_of_range_is_refused },
	{ "a buffer that is too small is -ENOSPC", too_small_a_buffer_is_refused },
	{ "each table is in the order of its tags", each_table_is_in_the_order_of_its_tags },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("fields", cases);
}
