/* SPDX-License-Identifier: MIT */
/* The reader of JSON takes what RFC 8259 says, and nothing else; named values come back. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/manifest/json.h"
#include "common/checkpoint/manifest/json_out.h"
#include "common/checkpoint/manifest/values.h"
#include "tests/ut.h"

/* Is the text one value? */
static bool skips(const char *text)
{
	struct mst_json j;

	mst_json_init(&j, text, strlen(text));
	return mst_json_skip(&j) && mst_json_end(&j);
}

static void values_of_all_kinds(void)
{
	static const char *const good[] = {
		"{}",       "[]",
		" [ ] ",    "{\"a\":1}",
		"[1,2]",    "{\"a\":{\"b\":[1,{\"c\":\"d\"}]},\"e\":null}",
		"true",     "false",
		"0",        "-1",
		"1.5e+3",   "0.25",
		"\"\\\"\"", "[[[[[[[[1]]]]]]]]",
	};
	static const char *const bad[] = {
		"",      "{",       "[",        "}",     "[1,]",
		"[,1]",  "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}",
		"[1 2]", "01",      "+1",       ".5",    "1.",
		"1e",    "nul",     "tru e",    "\"",    "\"\\",
		"[1]]",  "[}",      "{]",       "1 2",   "[[[[[[[[[1]]]]]]]]]",
		"{1:2}", "NaN",     "-",
	};

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CU_ASSERT(skips(good[i]));
		if (!skips(good[i]))
			fprintf(stderr, "not taken: %s\n", good[i]);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT(!skips(bad[i]));
		if (skips(bad[i]))
			fprintf(stderr, "taken: %s\n", bad[i]);
	}
}

/* Return: what a text is read as; NULL: it is refused. */
static const char *read(const char *text)
{
	static char out[16];
	struct mst_json j;

	mst_json_init(&j, text, strlen(text));
	return mst_json_text(&j, out, sizeof(out)) && mst_json_end(&j) ? out : NULL;
}

static void texts(void)
{
	static const char *const bad[] = {
		"\"abc",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\ud800\"",
		"\"\\ud800\\u0041\"",
		"\"\\udc00\"",
		"\"\\u0000\"",
		"\"\\n\"",
		"\"\x01\"",
		"\"\xff\"",
		"\"\xc0\xaf\"",
		"\"0123456789abcdef\"",
		"\"\\u202e\"",
		"abc",
	};

	CU_ASSERT_STRING_EQUAL(read("\"\""), "");
	CU_ASSERT_STRING_EQUAL(read("\"0123456789abcde\""), "0123456789abcde");
	CU_ASSERT_STRING_EQUAL(read("\"\\\"\\\\\\/\""), "\"\\/");
	CU_ASSERT_STRING_EQUAL(read("\"\\u00e4\\u20ac\""), "\xc3\xa4\xe2\x82\xac");
	CU_ASSERT_STRING_EQUAL(read("\"\\ud83d\\uDE00\""), "\xf0\x9f\x98\x80");
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_PTR_NULL(read(bad[i]));
}

static bool reads_u64(const char *text, uint64_t expected)
{
	struct mst_json j;
	uint64_t number = 0;

	mst_json_init(&j, text, strlen(text));
	return mst_json_u64(&j, &number) && mst_json_end(&j) && number == expected;
}

static void whole_numbers(void)
{
	CU_ASSERT(reads_u64("0", 0));
	CU_ASSERT(reads_u64(" 18446744073709551615 ", UINT64_MAX));
	CU_ASSERT(!reads_u64("18446744073709551616", 0));
	CU_ASSERT(!reads_u64("1.0", 1));
	CU_ASSERT(!reads_u64("1e3", 1000));
	CU_ASSERT(!reads_u64("-1", 0));
	CU_ASSERT(!reads_u64("007", 7));
	CU_ASSERT(!reads_u64("", 0));
}

static void odd_texts_come_back(void)
{
	static const char odd[] = "a\"b\\c/\xc3\xa4";
	struct mst_json_out o = { 0 };
	struct mst_json j;
	char text[64];

	mst_json_out_prefixed_text(&o, "x\"", odd);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o.text);
	mst_json_init(&j, o.text, o.len);
	CU_ASSERT(mst_json_text(&j, text, sizeof(text)) && mst_json_end(&j));
	CU_ASSERT_STRING_EQUAL(text, "x\"a\"b\\c/\xc3\xa4");
	free(o.text);
	o = (struct mst_json_out){ 0 };
	mst_json_out_text(&o, "\n\x01");
	CU_ASSERT_STRING_EQUAL(o.text, "\"\\u000a\\u0001\"");
	free(o.text);
}

static void named_values(void)
{
	static const double reals[] = { 0, -0.0, 0.1, DBL_MAX, DBL_TRUE_MIN, INFINITY, -INFINITY };
	static const uint64_t list[] = { 1, 2, UINT64_MAX };
	struct mst_values v;
	const uint64_t *back;
	const char *text;
	uint64_t number = 0;
	uint32_t count;
	double real;
	char name[16];

	mst_values_init(&v);
	CU_ASSERT_EQUAL(mst_values_add_u64(&v, "n", UINT64_MAX), 0);
	CU_ASSERT_EQUAL(mst_values_add_u64(&v, "n", 1), -EEXIST);
	CU_ASSERT_EQUAL(mst_values_add_text(&v, "t", "a\nb"), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&v, "l", list, 3), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&v, "empty", NULL, 0), 0);
	CU_ASSERT_EQUAL(mst_values_add_real(&v, "nan", NAN), 0);
	for (unsigned i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
		(void)snprintf(name, sizeof(name), "r%u", i);
		CU_ASSERT_EQUAL(mst_values_add_real(&v, name, reals[i]), 0);
		CU_ASSERT_EQUAL(mst_values_real(&v, name, &real), 0);
		CU_ASSERT_EQUAL(memcmp(&real, &reals[i], sizeof(real)), 0);
	}
	CU_ASSERT_EQUAL(mst_values_u64(&v, "n", &number), 0);
	CU_ASSERT_EQUAL(number, UINT64_MAX);
	CU_ASSERT_EQUAL(mst_values_u64(&v, "t", &number), -EINVAL);
	CU_ASSERT_EQUAL(mst_values_u64(&v, "r2", &number), -EINVAL);
	CU_ASSERT_EQUAL(mst_values_u64(&v, "absent", &number), -ENOENT);
	CU_ASSERT_EQUAL(mst_values_real(&v, "nan", &real), 0);
	CU_ASSERT(isnan(real));
	CU_ASSERT_EQUAL(mst_values_text(&v, "t", &text), 0);
	CU_ASSERT_STRING_EQUAL(text, "a?b");
	CU_ASSERT_EQUAL(mst_values_list(&v, "l", &back, &count), 0);
	CU_ASSERT(count == 3 && back[2] == UINT64_MAX);
	CU_ASSERT_EQUAL(mst_values_list(&v, "empty", &back, &count), 0);
	CU_ASSERT_EQUAL(count, 0);
	mst_values_fini(&v);
}

static CU_TestInfo cases[] = {
	{ "values of all kinds are taken, and others are not", values_of_all_kinds },
	{ "texts are decoded, or refused", texts },
	{ "whole numbers have their range", whole_numbers },
	{ "odd texts come back", odd_texts_come_back },
	{ "named values come back, bit by bit", named_values },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("JSON", cases);
}
