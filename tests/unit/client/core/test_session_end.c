/* SPDX-License-Identifier: MIT */
/* How a session ends, and what a server may not say to it. */
#include <errno.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind bsp = { .slots = 1 };
static const struct session_kind two = { .slots = 2 };
static const struct session_kind async = { .slots = 2, .window = MST_WINDOW_MAX };
static const struct session_kind own = { .slots = 2, .workers_own = true };

static bool misses(unsigned what)
{
	return mst_worker_misses(&session_worker) == what;
}

/* ---- the end ---- */

static void the_end_cancels_what_is_open(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 1), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_judge(2, MUSTER_CANCELLED, 0), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	CU_ASSERT(!session_out.finished);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.ticket, 2);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_CANCELLED);
	CU_ASSERT(session_out.finished);
	CU_ASSERT_EQUAL(session_worker.phase, MST_WORKER_OVER);
	session_end();
}

static void the_last_version_is_fetched(void)
{
	session_begin_working(&async);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 7), 0);
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(7, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.version, 7);
	CU_ASSERT(session_out.fresh && session_out.finished);
	session_end();
}

static void every_version_before_the_last_is_handed_out(void)
{
	session_begin_working(&own);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 2), 0);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer_behind(1, 2), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT(!session_out.finished);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer_behind(2, 2), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.finished);
	session_end();
}

/* What the servers have kept of that version may be gone. */
static void whoever_lacks_the_last_version_ends_with_what_it_has(void)
{
	session_begin_working(&own);
	session_fill_and_push(true);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 9), 0);
	const struct mst_lane_answer keep = { session_worker.ask_number, 0, 9, MST_WHERE_KEEP, 1 };
	CU_ASSERT_EQUAL(session_answer_of(&keep, 0, 0), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT(session_out.ticket == 1 && !session_out.finished);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.ticket, 2);
	CU_ASSERT_EQUAL(session_out.version, 0);
	CU_ASSERT_EQUAL(session_out.newest, 9);
	CU_ASSERT(session_out.finished && !session_out.fresh);
	CU_ASSERT_EQUAL(session_worker.held.where, MST_WHERE_NOWHERE);
	CU_ASSERT_EQUAL(session_worker.phase, MST_WORKER_OVER);
	session_end();
}

/* In the place of records lies that of the version before the state. */
static void one_that_has_taken_a_state_may_keep_that_version(void)
{
	const struct mst_lane_record before = { .version = 0, .size = MST_RECORD_SIZE };

	session_begin_working(&own);
	mst_worker_pull(&session_worker, &session_asked);
	session_worker.held.samples = 77;
	CU_ASSERT_EQUAL(mst_worker_took(&session_worker, 5), 0);
	CU_ASSERT_EQUAL(session_worker.held.samples, 0); /* no record says so */
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 9), 0);
	const struct mst_lane_answer keep = { session_worker.ask_number, 5, 9, MST_WHERE_KEEP, 1 };
	CU_ASSERT_EQUAL(mst_worker_answered(&session_worker, 0, &keep, &before), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.finished && session_out.version == 5 && session_out.newest == 9);
	CU_ASSERT_EQUAL(session_out.set_len, 0);
	session_end();
}

static void an_answer_that_came_before_the_end_is_renewed(void)
{
	session_begin_working(&async);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer(5, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 6), 0);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(6, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.version, 6);
	CU_ASSERT(session_out.finished);
	session_end();
}

static void whoever_has_the_last_version_waits_for_no_answer(void)
{
	session_begin_working(&bsp);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	CU_ASSERT(session_out.finished && !session_out.fresh);
	session_end();
}

static void a_push_after_the_end_is_cancelled_here(void)
{
	session_begin_working(&two);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT_EQUAL(session_push(false), 0);
	CU_ASSERT_EQUAL(session_worker.headers, 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_CANCELLED);
	CU_ASSERT(session_out.finished);
	session_end();
}

static void after_the_last_outcome_it_stays(void)
{
	session_begin_working(&bsp);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	mst_worker_abandon(&session_worker);
	mst_worker_fail(&session_worker, -ENOTCONN);
	CU_ASSERT_EQUAL(mst_worker_take(&session_worker, &session_out), 0);
	CU_ASSERT_EQUAL(session_out.verdict, MUSTER_NONE);
	CU_ASSERT(session_out.finished && !session_out.fresh);
	session_end();
}

static void whoever_ends_the_job_waits_for_its_end(void)
{
	session_begin_working(&async);
	session_fill_and_push(false);
	session_worker.finishing = true;
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT(misses(MST_MISSES_END));
	CU_ASSERT(!session_wait_asks());
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 1), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.ticket, 1);
	CU_ASSERT(session_out.finished);
	session_end();
}

static void a_start_may_find_the_job_ended(void)
{
	session_begin(&bsp);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 4), 0);
	mst_worker_start(&session_worker);
	CU_ASSERT(misses(MST_MISSES_ANSWER));
	CU_ASSERT_EQUAL(session_answer(4, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT_EQUAL(session_out.version, 4);
	CU_ASSERT(session_out.finished && session_out.fresh);
	session_end();
}

static void a_start_has_its_version_though_the_job_has_ended(void)
{
	session_begin(&async);
	mst_worker_start(&session_worker);
	CU_ASSERT_EQUAL(session_answer(0, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 80), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT_EQUAL(session_out.version, 0);
	CU_ASSERT(session_out.fresh && !session_out.finished);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(80, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(session_out.finished);
	session_end();
}

static void a_failed_session_is_deaf(void)
{
	session_begin_working(&bsp);
	session_fill_and_push(false);
	mst_worker_fail(&session_worker, -EHOSTDOWN);
	mst_worker_fail(&session_worker, -ENOTCONN);
	CU_ASSERT_EQUAL(session_worker.error, -EHOSTDOWN);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_worker.slot[0].state, MST_GRANT_SPENT);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	session_end();
}

/* ---- what a server may not say ---- */

static void a_grant_nobody_waits_for_is_eproto(void)
{
	session_begin_working(&two);
	CU_ASSERT_EQUAL(session_grant(0), -EPROTO);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(
		mst_worker_granted(&session_worker, 0, session_sent.slot, session_sent.epoch),
		-EPROTO);
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 0, 2, 5), -EPROTO);
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 0, UINT32_MAX, 5), -EPROTO);
	CU_ASSERT_EQUAL(session_grant(session_sent.slot), 0);
	session_end();
}

static void a_verdict_that_cannot_be_is_eproto(void)
{
	session_begin_working(&two);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), -EPROTO);
	session_fill_and_push(true);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_judge(3, MUSTER_COUNTED, 1), -EPROTO);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_NONE, 0), -EPROTO);
	session_end();
	session_begin_working(&two);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_judge(1, (enum muster_verdict)77, 0), -EPROTO);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 0), -EPROTO);
	const struct mst_lane_verdict first = { 1, 1, MUSTER_COUNTED, 0 };
	CU_ASSERT_EQUAL(mst_worker_judged(&session_worker, 0, 2, &first), -EPROTO);
	CU_ASSERT_EQUAL(mst_worker_judged(&session_worker, 0, UINT32_MAX, &first), -EPROTO);
	CU_ASSERT_EQUAL(mst_worker_judged(&session_worker, 1, 0, &first), -EPROTO);
	session_end();
	session_begin_working(&two);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_LATE, 1), -EPROTO);
	session_end();
}

static void verdicts_out_of_order_are_eproto(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_judge(2, MUSTER_LATE, 0), -EPROTO);
	session_end();
}

static void a_second_verdict_is_eproto(void)
{
	session_begin_working(&two);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_LATE, 0), 0);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), -EPROTO);
	session_end();
}

static void an_answer_nobody_asked_for_is_eproto(void)
{
	session_begin_working(&two);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), -EPROTO);
	mst_worker_pull(&session_worker, &session_asked);
	struct mst_lane_answer other = { session_worker.ask_number + 1, 1, 1, MST_WHERE_IN_PLACE,
					 1 };
	CU_ASSERT_EQUAL(session_answer_of(&other, 0, 0), -EPROTO);
	session_end();
}

static void an_answer_that_cannot_be_is_eproto(void)
{
	session_begin_working(&two);
	mst_worker_pull(&session_worker, &session_asked);
	uint64_t n = session_worker.ask_number;
	const struct mst_lane_answer bad[] = {
		{ n, 5, 4, MST_WHERE_IN_PLACE, 1 },
		{ n, 5, 5, MST_WHERE_IN_PLACE, SESSION_BUFFERS },
		{ n, 5, 5, MST_WHERE_KEEP, 1 },
		{ n, 0, 0, MST_WHERE_NOWHERE, 1 },
		{ n, 5, 5, MST_WHERE_NOWHERE + 1, 1 },
		{ n, 5, 5, UINT32_MAX, 1 },
		{ n, MST_VERSION_NONE, MST_VERSION_NONE, MST_WHERE_COPIED, 0 },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(session_answer_of(&bad[i], 1, 0), -EPROTO);
	const struct mst_lane_answer good = { n, 5, 5, MST_WHERE_COPIED, 1 };
	CU_ASSERT_EQUAL(session_answer_of(&good, SESSION_WORKERS + 1, 0), -EPROTO);
	CU_ASSERT_EQUAL(session_answer_of(&good, UINT32_MAX, 0), -EPROTO);
	CU_ASSERT_EQUAL(session_answer_of(&good, 1, SESSION_WORKERS), -EPROTO);
	CU_ASSERT_EQUAL(session_answer_of(&good, SESSION_WORKERS, 0), 0);
	session_end();
}

static void a_version_never_goes_back(void)
{
	session_begin_working(&async);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer(5, MST_WHERE_IN_PLACE), 0);
	mst_worker_pull(&session_worker, &session_asked);
	CU_ASSERT_EQUAL(session_answer(4, MST_WHERE_IN_PLACE), -EPROTO);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 4), -EPROTO);
	session_end();
}

static void whoever_never_waits_runs_out_of_tickets(void)
{
	uint64_t pushes = 0;

	session_begin_working(&async);
	while (mst_worker_fill(&session_worker) >= 0) {
		session_fill_and_push(true);
		pushes++;
		CU_ASSERT_EQUAL(session_judge(pushes, MUSTER_COUNTED, pushes), 0);
		CU_ASSERT_EQUAL(session_grant(session_sent.slot), 0);
	}
	CU_ASSERT_EQUAL(pushes, MUSTER_TICKETS_MAX);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(pushes, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT(mst_worker_fill(&session_worker) >= 0);
	for (uint64_t left = pushes - 1; left > 0; left--)
		CU_ASSERT_EQUAL(session_take(), left > 1);
	CU_ASSERT_EQUAL(session_out.ticket, pushes);
	session_end();
}

static CU_TestInfo cases[] = {
	{ "the end cancels what is open", the_end_cancels_what_is_open },
	{ "after the end the last version is fetched", the_last_version_is_fetched },
	{ "workers own: every version before the last is handed out",
	  every_version_before_the_last_is_handed_out },
	{ "workers own: whoever lacks the last version ends with what it has",
	  whoever_lacks_the_last_version_ends_with_what_it_has },
	{ "one that has taken a state may keep that version",
	  one_that_has_taken_a_state_may_keep_that_version },
	{ "an answer that came before the end is renewed",
	  an_answer_that_came_before_the_end_is_renewed },
	{ "whoever has the last version waits for no answer",
	  whoever_has_the_last_version_waits_for_no_answer },
	{ "a push after the end is cancelled here", a_push_after_the_end_is_cancelled_here },
	{ "after the last outcome nothing changes any more", after_the_last_outcome_it_stays },
	{ "whoever ends the job waits for its end", whoever_ends_the_job_waits_for_its_end },
	{ "a start may find the job ended", a_start_may_find_the_job_ended },
	{ "a start has its version though the job has ended since",
	  a_start_has_its_version_though_the_job_has_ended },
	{ "a failed session keeps its error and is deaf", a_failed_session_is_deaf },
	{ "a grant that nobody waits for is -EPROTO", a_grant_nobody_waits_for_is_eproto },
	{ "a verdict that cannot be is -EPROTO", a_verdict_that_cannot_be_is_eproto },
	{ "verdicts out of order are -EPROTO", verdicts_out_of_order_are_eproto },
	{ "a second verdict is -EPROTO", a_second_verdict_is_eproto },
	{ "an answer nobody asked for is -EPROTO", an_answer_nobody_asked_for_is_eproto },
	{ "an answer that cannot be is -EPROTO", an_answer_that_cannot_be_is_eproto },
	{ "a version never goes back", a_version_never_goes_back },
	{ "whoever never waits runs out of tickets, and a wait helps",
	  whoever_never_waits_runs_out_of_tickets },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session end", cases);
}
