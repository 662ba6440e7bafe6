/* SPDX-License-Identifier: MIT */
#include "common/base/reason.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

#define CUT "..."

/* Ends @text, which is full, with CUT. The bytes of a character but its first are 10xxxxxx. */
static void cut(char text[MST_REASON_LEN])
{
	size_t end = MST_REASON_LEN - sizeof(CUT);

	while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	memcpy(text + end, CUT, sizeof(CUT));
}

/* Writes from @at on. What is composed is not @r, in which arguments may lie. */
__attribute__((format(printf, 3, 0))) static void compose(struct mst_reason *r, size_t at,
							  const char *fmt, va_list args)
{
	char text[MST_REASON_LEN];

	memcpy(text, r->text, at);
	int more = mst_text_vprint(text + at, sizeof(text) - at, fmt, args);

	if (more < 0)
		text[at] = '\0';
	else if ((size_t)more >= sizeof(text) - at)
		cut(text);
	memcpy(r->text, text, strlen(text) + 1);
}

void mst_reason_clear(struct mst_reason *r)
{
	r->text[0] = '\0';
}

void mst_reason_vset(struct mst_reason *r, const char *fmt, va_list args)
{
	compose(r, 0, fmt, args);
}

void mst_reason_set(struct mst_reason *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	compose(r, 0, fmt, args);
	va_end(args);
}

void mst_reason_vadd(struct mst_reason *r, const char *fmt, va_list args)
{
	compose(r, strlen(r->text), fmt, args);
}

void mst_reason_add(struct mst_reason *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	compose(r, strlen(r->text), fmt, args);
	va_end(args);
}

int mst_reason_fail(struct mst_reason *r, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	compose(r, 0, fmt, args);
	va_end(args);
	return error;
}

const char *mst_reason_or_errno(const struct mst_reason *r, int error)
{
	return r->text[0] != '\0' ? r->text : strerror(-error);
}
