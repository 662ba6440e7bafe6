/* SPDX-License-Identifier: MIT */
/* Sentences of bounded length. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/reason.h"
#include "common/base/text.h"
#include "tests/ut.h"

#define LONGEST (MST_REASON_LEN - 1)

/* So many times the letter a, and then @end. */
static const char *letters(size_t count, const char *end)
{
	static char text[2 * MST_REASON_LEN];

	CU_ASSERT_FATAL(count + strlen(end) < sizeof(text));
	memset(text, 'a', count);
	(void)snprintf(text + count, sizeof(text) - count, "%s", end);
	return text;
}

static void a_zeroed_reason_says_nothing(void)
{
	struct mst_reason r = { "" };

	CU_ASSERT_STRING_EQUAL(r.text, "");
	mst_reason_set(&r, "something");
	mst_reason_set(&r, "%s", "");
	CU_ASSERT_STRING_EQUAL(r.text, "");
}

static void a_sentence_is_formatted(void)
{
	struct mst_reason r;

	mst_reason_set(&r, "rank %d of %u is \"%s\"", -1, 4u, "gone");
	CU_ASSERT_STRING_EQUAL(r.text, "rank -1 of 4 is \"gone\"");
}

static void a_failure_is_its_error(void)
{
	struct mst_reason r;

	CU_ASSERT_EQUAL(mst_reason_fail(&r, -ENOENT, "there is no %s", "file"), -ENOENT);
	CU_ASSERT_STRING_EQUAL(r.text, "there is no file");
}

static void the_longest_sentence_is_whole(void)
{
	struct mst_reason r;

	mst_reason_set(&r, "%s", letters(LONGEST, ""));
	CU_ASSERT_STRING_EQUAL(r.text, letters(LONGEST, ""));
}

static void a_longer_one_ends_in_dots(void)
{
	struct mst_reason r;

	mst_reason_set(&r, "%s", letters(LONGEST + 1, ""));
	CU_ASSERT_EQUAL(strlen(r.text), LONGEST);
	CU_ASSERT_STRING_EQUAL(r.text, letters(LONGEST - 3, "..."));
}

static void no_character_is_cut_in_two(void)
{
	/* With each of their bytes as the first that has no room. */
	static const char *const of_bytes[] = { "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x9a\x80" };
	struct mst_reason r;

	for (size_t i = 0; i < sizeof(of_bytes) / sizeof(of_bytes[0]); i++)
		for (size_t before = 0; before <= strlen(of_bytes[i]); before++) {
			mst_reason_set(&r, "%s%s", letters(LONGEST - 3 - before, of_bytes[i]),
				       "and more");
			CU_ASSERT(mst_text_is_clean(r.text));
			CU_ASSERT_STRING_EQUAL(r.text + strlen(r.text) - 3, "...");
			CU_ASSERT_EQUAL(strstr(r.text, of_bytes[i]) != NULL,
					before == strlen(of_bytes[i]));
		}
}

static void what_it_says_can_be_part_of_what_it_will_say(void)
{
	struct mst_reason r;

	mst_reason_set(&r, "no such number");
	mst_reason_set(&r, "option --lr: %s; see --%s", r.text, "help");
	CU_ASSERT_STRING_EQUAL(r.text, "option --lr: no such number; see --help");
}

static void more_is_written_after_it(void)
{
	struct mst_reason r = { "" };

	mst_reason_add(&r, "all %d", 4);
	mst_reason_add(&r, ", and %s", r.text);
	CU_ASSERT_STRING_EQUAL(r.text, "all 4, and all 4");
}

static void more_than_there_is_room_for_ends_in_dots(void)
{
	struct mst_reason r;

	mst_reason_set(&r, "%s", letters(LONGEST - 5, ""));
	mst_reason_add(&r, "123456");
	CU_ASSERT_STRING_EQUAL(r.text, letters(LONGEST - 5, "12..."));
	mst_reason_add(&r, "and more");
	CU_ASSERT_STRING_EQUAL(r.text, letters(LONGEST - 5, "12..."));
}

static void one_that_says_nothing_leaves_it_to_the_number(void)
{
	struct mst_reason r = { "no room" };

	CU_ASSERT_STRING_EQUAL(mst_reason_or_errno(&r, -ENOENT), "no room");
	mst_reason_clear(&r);
	CU_ASSERT_STRING_EQUAL(r.text, "");
	CU_ASSERT_STRING_EQUAL(mst_reason_or_errno(&r, -ENOENT), strerror(ENOENT));
}

static CU_TestInfo cases[] = {
	{ "a zeroed reason says nothing", a_zeroed_reason_says_nothing },
	{ "a sentence is formatted", a_sentence_is_formatted },
	{ "a failure is its error", a_failure_is_its_error },
	{ "the longest sentence is whole", the_longest_sentence_is_whole },
	{ "a longer one ends in dots", a_longer_one_ends_in_dots },
	{ "no character is cut in two", no_character_is_cut_in_two },
	{ "what it says can be part of what it will say",
	  what_it_says_can_be_part_of_what_it_will_say },
	{ "more is written after it", more_is_written_after_it },
	{ "more than there is room for ends in dots", more_than_there_is_room_for_ends_in_dots },
	{ "one that says nothing leaves it to the number",
	  one_that_says_nothing_leaves_it_to_the_number },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("reason", cases);
}
