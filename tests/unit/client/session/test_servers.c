/* SPDX-License-Identifier: MIT */
/*
 * A worker of a job with several servers, over a transport that maps and over one that does not:
 *
 *   test_unit_client_servers shm|far
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/servers_case.h"
#include "tests/ut.h"

/* ---- gradients and results ---- */

static bool serve_two_pushes(struct fake_leader *f)
{
	return fake_begin(f) && servers_hear_push(f, 1, 0) && servers_answer_push(f, 1, false) &&
	       servers_hear_push(f, 2, 5000) && servers_answer_push(f, 2, true) &&
	       servers_end_well(f);
}

static void push_whole(float base, const float *ranges_of)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 3, .full = true };
	float *grad = muster_gradient(client_handle);

	CU_ASSERT_PTR_NOT_NULL_FATAL(grad);
	for (uint64_t i = 0; i < SERVERS_ELEMS; i++)
		grad[i] = ranges_of != NULL ? 0 : base + (float)i;
	if (ranges_of != NULL) { /* across a border, within a part, and a whole part with both */
		CU_ASSERT_EQUAL(muster_push_range(client_handle, 4000, 200, ranges_of + 4000), 0);
		CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 4000, ranges_of), 0);
		CU_ASSERT_EQUAL(muster_push_range(client_handle, 8300, 10, ranges_of + 8300), 0);
		memcpy(grad + 4200, ranges_of + 4200, 4100 * sizeof(*grad));
		memcpy(grad + 8310, ranges_of + 8310, (SERVERS_ELEMS - 8310) * sizeof(*grad));
	}
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
}

static void expect_whole(uint64_t version)
{
	CU_ASSERT_EQUAL_FATAL(client_wait(), 0);
	CU_ASSERT_EQUAL(client_outcome.version, version);
	const float *result = client_outcome.result;
	CU_ASSERT_PTR_NOT_NULL_FATAL(result);
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < SERVERS_ELEMS; i++)
		wrong += result[i] != SERVERS_RESULT + (float)i;
	CU_ASSERT_EQUAL(wrong, 0);
}

static void gradients_and_results_are_whole(void)
{
	static float values[SERVERS_ELEMS];

	for (uint64_t i = 0; i < SERVERS_ELEMS; i++)
		values[i] = 5000 + (float)i;
	servers_begin(serve_two_pushes);
	push_whole(0, NULL);
	expect_whole(1);
	push_whole(5000, values);
	expect_whole(2);
	servers_end();
}

/* ---- who hears what ---- */

static bool hear_ask_alone(struct fake_leader *f)
{
	uint32_t imm = 0;

	if (!fake_begin(f) || !fake_arrival(f, &imm) || mst_imm_kind(imm) != MST_IMM_ASK)
		return false;
	for (int i = 0; i < 40; i++)
		fake_turn(f);
	for (uint32_t k = 1; k < SERVERS_COUNT; k++)
		if (f->server[k].arrived != 0)
			return false;
	return servers_end_well(f);
}

static void an_ask_goes_to_the_leader_alone(void)
{
	servers_begin(hear_ask_alone);
	CU_ASSERT_EQUAL(muster_pull(client_handle), 0);
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	do { /* until the script has looked */
		CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	} while (!atomic_load(&servers_went_well) && mst_now_ns() < until_ns);
	servers_end();
}

static bool hear_abandon(struct fake_leader *f)
{
	uint32_t imm = 0;

	if (!fake_begin(f))
		return false;
	for (uint32_t k = 0; k < SERVERS_COUNT; k++)
		if (!fake_arrival_of(f, k, &imm) || imm != mst_imm(MST_IMM_ABANDON, 0, 1))
			return false;
	for (uint32_t k = SERVERS_COUNT; k-- > 0;)
		if (!servers_grant(f, k, 2))
			return false;
	return servers_end_well(f);
}

static void what_is_given_up_every_server_hears_of(void)
{
	static float values[10];

	if (fake_transport->maps)
		return; /* nothing has left the worker, and nobody is told */
	servers_begin(hear_abandon);
	CU_ASSERT_PTR_NOT_NULL(muster_gradient(client_handle));
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 5000, 10, values), 0); /* to one of them */
	CU_ASSERT_EQUAL(muster_abandon(client_handle), 0);
	CU_ASSERT_PTR_NULL(muster_gradient(client_handle));
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	while (muster_gradient(client_handle) == NULL && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	CU_ASSERT_PTR_NOT_NULL(muster_gradient(client_handle));
	servers_end();
}

/* ---- parts that do not come, or differ ---- */

static bool leave_one_out(struct fake_leader *f)
{
	struct mst_lane_answer a = { 2, 1, 1, MST_WHERE_COPIED, 0 };

	return fake_begin(f) && servers_hear_push(f, 1, 0) && servers_judge(f, 1) &&
	       servers_grant(f, 0, 2) && servers_grant(f, 1, 2) && servers_grant(f, 2, 2) &&
	       fake_answer_of(f, 0, &a) && fake_answer_of(f, 2, &a) && servers_await_stage(f, 1) &&
	       fake_answer_of(f, 1, &a) && servers_end_well(f);
}

static void a_version_waits_for_its_last_part(void)
{
	servers_begin(leave_one_out);
	push_whole(0, NULL);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	CU_ASSERT(client_says(muster_error(client_handle), "answer"));
	atomic_store(&servers_stage, 1);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT_EQUAL(client_outcome.version, 1);
	servers_end();
}

static bool answer_differently(struct fake_leader *f)
{
	struct mst_lane_answer a = { 2, 1, 2, MST_WHERE_COPIED, 0 };
	struct mst_lane_answer b = { 2, 2, 2, MST_WHERE_COPIED, 0 };

	return fake_begin(f) && servers_hear_push(f, 1, 0) && fake_answer_of(f, 0, &a) &&
	       fake_answer_of(f, 1, &a) && fake_answer_of(f, 2, &b) && servers_end_well(f);
}

static void parts_of_different_versions_are_no_version(void)
{
	servers_begin(answer_differently);
	push_whole(0, NULL);
	CU_ASSERT_EQUAL(client_wait(), -EPROTO);
	CU_ASSERT(client_says(muster_error(client_handle), "protocol"));
	servers_end();
}

/* ---- ends ---- */

static bool hang_up_one(struct fake_leader *f)
{
	uint32_t imm;

	if (!fake_begin(f) || !fake_arrival(f, &imm))
		return false;
	fake_transport->detach(f->server[1].link);
	fake_transport->link_free(f->server[1].link);
	f->server[1].link = NULL;
	return servers_end_well(f);
}

static void one_lost_link_ends_the_session(void)
{
	servers_begin(hang_up_one);
	CU_ASSERT_EQUAL(muster_pull(client_handle), 0);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	CU_ASSERT(client_says(muster_error(client_handle), "server 1 (of 0 to 2)"));
	if (fake_transport->maps) /* else the link itself tells why */
		CU_ASSERT(client_says(muster_error(client_handle), "the leader, server 0 at "));
	CU_ASSERT_EQUAL(muster_push(client_handle, NULL, NULL), -ENOTCONN);
	servers_end();
}

static bool hang_up_one_and_say_why_late(struct fake_leader *f)
{
	uint32_t imm;

	if (!fake_begin(f) || !fake_arrival(f, &imm))
		return false;
	fake_transport->detach(f->server[1].link);
	fake_transport->link_free(f->server[1].link);
	f->server[1].link = NULL;
	mst_sleep_ns(100 * MST_MS);
	return fake_refuse(f, -EHOSTDOWN, "server 1 ran out of paper") && servers_end_well(f);
}

static void every_call_waits_a_moment_for_the_leaders_words(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1 };
	int rc = 0;

	servers_begin(hang_up_one_and_say_why_late);
	CU_ASSERT_EQUAL(muster_pull(client_handle), 0);
	client_handle->engine.last_words_ns = CLIENT_LONG_MS * MST_MS; /* they may be later still */
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	while (rc == 0 && mst_now_ns() < until_ns)
		rc = muster_push_range(client_handle, 0, 0, NULL);
	CU_ASSERT_EQUAL(rc, -EHOSTDOWN);
	CU_ASSERT(client_says(muster_error(client_handle), "ran out of paper"));
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), -EHOSTDOWN);
	CU_ASSERT(client_says(muster_error(client_handle), "ran out of paper"));
	CU_ASSERT_EQUAL(client_wait(), -EHOSTDOWN);
	CU_ASSERT(client_says(muster_error(client_handle), "ran out of paper"));
	servers_end();
}

static bool say_session(struct fake_leader *f, uint32_t k, const struct mst_lane_session *word)
{
	return fake_put_of(
		f, k,
		&(struct mst_put){ .offset = f->server[k].layout.down_session[MST_SESSION_OF_JOB],
				   .src = word,
				   .bytes = sizeof(*word),
				   .notify = true,
				   .imm = mst_imm(MST_IMM_SESSION, MST_SESSION_OF_JOB, 0) });
}

/* A follower that has lost the leader ends its sessions; what says most is the leader's own
 * link. */
static bool lose_the_leader(struct fake_leader *f)
{
	struct mst_lane_session word = { .state = MST_SESSION_ENDED, .error = -ENOTCONN };
	uint32_t imm;

	if (!fake_begin(f) || !fake_arrival(f, &imm) || !say_session(f, 1, &word))
		return false;
	fake_transport->detach(f->server[0].link);
	fake_transport->link_free(f->server[0].link);
	f->server[0].link = NULL;
	atomic_store(&servers_stage, 1);
	return servers_end_well(f);
}

static void a_lost_link_is_named_before_who_ended_the_session(void)
{
	if (!fake_transport->maps)
		return; /* nothing moves while the worker does not look */
	servers_begin(lose_the_leader);
	CU_ASSERT_EQUAL(muster_pull(client_handle), 0);
	while (atomic_load(&servers_stage) < 1)
		mst_sleep_ns(MST_MS);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	CU_ASSERT(client_says(muster_error(client_handle), "the link to server 0 (of 0 to 2)"));
	servers_end();
}

/* A follower that says the job has ended: the leader's word comes later. */
static bool finish_late(struct fake_leader *f)
{
	struct mst_lane_session word = { .state = MST_SESSION_FINISHED };
	uint32_t imm;

	if (!fake_begin(f) || !fake_arrival(f, &imm) || !say_session(f, 2, &word))
		return false;
	return servers_await_stage(f, 1) && say_session(f, 0, &word) && servers_end_well(f);
}

static void the_jobs_end_is_the_leaders_word(void)
{
	servers_begin(finish_late);
	CU_ASSERT_EQUAL(muster_pull(client_handle), 0);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	atomic_store(&servers_stage, 1);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT(client_outcome.finished);
	servers_end();
}

/* A follower that has given its part of the last version, and goes before others have. */
static bool finish_apart(struct fake_leader *f)
{
	struct mst_lane_session word = { .state = MST_SESSION_FINISHED, .version = 1 };
	struct mst_lane_answer a = { 2, 1, 1, MST_WHERE_COPIED, 0 };
	uint32_t imm;
	bool well = fake_begin(f) && fake_arrival(f, &imm) && fake_answer_of(f, 2, &a);

	for (uint32_t k = 0; k < SERVERS_COUNT; k++)
		well = well && say_session(f, k, &word);
	if (!well)
		return false;
	fake_transport->detach(f->server[2].link);
	fake_transport->link_free(f->server[2].link);
	f->server[2].link = NULL;
	return servers_await_stage(f, 1) && fake_answer_of(f, 0, &a) && fake_answer_of(f, 1, &a) &&
	       servers_end_well(f);
}

static void a_part_that_has_come_is_not_missed(void)
{
	if (!fake_transport->maps)
		return; /* what is put before a detach stays there */
	servers_begin(finish_apart);
	CU_ASSERT_EQUAL(muster_pull(client_handle), 0);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	atomic_store(&servers_stage, 1);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT(client_outcome.finished && client_outcome.version == 1);
	servers_end();
}

static bool end_by_one(struct fake_leader *f)
{
	struct mst_lane_session word = { .state = MST_SESSION_ENDED, .error = -ESTALE };
	uint32_t imm;

	return fake_begin(f) && fake_arrival(f, &imm) && say_session(f, 2, &word) &&
	       servers_end_well(f);
}

static void any_server_may_end_the_session(void)
{
	servers_begin(end_by_one);
	CU_ASSERT_EQUAL(muster_pull(client_handle), 0);
	CU_ASSERT_EQUAL(client_wait(), -ESTALE);
	servers_end();
}

/* ---- welcomes ---- */

static int spoiled; /* which of the ways */

static bool greet_spoiled(struct fake_leader *f)
{
	struct mst_welcome_server *s = f->welcome.server;

	switch (spoiled) {
	case 0: /* a gap */
		s[1].first += FAKE_PART_ELEMS;
		break;
	case 1: /* an overlap */
		s[1].first -= FAKE_PART_ELEMS;
		s[1].count += FAKE_PART_ELEMS;
		break;
	case 2: /* a border within a page */
		s[0].count -= 8;
		s[1].first -= 8;
		s[1].count += 8;
		break;
	case 3: /* too short */
		s[2].count--;
		break;
	case 4: /* nothing in one of them */
		s[2].count += s[1].count;
		s[1].count = 0;
		s[2].first = s[1].first;
		break;
	case 5: /* beyond what can be counted, and round to the right end */
		s[1].count = UINT64_MAX - s[1].first + 1;
		s[2].first = 0;
		s[2].count = f->welcome.elems;
		break;
	case 6:
		f->welcome.server_count = 0;
		break;
	case 7:
		s[1].address[0] = '\0';
		break;
	default: /* a listener of another transport */
		(void)snprintf(s[1].address, MST_LISTENER_LEN, "verbs:10.0.0.1:4000");
	}
	return fake_greet(f) && fake_stay(f);
}

static void parts_that_are_not_the_vector_are_refused(void)
{
	for (spoiled = 0; spoiled <= 8; spoiled++) {
		CU_ASSERT_EQUAL(client_open_servers(greet_spoiled, SERVERS_COUNT), -EPROTO);
		CU_ASSERT_PTR_NULL(client_handle);
		if (spoiled < 8)
			CU_ASSERT(client_says(muster_error(NULL), "welcome"));
		client_close();
	}
}

static CU_TestInfo cases[] = {
	{ "gradients and results are whole", gradients_and_results_are_whole },
	{ "an ask goes to the leader alone", an_ask_goes_to_the_leader_alone },
	{ "what is given up, every server hears of", what_is_given_up_every_server_hears_of },
	{ "a version waits for its last part", a_version_waits_for_its_last_part },
	{ "parts of different versions are no version",
	  parts_of_different_versions_are_no_version },
	{ "one lost link ends the session", one_lost_link_ends_the_session },
	{ "every call waits a moment for the leader's words",
	  every_call_waits_a_moment_for_the_leaders_words },
	{ "a lost link is named before who ended the session",
	  a_lost_link_is_named_before_who_ended_the_session },
	{ "the job's end is the leader's word", the_jobs_end_is_the_leaders_word },
	{ "a part that has come is not missed", a_part_that_has_come_is_not_missed },
	{ "any server may end the session", any_server_may_end_the_session },
	{ "parts that are not the vector are refused", parts_that_are_not_the_vector_are_refused },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	servers_transport(argc, argv);
	return ut_main("client: several servers", cases);
}
