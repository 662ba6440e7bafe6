/* SPDX-License-Identifier: MIT */
/* Which callers get in, which do not, and what the acceptor publishes. */
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/transport/world.h"

static void request_shows_token_and_lanes(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct mst_lanes lanes = { 1000, 70000, 5, 9 };
	struct peer_command call = world_call(&w, &lanes);
	uint8_t token[MST_TOKEN_LEN];
	struct mst_link_request request;

	memset(token, 7, sizeof(token));
	CU_ASSERT_EQUAL(acceptor->listener->next_request(w.listener, &request, UT_UNREAD), -EAGAIN);
	peer_tell(w.peer[0], &call);
	CU_ASSERT_EQUAL_FATAL(world_next_request(&w, &request), 0);
	CU_ASSERT_EQUAL(memcmp(request.token, token, sizeof(token)), 0);
	CU_ASSERT_EQUAL(request.lanes.up_bytes, 1000);
	CU_ASSERT_EQUAL(request.lanes.down_bytes, 70000);
	CU_ASSERT_EQUAL(request.lanes.up_credits, 5);
	CU_ASSERT_EQUAL(request.lanes.down_credits, 9);
	CU_ASSERT_EQUAL_FATAL(
		acceptor->listener->answer(w.listener, &request, &w.link[0], UT_UNREAD), 0);
	CU_ASSERT_EQUAL(w.link[0]->lanes.down_bytes, 70000);
	CU_ASSERT_PTR_NULL(w.link[0]->user);
	CU_ASSERT_EQUAL(acceptor->attach(w.net, w.link[0], UT_UNREAD), 0);
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, 0);
	world_close(&w);
}

static void one_sent_away_hears_so(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct peer_command call = world_call(&w, &usual_lanes);
	struct mst_link_request request;

	call.token = 8;
	peer_tell(w.peer[0], &call);
	CU_ASSERT_EQUAL_FATAL(world_next_request(&w, &request), 0);
	CU_ASSERT_EQUAL(request.token[0], 8);
	CU_ASSERT_EQUAL(acceptor->listener->answer(w.listener, &request, NULL, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, -EACCES);
	CU_ASSERT_TRUE(world_join(&w, 0, &usual_lanes)); /* it may come again */
	world_close(&w);
}

static void answers_may_come_in_any_order(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 3 });
	struct mst_link_request request[3];

	for (int i = 0; i < 3; i++) {
		struct peer_command call = world_call(&w, &usual_lanes);
		call.token = (uint8_t)i;
		peer_tell(w.peer[i], &call);
		CU_ASSERT_EQUAL_FATAL(world_next_request(&w, &request[i]), 0);
		CU_ASSERT_EQUAL(request[i].token[0], i);
	}
	CU_ASSERT_EQUAL(acceptor->listener->answer(w.listener, &request[2], &w.link[2], UT_UNREAD),
			0);
	CU_ASSERT_EQUAL(acceptor->listener->answer(w.listener, &request[0], NULL, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(acceptor->listener->answer(w.listener, &request[1], &w.link[1], UT_UNREAD),
			0);
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, -EACCES);
	for (int i = 1; i < 3; i++) {
		CU_ASSERT_EQUAL(peer_hear(w.peer[i]).rc, 0);
		CU_ASSERT_EQUAL(acceptor->attach(w.net, w.link[i], UT_UNREAD), 0);
	}
	world_close(&w);
}

static void nobody_there_is_refused(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct peer_command call = world_call(&w, &usual_lanes);

	acceptor->listener->close(w.listener);
	w.listener = NULL;
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &call).rc, -ECONNREFUSED);
	call.address[0] = 'x'; /* the prefix of no transport */
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &call).rc, -EINVAL);
	world_close(&w);
}

static void no_answer_times_out(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct peer_command call = world_call(&w, &usual_lanes);
	struct mst_link_request request;

	call.timeout_ns = MST_SECOND; /* so that a slow host has asked by then */
	peer_tell(w.peer[0], &call);
	CU_ASSERT_EQUAL_FATAL(world_next_request(&w, &request), 0);
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, -ETIMEDOUT);
	CU_ASSERT_EQUAL(acceptor->listener->answer(w.listener, &request, &w.link[0], UT_UNREAD),
			-EPIPE);
	CU_ASSERT_PTR_NULL(w.link[0]);
	world_close(&w);
}

static void dial_that_is_not_wanted_any_more_ends(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct peer_command call = world_call(&w, &usual_lanes);
	uint64_t begin = mst_now_ns();
	struct mst_link_request request;

	call.wanted_ns = MST_SECOND;
	peer_tell(w.peer[0], &call);
	CU_ASSERT_EQUAL_FATAL(world_next_request(&w, &request), 0);
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, -ECANCELED);
	CU_ASSERT(mst_now_ns() - begin < call.timeout_ns / 2);
	CU_ASSERT_EQUAL(acceptor->listener->answer(w.listener, &request, &w.link[0], UT_UNREAD),
			-EPIPE);
	world_close(&w);
}

/* What the owner of a listener expects: callers with a token that begins with this. */
struct expected_callers {
	uint8_t token;
	int asked;
	struct mst_origin from; /* last */
};

static bool expects(void *ctx, const uint8_t token[MST_TOKEN_LEN], const struct mst_origin *from)
{
	struct expected_callers *e = ctx;

	e->asked++;
	e->from = *from;
	return token[0] == e->token;
}

/* Peer @i calls with the token @token, is shown with where it calls from, and is sent away. */
static struct mst_origins send_away(struct world *w, int i, uint8_t token)
{
	struct peer_command call = world_call(w, &usual_lanes);
	struct mst_link_request request = { 0 };

	call.token = token;
	peer_tell(w->peer[i], &call);
	CU_ASSERT_EQUAL_FATAL(world_next_request(w, &request), 0);
	CU_ASSERT_EQUAL(request.token[0], token);
	CU_ASSERT_EQUAL(acceptor->listener->answer(w->listener, &request, NULL, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(peer_hear(w->peer[i]).rc, -EACCES);
	return request.from;
}

/* A network without addresses has callers of this host only, and shows all of them. */
static void one_who_is_not_expected_is_never_seen(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct peer_command call = world_call(&w, &usual_lanes);
	uint64_t end = mst_now_ns() + PEER_WAIT_NS;
	struct expected_callers e = { .token = 9 };
	struct mst_link_request request;

	if (send_away(&w, 0, 8).count == 0) {
		CU_ASSERT_TRUE(transport->maps);
		world_close(&w);
		return;
	}
	w.listener->filter = (struct mst_link_filter){ expects, &e };
	call.token = 8;
	peer_tell(w.peer[0], &call);
	while (e.asked == 0 && mst_now_ns() < end) {
		await_caller(w.listener);
		CU_ASSERT_EQUAL_FATAL(
			acceptor->listener->next_request(w.listener, &request, UT_UNREAD), -EAGAIN);
	}
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, -EACCES);
	struct mst_origins from = send_away(&w, 0, 9);
	CU_ASSERT_EQUAL_FATAL(from.count, 1);
	CU_ASSERT_EQUAL(memcmp(&from.at[0], &e.from, sizeof(e.from)), 0);
	CU_ASSERT_EQUAL(e.asked, 2);
	world_close(&w);
}

static void lanes_beyond_reason_are_refused(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct mst_lanes lanes[] = { { SIZE_MAX, 0, 1, 1 },
				     { 0, SIZE_MAX / 2, 1, 1 },
				     { 0, 0, UINT32_MAX, 1 } };

	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
		struct peer_command call = world_call(&w, &lanes[i]);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &call).rc, -EINVAL);
	}
	world_close(&w);
}

static void links_max_is_kept(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 2, .links_max = 1 });
	struct peer_command call = world_call(&w, &usual_lanes);
	struct mst_link *link;
	struct mst_link_request request;

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &usual_lanes));
	peer_tell(w.peer[1], &call);
	CU_ASSERT_EQUAL_FATAL(world_next_request(&w, &request), 0);
	CU_ASSERT_EQUAL_FATAL(
		acceptor->listener->answer(w.listener, &request, &w.link[1], UT_UNREAD), 0);
	CU_ASSERT_EQUAL(acceptor->attach(w.net, w.link[1], UT_UNREAD), -ENOSPC);
	CU_ASSERT_EQUAL(peer_hear(w.peer[1]).rc, 0);
	struct mst_dial dial = { .address = w.listener->address, .timeout_ns = PEER_WAIT_NS };
	CU_ASSERT_EQUAL(acceptor->dial(w.net, &dial, &link, UT_UNREAD), -ENOSPC);
	/* There is room again when the first is detached; it may be freed later. */
	transport->detach(w.link[0]);
	CU_ASSERT_EQUAL(acceptor->attach(w.net, w.link[1], UT_UNREAD), 0);
	transport->link_free(w.link[0]);
	w.link[0] = NULL;
	world_close(&w);
}

static void published_memory_is_read_in_place(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 2, .published_bytes = 100001 });
	struct peer_command check = {
		.order = PEER_CHECK, .shared = true, .offset = 1, .bytes = 100000, .seed = 41
	};

	for (int i = 0; i < 2; i++)
		CU_ASSERT_TRUE_FATAL(world_join(&w, i, &usual_lanes));
	CU_ASSERT_EQUAL(w.net->published_bytes, 100001);
	uint8_t *published = w.net->published;
	CU_ASSERT_EQUAL(published[0] | published[50000] | published[100000], 0);
	if (!transport->maps) { /* nor does it claim to */
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, -EBADMSG);
		world_close(&w);
		return;
	}
	for (uint64_t seed = 41; seed < 43; seed++) { /* what changes later is seen, too */
		pattern(published + 1, 100000, seed);
		check.seed = seed;
		for (int i = 0; i < 2; i++)
			CU_ASSERT_EQUAL(peer_do(w.peer[i], &check).rc, 0);
	}
	world_close(&w);
}

static void net_may_publish_nothing(void)
{
	struct world w = world_of_one();
	struct peer_command check = { .order = PEER_CHECK, .shared = true };

	CU_ASSERT_PTR_NULL(w.net->published);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, -EBADMSG); /* it sees NULL */
	world_close(&w);
}

/* Each call empties the reason that it is given. */
static void a_failure_says_nothing_of_another(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct mst_dial dial = { .address = "nowhere",
				 .lanes = usual_lanes,
				 .timeout_ns = MST_SECOND };
	struct mst_reason why = { "what another has said" };
	struct mst_link_request request;
	struct mst_link *link = NULL;

	CU_ASSERT_EQUAL(acceptor->listener->next_request(w.listener, &request, &why), -EAGAIN);
	CU_ASSERT_STRING_EQUAL(why.text, "");
	mst_reason_set(&why, "what another has said");
	CU_ASSERT_EQUAL(acceptor->dial(w.net, &dial, &link, &why), -EINVAL);
	CU_ASSERT_PTR_NULL(link);
	CU_ASSERT_PTR_NULL(strstr(why.text, "another"));
	world_close(&w);
}

CU_TestInfo listener_cases[] = {
	{ "a request shows token and lanes", request_shows_token_and_lanes },
	{ "one who is sent away hears so, and may come again", one_sent_away_hears_so },
	{ "one who is not expected is never seen", one_who_is_not_expected_is_never_seen },
	{ "answers may come in any order", answers_may_come_in_any_order },
	{ "where nobody is, a dial is refused", nobody_there_is_refused },
	{ "a dial without answer times out", no_answer_times_out },
	{ "a dial that is not wanted any more ends", dial_that_is_not_wanted_any_more_ends },
	{ "lanes beyond reason are refused", lanes_beyond_reason_are_refused },
	{ "no more than links_max are attached", links_max_is_kept },
	{ "a failure says nothing of another", a_failure_says_nothing_of_another },
	{ "published memory is read in place", published_memory_is_read_in_place },
	{ "a net may publish nothing", net_may_publish_nothing },
	CU_TEST_INFO_NULL,
};
