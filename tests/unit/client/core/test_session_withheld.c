/* SPDX-License-Identifier: MIT */
/* Verdicts of a job that goes on when a server is lost: nothing counts before its version is
 * there. */
#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

static const struct session_kind own = {
	.slots = 2, .workers_own = true, .window = 5, .history = 2
};
static const struct session_kind servers_own = { .slots = 2, .window = 5 };

/* Two have been pushed before the first wait; the second is in a version after that of the answer,
 * and the servers have said so already. */
static void begin(const struct session_kind *kind, bool withholds, enum muster_verdict second)
{
	session_begin_working(kind);
	session_worker.cfg.withholds = withholds;
	session_fill_and_push(true);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(session_judge(2, second, second == MUSTER_COUNTED ? 2 : 0), 0);
	CU_ASSERT_EQUAL(session_grant(0), 0);
	CU_ASSERT_EQUAL(session_grant(1), 0);
	(void)session_wait_asks();
	CU_ASSERT_EQUAL_FATAL(session_answer(1, MST_WHERE_COPIED), 0);
}

static bool is_told(uint64_t ticket, enum muster_verdict verdict)
{
	return session_out.ticket == ticket && session_out.verdict == verdict;
}

static void what_counts_in_a_later_version_is_told_with_that_version(void)
{
	begin(&own, true, MUSTER_COUNTED);
	CU_ASSERT_EQUAL(session_take(), 0); /* there is nothing more */
	CU_ASSERT(is_told(1, MUSTER_COUNTED) && session_out.version == 1);
	CU_ASSERT_TRUE(session_wait_asks());
	CU_ASSERT_EQUAL_FATAL(session_answer(2, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(is_told(2, MUSTER_COUNTED) && session_out.counted_in == 2);
	CU_ASSERT_EQUAL(session_out.version, 2);
	session_end();
}

/* It is known whatever becomes of the servers. */
static void what_does_not_count_is_told_at_once(void)
{
	begin(&own, true, MUSTER_LATE);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(is_told(2, MUSTER_LATE) && session_out.version == 1);
	session_end();
}

static void elsewhere_verdicts_are_told_when_they_have_come(void)
{
	begin(&own, false, MUSTER_COUNTED); /* a lost server ends the job */
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(is_told(2, MUSTER_COUNTED) && session_out.version == 1);
	session_end();
	begin(&servers_own, true, MUSTER_COUNTED);
	CU_ASSERT_EQUAL(session_take(), 1);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(is_told(2, MUSTER_COUNTED) && session_out.version == 1);
	session_end();
}

/* No server is lost any more. */
static void after_the_end_nothing_is_held_back(void)
{
	begin(&own, true, MUSTER_COUNTED);
	CU_ASSERT_EQUAL(session_take(), 0);
	session_worker.last = 2;
	CU_ASSERT_TRUE(session_wait_asks());
	CU_ASSERT_EQUAL_FATAL(session_answer(2, MST_WHERE_COPIED), 0);
	CU_ASSERT_EQUAL(session_take(), 0);
	CU_ASSERT(is_told(2, MUSTER_COUNTED) && session_out.finished);
	session_end();
}

static CU_TestInfo cases[] = {
	{ "what counts in a later version is told with that version",
	  what_counts_in_a_later_version_is_told_with_that_version },
	{ "what does not count is told at once", what_does_not_count_is_told_at_once },
	{ "elsewhere verdicts are told when they have come",
	  elsewhere_verdicts_are_told_when_they_have_come },
	{ "after the end nothing is held back", after_the_end_nothing_is_held_back },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("verdicts that are held back", cases);
}
