/* SPDX-License-Identifier: MIT */
/* What is shown of text that somebody else wrote. */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "tests/ut.h"

/* @from is made into @to, which is clean; @from is clean only if nothing changes. */
static void becomes(const char *from, const char *to)
{
	char text[64];

	CU_ASSERT_FATAL(strlen(from) < sizeof(text));
	(void)snprintf(text, sizeof(text), "%s", from);
	mst_text_clean(text);
	CU_ASSERT_STRING_EQUAL(text, to);
	CU_ASSERT(mst_text_is_clean(text));
	CU_ASSERT_EQUAL(mst_text_is_clean(from), strcmp(from, to) == 0);
}

static void stays(const char *text)
{
	becomes(text, text);
}

static void text_of_any_language_stays(void)
{
	stays("");
	stays("rank 3: 50 % late");
	stays("caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xd7\xa9\xd7\x9c \xf0\x9f\x9a\x80");
	stays(" ~");
	stays("\xc2\xa0");                 /* U+00A0, after C1 */
	stays("\xed\x9f\xbf\xee\x80\x80"); /* U+D7FF and U+E000, around the surrogates */
	stays("\xe2\x80\xa7\xe2\x80\xaf"); /* U+2027 and U+202F, around the separators */
	stays("\xe2\x81\xa5\xe2\x81\xaa"); /* U+2065 and U+206A, around the isolates */
	stays("\xf4\x8f\xbf\xbf");         /* U+10FFFF */
}

static void controls_are_replaced(void)
{
	for (char c = 1; c < 0x20; c++)
		becomes((char[]){ 'a', c, 'b', '\0' }, "a?b");
	becomes("a\x7f", "a?");
	becomes("\033[2J\033]0;title\007", "?[2J?]0;title?");
	for (int c = 0x80; c <= 0x9f; c++)
		becomes((char[]){ '\xc2', (char)c, 'x', '\0' }, "??x");
}

static void what_turns_text_around_is_replaced(void)
{
	static const char *const marks[] = {
		"\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaa",
		"\xe2\x80\xab", "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae", "\xe2\x81\xa6",
		"\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9",
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		becomes(marks[i], "???");
	becomes("\xd8\x9c", "??"); /* U+061C */
}

static void broken_bytes_are_replaced(void)
{
	becomes("\x80", "?");
	becomes("a\xbf\xbf", "a??");
	becomes("\xfe\xff", "??");
	becomes("\xf8\x88\x80\x80\x80", "?????"); /* five bytes were a character once */
	becomes("\x9b[2J", "?[2J");               /* C1, as terminals of one byte have it */
}

static void a_character_cut_short_is_replaced(void)
{
	becomes("\xc3", "?");
	becomes("\xe6\x97", "??");
	becomes("\xf0\x9f\x9a", "???");
	becomes("\xe6\x97x", "??x");
	becomes("\xc3\xc3\xa9", "?\xc3\xa9"); /* what follows is whole */
}

static void overlong_forms_are_replaced(void)
{
	becomes("\xc0\x80", "??");
	becomes("\xc0\xaf", "??");
	becomes("\xc1\xbf", "??");
	becomes("\xe0\x80\xaf", "???");
	becomes("\xe0\x9f\xbf", "???");
	becomes("\xf0\x80\x80\xaf", "????");
	becomes("\xf0\x8f\xbf\xbf", "????");
}

static void surrogates_and_what_is_beyond_unicode_are_replaced(void)
{
	becomes("\xed\xa0\x80", "???");
	becomes("\xed\xbf\xbf", "???");
	becomes("\xed\xa0\xbd\xed\xba\x80", "??????");
	becomes("\xf4\x90\x80\x80", "????");
	becomes("\xf7\xbf\xbf\xbf", "????");
}

static CU_TestInfo cases[] = {
	{ "text of any language stays", text_of_any_language_stays },
	{ "C0, DEL and C1 are replaced", controls_are_replaced },
	{ "bidi controls and separators of lines are replaced",
	  what_turns_text_around_is_replaced },
	{ "bytes that begin no character are replaced", broken_bytes_are_replaced },
	{ "a character cut short is replaced, and no more", a_character_cut_short_is_replaced },
	{ "overlong forms are replaced", overlong_forms_are_replaced },
	{ "surrogates and what is beyond Unicode are replaced",
	  surrogates_and_what_is_beyond_unicode_are_replaced },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("text", cases);
}
