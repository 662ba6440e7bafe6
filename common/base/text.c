/* SPDX-License-Identifier: MIT */
#include "common/base/text.h"

#include <locale.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- numbers ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* kept until the process ends; 0: there is no memory for it */

static void make(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Return: the locale that this thread had. */
static locale_t enter(void)
{
	(void)pthread_once(&once, make);
	return uselocale(c_locale); /* (locale_t)0 changes nothing */
}

double mst_text_real(const char *text, char **end)
{
	locale_t before = enter();
	double value = strtod(text, end);

	(void)uselocale(before);
	return value;
}

int mst_text_vprint(char *out, size_t len, const char *fmt, va_list args)
{
	locale_t before = enter();
	int wanted = vsnprintf(out, len, fmt, args);

	(void)uselocale(before);
	return wanted;
}

int mst_text_print(char *out, size_t len, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int wanted = mst_text_vprint(out, len, fmt, args);
	va_end(args);
	return wanted;
}

/* ---- clean text ---- */

/* The character at the start of a text. */
struct character {
	size_t bytes; /* 1 if it is broken: the next byte may begin another character */
	bool broken;
	uint32_t code;
};

/* How many bytes the character that begins with @first has; 0: no character begins so. */
static size_t bytes_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc0 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf8 ? 4 : 0;
}

/* Reads one character. The terminating NUL cannot continue a character, so nothing after it is
 * read. */
static struct character next_of(const char *text)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	static const unsigned char bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	const struct character broken = { .bytes = 1, .broken = true };
	const unsigned char *at = (const unsigned char *)text;
	size_t bytes = bytes_of(at[0]);
	uint32_t code = at[0] & bits[bytes];

	for (size_t i = 1; i < bytes; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return broken;
		code = code << 6 | (at[i] & 0x3f);
	}
	if (bytes == 0 || code < smallest[bytes] || code > 0x10ffff ||
	    (code >= 0xd800 && code <= 0xdfff))
		return broken;
	return (struct character){ .bytes = bytes, .code = code };
}

static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

void mst_text_clean(char *text)
{
	while (*text != '\0') {
		struct character c = next_of(text);
		bool stays = !c.broken && !is_control(c.code);

		for (; c.bytes > 0; c.bytes--, text++)
			*text = stays ? *text : '?';
	}
}

bool mst_text_is_clean(const char *text)
{
	while (*text != '\0') {
		struct character c = next_of(text);

		if (c.broken || is_control(c.code))
			return false;
		text += c.bytes;
	}
	return true;
}
