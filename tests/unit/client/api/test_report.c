/* SPDX-License-Identifier: MIT */
/* muster_report(): what goes to the leader, and what does not. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

static struct mst_metric heard; /* by the leader; to be read when it has ended */
static _Atomic bool is_heard;

static bool hear_a_report(struct fake_leader *f)
{
	if (!fake_begin(f) || !fake_hear(f, MST_MSG_REPORT))
		return false;
	heard = f->message.metric;
	atomic_store(&is_heard, true);
	return fake_stay(f);
}

static void a_report_names_the_version_that_the_worker_has(void)
{
	heard = (struct mst_metric){ .version = 77 };
	client_begin(hear_a_report);
	CU_ASSERT_EQUAL(muster_report(client_handle, "accuracy", 0.875), 0);
	for (unsigned ms = 0; !atomic_load(&is_heard) && ms < CLIENT_LATE_MS; ms++)
		mst_sleep_ns(MST_MS);
	fake_release(&client_fake);
	client_close();
	CU_ASSERT_STRING_EQUAL(heard.name, "accuracy");
	CU_ASSERT_EQUAL(heard.value, 0.875);
	CU_ASSERT_EQUAL(heard.version, 0);
}

static bool stay(struct fake_leader *f)
{
	return fake_begin(f) && fake_stay(f);
}

static void what_cannot_be_reported_is_refused(void)
{
	char longest[MUSTER_METRIC_NAME_MAX + 2];

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	client_begin(stay);
	CU_ASSERT_EQUAL(muster_report(client_handle, NULL, 1), -EINVAL);
	CU_ASSERT_EQUAL(muster_report(client_handle, "", 1), -EINVAL);
	CU_ASSERT_EQUAL(muster_report(client_handle, "a\nb", 1), -EINVAL);
	CU_ASSERT_EQUAL(muster_report(client_handle, longest, 1), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "at most 63"));
	longest[sizeof(longest) - 2] = '\0';
	CU_ASSERT_EQUAL(muster_report(client_handle, longest, 1), 0);
	CU_ASSERT_EQUAL(muster_report(client_handle, "loss", (double)NAN), -EDOM);
	CU_ASSERT_EQUAL(muster_report(client_handle, "loss", (double)INFINITY), -EDOM);
	CU_ASSERT(client_says(muster_error(client_handle), "\"loss\" of version 0 is inf"));
	client_close();
}

static bool link_only(struct fake_leader *f)
{
	return fake_link(f) && fake_stay(f);
}

static void nothing_is_reported_before_the_start(void)
{
	CU_ASSERT_EQUAL_FATAL(client_open(link_only, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL(muster_report(client_handle, "loss", 1), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "muster_start()"));
	client_close();
}

static bool finish(struct fake_leader *f)
{
	const struct mst_lane_session word = { MST_SESSION_FINISHED, 0, 0 };
	const struct mst_message msg = { .kind = MST_MSG_FINISHED, .why = "enough" };
	uint32_t imm;

	if (!fake_begin(f) || !fake_arrival(f, &imm) ||
	    !fake_put(f, f->layout.down_session[MST_SESSION_OF_JOB], &word, sizeof(word),
		      mst_imm(MST_IMM_SESSION, 0, 0)) ||
	    !fake_say(f, &msg) || !fake_hear(f, MST_MSG_REPORT))
		return false;
	heard = f->message.metric;
	return true; /* and hangs up */
}

static void after_the_end_a_worker_may_report_until_the_leader_has_gone(void)
{
	int rc = 0;

	heard = (struct mst_metric){ 0 };
	client_begin(finish);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT(client_outcome.finished);
	CU_ASSERT_EQUAL(muster_report(client_handle, "loss", 2), 0);
	for (unsigned ms = 0; rc == 0 && ms < CLIENT_LATE_MS; ms++) {
		mst_sleep_ns(MST_MS);
		rc = muster_report(client_handle, "loss", 3);
	}
	CU_ASSERT_EQUAL(rc, -ENOTCONN);
	CU_ASSERT(client_says(muster_error(client_handle), "closed the connection"));
	client_close();
	CU_ASSERT_EQUAL(heard.value, 2);
}

static CU_TestInfo cases[] = {
	{ "a report names the version that the worker has",
	  a_report_names_the_version_that_the_worker_has },
	{ "what cannot be reported is refused", what_cannot_be_reported_is_refused },
	{ "nothing is reported before the start", nothing_is_reported_before_the_start },
	{ "after the end a worker may report until the leader has gone",
	  after_the_end_a_worker_may_report_until_the_leader_has_gone },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client report", cases);
}
