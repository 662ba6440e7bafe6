/* SPDX-License-Identifier: MIT */
/*
 * The fields of every message, as data: one list per kind, in the order of the wire. The encoder
 * and the decoder walk the same lists, so the two cannot disagree. Private to common/wire.
 */
#ifndef MST_WIRE_MESSAGE_FIELDS_H
#define MST_WIRE_MESSAGE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/message.h"

#define MST_FRAME_MAGIC 0x7274736du /* "mstr" */

enum mst_field_type {
	MST_FIELD_U32,
	MST_FIELD_U64,
	MST_FIELD_I32,
	MST_FIELD_F32,
	MST_FIELD_F64,
	MST_FIELD_ENUM,  /* u32 below `limit` */
	MST_FIELD_ERRNO, /* i32, a negative errno */
	MST_FIELD_BYTES, /* exactly `limit` */
	MST_FIELD_TEXT,  /* char[limit] with its NUL */
	MST_FIELD_ROWS,  /* u32 count, at most `limit`; then that number of `rows` */
	MST_FIELD_PIECE, /* length and data of a struct mst_state_piece */
};

struct mst_rows;

struct mst_field {
	enum mst_field_type type;
	uint32_t limit;
	size_t offset; /* in the struct; ROWS: of the count */
	const struct mst_rows *rows;
	const char *name; /* in the struct; never on the wire */
};

struct mst_shape {
	const struct mst_field *field;
	size_t count;
};

struct mst_rows {
	size_t first, stride; /* of the array, in the struct that holds the count */
	struct mst_shape shape;
};

struct mst_body {
	bool known;
	size_t base; /* what the fields' offsets are relative to, in struct mst_message */
	struct mst_shape shape;
};

/* By kind; NULL: there is no such kind. */
const struct mst_body *mst_body_of(uint32_t kind);

/* Bytes on the wire of a field that is neither TEXT, ROWS nor PIECE. */
size_t mst_field_bytes(const struct mst_field *f);

#endif
