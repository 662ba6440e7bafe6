/* SPDX-License-Identifier: MIT */
/* muster_goal(): a worker gives the version that the job is to end with, and hears which it is. */
#include <errno.h>
#include <stdatomic.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

static _Atomic bool answers;            /* the leader is to answer */
static _Atomic uint64_t heard, heard_2; /* what the first two messages gave */

static bool hear(struct fake_leader *f, _Atomic uint64_t *version)
{
	if (!fake_hear(f, MST_MSG_FINISH))
		return false;
	atomic_store(version, f->message.goal);
	return true;
}

static bool say(struct fake_leader *f, uint64_t version)
{
	struct mst_message msg = { .kind = MST_MSG_DONE };

	msg.goal = version;
	return fake_say(f, &msg);
}

static bool await_word(const struct fake_leader *f)
{
	while (!atomic_load(&answers) && !atomic_load(&f->released))
		mst_sleep_ns(MST_MS);
	return !atomic_load(&f->released);
}

static bool answer_with_less(struct fake_leader *f)
{
	return fake_begin(f) && hear(f, &heard) && say(f, 5) && fake_stay(f);
}

static bool answer_late(struct fake_leader *f)
{
	return fake_begin(f) && hear(f, &heard) && await_word(f) && say(f, 9) &&
	       hear(f, &heard_2) && say(f, 4) && fake_stay(f);
}

static bool answer_two_at_once(struct fake_leader *f)
{
	return fake_begin(f) && hear(f, &heard) && hear(f, &heard_2) && say(f, 9) && say(f, 4) &&
	       fake_stay(f);
}

static bool end_instead(struct fake_leader *f)
{
	const struct mst_lane_session word = { .state = MST_SESSION_FINISHED, .version = 0 };
	const struct mst_message msg = { .kind = MST_MSG_FINISHED, .why = "enough" };

	return fake_begin(f) && hear(f, &heard) &&
	       fake_put(f, f->layout.down_session[MST_SESSION_OF_JOB], &word, sizeof(word),
			mst_imm(MST_IMM_SESSION, MST_SESSION_OF_JOB, 0)) &&
	       fake_say(f, &msg) && fake_stay(f);
}

static bool end_and_be_gone(struct fake_leader *f)
{
	const struct mst_message msg = { .kind = MST_MSG_FINISHED, .why = "enough" };

	return fake_begin(f) && hear(f, &heard) && fake_say(f, &msg);
}

static bool leave_the_end_to_an_operator(struct fake_leader *f)
{
	f->welcome.may_finish = 0;
	return fake_begin(f) && fake_stay(f);
}

static void begin(bool (*script)(struct fake_leader *))
{
	atomic_store(&answers, false);
	atomic_store(&heard, 0);
	atomic_store(&heard_2, 0);
	client_begin(script);
}

/* Until the leader, a thread of this host, has answered. */
static int goal(uint64_t version, uint64_t *ends_with)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	int rc;

	do
		rc = muster_goal(client_handle, version, ends_with);
	while (rc == -ETIMEDOUT && mst_now_ns() < until_ns);
	return rc;
}

static void the_answer_is_what_the_job_ends_with(void)
{
	uint64_t ends_with = 77;

	begin(answer_with_less);
	CU_ASSERT_EQUAL(goal(9, &ends_with), 0);
	CU_ASSERT_EQUAL(ends_with, 5);
	CU_ASSERT_EQUAL(atomic_load(&heard), 9);
	client_close();
}

/* The next message that comes is about another version. */
static void a_call_that_is_repeated_sends_nothing_twice(void)
{
	uint64_t ends_with = 77;

	begin(answer_late);
	CU_ASSERT_EQUAL(muster_goal(client_handle, 9, &ends_with), -ETIMEDOUT);
	CU_ASSERT(client_says(muster_error(client_handle), "call muster_goal() again"));
	CU_ASSERT_EQUAL(ends_with, 77);
	atomic_store(&answers, true);
	CU_ASSERT_EQUAL(goal(9, &ends_with), 0);
	CU_ASSERT_EQUAL(ends_with, 9);
	CU_ASSERT_EQUAL(goal(4, NULL), 0);
	CU_ASSERT_EQUAL(atomic_load(&heard_2), 4);
	client_close();
}

static void the_answer_to_another_call_is_not_taken_for_this_ones(void)
{
	uint64_t ends_with = 77;

	begin(answer_two_at_once);
	CU_ASSERT_EQUAL(muster_goal(client_handle, 9, &ends_with), -ETIMEDOUT);
	CU_ASSERT_EQUAL(goal(4, &ends_with), 0);
	CU_ASSERT_EQUAL(ends_with, 4);
	CU_ASSERT(atomic_load(&heard) == 9 && atomic_load(&heard_2) == 4);
	client_close();
}

static void after_the_end_it_tells_the_last_version(void)
{
	uint64_t ends_with = 77;

	begin(end_instead);
	CU_ASSERT_EQUAL(goal(9, &ends_with), 0);
	CU_ASSERT_EQUAL(ends_with, 0);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT(client_outcome.finished);
	ends_with = 77;
	CU_ASSERT_EQUAL(goal(9, &ends_with), 0);
	CU_ASSERT_EQUAL(ends_with, 0);
	client_close();
}

static void nobody_waits_for_a_last_version_that_cannot_come(void)
{
	uint64_t ends_with = 77;

	begin(end_and_be_gone);
	CU_ASSERT_EQUAL(goal(9, &ends_with), -ENOTCONN);
	CU_ASSERT(client_says(muster_error(client_handle), "the job has ended (enough)"));
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT_EQUAL(ends_with, 77);
	client_close();
}

static void what_cannot_be_is_refused_in_words(void)
{
	uint64_t ends_with = 77;

	begin(leave_the_end_to_an_operator);
	CU_ASSERT_EQUAL(muster_goal(client_handle, 0, &ends_with), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "version 0"));
	CU_ASSERT_EQUAL(muster_goal(client_handle, 9, &ends_with), -EACCES);
	CU_ASSERT(client_says(muster_error(client_handle), "give musterd --commits 9 instead"));
	CU_ASSERT_EQUAL(ends_with, 77);
	client_close();
}

static CU_TestInfo cases[] = {
	{ "the answer is what the job ends with", the_answer_is_what_the_job_ends_with },
	{ "a call that is repeated sends nothing twice",
	  a_call_that_is_repeated_sends_nothing_twice },
	{ "the answer to another call is not taken for this one's",
	  the_answer_to_another_call_is_not_taken_for_this_ones },
	{ "after the end it tells the last version", after_the_end_it_tells_the_last_version },
	{ "nobody waits for a last version that cannot come any more",
	  nobody_waits_for_a_last_version_that_cannot_come },
	{ "what cannot be is refused in words", what_cannot_be_is_refused_in_words },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client goal", cases);
}
