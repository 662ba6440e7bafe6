/* SPDX-License-Identifier: MIT */
/* Writes structs as lists of fields. A wrong struct is a mistake of this program, so it is
 * asserted; only a buffer that is too small is an error. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/fields.h"
#include "common/wire/message.h"

struct writer {
	uint8_t *at;
	size_t room;
	bool full; /* something did not fit */
};

static void write_bytes(struct writer *w, const void *src, size_t bytes)
{
	if (bytes == 0)
		return;
	if (w->full || bytes > w->room) {
		w->full = true;
		return;
	}
	memcpy(w->at, src, bytes);
	w->at += bytes;
	w->room -= bytes;
}

static uint32_t load_u32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* ---- lengths, which are known when what they count has been written ---- */

/* Return: where the length is. */
static uint8_t *open_length(struct writer *w)
{
	uint8_t *at = w->at;
	uint32_t unknown = 0;

	write_bytes(w, &unknown, sizeof(unknown));
	return at;
}

static void close_length(const struct writer *w, uint8_t *at)
{
	if (w->full)
		return;
	uint32_t length = (uint32_t)(w->at - at - (ptrdiff_t)sizeof(length));
	memcpy(at, &length, sizeof(length));
}

/* ---- values ---- */

static void write_text(struct writer *w, const char *text, uint32_t limit)
{
	size_t length = strnlen(text, limit);

	MST_ASSERT(length < limit);
	write_bytes(w, text, length);
}

static void write_piece(struct writer *w, const struct mst_state_piece *piece)
{
	MST_ASSERT(piece->length <= MST_STATE_CHUNK);
	write_bytes(w, piece->data, piece->length);
}

static void write_plain(struct writer *w, const struct mst_field *f, const uint8_t *at)
{
	MST_ASSERT(f->type != MST_FIELD_ENUM || load_u32(at) < f->limit);
	write_bytes(w, at, mst_field_bytes(f));
}

static void write_fields(struct writer *w, const struct mst_shape *shape, const uint8_t *of);

static void write_rows(struct writer *w, const struct mst_field *f, const uint8_t *of)
{
	const struct mst_rows *rows = f->rows;
	uint32_t count = load_u32(of + f->offset);

	MST_ASSERT(count <= f->limit);
	write_bytes(w, &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *length = open_length(w);
		write_fields(w, &rows->shape, of + rows->first + i * rows->stride);
		close_length(w, length);
	}
}

/* ---- fields ---- */

static bool all_are(uint8_t value, const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (at[i] != value)
			return false;
	}
	return true;
}

/* Has the member the value that a decoder gives it where the field is absent? */
static bool is_default(const struct mst_field *f, const uint8_t *at)
{
	double value;

	if (f->flags & MST_FIELD_NAN) {
		memcpy(&value, at, sizeof(value));
		return isnan(value);
	}
	if (f->type == MST_FIELD_TEXT)
		return at[0] == '\0';
	/* ROWS: their count */
	return all_are(f->flags & MST_FIELD_ONES ? 0xff : 0, at, mst_field_bytes(f));
}

static void write_field(struct writer *w, const struct mst_field *f, const uint8_t *of)
{
	uint16_t tag = f->tag | (f->flags & MST_FIELD_MUST_KNOW ? MST_TAG_MUST_KNOW : 0);

	if ((f->flags & MST_FIELD_OPTIONAL) && is_default(f, of + f->offset))
		return;
	write_bytes(w, &tag, sizeof(tag));
	uint8_t *length = open_length(w);
	if (f->type == MST_FIELD_TEXT)
		write_text(w, (const char *)of + f->offset, f->limit);
	else if (f->type == MST_FIELD_ROWS)
		write_rows(w, f, of);
	else if (f->type == MST_FIELD_PIECE)
		write_piece(w, (const struct mst_state_piece *)of);
	else
		write_plain(w, f, of + f->offset);
	close_length(w, length);
}

static void write_fields(struct writer *w, const struct mst_shape *shape, const uint8_t *of)
{
	for (size_t i = 0; i < shape->count; i++)
		write_field(w, &shape->field[i], of);
}

int64_t mst_fields_encode(const struct mst_shape *shape, const void *of, void *buffer, size_t room)
{
	struct writer w = { .at = buffer, .room = room };

	write_fields(&w, shape, of);
	return w.full ? -ENOSPC : (int64_t)(room - w.room);
}

size_t mst_field_bytes(const struct mst_field *f)
{
	switch (f->type) {
	case MST_FIELD_U64:
	case MST_FIELD_F64:
		return 8;
	case MST_FIELD_BYTES:
		return f->limit;
	default:
		return 4;
	}
}
