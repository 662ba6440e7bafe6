/* SPDX-License-Identifier: MIT */
/* The promises of common/config about single values and flags. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/config/option_case.h"
#include "tests/ut.h"

static void whole_numbers_are_eaten_whole(void)
{
	static const char *const bad[] = { "",    " 5",  "5 ",  "5x",  "-1",
					   "+1",  "0x5", "1e3", "5.0", "18446744073709551616",
					   "nan", NULL };
	uint64_t v = 7;

	CU_ASSERT(mst_parse_u64("0", &v) == 0 && v == 0);
	CU_ASSERT(mst_parse_u64("18446744073709551615", &v) == 0 && v == UINT64_MAX);
	v = 7;
	for (const char *const *text = bad; *text != NULL; text++)
		CU_ASSERT(mst_parse_u64(*text, &v) == -EINVAL && v == 7);
}

static void reals_are_finite_decimals(void)
{
	static const char *const bad[] = { "",   " 1",    "1 ", "1x",  "nan", "inf",  "-inf", "0x1",
					   "1e", "1e400", ".",  "--1", "1,5", "1.5.", NULL };
	double v = 7;

	CU_ASSERT(mst_parse_real("-2.5e-3", &v) == 0 && v == -2.5e-3);
	CU_ASSERT(mst_parse_real("3", &v) == 0 && v == 3);
	v = 7;
	for (const char *const *text = bad; *text != NULL; text++)
		CU_ASSERT(mst_parse_real(*text, &v) == -EINVAL && v == 7);
}

static void sizes_are_powers_of_1024(void)
{
	static const char *const bad[] = { "",    "K",   "1k", "1KB",          "1.5K",
					   "-1K", "1 K", "1T", "17179869184G", NULL };
	uint64_t v;

	CU_ASSERT(mst_parse_size("4096", &v) == 0 && v == 4096);
	CU_ASSERT(mst_parse_size("128K", &v) == 0 && v == 131072);
	CU_ASSERT(mst_parse_size("3M", &v) == 0 && v == 3145728);
	CU_ASSERT(mst_parse_size("2G", &v) == 0 && v == 2147483648);
	CU_ASSERT(mst_parse_size("17179869183G", &v) == 0);
	for (const char *const *text = bad; *text != NULL; text++)
		CU_ASSERT(mst_parse_size(*text, &v) == -EINVAL);
}

static void durations_need_a_unit(void)
{
	static const char *const bad[] = { "",    "5",   "0",        "s",        "5M", "1.5s",
					   "-1s", "5 s", "5seconds", "6000000h", NULL };
	uint64_t v;

	CU_ASSERT(mst_parse_duration("250ns", &v) == 0 && v == 250);
	CU_ASSERT(mst_parse_duration("500us", &v) == 0 && v == 500000);
	CU_ASSERT(mst_parse_duration("20ms", &v) == 0 && v == 20000000);
	CU_ASSERT(mst_parse_duration("5s", &v) == 0 && v == UINT64_C(5000000000));
	CU_ASSERT(mst_parse_duration("2min", &v) == 0 && v == UINT64_C(120000000000));
	CU_ASSERT(mst_parse_duration("2m", &v) == 0 && v == UINT64_C(120000000000));
	CU_ASSERT(mst_parse_duration("1h", &v) == 0 && v == UINT64_C(3600000000000));
	for (const char *const *text = bad; *text != NULL; text++)
		CU_ASSERT(mst_parse_duration(*text, &v) == -EINVAL);
}

static void the_nearest_name_is_found(void)
{
	static const char *const names[] = { "policy", "patience", "workers", "job", NULL };
	char longest[200];

	memset(longest, 'p', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT_STRING_EQUAL(mst_nearest("polcy", names), "policy");
	CU_ASSERT_STRING_EQUAL(mst_nearest("polciy", names), "policy");
	CU_ASSERT_STRING_EQUAL(mst_nearest("work", names), "workers");
	CU_ASSERT_STRING_EQUAL(mst_nearest("job", names), "job");
	CU_ASSERT_STRING_EQUAL(mst_nearest("jbo", names), "job");
	CU_ASSERT_STRING_EQUAL(mst_nearest("JOB", names), "job");
	CU_ASSERT_PTR_NULL(mst_nearest("xyz", names));
	CU_ASSERT_PTR_NULL(mst_nearest("port", names)); /* only its o is in place */
	CU_ASSERT_PTR_NULL(mst_nearest("", names));
	CU_ASSERT_PTR_NULL(mst_nearest(longest, names));
}

static void every_field_starts_from_its_default(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT_STRING_EQUAL(w.fields.job, "default");
	CU_ASSERT_PTR_NULL(w.fields.log);
	CU_ASSERT(w.fields.workers == 4 && w.fields.owner == 0 && w.fields.slots == 0);
	CU_ASSERT(w.fields.commits == 0 && w.fields.memory == 131072);
	CU_ASSERT(w.fields.lease_ns == UINT64_C(5000000000) && w.fields.samples == 0.5);
	CU_ASSERT(!w.fields.force && w.fields.delay.count == 0);
	option_world_fini(&w);
}

static void a_value_follows_or_is_joined(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT(OPTION_FLAGS(&w, "--workers", "8", "--job=a=b", "-n9", "--memory=2G", "--lease",
			       "20ms", "--owner", "workers", "--max-commits",
			       "18446744073709551615", "--force", "-c", "file", "--samples=1e6",
			       "--slots", "2", "--seed=4294967295") == 0);
	CU_ASSERT(w.fields.workers == 9);
	CU_ASSERT_STRING_EQUAL(w.fields.job, "a=b");
	CU_ASSERT_STRING_EQUAL(w.fields.config, "file");
	CU_ASSERT(w.fields.memory == UINT64_C(2) << 30 && w.fields.lease_ns == 20000000);
	CU_ASSERT(w.fields.owner == 1 && w.fields.commits == UINT64_MAX && w.fields.force);
	CU_ASSERT(w.fields.samples == 1e6 && w.fields.slots == 2);
	CU_ASSERT(w.fields.seed == UINT32_MAX);
	CU_ASSERT(OPTION_FLAGS(&w, "--slots", "auto", "--job=") == 0);
	CU_ASSERT(w.fields.slots == 0);
	CU_ASSERT_STRING_EQUAL(w.fields.job, "");
	option_world_fini(&w);
}

static void negative_numbers_and_a_dash_are_values(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT(OPTION_FLAGS(&w, "--bias", "-2.5", "--log", "-", "--job", "-x") == 0);
	CU_ASSERT(w.fields.bias == -2.5);
	CU_ASSERT_STRING_EQUAL(w.fields.log, "-");
	CU_ASSERT_STRING_EQUAL(w.fields.job, "-x");
	option_world_fini(&w);
}

static void flags_end_at_an_operand_or_two_dashes(void)
{
	struct option_world w;
	int operand;

	option_world_init(&w);
	CU_ASSERT(option_world_flags(&w, (const char *[]){ "--force", "run", "--bad", NULL },
				     &operand) == 0);
	CU_ASSERT(operand == 2);
	CU_ASSERT(option_world_flags(&w, (const char *[]){ "-n", "3", "--", "--bad", NULL },
				     &operand) == 0);
	CU_ASSERT(operand == 4 && w.fields.workers == 3);
	CU_ASSERT(option_world_flags(&w, (const char *[]){ "-", NULL }, &operand) == 0);
	CU_ASSERT(operand == 1);
	CU_ASSERT(option_world_flags(&w, (const char *[]){ "--force", NULL }, &operand) == 0);
	CU_ASSERT(operand == 2);
	option_world_fini(&w);
}

static void a_list_grows_and_a_second_reading_starts_anew(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT(OPTION_TEXT(&w, "delay = [ \"const:9\", \"exp:9\", \"exp:8\" ];") == 0);
	CU_ASSERT(w.fields.delay.count == 3);
	for (int reading = 0; reading < 2; reading++) {
		CU_ASSERT(OPTION_FLAGS(&w, "--delay", "exp:1", "--delay=2:const:5") == 0);
		CU_ASSERT(w.fields.delay.count == 2);
		CU_ASSERT_STRING_EQUAL(w.fields.delay.item[0], "exp:1");
		CU_ASSERT_STRING_EQUAL(w.fields.delay.item[1], "2:const:5");
	}
	CU_ASSERT(OPTION_FLAGS(&w, "--force") == 0);
	CU_ASSERT(w.fields.delay.count == 2);
	while (w.fields.delay.count < MST_OPTION_LIST_MAX)
		CU_ASSERT_FATAL(mst_options_set(&w.options, "delay", "exp:1") == 0);
	CU_ASSERT(mst_options_set(&w.options, "delay", "exp:1") == -EINVAL);
	CU_ASSERT(option_world_says(&w, "64 may be given"));
	option_world_fini(&w);
}

static void an_unknown_flag_is_told_the_nearest(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT(OPTION_FLAGS(&w, "--worker", "5") == -EINVAL);
	CU_ASSERT_STRING_EQUAL(w.options.why.text,
			       "unknown option --worker: did you mean --workers?");
	CU_ASSERT(OPTION_FLAGS(&w, "--max_commits=5") == -EINVAL);
	CU_ASSERT_STRING_EQUAL(w.options.why.text,
			       "unknown option --max_commits: did you mean --max-commits?");
	CU_ASSERT(OPTION_FLAGS(&w, "--zzz") == -EINVAL);
	CU_ASSERT_STRING_EQUAL(w.options.why.text, "unknown option --zzz");
	CU_ASSERT(OPTION_FLAGS(&w, "-z") == -EINVAL);
	CU_ASSERT_STRING_EQUAL(w.options.why.text, "unknown option -z");
	CU_ASSERT(mst_options_set(&w.options, "leas", "5s") == -EINVAL);
	CU_ASSERT_STRING_EQUAL(w.options.why.text, "unknown option --leas: did you mean --lease?");
	option_world_fini(&w);
}

static void a_bad_value_names_option_value_and_range(void)
{
	static const struct {
		const char *flag, *value, *why;
	} bad[] = {
		{ "--workers", "5x",
		  "option --workers: \"5x\" is not a whole number from 1 to 64" },
		{ "--workers", "0", "option --workers: \"0\" is not a whole number from 1 to 64" },
		{ "--workers", "65",
		  "option --workers: \"65\" is not a whole number from 1 to 64" },
		{ "-n", "-1", "option -n: \"-1\" is not a whole number from 1 to 64" },
		{ "--slots", "aut", "\"aut\" is not a whole number from 1 to 4, or auto" },
		{ "--slots", "0", "\"0\" is not a whole number from 1 to 4, or auto" },
		{ "--max-commits", "18446744073709551616",
		  "is not a whole number from 0 to 18446744073709551615" },
		{ "--seed", "4294967296",
		  "\"4294967296\" is not a whole number from 0 to 4294967295" },
		{ "--lease", "2h", "2min or 1h, from 1ms to 1h" },
		{ "--lease", "5", "\"5\" is not a duration such as" },
		{ "--memory", "1KB", "\"1KB\" is not a size such as" },
		{ "--samples", "-1", "\"-1\" is not a number from 0 to 1e+18" },
		{ "--bias", "nan", "\"nan\" is not a number" },
		{ "--owner", "worker",
		  "\"worker\" is not one of servers|workers: did you mean workers?" },
		{ "--owner", "me", "option --owner: \"me\" is not one of servers|workers" },
	};
	struct option_world w;

	option_world_init(&w);
	struct option_case before = w.fields;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT(OPTION_FLAGS(&w, bad[i].flag, bad[i].value) == -EINVAL);
		CU_ASSERT(option_world_says(&w, bad[i].why));
	}
	CU_ASSERT(memcmp(&before, &w.fields, sizeof(before)) == 0);
	option_world_fini(&w);
}

static void a_missing_value_is_not_the_next_flag(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT(OPTION_FLAGS(&w, "--lease") == -EINVAL);
	CU_ASSERT(option_world_says(&w, "option --lease needs a value: a duration"));
	CU_ASSERT(OPTION_FLAGS(&w, "--lease", "--") == -EINVAL);
	CU_ASSERT(option_world_says(&w, "option --lease needs a value: a duration"));
	CU_ASSERT(OPTION_FLAGS(&w, "-workers", "4") == -EINVAL);
	CU_ASSERT(option_world_says(&w, "unknown option -workers: did you mean --workers?"));
	CU_ASSERT(OPTION_FLAGS(&w, "--job", "--force") == -EINVAL);
	CU_ASSERT(option_world_says(&w, "--force follows; if that is it, write --job=--force"));
	CU_ASSERT(!w.fields.force);
	CU_ASSERT(OPTION_FLAGS(&w, "--job=--force") == 0);
	CU_ASSERT_STRING_EQUAL(w.fields.job, "--force");
	option_world_fini(&w);
}

static void a_flag_takes_no_value(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT(OPTION_FLAGS(&w, "--force=true") == -EINVAL);
	CU_ASSERT_STRING_EQUAL(w.options.why.text, "option --force takes no value");
	CU_ASSERT(OPTION_FLAGS(&w, "--force=") == -EINVAL);
	CU_ASSERT(OPTION_FLAGS(&w, "-hx") == -EINVAL);
	CU_ASSERT_STRING_EQUAL(w.options.why.text, "option -h takes no value");
	CU_ASSERT(!w.fields.force && !w.fields.help);
	option_world_fini(&w);
}

static void a_reason_fits_whatever_the_value(void)
{
	struct option_world w;
	char flag[4096] = "--", value[4096];

	memset(flag + 2, 'w', sizeof(flag) - 3);
	memset(value, 'v', sizeof(value) - 1);
	flag[sizeof(flag) - 1] = value[sizeof(value) - 1] = '\0';
	option_world_init(&w);
	CU_ASSERT(OPTION_FLAGS(&w, flag, value) == -EINVAL);
	CU_ASSERT(OPTION_FLAGS(&w, "--workers", value) == -EINVAL);
	CU_ASSERT(option_world_says(&w, "is not a whole number from 1 to 64"));
	CU_ASSERT(OPTION_FLAGS(&w, "--job", value) == 0 && strcmp(w.fields.job, value) == 0);
	option_world_fini(&w);
}

static CU_TestInfo cases[] = {
	{ "whole numbers are eaten whole", whole_numbers_are_eaten_whole },
	{ "reals are finite decimals", reals_are_finite_decimals },
	{ "sizes are powers of 1024", sizes_are_powers_of_1024 },
	{ "durations need a unit", durations_need_a_unit },
	{ "the nearest name is found", the_nearest_name_is_found },
	{ "every field starts from its default", every_field_starts_from_its_default },
	{ "a value follows or is joined", a_value_follows_or_is_joined },
	{ "negative numbers and a dash are values", negative_numbers_and_a_dash_are_values },
	{ "flags end at an operand or two dashes", flags_end_at_an_operand_or_two_dashes },
	{ "a list grows, and a second reading starts anew",
	  a_list_grows_and_a_second_reading_starts_anew },
	{ "an unknown flag is told the nearest", an_unknown_flag_is_told_the_nearest },
	{ "a bad value names option, value and range", a_bad_value_names_option_value_and_range },
	{ "a missing value is not the next flag", a_missing_value_is_not_the_next_flag },
	{ "a flag takes no value", a_flag_takes_no_value },
	{ "a sentence fits, whatever the value", a_reason_fits_whatever_the_value },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("option", cases);
}
