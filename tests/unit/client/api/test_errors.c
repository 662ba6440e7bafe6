/* SPDX-License-Identifier: MIT */
/* A joined worker whose server dies, ends, lies or says nothing: every call comes back in time,
 * with an error that is documented and a sentence. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

/* ---- starting ---- */

static bool link_only(struct fake_leader *f)
{
	return fake_link(f) && fake_stay(f);
}

static void before_the_start_little_goes(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1 };

	CU_ASSERT_EQUAL_FATAL(client_open(link_only, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL(muster_job(client_handle)->rank, 1);
	CU_ASSERT_EQUAL(muster_job(client_handle)->workers, FAKE_WORKERS);
	CU_ASSERT_STRING_EQUAL(muster_job(client_handle)->policy, "bsp");
	CU_ASSERT_EQUAL(muster_job(client_handle)->lease_ms, 60000);
	CU_ASSERT_PTR_NULL(muster_gradient(client_handle));
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), -EINVAL);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 1, NULL), -EINVAL);
	CU_ASSERT_EQUAL(muster_finish(client_handle, "too soon"), -EINVAL);
	CU_ASSERT_EQUAL(muster_goal(client_handle, 1, NULL), -EINVAL);
	CU_ASSERT_EQUAL(muster_pull(client_handle), -EINVAL);
	CU_ASSERT_EQUAL(muster_abandon(client_handle), -EINVAL);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "muster_start()"));
	CU_ASSERT_EQUAL(muster_start(client_handle, NULL, NULL), -EINVAL);
	client_close();
}

static _Atomic bool has_beaten, goes_on;

static void await(const _Atomic bool *flag)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;

	while (!atomic_load(flag) && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
}

static bool beat_twice(struct fake_leader *f)
{
	f->welcome.lease_ns = MST_SECOND; /* four beats */
	if (!fake_link(f) || !fake_hear(f, MST_MSG_HEARTBEAT) || !fake_hear(f, MST_MSG_HEARTBEAT))
		return false;
	atomic_store(&has_beaten, true);
	return fake_hear(f, MST_MSG_START) && fake_refuse(f, -EHOSTDOWN, "two beats heard") &&
	       fake_stay(f);
}

static void the_heart_beats_without_any_call(void)
{
	CU_ASSERT_EQUAL_FATAL(client_open(beat_twice, CLIENT_LONG_MS), 0);
	await(&has_beaten);
	CU_ASSERT_EQUAL(client_start(NULL, &client_outcome), -EHOSTDOWN);
	CU_ASSERT(client_says(muster_error(client_handle), "two beats heard"));
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	client_close();
}

static bool start_then_hang_up(struct fake_leader *f)
{
	return fake_link(f) && fake_hear(f, MST_MSG_START);
}

static void a_leader_that_dies_ends_the_start_at_once(void)
{
	CU_ASSERT_EQUAL_FATAL(client_open(start_then_hang_up, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL(client_start(NULL, &client_outcome), -ENOTCONN);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT_EQUAL(muster_check(client_handle), MUSTER_GIVE_UP);
	CU_ASSERT_EQUAL(muster_start(client_handle, NULL, &client_outcome), -ENOTCONN);
	client_close();
}

static bool start_late(struct fake_leader *f)
{
	struct mst_lane_answer first = { .number = 1, .where = MST_WHERE_IN_PLACE };

	return fake_link(f) && fake_hear(f, MST_MSG_START) && (await(&goes_on), true) &&
	       fake_answer(f, &first) && fake_stay(f);
}

static void a_start_that_takes_long_may_be_called_again(void)
{
	CU_ASSERT_EQUAL_FATAL(client_open(start_late, CLIENT_LONG_MS), 0);
	client_handle->settings.join_ns = CLIENT_SHORT_MS * MST_MS; /* joining took its time */
	CU_ASSERT_EQUAL(muster_start(client_handle, NULL, &client_outcome), -ETIMEDOUT);
	CU_ASSERT(client_took_ms() >= CLIENT_SHORT_MS - 10 && client_took_ms() < CLIENT_LATE_MS);
	atomic_store(&goes_on, true);
	CU_ASSERT_EQUAL(client_start(NULL, &client_outcome), 0);
	CU_ASSERT_EQUAL(client_outcome.version, 0);
	CU_ASSERT(client_outcome.fresh && !client_outcome.finished);
	CU_ASSERT_PTR_NOT_NULL(client_outcome.result);
	CU_ASSERT_EQUAL(muster_start(client_handle, NULL, &client_outcome), -EINVAL);
	client_close();
}

static float own[FAKE_ELEMS], received[FAKE_ELEMS];

static bool want_state(struct fake_leader *f)
{
	const struct mst_message want = { .kind = MST_MSG_SEND_STATE, .wanted.state = 1 };
	struct mst_lane_answer first = { .number = 1, .where = MST_WHERE_IN_PLACE };
	size_t have = 0;

	if (!fake_link(f) || !fake_hear(f, MST_MSG_START) || f->message.start.offers != 1 ||
	    !fake_say(f, &want))
		return false;
	while (have < sizeof(received)) {
		if (!fake_hear(f, MST_MSG_STATE) || f->message.state.offset != have)
			return false;
		memcpy((char *)received + have, f->message.state.data, f->message.state.length);
		have += f->message.state.length;
	}
	return fake_answer(f, &first) && fake_stay(f);
}

static void a_start_state_arrives_whole(void)
{
	for (unsigned i = 0; i < FAKE_ELEMS; i++)
		own[i] = (float)i;
	CU_ASSERT_EQUAL_FATAL(client_open(want_state, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL(client_start(own, &client_outcome), 0);
	CU_ASSERT_EQUAL(memcmp(own, received, sizeof(own)), 0);
	client_close();
}

/* ---- working ---- */

static bool begin_only(struct fake_leader *f)
{
	return fake_begin(f) && fake_stay(f);
}

static void a_wait_keeps_its_time(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1 };

	client_begin(begin_only);
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
	CU_ASSERT_PTR_NULL(muster_gradient(client_handle));
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), -EAGAIN);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	CU_ASSERT(client_took_ms() >= CLIENT_SHORT_MS - 10 && client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT(client_says(muster_error(client_handle), "a verdict"));
	client_close();
}

static void wrong_weights_and_ranges_are_einval(void)
{
	static const double wrong[] = { 0, -1, NAN, INFINITY, 1e-39, 0x1p54 };
	struct muster_contribution c = { .size = sizeof(c) };
	uint64_t ticket = 77;

	client_begin(begin_only);
	for (int i = 0; i < 6; i++) {
		c.weight = wrong[i];
		CU_ASSERT_EQUAL(muster_push(client_handle, &c, &ticket), -EINVAL);
	}
	CU_ASSERT_EQUAL(ticket, 77);
	CU_ASSERT_EQUAL(muster_push(client_handle, NULL, NULL), -EINVAL);
	CU_ASSERT_EQUAL(muster_wait(client_handle, NULL), -EINVAL);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 10, FAKE_ELEMS, NULL), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle),
			      "1000 elements from element 10 on reach beyond"));
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 10, 10, own), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 19, 1, own), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle),
			      "elements 19 to 19 cannot be given: 10 to 19"));
	CU_ASSERT_EQUAL(
		memcmp((float *)muster_gradient(client_handle) + 10, own, 10 * sizeof(float)), 0);
	client_close();
}

static bool begin_then_hang_up(struct fake_leader *f)
{
	uint32_t imm;

	return fake_begin(f) && fake_arrival(f, &imm);
}

static void after_the_leader_has_died_every_call_says_so(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1 };

	client_begin(begin_then_hang_up);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT(client_says(muster_error(client_handle), client_fake.address));
	CU_ASSERT_EQUAL(muster_check(client_handle), MUSTER_GIVE_UP);
	CU_ASSERT_PTR_NULL(muster_gradient(client_handle));
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), -ENOTCONN);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 1, NULL), -ENOTCONN);
	CU_ASSERT_EQUAL(muster_abandon(client_handle), -ENOTCONN);
	CU_ASSERT_EQUAL(muster_pull(client_handle), -ENOTCONN);
	CU_ASSERT_EQUAL(muster_finish(client_handle, NULL), -ENOTCONN);
	client_close();
}

static bool hear_finish_and_hang_up(struct fake_leader *f)
{
	return fake_begin(f) && fake_hear(f, MST_MSG_FINISH);
}

static void so_does_finish_where_the_end_was_asked_for(void)
{
	client_begin(hear_finish_and_hang_up);
	CU_ASSERT_EQUAL(muster_finish(client_handle, "enough"), 0);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	CU_ASSERT_EQUAL(muster_finish(client_handle, "enough"), -ENOTCONN);
	client_close();
}

static uint32_t wrong_imm;
static struct mst_lane_answer wrong_answer;

static bool say_wrong_imm(struct fake_leader *f)
{
	uint32_t imm;

	return fake_begin(f) && fake_arrival(f, &imm) &&
	       fake_put(f, f->layout.down_session[MST_SESSION_OF_JOB], NULL, 0, wrong_imm) &&
	       fake_stay(f);
}

static void what_the_protocol_does_not_allow_is_eproto(void)
{
	const uint32_t wrong[] = { mst_imm(MST_IMM_GRANT, 0, 2),
				   mst_imm(MST_IMM_GRANT, 9, 2),
				   mst_imm(MST_IMM_VERDICT, 9, 0),
				   mst_imm(MST_IMM_HEADER, 0, 1),
				   mst_imm(MST_IMM_SESSION, 0, 0),
				   mst_imm(MST_IMM_SESSION, MST_SESSION_WORDS, 0),
				   mst_imm(MST_IMM_SESSION, 15, 0),
				   mst_imm(0, 0, 1),
				   UINT32_MAX };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		wrong_imm = wrong[i];
		client_begin(say_wrong_imm);
		CU_ASSERT_EQUAL(client_wait(), -EPROTO);
		client_close();
	}
}

static bool grant_again(struct fake_leader *f)
{
	const struct mst_lane_grant grant = { .epoch = 2 };
	uint32_t imm;

	return fake_begin(f) && fake_arrival(f, &imm) && mst_imm_kind(imm) == MST_IMM_HEADER &&
	       fake_put(f, f->layout.down_grant[0], &grant, sizeof(grant), wrong_imm) &&
	       fake_stay(f);
}

/* The grant may take longer than a wait does. */
static int wait_for_grant(void)
{
	uint64_t end_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	int rc = -ETIMEDOUT;

	while (rc == -ETIMEDOUT && muster_gradient(client_handle) == NULL && mst_now_ns() < end_ns)
		rc = muster_wait(client_handle, &client_outcome);
	return rc;
}

/* The grant itself is good: the slot's first, which the push has used, had epoch 1. */
static void a_grant_of_another_epoch_than_it_is_announced_with_is_eproto(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1 };

	for (uint64_t announced = 2; announced <= 3; announced++) {
		wrong_imm = mst_imm(MST_IMM_GRANT, 0, announced);
		client_begin(grant_again);
		CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
		CU_ASSERT_EQUAL(wait_for_grant(), announced == 2 ? -ETIMEDOUT : -EPROTO);
		CU_ASSERT_EQUAL(muster_gradient(client_handle) != NULL, announced == 2);
		client_close();
	}
}

static bool say_wrong_answer(struct fake_leader *f)
{
	uint32_t imm;

	return fake_begin(f) && fake_arrival(f, &imm) && fake_answer(f, &wrong_answer) &&
	       fake_stay(f);
}

static void an_answer_outside_what_is_published_is_eproto(void)
{
	const struct mst_lane_answer wrong[] = {
		{ 2, 1, 1, MST_WHERE_IN_PLACE, FAKE_BUFFERS },
		{ 2, 1, 1, MST_WHERE_IN_PLACE, UINT32_MAX },
		{ 2, 1, 1, MST_WHERE_NOWHERE, 0 },
		{ 3, 1, 1, MST_WHERE_COPIED, 0 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		wrong_answer = wrong[i];
		client_begin(say_wrong_answer);
		CU_ASSERT_EQUAL(client_wait(), -EPROTO);
		client_close();
	}
}

/* Lets the worker ask once, then puts the session word. */
static bool end_with(struct fake_leader *f, const struct mst_lane_session *word)
{
	uint32_t imm;

	return fake_begin(f) && fake_arrival(f, &imm) &&
	       fake_put(f, f->layout.down_session[MST_SESSION_OF_JOB], word, sizeof(*word),
			mst_imm(MST_IMM_SESSION, 0, 0));
}

/* What the link tells is coarse; what the control connection tells a moment later holds. */
static bool evict(struct fake_leader *f)
{
	const struct mst_lane_session word = { MST_SESSION_ENDED, -EHOSTDOWN, 0 };

	return end_with(f, &word) && (mst_sleep_ns(20 * MST_MS), true) &&
	       fake_refuse(f, -ESTALE, "version 3 is not kept any more") && fake_stay(f);
}

static void an_eviction_has_the_leaders_own_words(void)
{
	client_begin(evict);
	client_handle->engine.last_words_ns = CLIENT_LONG_MS * MST_MS; /* they may be late */
	CU_ASSERT_EQUAL(client_wait(), -ESTALE);
	CU_ASSERT(client_says(muster_error(client_handle), "version 3 is not kept any more"));
	client_close();
}

static bool evict_without_a_word(struct fake_leader *f)
{
	const struct mst_lane_session word = { MST_SESSION_ENDED, -EHOSTDOWN, 0 };

	return end_with(f, &word) && fake_stay(f);
}

static void an_eviction_without_a_word_is_not_waited_for_long(void)
{
	client_begin(evict_without_a_word);
	CU_ASSERT_EQUAL(client_wait(), -EHOSTDOWN);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	client_close();
}

static bool evict_finish_and_be_gone(struct fake_leader *f)
{
	const struct mst_lane_session word = { MST_SESSION_ENDED, -ESTALE, 0 };
	const struct mst_message msg = { .kind = MST_MSG_FINISHED, .why = "enough" };

	return end_with(f, &word) && fake_say(f, &msg);
}

static void last_words_are_not_waited_for_after_the_leader_has_closed(void)
{
	client_begin(evict_finish_and_be_gone);
	client_handle->engine.last_words_ns = CLIENT_LONG_MS * MST_MS;
	CU_ASSERT_EQUAL(client_wait(), -ESTALE);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	client_close();
}

static bool finish_and_be_gone(struct fake_leader *f)
{
	const struct mst_lane_session word = { MST_SESSION_FINISHED, 0, 5 };
	const struct mst_message msg = { .kind = MST_MSG_FINISHED, .why = "enough" };

	return end_with(f, &word) && fake_say(f, &msg);
}

static void a_last_version_that_cannot_come_is_eshutdown(void)
{
	client_begin(finish_and_be_gone);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT(client_says(muster_error(client_handle), "enough"));
	client_close();
}

static bool finish(struct fake_leader *f)
{
	const struct mst_lane_session word = { MST_SESSION_FINISHED, 0, 0 };
	const struct mst_message msg = { .kind = MST_MSG_FINISHED, .why = "enough" };

	return end_with(f, &word) && fake_say(f, &msg);
}

static void after_the_last_outcome_nothing_is_an_error(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1 };
	uint64_t ticket = 77;

	client_begin(finish);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT(client_outcome.finished && !client_outcome.fresh);
	CU_ASSERT_EQUAL(client_outcome.version, 0);
	mst_sleep_ns(50 * MST_MS); /* the leader has hung up by now */
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, &ticket), 0);
	CU_ASSERT_EQUAL(ticket, 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 1, NULL), 0);
	CU_ASSERT_EQUAL(muster_abandon(client_handle), 0);
	CU_ASSERT_EQUAL(muster_pull(client_handle), 0);
	CU_ASSERT_EQUAL(muster_finish(client_handle, "again"), 0);
	CU_ASSERT_PTR_NULL(muster_gradient(client_handle));
	CU_ASSERT_EQUAL(muster_check(client_handle), MUSTER_GIVE_UP);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT(client_outcome.finished);
	CU_ASSERT_EQUAL(client_outcome.verdict, MUSTER_NONE);
	client_close();
}

static bool advise(struct fake_leader *f)
{
	const uint64_t word = mst_hint_word(1, false);

	return fake_begin(f) && fake_put(f, f->layout.down_hint, &word, sizeof(word), 0) &&
	       fake_stay(f);
}

static void *check_until_it_gives_up(void *unused)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;

	(void)unused;
	while (muster_check(client_handle) == MUSTER_GO_ON && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	return muster_check(client_handle) == MUSTER_GIVE_UP ? client_handle : NULL;
}

static void hint_reaches_any_thread(void)
{
	pthread_t thread;
	void *gave_up = NULL;

	client_begin(advise);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, check_until_it_gives_up, NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(muster_gradient(client_handle));
	pthread_join(thread, &gave_up);
	CU_ASSERT_PTR_NOT_NULL(gave_up);
	client_close();
}

/* ---- rights ---- */

static bool leaves_the_end_to_an_operator(struct fake_leader *f)
{
	f->welcome.may_finish = 0;
	return begin_only(f);
}

static void a_worker_that_may_not_finish_is_told_so_and_goes_on(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1 };

	client_begin(leaves_the_end_to_an_operator);
	CU_ASSERT_EQUAL(muster_finish(client_handle, "enough"), -EACCES);
	CU_ASSERT(client_says(muster_error(client_handle), "only an operator may finish job"));
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
	client_close();
}

/* ---- growing structs ---- */

static void a_newer_outcome_has_zero_where_this_library_knows_nothing(void)
{
	union {
		struct muster_outcome outcome;
		uint8_t bytes[sizeof(struct muster_outcome) + 64];
	} newer;

	CU_ASSERT_EQUAL_FATAL(client_open(begin_only, CLIENT_LONG_MS), 0);
	memset(&newer, 0xee, sizeof(newer));
	newer.outcome.size = sizeof(newer);
	CU_ASSERT_EQUAL(client_start(NULL, &newer.outcome), 0);
	CU_ASSERT_EQUAL(newer.outcome.size, sizeof(newer));
	CU_ASSERT_EQUAL(newer.outcome.version, 0);
	for (size_t i = sizeof(struct muster_outcome); i < sizeof(newer); i++)
		CU_ASSERT_EQUAL(newer.bytes[i], 0);
	client_close();
}

static bool begin_third_generation(struct fake_leader *f)
{
	const struct mst_lane_answer keep = { 2, 0, 0, MST_WHERE_KEEP, 0 };
	uint32_t imm;

	f->welcome.generation.number = 3;
	return fake_begin(f) && fake_arrival(f, &imm) && fake_answer(f, &keep) && fake_stay(f);
}

static void an_outcome_tells_the_generation_of_its_servers(void)
{
	client_begin(begin_only);
	CU_ASSERT_EQUAL(client_outcome.generation, 0);
	client_close();
	CU_ASSERT_EQUAL_FATAL(client_open(begin_third_generation, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL(client_start(NULL, &client_outcome), 0);
	CU_ASSERT_EQUAL(client_outcome.generation, 3);
	client_outcome.generation = 0;
	client_outcome.size = offsetof(struct muster_outcome, generation); /* as it was before */
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT_EQUAL(client_outcome.generation, 0);
	client_outcome = (struct muster_outcome)MUSTER_OUTCOME;
	client_close();
}

static void a_size_that_was_never_set_is_refused_before_anything_is_lost(void)
{
	struct muster_contribution c = { .weight = 1 };
	struct muster_hooks hooks = { .size = 0 };

	CU_ASSERT_EQUAL_FATAL(client_open(begin_only, CLIENT_LONG_MS), 0);
	client_outcome.size = 0;
	CU_ASSERT_EQUAL(muster_start(client_handle, NULL, &client_outcome), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "MUSTER_OUTCOME"));
	client_outcome = (struct muster_outcome)MUSTER_OUTCOME;
	CU_ASSERT_EQUAL(client_start(NULL, &client_outcome), 0);
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "MUSTER_CONTRIBUTION"));
	CU_ASSERT_EQUAL(muster_train(client_handle, &hooks), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "MUSTER_HOOKS"));
	client_outcome.size = SIZE_MAX;
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "MUSTER_OUTCOME"));
	client_outcome = (struct muster_outcome)MUSTER_OUTCOME;
	client_close();
}

static CU_TestInfo cases[] = {
	{ "before the start little goes", before_the_start_little_goes },
	{ "the heart beats without any call", the_heart_beats_without_any_call },
	{ "a leader that dies ends the start at once", a_leader_that_dies_ends_the_start_at_once },
	{ "a start that takes long may be called again",
	  a_start_that_takes_long_may_be_called_again },
	{ "a start state arrives whole", a_start_state_arrives_whole },
	{ "a wait keeps its time", a_wait_keeps_its_time },
	{ "wrong weights and ranges are -EINVAL", wrong_weights_and_ranges_are_einval },
	{ "after the leader has died every call says so",
	  after_the_leader_has_died_every_call_says_so },
	{ "so does finish where the end was asked for",
	  so_does_finish_where_the_end_was_asked_for },
	{ "what the protocol does not allow is -EPROTO",
	  what_the_protocol_does_not_allow_is_eproto },
	{ "a grant of another epoch than it is announced with is -EPROTO",
	  a_grant_of_another_epoch_than_it_is_announced_with_is_eproto },
	{ "an answer outside what is published is -EPROTO",
	  an_answer_outside_what_is_published_is_eproto },
	{ "an eviction comes with the leader's own words", an_eviction_has_the_leaders_own_words },
	{ "an eviction without a word is not waited for long",
	  an_eviction_without_a_word_is_not_waited_for_long },
	{ "last words are not waited for after the leader has closed",
	  last_words_are_not_waited_for_after_the_leader_has_closed },
	{ "a last version that cannot come any more is -ENOTCONN",
	  a_last_version_that_cannot_come_is_eshutdown },
	{ "after the last outcome nothing is an error",
	  after_the_last_outcome_nothing_is_an_error },
	{ "a hint reaches any thread", hint_reaches_any_thread },
	{ "a newer outcome has zero where this library knows nothing",
	  a_newer_outcome_has_zero_where_this_library_knows_nothing },
	{ "an outcome tells the generation of its servers",
	  an_outcome_tells_the_generation_of_its_servers },
	{ "a size that was never set is refused before anything is lost",
	  a_size_that_was_never_set_is_refused_before_anything_is_lost },
	{ "a worker that may not finish is told so and goes on",
	  a_worker_that_may_not_finish_is_told_so_and_goes_on },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client errors", cases);
}
