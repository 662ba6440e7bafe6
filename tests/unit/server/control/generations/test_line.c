/* SPDX-License-Identifier: MIT */
/* Which versions of a worker are void, after generations that each began with a checkpoint. */
#include "server/control/generations/line.h"
#include "tests/ut.h"

#define FIRST 11u /* the id of generation 1, and so on */
#define SECOND 22u
#define THIRD 33u

static struct mst_job_line line;

static void begin(void)
{
	line = (struct mst_job_line){ .count = 0 };
}

static void add(uint64_t number, uint64_t id, uint64_t began)
{
	mst_job_line_add(&line, &(struct mst_job_line_row){ number, id, began });
}

static uint64_t stands(uint64_t number, uint64_t made, uint64_t version)
{
	const struct mst_claimed of = { .number = number, .version = version, .made = made };

	return mst_job_line_stands(&line, &of);
}

static void what_came_after_the_checkpoint_is_void(void)
{
	begin();
	add(1, FIRST, 0);
	add(2, SECOND, 90);
	CU_ASSERT_EQUAL(stands(1, FIRST, 100), 90);
	CU_ASSERT_EQUAL(stands(1, FIRST, 91), 90);
	CU_ASSERT_EQUAL(stands(1, FIRST, 90), 90);
	CU_ASSERT_EQUAL(stands(1, FIRST, 80), 80); /* it was not given what the checkpoint has */
	CU_ASSERT_EQUAL(stands(2, SECOND, 95), 95);
	CU_ASSERT_EQUAL(stands(0, 0, 0), 0); /* it claims nothing */
}

/* A worker that was away for several generations: the one that left its versions out decides. */
static void generation_that_left_them_out_decides(void)
{
	begin();
	add(1, FIRST, 0);
	add(2, SECOND, 90);
	add(3, THIRD, 120);
	CU_ASSERT_EQUAL(stands(1, FIRST, 100), 90);
	CU_ASSERT_EQUAL(stands(2, SECOND, 130), 120);
	CU_ASSERT_EQUAL(stands(2, SECOND, 110), 110);
	begin();
	add(1, FIRST, 0);
	add(2, SECOND, 90);
	add(3, THIRD, 80); /* the checkpoint of version 90 was damaged */
	CU_ASSERT_EQUAL(stands(1, FIRST, 100), 80);
	CU_ASSERT_EQUAL(stands(2, SECOND, 100), 80);
	CU_ASSERT_EQUAL(stands(1, FIRST, 85), 80);
}

/* Two starts that did not know of each other have taken the same number. */
static void version_of_another_start_of_the_same_number_is_void(void)
{
	begin();
	add(1, FIRST, 0);
	add(2, SECOND, 90);
	CU_ASSERT_EQUAL(stands(2, THIRD, 95), 90);
	CU_ASSERT_EQUAL(stands(2, SECOND, 95), 95);
	CU_ASSERT_EQUAL(stands(2, FIRST, 90), 90);
}

static void oldest_generations_are_forgotten_first(void)
{
	begin();
	for (uint64_t i = 1; i <= MST_JOB_LINE_MAX + 3; i++)
		add(i, i, 10 * i);
	CU_ASSERT_EQUAL(line.count, MST_JOB_LINE_MAX);
	CU_ASSERT_EQUAL(line.row[0].number, 4);
	CU_ASSERT_EQUAL(stands(MST_JOB_LINE_MAX, MST_JOB_LINE_MAX, 100000),
			10 * (MST_JOB_LINE_MAX + 1));
}

static void manifest_brings_it_back(void)
{
	struct mst_values values = { 0 };
	struct mst_job_line written;

	begin();
	CU_ASSERT_EQUAL(mst_job_line_write(&line, &values), 0);
	CU_ASSERT_EQUAL(values.count, 0);
	add(1, FIRST, 0);
	add(2, UINT64_MAX, 90);
	written = line;
	CU_ASSERT_EQUAL(mst_job_line_write(&line, &values), 0);
	begin();
	mst_job_line_read(&line, &values);
	CU_ASSERT_EQUAL_FATAL(line.count, 2);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(line.row[i].number, written.row[i].number);
		CU_ASSERT_EQUAL(line.row[i].id, written.row[i].id);
		CU_ASSERT_EQUAL(line.row[i].began, written.row[i].began);
	}
	mst_values_fini(&values);
}

static uint32_t read_of(const uint64_t *numbers, const uint64_t *began, uint32_t count)
{
	const uint64_t ids[MST_JOB_LINE_MAX + 1] = { FIRST, SECOND };
	struct mst_values values = { 0 };

	CU_ASSERT_EQUAL(mst_values_add_list(&values, "line.generations", numbers, count), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&values, "line.ids", ids, count), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&values, "line.began", began, count), 0);
	mst_job_line_read(&line, &values);
	mst_values_fini(&values);
	return line.count;
}

/* Somebody has written to the manifest: no worker is told of void versions that are none. */
static void line_that_cannot_be_is_none(void)
{
	const uint64_t rises[] = { 1, 2 }, falls[] = { 2, 1 }, none[] = { 0, 1 };
	const uint64_t many[MST_JOB_LINE_MAX + 1] = { 1 };

	CU_ASSERT_EQUAL(read_of(rises, rises, 2), 2);
	CU_ASSERT_EQUAL(read_of(falls, rises, 2), 0);
	CU_ASSERT_EQUAL(read_of(rises, falls, 2), 0);
	CU_ASSERT_EQUAL(read_of(none, rises, 2), 0);
	CU_ASSERT_EQUAL(read_of(many, many, MST_JOB_LINE_MAX + 1), 0);
}

static CU_TestInfo cases[] = {
	{ "what came after the checkpoint is void", what_came_after_the_checkpoint_is_void },
	{ "the generation that left them out decides", generation_that_left_them_out_decides },
	{ "a version of another start of the same number is void",
	  version_of_another_start_of_the_same_number_is_void },
	{ "the oldest generations are forgotten first", oldest_generations_are_forgotten_first },
	{ "a manifest brings it back", manifest_brings_it_back },
	{ "a line that cannot be is none", line_that_cannot_be_is_none },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("generations that a job has come from", cases);
}
