/* SPDX-License-Identifier: MIT */
/* However a server ends a session, its worker is told an error that ends it: none that says "call
 * again", and none that is no errno. */
#include <errno.h>
#include <limits.h>
#include <math.h>

#include "client/api/handle.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

static int error_said;

/* Until the worker asks for the next version. */
static bool is_asked(struct fake_leader *f)
{
	uint32_t imm;

	return fake_begin(f) && fake_arrival(f, &imm);
}

static bool end_on_the_link(struct fake_leader *f)
{
	const struct mst_lane_session word = { MST_SESSION_ENDED, error_said, 0 };

	return is_asked(f) &&
	       fake_put(f, f->layout.down_session[MST_SESSION_OF_JOB], &word, sizeof(word),
			mst_imm(MST_IMM_SESSION, 0, 0)) &&
	       fake_stay(f);
}

static bool end_on_the_connection(struct fake_leader *f)
{
	return is_asked(f) && fake_refuse(f, error_said, "so it is") && fake_stay(f);
}

static int error_told(bool (*script)(struct fake_leader *))
{
	client_begin(script);
	int told = client_wait();
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome),
			told); /* and every later call says the same */
	CU_ASSERT_EQUAL(muster_check(client_handle), MUSTER_GIVE_UP);
	client_close();
	return told;
}

static void an_end_is_never_an_invitation_to_call_again(void)
{
	static const struct {
		int said, told;
	} list[] = {
		{ -ESTALE, -ESTALE },    { -EAGAIN, -EPROTO }, { -EINTR, -EPROTO },
		{ -ETIMEDOUT, -EPROTO }, { 0, -EPROTO },       { 7, -EPROTO },
		{ -4096, -EPROTO },      { INT_MIN, -EPROTO },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		error_said = list[i].said;
		CU_ASSERT_EQUAL(error_told(end_on_the_link), list[i].told);
		CU_ASSERT_EQUAL(error_told(end_on_the_connection), list[i].told);
	}
}

static void an_end_counts_what_was_refused(void)
{
	const float value = NAN;

	error_said = -ESTALE;
	client_begin(end_on_the_connection);
	client_handle->session.welcome.guard = MST_GUARD_WORKER;
	client_handle->worker.refused = 4; /* the leader ends the session when it hears of one */
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 1, &value), -EDOM);
	CU_ASSERT_EQUAL(client_wait(), -ESTALE);
	CU_ASSERT(client_says(muster_error(client_handle), "so it is; since the last that counted, "
							   "5 gradients were not finite"));
	client_close();
}

static CU_TestInfo cases[] = {
	{ "an end counts what was refused", an_end_counts_what_was_refused },
	{ "an end is never an invitation to call again",
	  an_end_is_never_an_invitation_to_call_again },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client endings", cases);
}
