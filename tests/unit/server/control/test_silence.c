/* SPDX-License-Identifier: MIT */
/* A leader and a follower, each with a peer that speaks or is silent as the test says: how long one
 * waits for the other, in which words it is given up, and when time passes for workers. */
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "server/cluster/peer.h"
#include "server/control/members/following.h"
#include "server/control/members/leading.h"
#include "tests/unit/server/control/stub_stream.h"
#include "tests/ut.h"

#define LEASE (5 * MST_SECOND)
#define SERVER_LEASE (3 * LEASE)
#define STEP (LEASE / 16)

static struct mst_server_options options;
static struct mst_base base;
static struct mst_leading leading;
static struct mst_following following;
static struct mst_conn *conn;
static uint64_t now_ns, passes;

/* ---- the peer's connection ---- */

static ssize_t swallow(struct mst_stream *s, const void *data, size_t len)
{
	(void)s;
	(void)data;
	return (ssize_t)len;
}

static ssize_t nothing(struct mst_stream *s, void *data, size_t len)
{
	(void)s;
	(void)data;
	(void)len;
	return -EAGAIN;
}

static const struct mst_stream_ops stream = {
	.send = swallow, .receive = nothing, .close = stub_stream_close, STUB_STREAM
};

/* ---- two sides ---- */

bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request);
bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	(void)s;
	(void)request;
	return true;
}

static void begin(enum mst_conn_event is)
{
	static int peer;
	struct mst_frontend_cfg cfg = { .stream = &stream, .members = 2 };
	struct mst_requests_cfg requests = { 1, 4, 2 };
	struct mst_reason why;

	options = (struct mst_server_options){
		.job = "test", .servers = 2, .workers = 1, .lease_ns = LEASE
	};
	base.job = (struct mst_job){ .o = &options,
				     .front = &base.front,
				     .plan.vector.elems = 10000 };
	base.hearing = (struct mst_hearing){ 0 };
	leading = (struct mst_leading){ .base = &base, .followers.base = &base };
	following = (struct mst_following){ .base = &base, .state = MST_FOLLOWING_READY };
	now_ns = MST_SECOND;
	passes = 0;
	CU_ASSERT_EQUAL_FATAL(mst_requests_init(&base.job.requests, &requests), 0);
	mst_requests_open(&base.job.requests, NULL);
	CU_ASSERT_EQUAL_FATAL(mst_frontend_open(&base.front, &cfg, &why), 0);
	conn = mst_frontend_adopt(&base.front, (struct mst_stream *)&peer, "10.0.0.7:5", is);
	CU_ASSERT_PTR_NOT_NULL_FATAL(conn);
	conn->server = 1;
	mst_hearing_look(&base.hearing, LEASE, now_ns);
	following.heard_ns = mst_hearing_now(&base.hearing);
	leading.followers.place[1] = (struct mst_follower_place){ .state = MST_FOLLOWER_PLACE_READY,
								  .peer = "10.0.0.7:5",
								  .heard_ns = mst_hearing_now(
									  &base.hearing) };
}

static void end(void)
{
	mst_frontend_close(&base.front);
	mst_requests_close(&base.job.requests);
	mst_requests_fini(&base.job.requests);
}

/* What the peer does in a step: it is away, beats, or beats while its data thread stands still. */
enum follower_life { AWAY, LIVES, HANGS };

static void step_leader(enum follower_life follower)
{
	struct mst_message beat = { .kind = MST_MSG_BEAT };
	struct mst_pending_session *expected = NULL;

	mst_hearing_look(&base.hearing, LEASE, now_ns);
	mst_leading_look(&leading, now_ns);
	passes += follower == LIVES;
	beat.beat.count = 1;
	beat.beat.server[0].passes = passes;
	if (follower != AWAY)
		CU_ASSERT(mst_leading_message(&leading, conn, &beat, now_ns, &expected));
	conn->dry = true;
	mst_hearing_heard(&base.hearing, now_ns);
	mst_leading_step(&leading, now_ns);
}

static void step_follower(enum follower_life leader)
{
	struct mst_message beat = { .kind = MST_MSG_HEARTBEAT };

	mst_hearing_look(&base.hearing, LEASE, now_ns);
	if (leader != AWAY)
		CU_ASSERT(mst_following_message(&following, conn, &beat, now_ns));
	conn->dry = true;
	mst_hearing_heard(&base.hearing, now_ns);
	mst_following_judge(&following, now_ns);
}

static void pass(void (*step)(enum follower_life peer), uint64_t ns, enum follower_life peer)
{
	for (uint64_t until = now_ns + ns; now_ns < until;) {
		now_ns += STEP;
		step(peer);
	}
}

static bool has_lost_follower(void)
{
	return leading.followers.place[1].state == MST_FOLLOWER_PLACE_GONE;
}

/* ---- cases ---- */

static void a_follower_that_stands_still_for_less_than_the_lease_of_servers_is_kept(void)
{
	begin(MST_CONN_SERVE);
	for (int i = 0; i < 3; i++) {
		pass(step_leader, LEASE, LIVES);
		pass(step_leader, SERVER_LEASE - STEP, AWAY);
		CU_ASSERT_FALSE(has_lost_follower());
	}
	end();
}

static void a_follower_that_is_silent_for_longer_is_given_up_by_its_name(void)
{
	begin(MST_CONN_SERVE);
	pass(step_leader, LEASE, LIVES);
	pass(step_leader, SERVER_LEASE, AWAY);
	CU_ASSERT(has_lost_follower());
	CU_ASSERT_STRING_EQUAL(base.job.server_loss.text,
			       "server 1 of 2 (10.0.0.7:5) was silent for 15 s "
			       "(--server-lease): stopped, or cut off");
	end();
}

/* As where its data thread hangs, and another beats. */
static void a_follower_that_beats_and_does_not_go_on_is_silent(void)
{
	begin(MST_CONN_SERVE);
	pass(step_leader, LEASE, LIVES);
	pass(step_leader, SERVER_LEASE - STEP, HANGS);
	CU_ASSERT_FALSE(has_lost_follower());
	pass(step_leader, STEP, HANGS);
	CU_ASSERT(has_lost_follower());
	end();
}

static void a_leader_that_stands_still_for_less_than_the_lease_of_servers_is_kept(void)
{
	begin(MST_CONN_LEADS);
	for (int i = 0; i < 3; i++) {
		pass(step_follower, LEASE, LIVES);
		pass(step_follower, SERVER_LEASE - STEP, AWAY);
		CU_ASSERT_FALSE(mst_job_is_over(&base.job));
	}
	end();
}

static void a_leader_that_is_silent_for_longer_is_given_up_by_its_name(void)
{
	begin(MST_CONN_LEADS);
	pass(step_follower, LEASE, LIVES);
	pass(step_follower, SERVER_LEASE, AWAY);
	CU_ASSERT_EQUAL(base.job.state, MST_JOB_FAILED);
	CU_ASSERT_STRING_EQUAL(
		base.job.why.text,
		"the leader was silent for 15 s (--server-lease): stopped, or cut off");
	end();
}

static void what_is_typed_holds(void)
{
	begin(MST_CONN_SERVE);
	options.server_lease_ns = 8 * LEASE;
	pass(step_leader, 8 * LEASE - STEP, AWAY);
	CU_ASSERT_FALSE(has_lost_follower());
	pass(step_leader, STEP, AWAY);
	CU_ASSERT_PTR_NOT_NULL(strstr(base.job.server_loss.text, "for 40 s (--server-lease)"));
	end();
	begin(MST_CONN_LEADS);
	options.server_lease_ns = 8 * LEASE;
	pass(step_follower, 8 * LEASE - STEP, AWAY);
	CU_ASSERT_FALSE(mst_job_is_over(&base.job));
	pass(step_follower, STEP, AWAY);
	CU_ASSERT_PTR_NOT_NULL(strstr(base.job.why.text, "for 40 s (--server-lease)"));
	end();
}

/* All of the host slept, or this process alone did: nothing is there to be read on waking, and that
 * proves nothing. */
static void ones_own_standstill_is_not_charged_to_others(void)
{
	begin(MST_CONN_SERVE);
	pass(step_leader, LEASE, LIVES);
	now_ns += 10 * SERVER_LEASE;
	pass(step_leader, SERVER_LEASE - LEASE / 4, AWAY);
	CU_ASSERT_FALSE(has_lost_follower());
	end();
	begin(MST_CONN_LEADS);
	pass(step_follower, LEASE, LIVES);
	now_ns += 10 * SERVER_LEASE;
	pass(step_follower, SERVER_LEASE - LEASE / 4, AWAY);
	CU_ASSERT_FALSE(mst_job_is_over(&base.job));
	end();
}

/* Else a worker pays for what it has sent, and what lies unread at the follower. */
static void no_time_passes_for_workers_while_a_follower_is_silent(void)
{
	begin(MST_CONN_SERVE);
	pass(step_leader, LEASE, LIVES);
	CU_ASSERT(mst_followers_go_on(&leading.followers));
	pass(step_leader, LEASE / 2, AWAY);
	CU_ASSERT_FALSE(mst_followers_go_on(&leading.followers));
	pass(step_leader, STEP, LIVES);
	CU_ASSERT(mst_followers_go_on(&leading.followers));
	pass(step_leader, LEASE / 2, HANGS);
	CU_ASSERT_FALSE(mst_followers_go_on(&leading.followers));
	pass(step_leader, SERVER_LEASE, AWAY);
	CU_ASSERT(has_lost_follower());
	CU_ASSERT(mst_followers_go_on(&leading.followers)); /* nobody waits for it any more */
	end();
}

/* Nobody answers at the leader's listener, and each dial takes a quarter of a lease to find that
 * out. */
static void time_that_passes_in_dials_counts(void)
{
	struct mst_peer peer;
	uint64_t began_ns = now_ns = MST_SECOND;

	CU_ASSERT_EQUAL_FATAL(mst_peer_init(&peer, mst_peer_window(1, 1), LEASE), 0);
	mst_peer_drop(&peer, now_ns);
	while (!mst_peer_is_over(&peer, now_ns) && now_ns < began_ns + 10 * LEASE)
		now_ns += LEASE / 4;
	CU_ASSERT_EQUAL(now_ns, began_ns + LEASE);
	mst_peer_fini(&peer);
}

static CU_TestInfo cases[] = {
	{ "a follower that stands still for less than the lease of servers is kept",
	  a_follower_that_stands_still_for_less_than_the_lease_of_servers_is_kept },
	{ "a follower that is silent for longer is given up by its name",
	  a_follower_that_is_silent_for_longer_is_given_up_by_its_name },
	{ "a follower that beats and does not go on is silent",
	  a_follower_that_beats_and_does_not_go_on_is_silent },
	{ "a leader that stands still for less than the lease of servers is kept",
	  a_leader_that_stands_still_for_less_than_the_lease_of_servers_is_kept },
	{ "a leader that is silent for longer is given up by its name",
	  a_leader_that_is_silent_for_longer_is_given_up_by_its_name },
	{ "what is typed holds", what_is_typed_holds },
	{ "one's own standstill is not charged to others",
	  ones_own_standstill_is_not_charged_to_others },
	{ "no time passes for workers while a follower is silent",
	  no_time_passes_for_workers_while_a_follower_is_silent },
	{ "time that passes in dials counts", time_that_passes_in_dials_counts },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("server_silence", cases);
}
