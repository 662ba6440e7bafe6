/* SPDX-License-Identifier: MIT */
/* The promises of common/config about files and print. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/config/option_case.h"
#include "tests/ut.h"

static void a_file_sets_every_kind(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT(OPTION_TEXT(&w, "# comment\njob = \"night\"; workers = 8\nowner = \"workers\";\n"
				  "slots = \"auto\"; max_commits = 5000000000L; memory = \"3M\";\n"
				  "lease = \"20ms\"; samples = 1e6; bias = -3; force = true;\n"
				  "delay = ( \"exp:1\", \"2:const:5\" ); /* 99999999999 */") == 0);
	CU_ASSERT_STRING_EQUAL(w.fields.job, "night");
	CU_ASSERT(w.fields.workers == 8 && w.fields.owner == 1 && w.fields.slots == 0);
	CU_ASSERT(w.fields.commits == UINT64_C(5000000000) && w.fields.memory == 3145728);
	CU_ASSERT(w.fields.lease_ns == 20000000 && w.fields.samples == 1e6);
	CU_ASSERT(w.fields.bias == -3 && w.fields.force && w.fields.delay.count == 2);
	CU_ASSERT(OPTION_TEXT(&w, "delay = \"exp:3\"; max_commits = \"18446744073709551615\"") ==
		  0);
	CU_ASSERT(w.fields.delay.count == 1 && w.fields.commits == UINT64_MAX);
	CU_ASSERT(OPTION_TEXT(&w, "# nothing\n") == 0);
	CU_ASSERT(OPTION_TEXT(&w, "\xef\xbb\xbfworkers = 7;") == 0 && w.fields.workers == 7);
	option_world_fini(&w);
}

static void flags_win_over_the_file(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT(OPTION_TEXT(&w, "workers = 8; job = \"night\"") == 0);
	CU_ASSERT(OPTION_FLAGS(&w, "--workers", "9") == 0);
	CU_ASSERT(w.fields.workers == 9);
	CU_ASSERT_STRING_EQUAL(w.fields.job, "night");
	option_world_fini(&w);
}

static void a_wrong_file_is_named_with_its_line(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "\nworker = 8;", "/config:2: unknown option worker: did you mean workers?" },
		{ "max-commits = 8;", ":1: unknown option max-commits: did you mean max_commits?" },
		{ "zzz = { a = 1; };", ":1: unknown option zzz" },
		{ "\n\nworkers = 65;", ":3: workers: \"65\" is not a whole number from 1 to 64" },
		{ "workers = -1;", "\"-1\" is not a whole number" },
		{ "workers = 8.5;", ":1: workers: needs a whole number from 1 to 64" },
		{ "workers = { a = 1; };", ":1: workers: needs a whole number" },
		{ "job = 5;", ":1: job: needs a text, in quotes" },
		{ "lease = 5;", ":1: lease: needs a duration such as 500us" },
		{ "force = \"true\";", ":1: force: needs true or false" },
		{ "force = 1;", ":1: force: needs true or false" },
		{ "samples = 1e400;", ":1: samples: \"inf\" is not a number" },
		{ "delay = [ 1, 2 ];", ":1: delay: needs a text" },
		{ "owner = \"server\";", ":1: owner: \"server\" is not one of servers|workers" },
		{ "job = \"a\";\njob = \"b\";", ":2: duplicate setting name" },
		{ "job = ;", ":1: syntax error: a setting is written key = value;" },
		{ "help = true;", ":1: help: is a flag only" },
		{ "config = \"x\";", ":1: config: is a flag only" },
		{ "job = \"a\";\n@include \"/\"", ":2: @include is not read" },
	};
	struct option_world w;

	option_world_init(&w);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT(option_world_text(&w, bad[i].text, strlen(bad[i].text)) == -EINVAL);
		CU_ASSERT(option_world_says(&w, bad[i].why));
	}
	CU_ASSERT(OPTION_TEXT(&w, "job = \"a\0b\";") == -EINVAL);
	CU_ASSERT(option_world_says(&w, "has a zero byte"));
	option_world_fini(&w);
}

/* libconfig 1.5 alone reads the first as 705032704 and the second as 4096. */
static void a_number_that_libconfig_would_bend_is_refused(void)
{
	static const char *const bad[] = {
		"max_commits = 5000000000;",
		"memory = 4294971392;",
		"memory = 0x100001000;",
		"max_commits = 99999999999999999999L;",
		"max_commits = 99999999999999999999;",
		"bias = -2147483648;",
		"bias = 4294967296e=1",
		"/* \" */ /* * */ # \"\n// \"\nmemory = 4294971392;",
		"job = \"\\\"\"; memory = 4294971392;",
	};
	struct option_world w;

	option_world_init(&w);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT(option_world_text(&w, bad[i], strlen(bad[i])) == -EINVAL);
		CU_ASSERT(option_world_says(&w, "so large a number has to stand in quotes"));
	}
	CU_ASSERT(OPTION_TEXT(&w,
			      "job = \"4294971392\"; bias = 4294971392.0; samples=.4294971392e10;"
			      "memory = 0x1000; # 4294971392\n/* 4294971392 */ // 4294971392") ==
		  0);
	CU_ASSERT(w.fields.bias == 4294971392.0 && w.fields.samples == 4294971392.0);
	CU_ASSERT(w.fields.memory == 4096);
	CU_ASSERT(OPTION_TEXT(&w, "bias = -.4294967296429; # no number: 4294971392") == 0);
	CU_ASSERT(w.fields.bias == -.4294967296429);
	option_world_fini(&w);
}

static void a_file_that_cannot_be_read_says_why(void)
{
	struct option_world w;

	option_world_init(&w);
	CU_ASSERT(mst_options_file(&w.options, "no-such-file") == -ENOENT);
	CU_ASSERT(option_world_says(&w, "cannot read no-such-file: No such file"));
	CU_ASSERT(mst_options_file(&w.options, "/") == -EISDIR);
	CU_ASSERT(mst_options_file(&w.options, "/dev/zero") == -EINVAL);
	CU_ASSERT(option_world_says(&w, "larger than 1 MiB"));
	option_world_fini(&w);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_fields(const struct option_case *a, const struct option_case *b)
{
	bool same = same_text(a->job, b->job) && same_text(a->log, b->log) &&
		    a->workers == b->workers && a->owner == b->owner && a->slots == b->slots &&
		    a->seed == b->seed && a->commits == b->commits && a->memory == b->memory &&
		    a->lease_ns == b->lease_ns && a->samples == b->samples && a->bias == b->bias &&
		    a->force == b->force && a->delay.count == b->delay.count;

	for (uint32_t i = 0; same && i < a->delay.count; i++)
		same = same_text(a->delay.item[i], b->delay.item[i]);
	return same;
}

/* Prints the fields of one world and reads them into another of defaults. */
static void print_and_read(struct option_world *from)
{
	struct option_world to;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CU_ASSERT_FATAL(f != NULL);
	mst_options_print(&from->options, f);
	fclose(f);
	option_world_init(&to);
	int rc = option_world_text(&to, text, len);
	CU_ASSERT(rc == 0 && same_fields(&from->fields, &to.fields));
	if (rc != 0)
		fprintf(stderr, "%s\n%s", to.options.why.text, text);
	CU_ASSERT(strstr(text, "help =") == NULL && strstr(text, "config =") == NULL);
	free(text);
	option_world_fini(&to);
}

static void what_is_printed_reads_back_the_same(void)
{
	struct option_world w;

	option_world_init(&w);
	print_and_read(&w);
	CU_ASSERT(OPTION_FLAGS(&w, "--help", "-c", "x", "--job",
			       "a \"b\" \\ \n\t\x01 \xc3\xa4 # /* @", "--log=", "--slots", "3",
			       "--workers=64", "--owner=workers",
			       "--max-commits=18446744073709551615", "--memory=5000000000",
			       "--seed=4294967295", "--lease=1234567us", "--samples=0.1",
			       "--bias=-123456789012", "--force",
			       "--delay=", "--delay=3:trace:/a b/\"c\".csv") == 0);
	print_and_read(&w);
	CU_ASSERT(OPTION_FLAGS(&w, "--bias=1e300", "--samples=123456789012345678",
			       "--max-commits=5000000000", "--memory=0") == 0);
	print_and_read(&w);
	CU_ASSERT(OPTION_TEXT(&w, "delay = [ ]; bias = 0.333333333333333314829616256247;") == 0);
	print_and_read(&w);
	w.fields.lease_ns = 1000001; /* computed, not typed */
	print_and_read(&w);
	option_world_fini(&w);
}

/* A printed file that a full disk has cut anywhere runs nothing with other options. */
static void what_is_cut_off_is_refused(void)
{
	struct option_world w;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CU_ASSERT_FATAL(f != NULL);
	option_world_init(&w);
	mst_options_print(&w.options, f);
	fclose(f);
	for (size_t cut = 0; cut + 1 < len; cut++) /* the last line may lack its end */
		CU_ASSERT(option_world_text(&w, text, cut) == -EINVAL);
	CU_ASSERT(option_world_says(&w, "is cut off: its last line \"# end of options\""));
	CU_ASSERT(OPTION_TEXT(&w, "") == -EINVAL && option_world_says(&w, "is empty"));
	CU_ASSERT(option_world_text(&w, text, len) == 0 &&
		  option_world_text(&w, text, len - 1) == 0);
	option_world_fini(&w);
	free(text);
}

static char *help_text(void)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CU_ASSERT_FATAL(f != NULL);
	mst_options_help(option_case_table, f);
	fclose(f);
	return text;
}

static void help_fits_the_page(void)
{
	char *text = help_text();

	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
		CU_ASSERT(strlen(line) <= 100);
	free(text);
	text = help_text();
	CU_ASSERT(strstr(text, "  -c, --config FILE  ") != NULL);
	CU_ASSERT(strstr(text, "  --owner servers|workers  ") != NULL);
	CU_ASSERT(strstr(text, "who owns (default servers)\n") != NULL);
	CU_ASSERT(strstr(text, "  --force  ") != NULL);
	free(text);
}

/* Renders the page for nobody. Return: the first thing the renderer complains of, in @said. */
static bool roff_complains(FILE *page, char *said, size_t len)
{
	char command[128];

	snprintf(command, sizeof(command), "groff -man -Tascii -ww -z <&%d 2>&1", fileno(page));
	FILE *out = popen(command, "r");
	CU_ASSERT_FATAL(out != NULL);
	bool complains = fgets(said, (int)len, out) != NULL;
	return pclose(out) != 0 || complains;
}

static void the_manual_page_is_clean_roff(void)
{
	FILE *page = tmpfile();
	char said[256] = "";

	CU_ASSERT_FATAL(page != NULL);
	fputs(".TH CASE 1\n", page);
	mst_options_man(option_case_table, page);
	rewind(page);
	if (system("command -v groff >/dev/null") == 0) {
		CU_ASSERT(!roff_complains(page, said, sizeof(said)));
	} else {
		printf("(no groff here to render it) ");
	}
	if (said[0] != '\0')
		fprintf(stderr, "groff: %s", said);
	fclose(page);
}

static CU_TestInfo cases[] = {
	{ "a file sets every kind", a_file_sets_every_kind },
	{ "flags win over the file", flags_win_over_the_file },
	{ "a wrong file is named with its line", a_wrong_file_is_named_with_its_line },
	{ "a number that libconfig would bend is refused",
	  a_number_that_libconfig_would_bend_is_refused },
	{ "a file that cannot be read says why", a_file_that_cannot_be_read_says_why },
	{ "what is printed reads back the same", what_is_printed_reads_back_the_same },
	{ "what is cut off is refused", what_is_cut_off_is_refused },
	{ "help fits the page", help_fits_the_page },
	{ "the manual page is clean roff", the_manual_page_is_clean_roff },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("option file", cases);
}
