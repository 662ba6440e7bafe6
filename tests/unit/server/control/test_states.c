/* SPDX-License-Identifier: MIT */
/* The state machines of the control plane: of every state and event, whether it can happen and what
 * state follows. What is permitted is listed here once more, as moves instead of a table. */
#include <string.h>

#include "server/control/connections/conn.h"
#include "server/control/job/job.h"
#include "server/control/members/follower_place.h"
#include "server/control/members/following.h"
#include "server/control/members/sessions.h"
#include "tests/ut.h"

struct move {
	int from, event, to;
};

/* One machine, driven by plain numbers. */
struct machine {
	int states, events;
	bool (*enter)(int *state, int event);
	const struct move *moves;
	size_t count;
};

#define MACHINE(name, state_type, event_type)                                                      \
	static bool name(int *state, int event)                                                    \
	{                                                                                          \
		state_type now = (state_type)*state;                                               \
		bool moved = mst_##name##_enter(&now, (event_type)event);                          \
		*state = (int)now;                                                                 \
		return moved;                                                                      \
	}

MACHINE(conn, enum mst_conn_role, enum mst_conn_event)
MACHINE(job, enum mst_job_state, enum mst_job_event)
MACHINE(pending, enum mst_pending_state, enum mst_pending_event)
MACHINE(follower_place, enum mst_follower_place_state, enum mst_follower_place_event)
MACHINE(following, enum mst_following_state, enum mst_following_event)

static const struct move *find(const struct machine *m, int from, int event)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->moves[i].from == from && m->moves[i].event == event)
			return &m->moves[i];
	}
	return NULL;
}

static void only_these_moves(const struct machine *m)
{
	for (int from = 0; from < m->states; from++) {
		for (int event = 0; event < m->events; event++) {
			const struct move *move = find(m, from, event);
			int state = from;
			bool moved = m->enter(&state, event);
			CU_ASSERT_EQUAL(moved, move != NULL);
			CU_ASSERT_EQUAL(state, move != NULL ? move->to : from);
		}
	}
}

#define MOVES(m) .moves = (m), .count = sizeof(m) / sizeof((m)[0])

static void a_connection_is_somebodys_once_and_then_closes(void)
{
	static const struct move moves[] = {
		{ MST_CONN_NEW, MST_CONN_HELLO, MST_CONN_JOINING },
		{ MST_CONN_NEW, MST_CONN_WATCH, MST_CONN_WATCHER },
		{ MST_CONN_NEW, MST_CONN_SERVE, MST_CONN_SERVER },
		{ MST_CONN_NEW, MST_CONN_LEADS, MST_CONN_LEAD },
		{ MST_CONN_JOINING, MST_CONN_ADMIT, MST_CONN_WORKER },
		{ MST_CONN_NEW, MST_CONN_PART, MST_CONN_CLOSING },
		{ MST_CONN_JOINING, MST_CONN_PART, MST_CONN_CLOSING },
		{ MST_CONN_WORKER, MST_CONN_PART, MST_CONN_CLOSING },
		{ MST_CONN_WATCHER, MST_CONN_PART, MST_CONN_CLOSING },
		{ MST_CONN_SERVER, MST_CONN_PART, MST_CONN_CLOSING },
		{ MST_CONN_LEAD, MST_CONN_PART, MST_CONN_CLOSING },
	};

	only_these_moves(&(struct machine){ MST_CONN_ROLES, MST_CONN_EVENTS, conn, MOVES(moves) });
}

static void a_job_ends_once_and_starts_once(void)
{
	static const struct move moves[] = {
		{ MST_JOB_GATHERING, MST_JOB_STARTS, MST_JOB_RUNNING },
		{ MST_JOB_GATHERING, MST_JOB_ENDS, MST_JOB_FINISHED },
		{ MST_JOB_GATHERING, MST_JOB_FAILS, MST_JOB_FAILED },
		{ MST_JOB_RUNNING, MST_JOB_ENDS, MST_JOB_FINISHED },
		{ MST_JOB_RUNNING, MST_JOB_FAILS, MST_JOB_FAILED },
	};

	only_these_moves(&(struct machine){ 4, MST_JOB_EVENTS, job, MOVES(moves) });
}

static void a_session_is_expected_then_links_then_is_lent(void)
{
	static const struct move moves[] = {
		{ MST_PENDING_FREE, MST_PENDING_ANNOUNCE, MST_PENDING_ANNOUNCED },
		{ MST_PENDING_FREE, MST_PENDING_EXPECT, MST_PENDING_EXPECTED },
		{ MST_PENDING_ANNOUNCED, MST_PENDING_EXPECT, MST_PENDING_EXPECTED },
		{ MST_PENDING_EXPECTED, MST_PENDING_REQUEST, MST_PENDING_LINKING },
		{ MST_PENDING_LINKING, MST_PENDING_LEND, MST_PENDING_LENT },
		{ MST_PENDING_ANNOUNCED, MST_PENDING_END, MST_PENDING_FREE },
		{ MST_PENDING_EXPECTED, MST_PENDING_END, MST_PENDING_FREE },
		{ MST_PENDING_LINKING, MST_PENDING_END, MST_PENDING_FREE },
		{ MST_PENDING_LENT, MST_PENDING_END, MST_PENDING_FREE },
	};

	only_these_moves(
		&(struct machine){ MST_PENDING_STATES, MST_PENDING_EVENTS, pending, MOVES(moves) });
}

static void a_follower_place_is_free_again_only_before_its_appointment(void)
{
	static const struct move moves[] = {
		{ MST_FOLLOWER_PLACE_AWAITED, MST_FOLLOWER_PLACE_JOIN, MST_FOLLOWER_PLACE_JOINED },
		{ MST_FOLLOWER_PLACE_JOINED, MST_FOLLOWER_PLACE_APPOINT,
		  MST_FOLLOWER_PLACE_APPOINTED },
		{ MST_FOLLOWER_PLACE_APPOINTED, MST_FOLLOWER_PLACE_LINK,
		  MST_FOLLOWER_PLACE_LINKED },
		{ MST_FOLLOWER_PLACE_LINKED, MST_FOLLOWER_PLACE_LINK, MST_FOLLOWER_PLACE_LINKED },
		{ MST_FOLLOWER_PLACE_LINKED, MST_FOLLOWER_PLACE_SERVE, MST_FOLLOWER_PLACE_READY },
		{ MST_FOLLOWER_PLACE_READY, MST_FOLLOWER_PLACE_LINK, MST_FOLLOWER_PLACE_READY },
		{ MST_FOLLOWER_PLACE_JOINED, MST_FOLLOWER_PLACE_LOSE, MST_FOLLOWER_PLACE_AWAITED },
		{ MST_FOLLOWER_PLACE_APPOINTED, MST_FOLLOWER_PLACE_LOSE, MST_FOLLOWER_PLACE_GONE },
		{ MST_FOLLOWER_PLACE_LINKED, MST_FOLLOWER_PLACE_LOSE, MST_FOLLOWER_PLACE_GONE },
		{ MST_FOLLOWER_PLACE_READY, MST_FOLLOWER_PLACE_LOSE, MST_FOLLOWER_PLACE_GONE },
		{ MST_FOLLOWER_PLACE_JOINED, MST_FOLLOWER_PLACE_PART, MST_FOLLOWER_PLACE_GONE },
		{ MST_FOLLOWER_PLACE_APPOINTED, MST_FOLLOWER_PLACE_PART, MST_FOLLOWER_PLACE_GONE },
		{ MST_FOLLOWER_PLACE_LINKED, MST_FOLLOWER_PLACE_PART, MST_FOLLOWER_PLACE_GONE },
		{ MST_FOLLOWER_PLACE_READY, MST_FOLLOWER_PLACE_PART, MST_FOLLOWER_PLACE_GONE },
	};

	only_these_moves(&(struct machine){ MST_FOLLOWER_PLACE_STATES, MST_FOLLOWER_PLACE_EVENTS,
					    follower_place, MOVES(moves) });
}

/* Somebody at an address of this number asks for the link of @s; 0: over a network without. */
static bool spend(struct mst_follower_place *s, const uint8_t *token, uint8_t at)
{
	struct mst_link_request request = { .from = { at != 0, { { { 0xfd, [15] = at } } } } };

	memcpy(request.token, token, sizeof(request.token));
	return mst_follower_place_spend(s, &request);
}

static void a_link_of_an_earlier_offer_is_nobodys(void)
{
	uint8_t first[MST_TOKEN_LEN] = { 1 }, second[MST_TOKEN_LEN] = { 2 },
		other[MST_TOKEN_LEN] = { 3 };
	struct mst_follower_place s = { .token = { 1 }, .token_is_unused = true };

	CU_ASSERT_FALSE(mst_follower_place_link_made(&s, first)); /* none is being made */
	CU_ASSERT_TRUE(spend(&s, first, 0));
	mst_follower_place_link_begins(&s);
	CU_ASSERT(s.linking && !s.token_is_unused);
	CU_ASSERT_FALSE(
		mst_follower_place_link_made(&s, other)); /* somebody else's, made meanwhile */
	CU_ASSERT_TRUE(s.linking);
	memcpy(s.token, second, sizeof(second)); /* offered anew */
	s.token_is_unused = true;
	CU_ASSERT_FALSE(mst_follower_place_link_made(&s, first));
	CU_ASSERT_FALSE(s.linking);
	CU_ASSERT_TRUE(spend(&s, second, 0));
	mst_follower_place_link_begins(&s);
	CU_ASSERT_FALSE(mst_follower_place_link_made(&s, first));
	CU_ASSERT_TRUE(mst_follower_place_link_made(&s, second));
	CU_ASSERT_FALSE(s.linking);
}

static void a_followers_token_is_spent_by_its_first_use(void)
{
	uint8_t token[MST_TOKEN_LEN] = { 1 }, other[MST_TOKEN_LEN] = { 2 };
	struct mst_follower_place s = { .token = { 1 }, .token_is_unused = true };

	CU_ASSERT_FALSE(spend(&s, other, 0));
	CU_ASSERT_TRUE(spend(&s, token, 0));
	CU_ASSERT_FALSE(spend(&s, token, 0)); /* though no link was made of it */
	s.token_is_unused = true;             /* offered anew */
	s.state = MST_FOLLOWER_PLACE_GONE;
	CU_ASSERT_FALSE(spend(&s, token, 0));
}

static void a_followers_token_is_good_from_its_own_addresses_alone(void)
{
	uint8_t token[MST_TOKEN_LEN] = { 1 };
	struct mst_follower_place s = { .token = { 1 },
					.token_is_unused = true,
					.origins = { 1, { { { 0xfd, [15] = 7 } } } } };

	CU_ASSERT_FALSE(spend(&s, token, 8));
	CU_ASSERT_TRUE(mst_follower_place_expects(&s, token)); /* it was not spent */
	CU_ASSERT_TRUE(spend(&s, token, 7));
	CU_ASSERT_FALSE(mst_follower_place_expects(&s, token));
}

static void a_follower_that_is_cut_off_stays_cut_off(void)
{
	static const struct move moves[] = {
		{ MST_FOLLOWING_SEEKS, MST_FOLLOWING_CONNECT, MST_FOLLOWING_ASKED },
		{ MST_FOLLOWING_ASKED, MST_FOLLOWING_APPOINT, MST_FOLLOWING_APPOINTED },
		{ MST_FOLLOWING_ASKED, MST_FOLLOWING_RETRY, MST_FOLLOWING_SEEKS },
		{ MST_FOLLOWING_APPOINTED, MST_FOLLOWING_LINK, MST_FOLLOWING_READY },
		{ MST_FOLLOWING_READY, MST_FOLLOWING_LINK, MST_FOLLOWING_READY },
		{ MST_FOLLOWING_SEEKS, MST_FOLLOWING_CUT, MST_FOLLOWING_CUT_OFF },
		{ MST_FOLLOWING_ASKED, MST_FOLLOWING_CUT, MST_FOLLOWING_CUT_OFF },
		{ MST_FOLLOWING_APPOINTED, MST_FOLLOWING_CUT, MST_FOLLOWING_CUT_OFF },
		{ MST_FOLLOWING_READY, MST_FOLLOWING_CUT, MST_FOLLOWING_CUT_OFF },
		{ MST_FOLLOWING_CUT_OFF, MST_FOLLOWING_CUT, MST_FOLLOWING_CUT_OFF },
	};

	only_these_moves(&(struct machine){ MST_FOLLOWING_STATES, MST_FOLLOWING_EVENTS, following,
					    MOVES(moves) });
}

static CU_TestInfo cases[] = {
	{ "a connection is somebody's once, and then closes",
	  a_connection_is_somebodys_once_and_then_closes },
	{ "a job ends once and starts once", a_job_ends_once_and_starts_once },
	{ "a session is expected, then links, then is lent",
	  a_session_is_expected_then_links_then_is_lent },
	{ "a place is free again only before its appointment",
	  a_follower_place_is_free_again_only_before_its_appointment },
	{ "a link of an earlier offer is nobody's", a_link_of_an_earlier_offer_is_nobodys },
	{ "a follower's token is spent by its first use",
	  a_followers_token_is_spent_by_its_first_use },
	{ "a follower's token is good from its own addresses alone",
	  a_followers_token_is_good_from_its_own_addresses_alone },
	{ "a follower that is cut off stays cut off", a_follower_that_is_cut_off_stays_cut_off },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("control states", cases);
}
