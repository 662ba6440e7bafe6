/* SPDX-License-Identifier: MIT */
/*
 * A strict reader of JSON (RFC 8259) for headers and manifests. The caller asks for what it
 * expects, one value after the other; nothing is built, nothing is allocated, and no input makes it
 * use more stack than MST_JSON_DEPTH levels. Texts are clean (common/base/text.h), or refused.
 *
 * After the first mistake every call returns false and `wrong` says what it was. Pure.
 */
#ifndef MST_COMMON_CHECKPOINT_MANIFEST_JSON_H
#define MST_COMMON_CHECKPOINT_MANIFEST_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MST_JSON_DEPTH 8u
#define MST_JSON_NUMBER_LEN 32u /* with NUL: no longer number is taken */

struct mst_json {
	const char *begin, *at, *end;
	const char *wrong; /* NULL, or a clause such as "a key is not a text" */
	unsigned depth;
	bool begun[MST_JSON_DEPTH];
	char closing[MST_JSON_DEPTH];
};

void mst_json_init(struct mst_json *j, const char *text, size_t len);
/* Sets @wrong, if nothing has been wrong so far. Return: false. */
bool mst_json_refuse(struct mst_json *j, const char *wrong);
/* Is nothing wrong, and is only white space left? */
bool mst_json_end(struct mst_json *j);

/* Goes into an object or an array. @bracket: '{' or '['. */
bool mst_json_enter(struct mst_json *j, char bracket);
/* In an object or an array: does another member or element follow? If not, goes out of it. */
bool mst_json_more(struct mst_json *j);
/* The key of a member, and the colon after it. */
bool mst_json_key(struct mst_json *j, char *out, size_t room);

/* @out: @room bytes, with NUL. A text that is longer is refused. */
bool mst_json_text(struct mst_json *j, char *out, size_t room);
/* A whole number from 0 on, without a fraction. */
bool mst_json_u64(struct mst_json *j, uint64_t *out);
/* Any number, as it is written. */
bool mst_json_number(struct mst_json *j, char out[MST_JSON_NUMBER_LEN]);
/* The first character of the next value; 0: there is none. */
char mst_json_peek(struct mst_json *j);
/* Any value. */
bool mst_json_skip(struct mst_json *j);

/* Reads decimal digits from @at on, at least one and no needless 0 before them. Return: what is
 * after them; NULL: there are none, or the number is too large. */
const char *mst_json_digits(const char *at, const char *end, uint64_t *out);

#endif
