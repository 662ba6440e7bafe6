/* SPDX-License-Identifier: MIT */
/* A session that is lost, while its worker computes on: nothing is sent and nothing is heard. */
#include <errno.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind one = { .slots = 1 };
static const struct session_kind two = { .slots = 2, .window = MST_WINDOW_MAX };

static struct mst_worker *w = &session_worker;

static void a_worker_fills_and_pushes_on(void)
{
	session_begin_working(&one);
	mst_worker_go_adrift(w);
	for (uint64_t ticket = 1; ticket <= 5; ticket++) {
		CU_ASSERT_EQUAL(mst_worker_fill(w), 0);
		CU_ASSERT_EQUAL(session_push(ticket % 2 == 0), 0);
		CU_ASSERT_EQUAL(w->tickets.sent, ticket);
	}
	CU_ASSERT_EQUAL(w->headers, 0);
	CU_ASSERT_EQUAL(w->tickets.judged, 0);
	session_end();
}

static void nothing_is_sent(void)
{
	struct mst_range rest;

	session_begin_working(&two);
	int slot = mst_worker_fill(w);
	mst_worker_posted(w);
	mst_worker_go_adrift(w);
	CU_ASSERT(!mst_worker_rest(w, 0, &rest));
	CU_ASSERT_EQUAL(mst_worker_abandon(w), -1);
	mst_worker_sent(w, (uint32_t)slot);
	CU_ASSERT_EQUAL(mst_worker_fill(w), slot);
	CU_ASSERT(!mst_worker_pass(w, &session_sent));
	CU_ASSERT_EQUAL(w->tickets.sent, 0);
	CU_ASSERT(!mst_worker_pull(w, &session_asked));
	CU_ASSERT(!session_wait_asks());
	CU_ASSERT_EQUAL(w->ask, MST_ASK_NONE);
	w->abandoned = false;
	CU_ASSERT(mst_worker_awaits(w));
	session_end();
}

/* What was pushed before, the servers may still be reading. */
static void what_is_in_flight_is_not_filled(void)
{
	session_begin_working(&one);
	session_fill_and_push(false);
	mst_worker_go_adrift(w);
	CU_ASSERT_EQUAL(mst_worker_fill(w), -EAGAIN);
	CU_ASSERT_EQUAL(session_push(false), -EAGAIN);
	session_end();
}

static void nothing_is_heard(void)
{
	session_begin_working(&two);
	session_fill_and_push(false);
	mst_worker_go_adrift(w);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_answer(1, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(mst_worker_ended(w, 1), 0);
	CU_ASSERT_EQUAL(w->tickets.judged, 0);
	CU_ASSERT_EQUAL(w->slot[0].state, MST_GRANT_SPENT);
	CU_ASSERT_EQUAL(w->held.version, 0);
	CU_ASSERT_EQUAL(w->last, MST_VERSION_NONE);
	CU_ASSERT_EQUAL(mst_worker_misses(w), MST_MISSES_ANSWER);
	session_end();
}

/* The claim of this worker has said otherwise. */
static void what_has_arrived_is_not_given_out(void)
{
	session_begin_working(&two);
	CU_ASSERT(session_wait_asks());
	CU_ASSERT_EQUAL(session_answer(3, MST_WHERE_IN_PLACE), 0);
	CU_ASSERT_EQUAL(mst_worker_misses(w), 0);
	mst_worker_go_adrift(w);
	CU_ASSERT_EQUAL(mst_worker_misses(w), MST_MISSES_ANSWER);
	session_end();
}

static void it_may_still_fail(void)
{
	session_begin_working(&one);
	mst_worker_go_adrift(w);
	mst_worker_fail(w, -ENOTCONN);
	CU_ASSERT_EQUAL(w->phase, MST_WORKER_FAILED);
	CU_ASSERT_EQUAL(mst_worker_fill(w), -EAGAIN);
	session_end();
}

static void after_the_end_nothing_goes_adrift(void)
{
	session_begin_working(&one);
	mst_worker_fail(w, -EPROTO);
	mst_worker_go_adrift(w);
	CU_ASSERT(!w->adrift);
	session_end();
}

static CU_TestInfo cases[] = {
	{ "a worker fills and pushes on", a_worker_fills_and_pushes_on },
	{ "nothing is sent", nothing_is_sent },
	{ "what is in flight is not filled", what_is_in_flight_is_not_filled },
	{ "nothing is heard", nothing_is_heard },
	{ "what has arrived is not given out", what_has_arrived_is_not_given_out },
	{ "it may still fail", it_may_still_fail },
	{ "after the end nothing goes adrift", after_the_end_nothing_goes_adrift },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session: adrift", cases);
}
