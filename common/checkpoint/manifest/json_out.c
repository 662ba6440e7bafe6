/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/manifest/json_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

#define CAPACITY_FIRST ((size_t)4096)

/* Makes sure that @more bytes and a NUL have a place. */
static bool reserve(struct mst_json_out *o, size_t more)
{
	size_t capacity = o->capacity > 0 ? o->capacity : CAPACITY_FIRST;

	if (o->failed)
		return false;
	if (more < o->capacity - o->len)
		return true;
	while (capacity - o->len <= more)
		capacity *= 2;
	char *text = realloc(o->text, capacity);
	if (text == NULL) {
		o->failed = true;
		return false;
	}
	o->text = text;
	o->capacity = capacity;
	return true;
}

void mst_json_out_format(struct mst_json_out *o, const char *fmt, ...)
{
	va_list args, again;

	va_start(args, fmt);
	va_copy(again, args);
	int bytes = vsnprintf(NULL, 0, fmt, args);
	MST_ASSERT(bytes >= 0);
	if (reserve(o, (size_t)bytes)) {
		(void)vsnprintf(o->text + o->len, o->capacity - o->len, fmt, again);
		o->len += (size_t)bytes;
	}
	va_end(again);
	va_end(args);
}

static void put(struct mst_json_out *o, const char *bytes, size_t count)
{
	if (!reserve(o, count))
		return;
	memcpy(o->text + o->len, bytes, count);
	o->len += count;
	o->text[o->len] = '\0';
}

static void put_escaped(struct mst_json_out *o, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			put(o, "\\", 1);
		if ((unsigned char)*text < 0x20)
			mst_json_out_format(o, "\\u%04x", (unsigned)(unsigned char)*text);
		else
			put(o, text, 1);
	}
}

void mst_json_out_prefixed_text(struct mst_json_out *o, const char *prefix, const char *text)
{
	put(o, "\"", 1);
	put_escaped(o, prefix);
	put_escaped(o, text);
	put(o, "\"", 1);
}

void mst_json_out_text(struct mst_json_out *o, const char *text)
{
	mst_json_out_prefixed_text(o, "", text);
}
