/* SPDX-License-Identifier: MIT */
/* A server whose records do not fit each other, or that says again what is said once. */
#include <errno.h>
#include <string.h>

#include "tests/unit/session_case.h"
#include "tests/ut.h"

static const struct session_kind one_slot = { .slots = 1, .window = 4 };

static void a_record_of_another_version_is_no_answer(void)
{
	uint8_t landing[sizeof(struct mst_lane_record) +
			WORKERS * sizeof(struct mst_lane_share)] = { 0 };
	struct mst_lane_record record = { .version = 2, .weight = 1 };

	begin_working(&one_slot);
	fill_and_push(false);
	struct mst_lane_answer a = { w.ask_number, 1, 1, MST_WHERE_IN_PLACE, 1 };
	memcpy(landing, &record, sizeof(record));
	CU_ASSERT_EQUAL(mst_worker_answered(&w, 0, &a, landing), -EPROTO);
	record.version = 1;
	memcpy(landing, &record, sizeof(record));
	CU_ASSERT_EQUAL(mst_worker_answered(&w, 0, &a, landing), 0);
	end();
}

/* The first word stands: what came of it has perhaps been handed out. */
static void a_job_ends_once(void)
{
	begin_working(&one_slot);
	CU_ASSERT_EQUAL(mst_worker_ended(&w, 3), 0);
	CU_ASSERT_EQUAL(mst_worker_ended(&w, 7), 0);
	CU_ASSERT_EQUAL(w.last, 3);
	end();
}

static void a_gap_is_looked_for_from_within_a_range_too(void)
{
	struct mst_ranges r = { 0 };
	struct mst_range gap;

	CU_ASSERT_EQUAL_FATAL(mst_ranges_init(&r, 100), 0);
	CU_ASSERT_EQUAL(mst_ranges_add(&r, 10, 20), 0);
	CU_ASSERT(mst_ranges_gap(&r, 15, &gap));
	CU_ASSERT(gap.begin == 30 && gap.end == 100);
	CU_ASSERT(mst_ranges_gap(&r, 10, &gap));
	CU_ASSERT(gap.begin == 30 && gap.end == 100);
	mst_ranges_fini(&r);
}

static CU_TestInfo cases[] = {
	{ "a record of another version is no answer", a_record_of_another_version_is_no_answer },
	{ "a job ends once", a_job_ends_once },
	{ "a gap is looked for from within a range, too",
	  a_gap_is_looked_for_from_within_a_range_too },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session: lies", cases);
}
