/* SPDX-License-Identifier: MIT */
/* Sessions as the control thread keeps them, from admission until the data thread lets go. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "server/control/members/sessions.h"
#include "server/control/members/token.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

#define MAX 4u
#define WORKERS 8u

static struct mst_sessions sessions;
static struct mst_link link_of_one = { .ops = &fix_transport };

static const struct mst_identity first = { 0, 1 }, second = { 1, 1 };

static void begin(void)
{
	fix_net_begin(NULL, NULL);
	CU_ASSERT_EQUAL_FATAL(mst_sessions_init(&sessions, WORKERS, MAX), 0);
}

static void end(void)
{
	mst_sessions_fini(&sessions);
}

/* Somebody shows this token, over a network without addresses. */
static struct mst_pending_session *spend(const uint8_t *token)
{
	struct mst_link_request request = { .caller = NULL };

	memcpy(request.token, token, sizeof(request.token));
	return mst_sessions_spend(&sessions, &request);
}

static struct mst_pending_session *lend(struct mst_identity who)
{
	struct mst_pending_session *p = mst_sessions_admit(&sessions, who, 0);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT(mst_pending_enter(&p->state, MST_PENDING_REQUEST));
	p->session.link = &link_of_one;
	CU_ASSERT(mst_pending_enter(&p->state, MST_PENDING_LEND));
	return p;
}

static void without_followers_a_worker_is_expected_at_once(void)
{
	begin();
	struct mst_pending_session *p = mst_sessions_admit(&sessions, first, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(p->state, MST_PENDING_EXPECTED);
	CU_ASSERT_PTR_EQUAL(mst_sessions_of(&sessions, first), p);
	CU_ASSERT_PTR_EQUAL(spend(p->token), p);
	end();
}

static void a_worker_is_expected_when_the_last_follower_knows_it(void)
{
	begin();
	struct mst_pending_session *p = mst_sessions_admit(&sessions, first, 1u << 1 | 1u << 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_PTR_NULL(spend(p->token));
	CU_ASSERT_FALSE(mst_sessions_confirm(&sessions, p, 2));
	CU_ASSERT_FALSE(mst_sessions_confirm(&sessions, p, 2));
	CU_ASSERT_EQUAL(p->state, MST_PENDING_ANNOUNCED);
	CU_ASSERT(mst_sessions_confirm(&sessions, p, 1));
	CU_ASSERT_EQUAL(p->state, MST_PENDING_EXPECTED);
	CU_ASSERT_FALSE(mst_sessions_confirm(&sessions, p, 1));
	end();
}

static void every_session_has_a_token_of_its_own(void)
{
	begin();
	struct mst_pending_session *a = mst_sessions_admit(&sessions, first, 0);
	struct mst_pending_session *b = mst_sessions_admit(&sessions, second, 0);
	CU_ASSERT_FATAL(a != NULL && b != NULL);
	CU_ASSERT(memcmp(a->token, b->token, sizeof(a->token)) != 0);
	CU_ASSERT_PTR_EQUAL(spend(b->token), b);
	end();
}

static void nobody_is_admitted_while_all_rows_are_taken(void)
{
	begin();
	for (uint32_t rank = 0; rank < MAX; rank++) {
		struct mst_identity who = { rank, 1 };
		CU_ASSERT_PTR_NOT_NULL(mst_sessions_admit(&sessions, who, 0));
	}
	CU_ASSERT_EQUAL(sessions.count, MAX);
	CU_ASSERT_PTR_NULL(mst_sessions_admit(&sessions, (struct mst_identity){ MAX, 1 }, 0));
	mst_sessions_forget(&sessions, first);
	CU_ASSERT_PTR_NOT_NULL(mst_sessions_admit(&sessions, (struct mst_identity){ MAX, 1 }, 0));
	end();
}

/* The data thread may still read its slots. */
static void a_session_that_is_lent_is_not_forgotten(void)
{
	begin();
	struct mst_pending_session *p = lend(first);
	mst_sessions_forget(&sessions, first);
	CU_ASSERT_EQUAL(p->state, MST_PENDING_LENT);
	CU_ASSERT_EQUAL(fix_net.freed, 0);
	mst_sessions_let_go(&sessions, &p->session);
	CU_ASSERT_EQUAL(p->state, MST_PENDING_FREE);
	CU_ASSERT_EQUAL(fix_net.freed, 1);
	CU_ASSERT_EQUAL(sessions.count, 0);
	end();
}

static void why_a_link_broke_is_known_while_it_is_lent_and_behind_that(void)
{
	begin();
	struct mst_pending_session *p = lend(first);
	mst_reason_set(&link_of_one.why, "the cable was cut");
	CU_ASSERT_STRING_EQUAL(mst_sessions_link_reason(&sessions, first), "");
	p->session.lost = true;
	CU_ASSERT_STRING_EQUAL(mst_sessions_link_reason(&sessions, first), "the cable was cut");
	mst_sessions_let_go(&sessions, &p->session);
	CU_ASSERT_STRING_EQUAL(mst_sessions_link_reason(&sessions, first), "the cable was cut");
	CU_ASSERT_STRING_EQUAL(mst_sessions_link_reason(&sessions, second), "");
	link_of_one.why.text[0] = '\0';
	end();
}

/* The link may break after that, by itself. */
static void what_a_worker_broke_is_told_before_what_its_link_says(void)
{
	begin();
	struct mst_pending_session *p = lend(first);
	mst_reason_set(&p->session.why, "it names slot 7 of 2");
	CU_ASSERT_STRING_EQUAL(mst_sessions_link_reason(&sessions, first), "");
	p->session.lost = true;
	mst_reason_set(&link_of_one.why, "the cable was cut");
	CU_ASSERT_STRING_EQUAL(mst_sessions_link_reason(&sessions, first), "it names slot 7 of 2");
	mst_sessions_let_go(&sessions, &p->session);
	CU_ASSERT_STRING_EQUAL(mst_sessions_link_reason(&sessions, first), "it names slot 7 of 2");
	link_of_one.why.text[0] = '\0';
	end();
}

static void the_end_of_all_frees_every_link(void)
{
	begin();
	(void)lend(first);
	(void)lend(second);
	CU_ASSERT_PTR_NOT_NULL(mst_sessions_admit(&sessions, (struct mst_identity){ 2, 1 }, 0));
	end();
	CU_ASSERT_EQUAL(fix_net.freed, 2);
}

/* A rank that comes back while its last sessions are still being read has several. */
static void each_session_of_a_rank_is_found(void)
{
	struct mst_identity who[3] = { { 5, 1 }, { 5, 2 }, { 5, 3 } };
	struct mst_pending_session *p[3];

	begin();
	for (int i = 0; i < 3; i++)
		p[i] = lend(who[i]);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_PTR_EQUAL(mst_sessions_of(&sessions, who[i]), p[i]);
	mst_sessions_let_go(&sessions, &p[1]->session);
	CU_ASSERT_PTR_EQUAL(mst_sessions_of(&sessions, who[0]), p[0]);
	CU_ASSERT_PTR_NULL(mst_sessions_of(&sessions, who[1]));
	CU_ASSERT_PTR_EQUAL(mst_sessions_of(&sessions, who[2]), p[2]);
	CU_ASSERT_PTR_EQUAL(mst_sessions_admit(&sessions, first, 0), p[1]);
	CU_ASSERT_PTR_NULL(mst_sessions_of(&sessions, (struct mst_identity){ WORKERS, 1 }));
	end();
}

/* Processor time of many searches for the last session of so many, the least of some rounds. */
static uint64_t search_ns(uint32_t count)
{
	struct mst_identity last = { count - 1, 1 };
	uint64_t least_ns = UINT64_MAX;

	CU_ASSERT_EQUAL_FATAL(mst_sessions_init(&sessions, count, count), 0);
	for (uint32_t rank = 0; rank < count; rank++)
		CU_ASSERT_PTR_NOT_NULL_FATAL(
			mst_sessions_admit(&sessions, (struct mst_identity){ rank, 1 }, 0));
	for (int round = 0; round < 5; round++) {
		uint64_t begin_ns = mst_thread_ns();
		for (int i = 0; i < 1000; i++)
			CU_ASSERT_PTR_NOT_NULL(mst_sessions_of(&sessions, last));
		uint64_t took_ns = mst_thread_ns() - begin_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	end();
	return least_ns;
}

/* A look at each would make the second a thousand times as long. */
static void a_session_is_found_without_a_look_at_the_others(void)
{
	uint64_t few_ns = search_ns(MAX), many_ns = search_ns(4096);

	CU_ASSERT(many_ns < 20 * few_ns);
}

/* ---- tokens ---- */

/* Requests are answered all the time, for so many seconds. */
static uint64_t answer_for(uint64_t now_ns, unsigned seconds)
{
	for (unsigned i = 0; i < 10 * seconds; i++) {
		now_ns += MST_SECOND / 10;
		mst_sessions_look(&sessions, now_ns);
		mst_sessions_answered(&sessions, now_ns);
	}
	return now_ns;
}

static void a_token_ages_while_requests_are_answered_and_not_while_the_server_stands(void)
{
	begin();
	uint64_t now_ns = answer_for(MST_SECOND, 3);
	struct mst_pending_session *p = mst_sessions_admit(&sessions, first, 0);
	CU_ASSERT_EQUAL(mst_sessions_waited(&sessions, p), 0);
	now_ns = answer_for(now_ns, 5);
	CU_ASSERT_EQUAL(mst_sessions_waited(&sessions, p), 5 * MST_SECOND);
	now_ns += 1000 * MST_SECOND; /* the server was stopped, or requests waited for a maker */
	mst_sessions_look(&sessions, now_ns);
	CU_ASSERT_EQUAL(mst_sessions_waited(&sessions, p), 5 * MST_SECOND);
	mst_sessions_answered(&sessions, now_ns);
	CU_ASSERT(mst_sessions_waited(&sessions, p) <= 7 * MST_SECOND);
	(void)answer_for(now_ns, 30);
	CU_ASSERT(mst_sessions_waited(&sessions, p) >= 35 * MST_SECOND);
	end();
}

static void a_tokens_time_begins_when_all_followers_know_it(void)
{
	begin();
	uint64_t now_ns = answer_for(MST_SECOND, 1);
	struct mst_pending_session *p = mst_sessions_admit(&sessions, first, 1u << 1);
	now_ns = answer_for(now_ns, 100);
	CU_ASSERT(mst_sessions_confirm(&sessions, p, 1));
	CU_ASSERT_EQUAL(mst_sessions_waited(&sessions, p), 0);
	(void)answer_for(now_ns, 2);
	CU_ASSERT_EQUAL(mst_sessions_waited(&sessions, p), 2 * MST_SECOND);
	end();
}

static void a_token_is_good_once_for_its_own_session_and_not_after_it(void)
{
	uint8_t token[MST_TOKEN_LEN];

	begin();
	struct mst_pending_session *a = mst_sessions_admit(&sessions, first, 0);
	struct mst_pending_session *b = mst_sessions_admit(&sessions, second, 0);
	CU_ASSERT_FALSE(mst_token_is(a->token, b->token));
	CU_ASSERT_PTR_EQUAL(spend(a->token), a);
	CU_ASSERT_PTR_EQUAL(mst_sessions_linking(&sessions, a->token), a);
	CU_ASSERT_PTR_NULL(spend(a->token));
	memcpy(token, b->token, sizeof(token));
	token[MST_TOKEN_LEN - 1] ^= 1;
	CU_ASSERT_PTR_NULL(spend(token));
	token[MST_TOKEN_LEN - 1] ^= 1;
	CU_ASSERT_PTR_NULL(mst_sessions_linking(&sessions, token));
	mst_sessions_forget(&sessions, second);
	CU_ASSERT_PTR_NULL(spend(token));
	end();
}

/* Somebody shows the token of @p over @rails rails, from fd00::1, fd00::2 and so on; @last: where
 * the last of them is from. */
static struct mst_pending_session *spend_from(const struct mst_pending_session *p, uint32_t rails,
					      uint8_t last)
{
	struct mst_link_request request = { .from = { .count = rails } };

	memcpy(request.token, p->token, sizeof(request.token));
	for (uint32_t i = 0; i < rails; i++)
		request.from.at[i] = (struct mst_origin){
			{ 0xfd, [15] = i + 1 < rails ? (uint8_t)(i + 1) : last }
		};
	return mst_sessions_spend(&sessions, &request);
}

static void a_token_is_good_from_the_announced_addresses_alone(void)
{
	begin();
	struct mst_pending_session *p = mst_sessions_admit(&sessions, first, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_PTR_NULL(spend_from(p, 1, 1)); /* it has announced nothing */
	p->origins = (struct mst_origins){ 2, { { { 0xfd, [15] = 1 } }, { { 0xfd, [15] = 2 } } } };
	CU_ASSERT_PTR_NULL(spend_from(p, 1, 3));
	CU_ASSERT_PTR_NULL(spend_from(p, 2, 3));                             /* one of two rails */
	CU_ASSERT_PTR_EQUAL(mst_sessions_expecting(&sessions, p->token), p); /* not spent */
	CU_ASSERT_PTR_EQUAL(spend_from(p, 2, 2), p);
	CU_ASSERT_EQUAL(p->state, MST_PENDING_LINKING);
	CU_ASSERT_PTR_NULL(mst_sessions_expecting(&sessions, p->token));
	CU_ASSERT_PTR_NULL(spend_from(p, 2, 2));
	end();
}

static CU_TestInfo cases[] = {
	{ "what a worker broke is told before what its link says",
	  what_a_worker_broke_is_told_before_what_its_link_says },
	{ "without followers a worker is expected at once",
	  without_followers_a_worker_is_expected_at_once },
	{ "a worker is expected when the last follower knows it",
	  a_worker_is_expected_when_the_last_follower_knows_it },
	{ "every session has a token of its own", every_session_has_a_token_of_its_own },
	{ "nobody is admitted while all rows are taken",
	  nobody_is_admitted_while_all_rows_are_taken },
	{ "a session that is lent is not forgotten", a_session_that_is_lent_is_not_forgotten },
	{ "why a link broke is known while it is lent and after that",
	  why_a_link_broke_is_known_while_it_is_lent_and_behind_that },
	{ "the end of all frees every link", the_end_of_all_frees_every_link },
	{ "each session of a rank is found", each_session_of_a_rank_is_found },
	{ "a session is found without a look at the others",
	  a_session_is_found_without_a_look_at_the_others },
	{ "a token ages while requests are answered and not while the server stands",
	  a_token_ages_while_requests_are_answered_and_not_while_the_server_stands },
	{ "a tokens time begins when all followers know it",
	  a_tokens_time_begins_when_all_followers_know_it },
	{ "a token is good once for its own session and not after it",
	  a_token_is_good_once_for_its_own_session_and_not_after_it },
	{ "a token is good from the announced addresses alone",
	  a_token_is_good_from_the_announced_addresses_alone },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sessions", cases);
}
