/* SPDX-License-Identifier: MIT */
/*
 * Decodes frames, which may come from any peer. Reads nothing beyond the body, writes nothing
 * beyond a field's own limit, and accepts only what the encoder could have written. Every text is
 * cleaned here, so that none reaches a terminal, a log or JSON as its sender wrote it.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/text.h"
#include "common/wire/message_fields.h"

#define ERRNO_MAX 4095

struct message_reader {
	const uint8_t *at;
	size_t left;
	bool bad; /* something was too short or out of range; the rest is not used */
};

/* Return: where the bytes are; NULL: there are fewer. */
static const uint8_t *read_bytes(struct message_reader *r, size_t bytes)
{
	const uint8_t *at = r->at;

	if (r->bad || bytes > r->left) {
		r->bad = true;
		return NULL;
	}
	r->at += bytes;
	r->left -= bytes;
	return at;
}

static uint32_t read_u32(struct message_reader *r)
{
	const uint8_t *at = read_bytes(r, sizeof(uint32_t));
	uint32_t value = 0;

	if (at != NULL)
		memcpy(&value, at, sizeof(value));
	return value;
}

static void read_text(struct message_reader *r, char *text, uint32_t limit)
{
	const uint8_t *at = read_bytes(r, sizeof(uint16_t));
	uint16_t length = 0;

	if (at != NULL)
		memcpy(&length, at, sizeof(length));
	at = read_bytes(r, length);
	if (at == NULL || length >= limit || memchr(at, 0, length) != NULL) {
		r->bad = true;
		return;
	}
	memcpy(text, at, length);
	text[length] = '\0';
	mst_text_clean(text);
}

static void read_piece(struct message_reader *r, struct mst_state_piece *piece)
{
	piece->length = read_u32(r);
	piece->data = read_bytes(r, piece->length);
	if (piece->length > MST_STATE_CHUNK || piece->total < piece->length ||
	    piece->offset > piece->total - piece->length)
		r->bad = true;
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

static void read_plain(struct message_reader *r, const struct mst_field *f, uint8_t *into)
{
	size_t bytes = mst_field_bytes(f);
	const uint8_t *at = read_bytes(r, bytes);

	if (at == NULL || !in_range(f, at)) {
		r->bad = true;
		return;
	}
	memcpy(into, at, bytes);
}

static void read_fields(struct message_reader *r, const struct mst_shape *shape, uint8_t *of);

static void read_rows(struct message_reader *r, const struct mst_field *f, uint8_t *of)
{
	const struct mst_rows *rows = f->rows;
	uint32_t count = read_u32(r);

	if (r->bad || count > f->limit) {
		r->bad = true;
		return;
	}
	memcpy(of + f->offset, &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++)
		read_fields(r, &rows->shape, of + rows->first + i * rows->stride);
}

static void read_fields(struct message_reader *r, const struct mst_shape *shape, uint8_t *of)
{
	for (size_t i = 0; i < shape->count && !r->bad; i++) {
		const struct mst_field *f = &shape->field[i];
		if (f->type == MST_FIELD_TEXT)
			read_text(r, (char *)of + f->offset, f->limit);
		else if (f->type == MST_FIELD_ROWS)
			read_rows(r, f, of);
		else if (f->type == MST_FIELD_PIECE)
			read_piece(r, (struct mst_state_piece *)of);
		else
			read_plain(r, f, of + f->offset);
	}
}

int64_t mst_frame_length(const void *buffer, size_t have, uint32_t *protocol)
{
	const uint8_t *at = buffer;
	uint32_t magic = MST_FRAME_MAGIC, length;
	uint16_t spoken;

	if (protocol != NULL)
		*protocol = 0;
	if (have == 0)
		return 0;
	/* A peer that speaks something else is recognised by the first byte that differs. */
	if (memcmp(at, &magic, have < sizeof(magic) ? have : sizeof(magic)) != 0)
		return -EPROTO;
	if (have < MST_FRAME_HEADER)
		return 0;
	memcpy(&spoken, at + 4, sizeof(spoken));
	memcpy(&length, at + 8, sizeof(length));
	if (protocol != NULL)
		*protocol = spoken;
	if (spoken != MST_PROTOCOL)
		return -EPROTO;
	if (length > MST_FRAME_BODY_MAX)
		return -EMSGSIZE;
	return (int64_t)MST_FRAME_HEADER + length;
}

int mst_message_decode(const void *frame, size_t length, struct mst_message *out)
{
	const uint8_t *at = frame;
	const struct mst_body *body;
	uint16_t kind;

	if (length < MST_FRAME_HEADER || mst_frame_length(frame, length, NULL) != (int64_t)length)
		return -EPROTO;
	memcpy(&kind, at + 6, sizeof(kind));
	body = mst_body_of(kind);
	if (body == NULL)
		return -EPROTO;

	struct message_reader r = { .at = at + MST_FRAME_HEADER,
				    .left = length - MST_FRAME_HEADER };
	out->kind = (enum mst_message_kind)kind;
	read_fields(&r, &body->shape, (uint8_t *)out + body->base);
	return r.bad || r.left != 0 ? -EPROTO : 0;
}
