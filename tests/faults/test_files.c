/* SPDX-License-Identifier: MIT */
/* The readers of files: each call that one makes fails in turn, and it gives an error and a
 * sentence about the file, or what is in the file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/delay/delay.h"
#include "common/digits/idx.h"
#include "server/options/options.h"
#include "tests/faults/scenario.h"
#include "tests/ut.h"

enum { READER = 1 };

#define LABELS UINT32_C(70000) /* more than the first read takes, of any file */

static char path[] = "faults_file.XXXXXX"; /* in the working directory */
static struct mst_reason why;

static void write_file(const void *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, f), len);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

/* A reader fails with a sentence, or does not fail: with a fault only, or only without. */
static void judge(int rc)
{
	scenario_holds(rc <= 0 && rc > -4096, "the result is an error number");
	scenario_holds(rc == 0 || faulty_struck(), "without a fault it is read");
	scenario_holds(rc == 0 || strlen(why.text) > 10, "a failure comes with a sentence");
}

static void play(const char *name, void (*run)(void), unsigned least)
{
	struct scenario s = {
		.name = name, .side = READER, .most = 60, .patience_ns = 60 * MST_SECOND, .run = run
	};

	CU_ASSERT(scenario_play(&s) >= least);
}

/* ---- options ---- */

static void read_options(void)
{
	static struct mst_server_options options;
	struct mst_options parsed;

	faulty_enter(READER);
	int rc = mst_options_init(&parsed, mst_server_table, &options);
	if (rc == 0)
		rc = mst_options_file(&parsed, path);
	faulty_enter(FAULTY_NOBODY);
	mst_reason_set(&why, "%s", parsed.why.text);
	judge(rc);
	if (rc == 0)
		scenario_holds(options.workers == 7 && strcmp(options.job, "night") == 0,
			       "what is read is what is in the file");
	mst_options_free(&parsed);
}

static void options_from_a_file(void)
{
	static const char text[] = "job = \"night\";\nworkers = 7;\npolicy = \"backup:6\";\n";

	write_file(text, sizeof(text) - 1);
	play("config file", read_options, 10);
}

/* ---- digits ---- */

static void read_digits(void)
{
	struct mst_idx idx = { 0 };

	faulty_enter(READER);
	int rc = mst_idx_init(path, MST_IDX_LABELS, &idx, &why);
	faulty_enter(FAULTY_NOBODY);
	judge(rc);
	scenario_holds((rc == 0) == (idx.bytes != NULL), "a failure leaves nothing behind");
	if (rc == 0)
		scenario_holds(idx.count == LABELS && idx.bytes[LABELS - 1] == 9,
			       "what is read is what is in the file");
	mst_idx_fini(&idx);
}

static void digits_from_a_file(void)
{
	static uint8_t bytes[8 + LABELS] = { 0, 0, 8, 1 };

	for (int i = 0; i < 4; i++)
		bytes[4 + i] = (uint8_t)(LABELS >> (24 - 8 * i));
	bytes[8 + LABELS - 1] = 9;
	write_file(bytes, sizeof(bytes));
	play("IDX file", read_digits, 6);
}

/* ---- delays ---- */

static void read_delays(void)
{
	char trace[64];
	const char *const spec[] = { trace, "1:const:5" };
	struct mst_delay_options opt = { .spec = spec, .spec_count = 2, .rank = 0, .seed = 1 };
	struct mst_delay *d = NULL;

	(void)snprintf(trace, sizeof(trace), "trace:%s", path);
	faulty_enter(READER);
	int rc = mst_delay_new(&opt, &d, &why);
	faulty_enter(FAULTY_NOBODY);
	judge(rc);
	scenario_holds((rc == 0) == (d != NULL), "a failure leaves nothing behind");
	if (rc == 0)
		scenario_holds(mst_delay_next(d) == 1500 * UINT64_C(1000),
			       "what is read is what is in the file");
	mst_delay_free(d);
}

static void delays_from_a_trace(void)
{
	static const char text[] = "step,worker,ready_us\n0,0,1500\n0,1,2500\n";

	write_file(text, sizeof(text) - 1);
	play("trace file", read_delays, 5);
}

static CU_TestInfo cases[] = {
	{ "a file of options is read, or it is said why not", options_from_a_file },
	{ "an IDX file is read, or it is said why not", digits_from_a_file },
	{ "a trace of delays is read, or it is said why not", delays_from_a_trace },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return EXIT_FAILURE;
	close(fd);
	int status = ut_main("files that meet faults", cases);
	unlink(path);
	return status;
}
