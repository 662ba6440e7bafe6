/* SPDX-License-Identifier: MIT */
/* Encodes messages. A wrong message is a mistake of this program, so it is asserted; only a buffer
 * that is too small is an error. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/message_fields.h"

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

static void write_text(struct writer *w, const char *text, uint32_t limit)
{
	uint16_t length = (uint16_t)strnlen(text, limit);

	MST_ASSERT(length < limit);
	write_bytes(w, &length, sizeof(length));
	write_bytes(w, text, length);
}

static void write_piece(struct writer *w, const struct mst_state_piece *piece)
{
	MST_ASSERT(piece->length <= MST_STATE_CHUNK);
	write_bytes(w, &piece->length, sizeof(piece->length));
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
	for (uint32_t i = 0; i < count; i++)
		write_fields(w, &rows->shape, of + rows->first + i * rows->stride);
}

static void write_fields(struct writer *w, const struct mst_shape *shape, const uint8_t *of)
{
	for (size_t i = 0; i < shape->count; i++) {
		const struct mst_field *f = &shape->field[i];
		if (f->type == MST_FIELD_TEXT)
			write_text(w, (const char *)of + f->offset, f->limit);
		else if (f->type == MST_FIELD_ROWS)
			write_rows(w, f, of);
		else if (f->type == MST_FIELD_PIECE)
			write_piece(w, (const struct mst_state_piece *)of);
		else
			write_plain(w, f, of + f->offset);
	}
}

int64_t mst_message_encode(const struct mst_message *msg, void *buffer, size_t room)
{
	const struct mst_body *body = mst_body_of((uint32_t)msg->kind);
	struct writer w = { .at = buffer, .room = room };
	uint16_t protocol = MST_PROTOCOL, kind = (uint16_t)msg->kind;
	uint32_t magic = MST_FRAME_MAGIC, length = 0;

	MST_ASSERT(body != NULL);
	write_bytes(&w, &magic, sizeof(magic));
	write_bytes(&w, &protocol, sizeof(protocol));
	write_bytes(&w, &kind, sizeof(kind));
	write_bytes(&w, &length, sizeof(length));
	write_fields(&w, &body->shape, (const uint8_t *)msg + body->base);
	if (w.full)
		return -ENOSPC;

	length = (uint32_t)(room - w.room - MST_FRAME_HEADER);
	MST_ASSERT(length <= MST_FRAME_BODY_MAX);
	memcpy((uint8_t *)buffer + MST_FRAME_HEADER - sizeof(length), &length, sizeof(length));
	return (int64_t)MST_FRAME_HEADER + length;
}
