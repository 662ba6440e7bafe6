/* SPDX-License-Identifier: MIT */
/*
 * Whatever text comes, it keeps its length, only '?' is put in, and the C library, which decodes
 * UTF-8 by itself, finds characters in it and none that is a control.
 */
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "common/base/assert.h"
#include "common/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const char *text)
{
	mbstate_t state = { 0 };
	wchar_t c;

	for (size_t bytes; *text != '\0'; text += bytes) {
		bytes = mbrtowc(&c, text, strlen(text), &state);
		MST_ASSERT(bytes != (size_t)-1 && bytes != (size_t)-2);
		MST_ASSERT(c >= 0x20 && (c < 0x7f || c > 0x9f) && (c < 0xd800 || c > 0xdfff));
		MST_ASSERT(c != 0x061c && c != 0x200e && c != 0x200f);
		MST_ASSERT((c < 0x2028 || c > 0x202e) && (c < 0x2066 || c > 0x2069));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *before;

	MST_ASSERT(setlocale(LC_CTYPE, "C.UTF-8") != NULL && text != NULL);
	before = strdup(text);
	MST_ASSERT(before != NULL);
	mst_text_clean(text);
	MST_ASSERT(strlen(text) == strlen(before));
	for (size_t i = 0; text[i] != '\0'; i++)
		MST_ASSERT(text[i] == before[i] || text[i] == '?');
	look(text);
	MST_ASSERT(mst_text_is_clean(text));
	MST_ASSERT(mst_text_is_clean(before) == (strcmp(text, before) == 0));
	free(before);
	free(text);
	return 0;
}
