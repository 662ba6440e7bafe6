/* SPDX-License-Identifier: MIT */
/* Traces for the tests of the planner, as a user would write them. */
#ifndef MST_TESTS_UNIT_TOOLS_PLAN_PLAN_CASE_H
#define MST_TESTS_UNIT_TOOLS_PLAN_PLAN_CASE_H

#include <stdio.h>
#include <string.h>

#include "common/base/reason.h"
#include "tests/ut.h"
#include "tools/plan/arrivals.h"

#define PLAN_CASE_TRACE "step,worker,ready_us\n"
#define PLAN_CASE_RECORDING "rank,version,start_us,ready_us,verdict\n"

static struct mst_reason plan_case_why;

/* Reads @len bytes. Return: what the reader returns. */
static inline int plan_case_read(const char *text, size_t len, const struct mst_rows_cfg *cfg,
				 struct mst_arrival_rows *out)
{
	FILE *f = tmpfile();

	CU_ASSERT_FATAL(f != NULL);
	CU_ASSERT_FATAL(fwrite(text, 1, len, f) == len);
	rewind(f);
	plan_case_why.text[0] = '\0';
	int rc = mst_rows_read(f, cfg, out, &plan_case_why);
	(void)fclose(f);
	return rc;
}

static inline int plan_case_rows(const char *text, struct mst_arrival_rows *out)
{
	const struct mst_rows_cfg all = { .to = UINT64_MAX };

	return plan_case_read(text, strlen(text), &all, out);
}

/* Return: what becomes of the trace; the reason lies in plan_case_why. */
static inline int plan_case_arrivals(const char *text, struct mst_arrivals *out)
{
	struct mst_arrival_rows rows;
	int rc = plan_case_rows(text, &rows);

	if (rc != 0)
		return rc;
	rc = mst_arrivals_new(&rows, out, &plan_case_why);
	mst_rows_free(&rows);
	return rc;
}

/* Six steps of four ranks, drawn once from an exponential distribution. */
#define PLAN_CASE_DRAWN                                                                            \
	PLAN_CASE_TRACE                                                                            \
	"0,0,121\n0,1,153\n0,2,107\n0,3,140\n1,0,71\n1,1,388\n1,2,51\n1,3,331\n"                   \
	"2,0,108\n2,1,80\n2,2,104\n2,3,81\n3,0,140\n3,1,157\n3,2,238\n3,3,72\n"                    \
	"4,0,364\n4,1,124\n4,2,85\n4,3,138\n5,0,58\n5,1,56\n5,2,172\n5,3,127\n"

#endif
