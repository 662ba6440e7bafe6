/* SPDX-License-Identifier: MIT */
/* A server whose records do not fit each other, or that says again what is said once. */
#include <errno.h>
#include <string.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind one_slot = { .slots = 1, .window = 4 };

static void a_record_of_another_version_is_no_answer(void)
{
	uint8_t inbound[sizeof(struct mst_lane_record) +
			SESSION_WORKERS * sizeof(struct mst_lane_share)] = { 0 };
	struct mst_lane_record record = { .version = 2, .weight = 1 };

	session_begin_working(&one_slot);
	session_fill_and_push(false);
	struct mst_lane_answer a = { session_worker.ask_number, 1, 1, MST_WHERE_IN_PLACE, 1 };
	memcpy(inbound, &record, sizeof(record));
	CU_ASSERT_EQUAL(mst_worker_answered(&session_worker, 0, &a, inbound), -EPROTO);
	record.version = 1;
	memcpy(inbound, &record, sizeof(record));
	CU_ASSERT_EQUAL(mst_worker_answered(&session_worker, 0, &a, inbound), 0);
	session_end();
}

/* The first word stands: what came of it has perhaps been handed out. */
static void a_job_ends_once(void)
{
	session_begin_working(&one_slot);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 3), 0);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 7), 0);
	CU_ASSERT_EQUAL(session_worker.last, 3);
	session_end();
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
