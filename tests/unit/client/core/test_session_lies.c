/* SPDX-License-Identifier: MIT */
/* A server whose records do not fit each other, or that says again what is said once. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind one_slot = { .slots = 1, .window = 4 };

static void a_record_of_another_version_is_no_answer(void)
{
	uint8_t inbound[sizeof(struct mst_lane_record) +
			SESSION_WORKERS * sizeof(struct mst_lane_share)] = { 0 };
	struct mst_lane_record record = { .version = 2, .weight = 1, .size = MST_RECORD_SIZE };

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

/* What version 1's record says of its size, and has after its members. */
static int say_size(uint32_t size, uint8_t rest)
{
	uint8_t inbound[sizeof(struct mst_lane_record) +
			SESSION_WORKERS * sizeof(struct mst_lane_share)] = { 0 };
	struct mst_lane_record record = { .version = 1, .weight = 1, .size = size };

	session_begin_working(&one_slot);
	session_fill_and_push(false);
	struct mst_lane_answer a = { session_worker.ask_number, 1, 1, MST_WHERE_IN_PLACE, 1 };
	memset(record.reserved, rest, sizeof(record.reserved));
	memcpy(inbound, &record, sizeof(record));
	int rc = mst_worker_answered(&session_worker, 0, &a, inbound);
	session_end();
	return rc;
}

static void a_record_that_is_too_short_is_no_answer(void)
{
	CU_ASSERT_EQUAL(say_size(MST_RECORD_SIZE_MIN - 1, 0), -EPROTO);
	CU_ASSERT_EQUAL(say_size(0, 0), -EPROTO);
	CU_ASSERT_EQUAL(say_size(MST_RECORD_SIZE_MIN, 0xff), 0);
	CU_ASSERT_EQUAL(say_size(sizeof(struct mst_lane_record), 0xff), 0);
}

struct pace_case {
	struct mst_pace pace;
	uint32_t flags, by_micro;
};

/* What a session says of version 1 with this in its record. */
static int say_pace(const struct session_kind *kind, const struct pace_case *c)
{
	uint8_t inbound[sizeof(struct mst_lane_record) +
			SESSION_WORKERS * sizeof(struct mst_lane_share)] = { 0 };
	struct mst_lane_record record = { .version = 1,
					  .alpha = c->pace.alpha,
					  .local_steps = c->pace.local_steps,
					  .push_every = c->pace.push_every,
					  .fetch_every = c->pace.fetch_every,
					  .flags = c->flags,
					  .size = MST_RECORD_SIZE,
					  .by_micro = c->by_micro };

	session_begin_working(kind);
	session_fill_and_push(false);
	struct mst_lane_answer a = { session_worker.ask_number, 1, 1, MST_WHERE_IN_PLACE, 1 };
	memcpy(inbound, &record, sizeof(record));
	int rc = mst_worker_answered(&session_worker, 0, &a, inbound);
	session_end();
	return rc;
}

static void a_pace_that_cannot_be_is_refused(void)
{
	static const struct session_kind own = { .slots = 1, .workers_own = true, .window = 4 };
	static const struct pace_case bad[] = {
		{ { .local_steps = 2, .push_every = 2, .fetch_every = 2 }, 0, 0 },
		{ { .push_every = 2 }, 0, 0 },
		{ { .fetch_every = 2 }, 0, 0 },
		{ { .local_steps = 2, .alpha = 1.5 }, 0, 0 },
		{ { .local_steps = 2, .alpha = -0.5 }, 0, 0 },
		{ { .local_steps = 2, .alpha = NAN }, 0, 0 },
		{ { .alpha = 0.5 }, 0, 0 },
		{ { 0 }, 2, 0 },
		{ { .local_steps = 2 }, MST_RECORD_UNTIL_ASKED, 0 },
		{ { .local_steps = 2 }, 0, 1 },
		{ { 0 }, MST_RECORD_UNTIL_ASKED, 1 },
	};
	static const struct pace_case good[] = {
		{ { .local_steps = 2 }, 0, 0 },
		{ { .local_steps = 2, .alpha = 1 }, 0, 0 },
		{ { .push_every = 2, .fetch_every = 1 }, 0, 0 },
		{ { 0 }, MST_RECORD_UNTIL_ASKED, 0 },
		{ { 0 }, 0, 1 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(say_pace(&one_slot, &bad[i]), -EPROTO);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT_EQUAL(say_pace(&one_slot, &good[i]), 0);
	CU_ASSERT_EQUAL(say_pace(&own, &good[0]), -EPROTO); /* there is nothing to step on */
	CU_ASSERT_EQUAL(say_pace(&own, &good[2]), -EPROTO);
	CU_ASSERT_EQUAL(say_pace(&own, &good[3]), 0);
	CU_ASSERT_EQUAL(say_pace(&own, &good[4]), 0);
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
	{ "a record that is too short is no answer", a_record_that_is_too_short_is_no_answer },
	{ "a record with a pace, or flags, that cannot be is refused",
	  a_pace_that_cannot_be_is_refused },
	{ "a job ends once", a_job_ends_once },
	{ "a gap is looked for from within a range, too",
	  a_gap_is_looked_for_from_within_a_range_too },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session: lies", cases);
}
