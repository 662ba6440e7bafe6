/* SPDX-License-Identifier: MIT */
/*
 * Cleans text of foreign origin before it reaches a terminal, a log or JSON.
 *
 * Clean text is valid UTF-8 (no overlong form, no surrogate, nothing beyond U+10FFFF) without
 * characters that act on a terminal or on the order of what is shown: C0 and DEL (line feeds and
 * tabs too), C1 (U+0080 to U+009F), the line and paragraph separators (U+2028, U+2029), and what
 * Unicode calls bidi controls (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
 */
#ifndef MST_BASE_TEXT_H
#define MST_BASE_TEXT_H

#include <stdbool.h>

/* Replaces by '?' every byte of @text that is not clean. The length stays the same. */
void mst_text_clean(char *text);

bool mst_text_is_clean(const char *text);

#endif
