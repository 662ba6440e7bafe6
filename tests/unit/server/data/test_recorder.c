/* SPDX-License-Identifier: MIT */
/* The recorder over a history written by hand: which rows there are, and what is in them. */
#include "common/base/clock.h"
#include "muster/muster.h"
#include "server/data/recorder.h"
#include "tests/ut.h"

#define RANKS 3u
#define STARTED_MS 1000u

static struct mst_recording *recording;
static struct mst_recorder *recorder;
static struct mst_recorded row;

/* ---- what goes by; times in ms from the start of the job ---- */

static uint64_t at(uint64_t ms)
{
	return (STARTED_MS + ms) * MST_MS;
}

static void decide(struct mst_decision d, uint64_t ms)
{
	mst_recorder_decided(recorder, &d, at(ms));
}

static void give(uint32_t rank, uint64_t version, uint64_t ms)
{
	decide((struct mst_decision){ .kind = MST_DO_RELEASE,
				      .who = { rank, 1 },
				      .answer = { .version = version } },
	       ms);
}

static void judge(uint32_t rank, uint64_t tag, enum muster_verdict verdict, uint64_t ms)
{
	struct mst_decision d = { .kind = MST_DO_VERDICT, .who = { rank, 1 } };

	d.verdict.tag = tag;
	d.verdict.verdict = verdict;
	decide(d, ms);
}

static void ask(uint32_t rank, uint32_t incarnation, uint64_t given_up, uint64_t ms)
{
	struct mst_ledger_event ev = { .kind = MST_EV_ASK, .who = { rank, incarnation } };

	ev.given_up = given_up;
	mst_recorder_event(recorder, &ev, at(ms));
}

static void admit(uint32_t rank, uint32_t incarnation, uint64_t ms)
{
	decide((struct mst_decision){ .kind = MST_DO_ADMIT, .who = { rank, incarnation } }, ms);
}

static void begin(void)
{
	CU_ASSERT_EQUAL_FATAL(mst_recording_new(&recording), 0);
	CU_ASSERT_EQUAL_FATAL(mst_recorder_new(RANKS, recording, &recorder), 0);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		admit(rank, 1, 0);
	decide((struct mst_decision){ .kind = MST_DO_START }, 0);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		give(rank, 0, 0);
}

static void end(void)
{
	CU_ASSERT_FALSE(mst_recording_take(recording, &row));
	mst_recorder_free(recorder);
	mst_recording_free(recording);
}

static void expect(uint32_t rank, uint64_t version, uint32_t how, uint64_t ms)
{
	CU_ASSERT_FATAL(mst_recording_take(recording, &row));
	CU_ASSERT_EQUAL(row.rank, rank);
	CU_ASSERT_EQUAL(row.version, version);
	CU_ASSERT_EQUAL(row.end, how);
	CU_ASSERT_EQUAL(row.end_ns, ms * MST_MS);
}

/* ---- promises ---- */

static void each_verdict_is_a_row_with_times_from_the_start_of_the_job(void)
{
	static const enum muster_verdict verdicts[] = { MUSTER_COUNTED, MUSTER_LATE, MUSTER_STALE,
							MUSTER_CANCELLED, MUSTER_REFUSED };

	begin();
	for (uint64_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
		give(1, i, 10 * i);
		judge(1, i, verdicts[i], 10 * i + 7);
		expect(1, i, verdicts[i], 10 * i + 7);
		CU_ASSERT_EQUAL(row.start_ns, 10 * i * MST_MS);
	}
	end();
}

static void a_second_gradient_on_a_version_starts_with_the_end_of_the_first(void)
{
	begin();
	judge(0, 0, MUSTER_COUNTED, 5);
	judge(0, 0, MUSTER_COUNTED, 12);
	expect(0, 0, MUSTER_COUNTED, 5);
	CU_ASSERT_EQUAL(row.start_ns, 0);
	expect(0, 0, MUSTER_COUNTED, 12);
	CU_ASSERT_EQUAL(row.start_ns, 5 * MST_MS);
	end();
}

static void without_its_version_a_start_is_not_known(void)
{
	begin();
	give(2, 4, 20);
	judge(2, 3, MUSTER_LATE, 26);
	expect(2, 3, MUSTER_LATE, 26);
	CU_ASSERT_EQUAL(row.start_ns, MST_NEVER);
	admit(2, 2, 30);
	judge(2, MST_VERSION_NONE, MUSTER_REFUSED, 31);
	expect(2, MST_VERSION_NONE, MUSTER_REFUSED, 31);
	CU_ASSERT_EQUAL(row.start_ns, MST_NEVER);
	end();
}

static void a_gradient_given_up_is_a_row_once(void)
{
	begin();
	give(1, 6, 60);
	ask(1, 1, 1, 63);
	ask(1, 1, 1, 64);
	expect(1, 6, MST_RECORDED_GIVEN_UP, 63);
	CU_ASSERT_EQUAL(row.start_ns, 60 * MST_MS);
	ask(1, 2, 2, 65);     /* another session */
	ask(RANKS, 1, 2, 65); /* no rank of this job */
	admit(1, 2, 70);
	give(1, 7, 71);
	ask(1, 2, 1, 75);
	expect(1, 7, MST_RECORDED_GIVEN_UP, 75);
	end();
}

static void what_the_end_of_the_job_makes_a_worker_give_up_is_none(void)
{
	begin();
	decide((struct mst_decision){ .kind = MST_DO_FINISH }, 50);
	ask(1, 1, 1, 51);
	end();
}

static void a_worker_that_says_much_makes_few_rows(void)
{
	begin();
	ask(1, 1, UINT64_C(1) << 60, 9);
	for (uint32_t i = 0; i < MST_RECORDER_GIVEN_UP_MAX; i++)
		expect(1, 0, MST_RECORDED_GIVEN_UP, 9);
	CU_ASSERT_EQUAL(mst_recording_missing(recording), 0); /* so many nobody has given up */
	end();
}

static void rows_that_find_no_place_are_counted(void)
{
	begin();
	for (uint32_t i = 0; i < MST_RECORDING_ROWS + 5; i++)
		judge(0, 0, MUSTER_COUNTED, i);
	CU_ASSERT_EQUAL(mst_recording_missing(recording), 5);
	for (uint32_t i = 0; i < MST_RECORDING_ROWS; i++)
		expect(0, 0, MUSTER_COUNTED, i);
	judge(0, 0, MUSTER_LATE, 9);
	expect(0, 0, MUSTER_LATE, 9);
	end();
}

static CU_TestInfo cases[] = {
	{ "each verdict is a row with times from the start of the job",
	  each_verdict_is_a_row_with_times_from_the_start_of_the_job },
	{ "a second gradient on a version starts with the end of the first",
	  a_second_gradient_on_a_version_starts_with_the_end_of_the_first },
	{ "without its version a start is not known", without_its_version_a_start_is_not_known },
	{ "a gradient given up is a row once", a_gradient_given_up_is_a_row_once },
	{ "what the end of the job makes a worker give up is none",
	  what_the_end_of_the_job_makes_a_worker_give_up_is_none },
	{ "a worker that says much makes few rows", a_worker_that_says_much_makes_few_rows },
	{ "rows that find no place are counted", rows_that_find_no_place_are_counted },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("recorder", cases);
}
