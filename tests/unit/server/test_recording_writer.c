/* SPDX-License-Identifier: MIT */
/* The file that a recording becomes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "muster/muster.h"
#include "server/recording_writer.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

static struct fix_folder folder;
static char path[96];
static struct mst_reason why;
static struct mst_recording *recording;
static struct mst_recording_writer *writer;

static void begin(void)
{
	fix_folder_new(&folder);
	(void)snprintf(path, sizeof(path), "%s/r.csv", folder.root);
	CU_ASSERT_EQUAL_FATAL(mst_recording_new(&recording), 0);
}

static void end(void)
{
	mst_recording_free(recording);
	fix_folder_free(&folder);
}

static int start(void)
{
	return mst_recording_writer_start(path, recording, &writer, &why);
}

static void put(uint32_t rank, uint64_t start_ns, uint64_t end_ns, uint32_t how)
{
	mst_recording_put(recording, &(struct mst_recorded){ .version = 7,
							     .start_ns = start_ns,
							     .end_ns = end_ns,
							     .rank = rank,
							     .end = how });
}

/* Return: all of the file, to be freed. */
static char *read_file(void)
{
	FILE *f = fopen(path, "re");
	char *text = calloc(1, 16u << 20);

	CU_ASSERT_FATAL(f != NULL && text != NULL);
	CU_ASSERT(fread(text, 1, (16u << 20) - 1, f) > 0 || ftell(f) == 0);
	CU_ASSERT(feof(f));
	(void)fclose(f);
	return text;
}

static size_t lines_of(const char *text)
{
	size_t lines = 0;

	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	return lines;
}

/* A writer that is stopped has a few seconds for what is left. */
static void wait_for_lines(size_t count)
{
	uint64_t end_ns = mst_now_ns() + 60 * MST_SECOND;
	size_t lines = 0;

	while (lines < count && mst_now_ns() < end_ns) {
		mst_sleep_ns(10 * MST_MS);
		char *text = read_file();
		lines = lines_of(text);
		free(text);
	}
}

static void stop(void)
{
	struct mst_reason missing;

	CU_ASSERT_TRUE(mst_recording_writer_stop(writer, &missing));
	CU_ASSERT_STRING_EQUAL(missing.text, "");
}

static void rows_are_lines_behind_a_header(void)
{
	begin();
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	put(1, 2500, 1003004, MUSTER_COUNTED);
	put(0, MST_NEVER, 5000, MUSTER_STALE);
	put(3, 0, 999, MST_RECORDED_GIVEN_UP);
	stop();
	char *text = read_file();
	CU_ASSERT_STRING_EQUAL(text, "rank,version,start_us,ready_us,verdict\n"
				     "1,7,2.500,1003.004,counted\n"
				     "0,7,,5.000,stale\n"
				     "3,7,0.000,0.999,given_up\n");
	free(text);
	end();
}

static void a_file_that_is_there_is_replaced(void)
{
	begin();
	FILE *f = fopen(path, "we");
	CU_ASSERT_FATAL(f != NULL);
	(void)fputs("something longer than a header line of a recording is", f);
	(void)fclose(f);
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	stop();
	char *text = read_file();
	CU_ASSERT_STRING_EQUAL(text, "rank,version,start_us,ready_us,verdict\n");
	free(text);
	end();
}

/* ---- generations ---- */

#define RUN "0123456789abcdef"
#define COUNTED "rank,version,start_us,ready_us,verdict,generation\n"
#define FIRST                                                                                      \
	COUNTED "# generation 1 of run " RUN " begins with version 0\n1,7,0.000,1.000,counted,1\n"

/* A server of this generation records a row, and ends. */
static void record(const char *run, uint64_t number, uint64_t began)
{
	struct mst_recorded_generation g = { .number = number, .began = began };

	(void)snprintf(g.run, sizeof(g.run), "%s", run);
	mst_recording_free(recording);
	CU_ASSERT_EQUAL_FATAL(mst_recording_new(&recording), 0);
	mst_recording_counts(recording);
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	put(1, 0, 1000, MUSTER_COUNTED);
	mst_recording_begin(recording, &g);
	stop();
}

static bool file_is(const char *wanted)
{
	char *text = read_file();
	bool same = strcmp(text, wanted) == 0;

	if (!same)
		printf("    %s\n", text);
	free(text);
	return same;
}

static void add_to_file(const char *text)
{
	FILE *f = fopen(path, "ae");

	CU_ASSERT_FATAL(f != NULL);
	(void)fputs(text, f);
	(void)fclose(f);
}

static void generations_of_a_run_are_one_file(void)
{
	begin();
	record(RUN, 1, 0);
	CU_ASSERT(file_is(FIRST));
	record(RUN, 2, 5);
	CU_ASSERT(file_is(FIRST "# generation 2 of run " RUN " begins with version 5\n"
				"1,7,0.000,1.000,counted,2\n"));
	end();
}

/* The server was killed while it wrote. */
static void a_line_that_was_cut_is_left_out(void)
{
	begin();
	record(RUN, 1, 0);
	add_to_file("1,8,2.0");
	record(RUN, 3, 7);
	CU_ASSERT(file_is(FIRST "# generation 3 of run " RUN " begins with version 7\n"
				"1,7,0.000,1.000,counted,3\n"));
	end();
}

static void what_is_of_another_run_is_replaced(void)
{
	static const char *const other[] = {
		"rank,version,start_us,ready_us,verdict\n1,7,0.000,1.000,counted\n",
		COUNTED "# generation 1 of run fedcba9876543210 begins with version 0\n",
		COUNTED "# generation 2 of run " RUN " begins with version 0\n",
		COUNTED "# generation 1 of run " RUN,
		COUNTED,
		"x",
	};

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		begin();
		add_to_file(other[i]);
		if (i == 3) { /* its first remark was cut, and so it had no rows */
			record(RUN, 2, 0);
			CU_ASSERT(file_is(COUNTED "# generation 2 of run " RUN
						  " begins with version 0\n"
						  "1,7,0.000,1.000,counted,2\n"));
		} else {
			record(RUN, 1, 0);
			CU_ASSERT(file_is(FIRST));
		}
		end();
	}
}

/* Else a server that waits for its workers in vain destroys what it was to go on with. */
static void nothing_is_replaced_before_the_generation_begins(void)
{
	begin();
	record(RUN, 1, 0);
	mst_recording_free(recording);
	CU_ASSERT_EQUAL_FATAL(mst_recording_new(&recording), 0);
	mst_recording_counts(recording);
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	stop();
	CU_ASSERT(file_is(FIRST));
	end();
}

/* The ring is full before anybody writes. */
static void missing_rows_are_told_in_the_last_line(void)
{
	begin();
	for (uint32_t i = 0; i < MST_RECORDING_ROWS + 5; i++)
		put(i % 4, 0, i, MUSTER_COUNTED);
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	wait_for_lines(MST_RECORDING_ROWS + 1);
	struct mst_reason missing;
	CU_ASSERT_TRUE(mst_recording_writer_stop(writer, &missing));
	CU_ASSERT_PTR_NOT_NULL(strstr(missing.text, "5 of the 65541 rows of the recording "));
	char *text = read_file();
	CU_ASSERT_EQUAL(lines_of(text), MST_RECORDING_ROWS + 2);
	CU_ASSERT_STRING_EQUAL(strchr(text, '#'), "# 5 rows are missing\n");
	free(text);
	end();
}

static void a_file_that_cannot_be_opened_is_named(void)
{
	begin();
	(void)snprintf(path, sizeof(path), "%s/no/r.csv", folder.root);
	CU_ASSERT_EQUAL(start(), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, path));
	(void)snprintf(path, sizeof(path), "%s/pipe", folder.root);
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	CU_ASSERT_EQUAL(start(), -ENXIO); /* it has no reader */
	writer = NULL;
	stop();
	end();
}

/* What the exit status and the summary of a run tell. */
static void what_a_full_disk_does_not_take_is_missing(void)
{
	struct mst_reason missing;

	begin();
	(void)snprintf(path, sizeof(path), "/dev/full");
	CU_ASSERT_EQUAL_FATAL(start(), 0);
	put(0, 0, 1000, MUSTER_COUNTED);
	put(1, 0, 1000, MUSTER_COUNTED);
	CU_ASSERT_TRUE(mst_recording_writer_stop(writer, &missing));
	CU_ASSERT_STRING_EQUAL(missing.text, "2 of the 2 rows of the recording /dev/full: No space "
					     "left on device");
	end();
}

static CU_TestInfo cases[] = {
	{ "rows are lines after a header", rows_are_lines_behind_a_header },
	{ "a file that is there is replaced", a_file_that_is_there_is_replaced },
	{ "generations of a run are one file", generations_of_a_run_are_one_file },
	{ "a line that was cut is left out", a_line_that_was_cut_is_left_out },
	{ "what is of another run is replaced", what_is_of_another_run_is_replaced },
	{ "nothing is replaced before the generation begins",
	  nothing_is_replaced_before_the_generation_begins },
	{ "missing rows are told in the last line", missing_rows_are_told_in_the_last_line },
	{ "a file that cannot be opened is named", a_file_that_cannot_be_opened_is_named },
	{ "what a full disk does not take is missing", what_a_full_disk_does_not_take_is_missing },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("recording_writer", cases);
}
