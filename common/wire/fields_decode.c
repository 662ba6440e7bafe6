/* SPDX-License-Identifier: MIT */
/*
 * Reads lists of fields, which may come from any peer. Reads nothing beyond the bytes that are
 * given, writes nothing beyond a member. Every text is cleaned here, so that none reaches a
 * terminal, a log or JSON as its sender wrote it. The time for it grows with the bytes and little
 * else, as strangers may send them.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/text.h"
#include "common/wire/fields.h"
#include "common/wire/message.h"

#define ERRNO_MAX 4095

struct bytes {
	const uint8_t *at;
	size_t left;
};

/* Return: false: there are fewer bytes. */
static bool take_span(struct bytes *s, size_t bytes, struct bytes *out)
{
	if (bytes > s->left)
		return false;
	*out = (struct bytes){ s->at, bytes };
	s->at += bytes;
	s->left -= bytes;
	return true;
}

static bool take(struct bytes *s, void *out, size_t bytes)
{
	struct bytes of;

	if (!take_span(s, bytes, &of))
		return false;
	memcpy(out, of.at, bytes);
	return true;
}

/* Takes a length, and what it counts. */
static bool take_counted(struct bytes *s, struct bytes *out)
{
	uint32_t length;

	return take(s, &length, sizeof(length)) && take_span(s, length, out);
}

/* ---- values ---- */

static bool read_text(const struct bytes *value, char *text, uint32_t limit)
{
	if (value->left >= limit || memchr(value->at, 0, value->left) != NULL)
		return false;
	memcpy(text, value->at, value->left);
	text[value->left] = '\0';
	mst_text_clean(text);
	return true;
}

/* Is what was read a value this field may have? */
static bool in_range(const struct mst_field *f, const uint8_t *at)
{
	uint32_t value;

	if (f->type != MST_FIELD_ENUM && f->type != MST_FIELD_ERRNO)
		return true;
	memcpy(&value, at, sizeof(value));
	if (f->type == MST_FIELD_ENUM)
		return value < f->limit;
	return (int32_t)value < 0 && (int32_t)value >= -ERRNO_MAX;
}

static bool read_plain(const struct bytes *value, const struct mst_field *f, uint8_t *into)
{
	if (value->left != mst_field_bytes(f) || !in_range(f, value->at))
		return false;
	memcpy(into, value->at, value->left);
	return true;
}

/* Whether it lies in its whole can be said when all fields have been read. */
static bool read_piece(const struct bytes *value, struct mst_state_piece *piece)
{
	if (value->left > MST_STATE_CHUNK)
		return false;
	piece->length = (uint32_t)value->left;
	piece->data = value->at;
	return true;
}

static bool read_fields(struct bytes s, const struct mst_shape *shape, uint8_t *of,
			uint16_t *unknown);

static bool read_rows(struct bytes s, const struct mst_field *f, uint8_t *of, uint16_t *unknown)
{
	const struct mst_rows *rows = f->rows;
	struct bytes row;
	uint32_t count;

	if (!take(&s, &count, sizeof(count)) || count > f->limit)
		return false;
	memcpy(of + f->offset, &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++) {
		if (!take_counted(&s, &row) ||
		    !read_fields(row, &rows->shape, of + rows->first + i * rows->stride, unknown))
			return false;
	}
	return s.left == 0;
}

static bool read_value(const struct bytes *value, const struct mst_field *f, uint8_t *of,
		       uint16_t *unknown)
{
	switch (f->type) {
	case MST_FIELD_TEXT:
		return read_text(value, (char *)of + f->offset, f->limit);
	case MST_FIELD_ROWS:
		return read_rows(*value, f, of, unknown);
	case MST_FIELD_PIECE:
		return read_piece(value, (struct mst_state_piece *)of);
	default:
		return read_plain(value, f, of + f->offset);
	}
}

/* ---- which fields are there ---- */

/* The row of @tag; @next: that of the tag after the last one, if they come in the table's order.
 * Return: the shape's count: it is unknown. */
static size_t row_of(const struct mst_shape *shape, uint16_t tag, size_t next)
{
	size_t low = 0, high = shape->count;

	if (next < high && shape->field[next].tag == tag)
		return next;
	if (high == 0 || tag > shape->field[high - 1].tag)
		return shape->count; /* as those of a later release are */
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (shape->field[middle].tag < tag)
			low = middle + 1;
		else
			high = middle;
	}
	return low < shape->count && shape->field[low].tag == tag ? low : shape->count;
}

static void set_default(const struct mst_field *f, uint8_t *at)
{
	static const double nan = NAN;

	if (f->flags & MST_FIELD_NAN)
		memcpy(at, &nan, sizeof(nan));
	else if (f->type == MST_FIELD_TEXT)
		at[0] = '\0';
	else
		/* ROWS: their count */
		memset(at, f->flags & MST_FIELD_ONES ? 0xff : 0, mst_field_bytes(f));
}

static bool piece_fits(const struct mst_state_piece *piece)
{
	return piece->length <= piece->total && piece->offset <= piece->total - piece->length;
}

/* All has been read. Return: false: a required field is absent, or fields do not go together. */
static bool settle(const struct mst_shape *shape, uint64_t seen, uint8_t *of)
{
	for (size_t i = 0; i < shape->count; i++) {
		const struct mst_field *f = &shape->field[i];
		bool absent = !(seen >> i & 1u);
		if (absent && !(f->flags & MST_FIELD_OPTIONAL))
			return false;
		if (absent)
			set_default(f, of + f->offset);
		if (f->type == MST_FIELD_PIECE && !piece_fits((const struct mst_state_piece *)of))
			return false;
	}
	return true;
}

/* Return: may it be skipped? */
static bool skip_unknown(uint16_t tag, uint16_t *unknown)
{
	if (!(tag & MST_TAG_MUST_KNOW))
		return true;
	*unknown = tag & (uint16_t)~MST_TAG_MUST_KNOW;
	return false;
}

static bool read_fields(struct bytes s, const struct mst_shape *shape, uint8_t *of,
			uint16_t *unknown)
{
	struct bytes value;
	uint64_t seen = 0;
	uint16_t tag;

	MST_ASSERT(shape->count <= MST_SHAPE_FIELDS_MAX);
	for (size_t row, next = 0; s.left > 0; next = row + 1) {
		if (!take(&s, &tag, sizeof(tag)) || !take_counted(&s, &value))
			return false;
		row = row_of(shape, tag & (uint16_t)~MST_TAG_MUST_KNOW, next);
		if (row == shape->count) {
			if (!skip_unknown(tag, unknown))
				return false;
			continue;
		}
		if ((seen >> row & 1u) != 0 || !read_value(&value, &shape->field[row], of, unknown))
			return false;
		seen |= UINT64_C(1) << row;
	}
	return settle(shape, seen, of);
}

int mst_fields_decode(const struct mst_shape *shape, const void *bytes, size_t length, void *of,
		      uint16_t *unknown)
{
	*unknown = 0;
	return read_fields((struct bytes){ bytes, length }, shape, of, unknown) ? 0 : -EPROTO;
}
