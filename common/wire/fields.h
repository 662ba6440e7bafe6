/* SPDX-License-Identifier: MIT */
/*
 * Structs as lists of fields. A field on the wire is
 *
 *   u16 tag | u32 length | value
 *
 * all little-endian. The fields of a struct are a table, which the encoder and the decoder walk, so
 * that the two cannot disagree. What makes a new field no new protocol:
 *
 *   - a tag that the decoder does not know is skipped; or, if it has its high bit
 *     (MST_TAG_MUST_KNOW), the message is refused;
 *   - a field that is optional may be absent: then its member is 0, or what the table says.
 *
 * All others are required. Any order is accepted; the encoder writes the order of the table. A
 * field that is there twice, that has not the length of its type, or is out of its range, is
 * refused.
 *
 * Numbers are written as they are. A text is its bytes, without a NUL. Rows are u32 count, then of
 * each row u32 length and its fields. Private to common/wire.
 */
#ifndef MST_WIRE_FIELDS_H
#define MST_WIRE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#define MST_TAG_MUST_KNOW 0x8000u
#define MST_SHAPE_FIELDS_MAX 64u
#define MST_FIELD_HEADER 6u /* bytes of tag and length */

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
	MST_FIELD_ROWS,  /* at most `limit` of `rows` */
	MST_FIELD_PIECE, /* the data of a struct mst_state_piece, which begins the struct */
};

/* What may be said of a field. */
enum mst_field_flag {
	/* It may be absent. It is not written where it is 0 (an empty text, no rows), so an older
	 * release sees it only where it is used. */
	MST_FIELD_OPTIONAL = 1,
	/* An optional F64 that is a NaN where it is absent, and not 0. */
	MST_FIELD_NAN = 2,
	/* An optional U64 that is all ones where it is absent. */
	MST_FIELD_ONES = 8,
	/* An optional field without which the message would be misunderstood: it is written with
	 * MST_TAG_MUST_KNOW. */
	MST_FIELD_MUST_KNOW = 4,
};

struct mst_rows;

struct mst_field {
	uint16_t tag;   /* from 1 on, below MST_TAG_MUST_KNOW */
	uint16_t flags; /* enum mst_field_flag */
	enum mst_field_type type;
	uint32_t limit;
	size_t offset; /* in the struct; ROWS: of the count */
	const struct mst_rows *rows;
	const char *name; /* in the struct; never on the wire */
};

/* Rows in the order of their tags, so that a tag is found fast wherever it comes. */
struct mst_shape {
	const struct mst_field *field;
	size_t count; /* at most MST_SHAPE_FIELDS_MAX */
};

struct mst_rows {
	size_t first, stride; /* of the array, in the struct that holds the count */
	struct mst_shape shape;
};

/* ---- rows of a table ---- */

#define MST_FIELD_ROW(tag, flags, type, of, name, limit, rows)                                     \
	{                                                                                          \
		tag, flags, MST_FIELD_##type, limit, offsetof(struct of, name), rows, #name        \
	}
#define FIELD(tag, type, of, name) MST_FIELD_ROW(tag, 0, type, of, name, 0, NULL)
#define LIMITED(tag, type, of, name, limit) MST_FIELD_ROW(tag, 0, type, of, name, limit, NULL)
#define ROWS(tag, of, name, limit, rows) MST_FIELD_ROW(tag, 0, ROWS, of, name, limit, &(rows))
#define TEXT(tag, of, name) LIMITED(tag, TEXT, of, name, sizeof(((struct of *)NULL)->name))
#define BYTES(tag, of, name) LIMITED(tag, BYTES, of, name, sizeof(((struct of *)NULL)->name))
/* What a release adds to a message that another has: @limit is 0 for a type that has none, and
 * sizeof the member for BYTES and TEXT. */
#define OPTIONAL(tag, type, of, name, limit)                                                       \
	MST_FIELD_ROW(tag, MST_FIELD_OPTIONAL, type, of, name, limit, NULL)
#define OPTIONAL_NAN(tag, of, name)                                                                \
	MST_FIELD_ROW(tag, MST_FIELD_OPTIONAL | MST_FIELD_NAN, F64, of, name, 0, NULL)
#define OPTIONAL_ONES(tag, of, name)                                                               \
	MST_FIELD_ROW(tag, MST_FIELD_OPTIONAL | MST_FIELD_ONES, U64, of, name, 0, NULL)
#define OPTIONAL_MUST_KNOW(tag, type, of, name, limit)                                             \
	MST_FIELD_ROW(tag, MST_FIELD_OPTIONAL | MST_FIELD_MUST_KNOW, type, of, name, limit, NULL)
#define OPTIONAL_ROWS(tag, of, name, limit, rows)                                                  \
	MST_FIELD_ROW(tag, MST_FIELD_OPTIONAL, ROWS, of, name, limit, &(rows))
#define SHAPE(fields)                                                                              \
	{                                                                                          \
		fields, sizeof(fields) / sizeof((fields)[0])                                       \
	}

/* ---- both ways ---- */

/* Bytes of the value of a field that is neither TEXT, ROWS nor PIECE. */
size_t mst_field_bytes(const struct mst_field *f);

/* Encodes the struct at @of into @buffer.
 * Return: bytes, or -ENOSPC. */
int64_t mst_fields_encode(const struct mst_shape *shape, const void *of, void *buffer, size_t room);

/* Decodes @length bytes into the struct at @of. Every member that has a field is set, whatever it
 * was before; after an error they may have any value.
 * @unknown: the tag, without its high bit, that the bytes are refused for because it must be known;
 * else 0.
 * Return: 0, or -EPROTO. */
int mst_fields_decode(const struct mst_shape *shape, const void *bytes, size_t length, void *of,
		      uint16_t *unknown);

#endif
