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
	{ "missing rows are told in the last line", missing_rows_are_told_in_the_last_line },
	{ "a file that cannot be opened is named", a_file_that_cannot_be_opened_is_named },
	{ "what a full disk does not take is missing", what_a_full_disk_does_not_take_is_missing },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("recording_writer", cases);
}
