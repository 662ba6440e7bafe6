/* SPDX-License-Identifier: MIT */
/* Traces and recordings as files: what is read of them, and what is said of those that are none. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/tools/plan/plan_case.h"

static struct mst_arrival_rows rows;

static bool is(size_t index, uint64_t step, uint32_t rank, double us)
{
	const struct mst_arrival_row *r = &rows.row[index];

	return index < rows.count && r->step == step && r->rank == rank && r->us == us;
}

/* Is it refused, in words that have @named in them? */
static bool refuses(const char *named, const char *text)
{
	int rc = plan_case_rows(text, &rows);

	if (rc == -EINVAL && strstr(plan_case_why.text, named) != NULL)
		return true;
	printf("    %d: %s\n", rc, plan_case_why.text);
	return false;
}

static void a_trace_is_read(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_rows(PLAN_CASE_TRACE "4,0,10.5\n4,1,2e3\n9,0,0\n", &rows),
			      0);
	CU_ASSERT_EQUAL(rows.count, 3);
	CU_ASSERT(is(0, 4, 0, 10.5) && is(1, 4, 1, 2000) && is(2, 9, 0, 0));
	CU_ASSERT(rows.row[1].known && rows.row[1].counted && !rows.recorded);
	CU_ASSERT_EQUAL(rows.row[2].line, 4);
	mst_rows_free(&rows);
}

static void columns_are_found_by_name_and_others_ignored(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_rows("ready_us,host,worker,step,\n7,a b,3,1,\n", &rows), 0);
	CU_ASSERT(rows.count == 1 && is(0, 1, 3, 7));
	mst_rows_free(&rows);
}

static void windows_lines_marks_and_a_last_line_without_end_are_read(void)
{
	CU_ASSERT_EQUAL_FATAL(
		plan_case_rows("\xef\xbb\xbfstep,worker,ready_us\r\n0,0,1\r\n0,1,2", &rows), 0);
	CU_ASSERT(rows.count == 2 && is(0, 0, 0, 1) && is(1, 0, 1, 2));
	mst_rows_free(&rows);
}

/* As spreadsheets and libraries write tables. */
static void quotes_and_blanks_around_cells_are_taken_off(void)
{
	CU_ASSERT_EQUAL_FATAL(
		plan_case_rows("\xef\xbb\xbf\"step\", worker ,\"ready_us\", \"a \"\"b\"\", c\"\n"
			       "\"4\",0, 10.5,\"x, y\"\n 4 ,\t\"1\" ,\"2e3\",\"\"\n",
			       &rows),
		0);
	CU_ASSERT(rows.count == 2 && is(0, 4, 0, 10.5) && is(1, 4, 1, 2000));
	mst_rows_free(&rows);
}

/* A recording is read for the differences of its times alone. */
static void clocks_may_count_from_1970(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_rows(PLAN_CASE_RECORDING
					     "1,7,1795921587348000,1795921587350500,counted\n",
					     &rows),
			      0);
	CU_ASSERT(rows.count == 1 && is(0, 7, 1, 2500));
	mst_rows_free(&rows);
}

static void a_recording_tells_how_long_gradients_took(void)
{
	CU_ASSERT_EQUAL_FATAL(plan_case_rows(PLAN_CASE_RECORDING
					     "1,7,100.5,112,counted\n0,7,100,130,late\n"
					     "2,7,101,120,given_up\n3,7,,140,stale\n"
					     "3,8,1,2,refused\n2,8,1,9,cancelled\n"
					     "# 17 rows are missing\n",
					     &rows),
			      0);
	CU_ASSERT_EQUAL(rows.count, 5);
	CU_ASSERT_TRUE(rows.recorded);
	CU_ASSERT(is(0, 7, 1, 11.5) && rows.row[0].known && rows.row[0].counted);
	CU_ASSERT(is(1, 7, 0, 30) && rows.row[1].known && !rows.row[1].counted);
	CU_ASSERT(is(2, 7, 2, 19) && !rows.row[2].known && !rows.row[2].counted);
	CU_ASSERT(is(3, 8, 3, 1) && rows.row[3].known && !rows.row[3].counted);
	CU_ASSERT(is(4, 8, 2, 8) && !rows.row[4].known);
	CU_ASSERT_EQUAL(rows.untimed, 1);
	CU_ASSERT_EQUAL(rows.gone_missing, 17);
	mst_rows_free(&rows);
}

static void gradients_can_be_paired_by_their_order(void)
{
	const struct mst_rows_cfg cfg = { .to = UINT64_MAX, .pair = MST_PAIR_ORDER };
	const char *text = PLAN_CASE_RECORDING "0,0,0,1,counted\n1,0,0,2,counted\n0,1,1,2,counted\n"
					       "0,2,2,3,counted\n1,3,2,4,counted\n";

	CU_ASSERT_EQUAL_FATAL(plan_case_read(text, strlen(text), &cfg, &rows), 0);
	CU_ASSERT(is(0, 0, 0, 1) && is(1, 0, 1, 2) && is(2, 1, 0, 1) && is(3, 2, 0, 1) &&
		  is(4, 1, 1, 2));
	mst_rows_free(&rows);
}

#define COUNTED_ROWS "rank,version,start_us,ready_us,verdict,generation\n"

/* Servers were replaced: each generation counts its own versions, some of them again. */
static void generations_are_told_apart(void)
{
	const struct mst_rows_cfg cfg = { .to = UINT64_MAX, .pair = MST_PAIR_ORDER };
	const char *text = COUNTED_ROWS "# generation 1 of run x begins with version 0\n"
					"0,0,0,1,counted,1\n1,0,0,2,counted,1\n0,1,1,2,counted,1\n"
					"# 3 rows are missing\n"
					"# generation 3 of run x begins with version 1\n"
					"0,1,0,4,counted,3\n1,1,0,5,counted,3\n"
					"# 4 rows are missing\n";

	CU_ASSERT_EQUAL_FATAL(plan_case_rows(text, &rows), 0);
	CU_ASSERT(is(2, 1, 0, 1) && rows.row[2].generation == 1);
	CU_ASSERT(is(3, 1, 0, 4) && rows.row[3].generation == 3);
	CU_ASSERT(rows.generations == 2 && rows.gone_missing == 7);
	mst_rows_free(&rows);
	CU_ASSERT_EQUAL_FATAL(plan_case_read(text, strlen(text), &cfg, &rows), 0);
	CU_ASSERT(is(2, 1, 0, 1) && is(3, 0, 0, 4) && is(4, 0, 1, 5));
	mst_rows_free(&rows);
	CU_ASSERT(refuses("generation is \"0\"", COUNTED_ROWS "0,0,0,1,counted,0\n"));
	CU_ASSERT(refuses("generation is 1, after",
			  COUNTED_ROWS "0,0,0,1,counted,2\n0,0,0,1,counted,1\n"));
	CU_ASSERT(refuses("before the column generation", COUNTED_ROWS "0,0,0,1,counted\n"));
}

static void steps_outside_are_left_out(void)
{
	const struct mst_rows_cfg cfg = { .from = 2, .to = 3 };
	const char *text = PLAN_CASE_TRACE "1,0,1\n2,0,2\n3,0,3\n4,0,4\n";

	CU_ASSERT_EQUAL_FATAL(plan_case_read(text, strlen(text), &cfg, &rows), 0);
	CU_ASSERT(rows.count == 2 && is(0, 2, 0, 2) && is(1, 3, 0, 3));
	CU_ASSERT_EQUAL(rows.outside, 2);
	mst_rows_free(&rows);
}

static void a_file_that_is_no_trace_is_refused_by_its_line(void)
{
	char line[700];

	CU_ASSERT(refuses("the file is empty", ""));
	CU_ASSERT(refuses("line 1: there is no column step", "\n0,0,1\n"));
	CU_ASSERT(refuses("line 1: there is no column ready_us", "step,worker\n0,0\n"));
	CU_ASSERT(refuses("line 1: there is no column start_us",
			  "rank,version,ready_us,verdict\n0,0,1,counted\n"));
	CU_ASSERT(refuses("line 1: the column step is there twice", "step,worker,ready_us,step\n"));
	CU_ASSERT(refuses("line 2: there is a byte 0x07", PLAN_CASE_TRACE "0,0,\a\n"));
	memset(line, '1', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	CU_ASSERT(refuses("line 1: it is longer than 511 bytes", line));
	memset(line, ',', 100);
	line[100] = '\0';
	CU_ASSERT(refuses("line 1: it has more than 32 columns", line));
	CU_ASSERT_EQUAL(plan_case_read("step\0,", 6, &(struct mst_rows_cfg){ 0 }, &rows), -EINVAL);
	CU_ASSERT_STRING_EQUAL(plan_case_why.text, "line 1: there is a byte 0x00: this is no text");
}

static void a_row_that_is_none_is_refused_by_its_line(void)
{
	CU_ASSERT(refuses("line 3: it ends before the column ready_us",
			  PLAN_CASE_TRACE "0,0,1\n0,1\n"));
	CU_ASSERT(refuses("line 2: it ends before the column worker", PLAN_CASE_TRACE "\n"));
	CU_ASSERT(refuses("line 2: step is \"-1\"", PLAN_CASE_TRACE "-1,0,1\n"));
	CU_ASSERT(refuses("line 2: step is \"1.5\"", PLAN_CASE_TRACE "1.5,0,1\n"));
	CU_ASSERT(refuses("line 2: worker is \"65536\"", PLAN_CASE_TRACE "0,65536,1\n"));
	CU_ASSERT(refuses("line 2: worker is \"\"", PLAN_CASE_TRACE "0,,1\n"));
	CU_ASSERT(refuses("line 2: ready_us is \"nan\"", PLAN_CASE_TRACE "0,0,nan\n"));
	CU_ASSERT(refuses("line 2: ready_us is \"inf\"", PLAN_CASE_TRACE "0,0,inf\n"));
	CU_ASSERT(refuses("line 2: ready_us is \"-3\"", PLAN_CASE_TRACE "0,0,-3\n"));
	CU_ASSERT(refuses("line 2: ready_us is \"2e16\"", PLAN_CASE_TRACE "0,0,2e16\n"));
	CU_ASSERT(
		refuses("line 2: ready_us is 1795921587348000, which looks like a time since 1970",
			PLAN_CASE_TRACE "0,0,1795921587348000\n"));
	CU_ASSERT(refuses("line 2: ready_us is \"3 4\"", PLAN_CASE_TRACE "0,0,3 4\n"));
	CU_ASSERT(refuses("line 2: column 2 begins with a quote", PLAN_CASE_TRACE "0,\"1,2\n"));
	CU_ASSERT(refuses("line 2: column 2 begins with a quote", PLAN_CASE_TRACE "0,\"1\"0,2\n"));
	CU_ASSERT(refuses("line 2: verdict is \"lost\"", PLAN_CASE_RECORDING "0,0,0,1,lost\n"));
	CU_ASSERT(refuses("line 2: the gradient is ready at 4, before its start at 5",
			  PLAN_CASE_RECORDING "0,0,5,4,counted\n"));
}

/* One row too many, of which the file takes six bytes each. */
static void more_rows_than_there_is_room_for_are_refused(void)
{
	const char row[] = "0,0,1\n";
	size_t head = strlen(PLAN_CASE_TRACE), len = head;
	char *text = malloc(head + (MST_ARRIVAL_ROWS_MAX + 1) * (sizeof(row) - 1));

	CU_ASSERT_FATAL(text != NULL);
	memcpy(text, PLAN_CASE_TRACE, head);
	for (uint32_t i = 0; i <= MST_ARRIVAL_ROWS_MAX; i++, len += sizeof(row) - 1)
		memcpy(text + len, row, sizeof(row) - 1);
	CU_ASSERT_EQUAL(plan_case_read(text, len, &(struct mst_rows_cfg){ .to = 9 }, &rows),
			-EINVAL);
	CU_ASSERT_STRING_EQUAL(plan_case_why.text,
			       "line 4194306: there are more than 4194304 rows: read a part of the "
			       "steps, with --from and --to");
	free(text);
}

static CU_TestInfo cases[] = {
	{ "a trace is read", a_trace_is_read },
	{ "columns are found by name and others ignored",
	  columns_are_found_by_name_and_others_ignored },
	{ "windows lines, marks and a last line without end are read",
	  windows_lines_marks_and_a_last_line_without_end_are_read },
	{ "quotes and blanks around cells are taken off",
	  quotes_and_blanks_around_cells_are_taken_off },
	{ "clocks may count from 1970", clocks_may_count_from_1970 },
	{ "a recording tells how long gradients took", a_recording_tells_how_long_gradients_took },
	{ "gradients can be paired by their order", gradients_can_be_paired_by_their_order },
	{ "generations are told apart", generations_are_told_apart },
	{ "steps outside are left out", steps_outside_are_left_out },
	{ "a file that is no trace is refused by its line",
	  a_file_that_is_no_trace_is_refused_by_its_line },
	{ "a row that is none is refused by its line", a_row_that_is_none_is_refused_by_its_line },
	{ "more rows than there is room for are refused",
	  more_rows_than_there_is_room_for_are_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("planner_rows", cases);
}
