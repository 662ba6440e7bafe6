/* SPDX-License-Identifier: MIT */
/*
 * Text: numbers in it, the same in every locale; and cleaning text of foreign origin before it
 * reaches a terminal, a log or JSON.
 *
 * The library is loaded into programs that call setlocale(). Where a comma stands before decimals,
 * strtod() would read 0.5 as 0, and printf() would write 0,5. Nothing here changes what other
 * threads see.
 *
 * Clean text is valid UTF-8 (no overlong form, no surrogate, nothing beyond U+10FFFF) without
 * characters that act on a terminal or on the order of what is shown: C0 and DEL (line feeds and
 * tabs too), C1 (U+0080 to U+009F), the line and paragraph separators (U+2028, U+2029), and what
 * Unicode calls bidi controls (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
 */
#ifndef MST_BASE_TEXT_H
#define MST_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* strtod(), with a point before decimals. */
double mst_text_real(const char *text, char **end);

/* snprintf() and vsnprintf(), with a point before decimals. */
int mst_text_print(char *out, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int mst_text_vprint(char *out, size_t len, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

/* Replaces by '?' every byte of @text that is not clean. The length stays the same. */
void mst_text_clean(char *text);

bool mst_text_is_clean(const char *text);

#endif
