/* SPDX-License-Identifier: MIT */
/* The token of a welcome, or of a follower's appointment, shown at the listener for data of a whole
 * control plane, over shared memory: its first use spends it, whatever comes of that. To a listener
 * that tells addresses, as one over RDMA does, it is not known from an address that its owner has
 * not announced. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/wire/lane.h"
#include "common/wire/peer.h"
#include "server/cluster/peer.h"
#include "server/control/members/token.h"
#include "server/control/plane.h"
#include "server/plan/plan.h"
#include "tests/ut.h"

#define ELEMS 10000u /* enough for two servers */
#define LONG_NS (60 * MST_SECOND)

static struct mst_server_options options;
static struct mst_options parsed;
/* Shared memory whose listener says that all callers are at this address; unspecified: it says
 * nothing. */
static struct mst_transport addressed;
static struct mst_link_listener_ops addressed_listener;
static struct mst_origin at;
static const struct mst_origin nowhere, here = { { 0xfd, [15] = 1 } },
					elsewhere = { { 0xfd, [15] = 2 } },
					loopback = { { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 } };

static struct mst_plane *plane;
static uint64_t now_ns;             /* the server's time, which the test alone moves on */
static struct mst_stream *worker;   /* the control connection of rank 0 */
static struct mst_stream *follower; /* the control connection of server 1, or NULL */
static struct mst_welcome welcome;

static int next_request(struct mst_link_listener *listener, struct mst_link_request *out,
			struct mst_reason *why)
{
	int rc = mst_shm.listener->next_request(listener, out, why);

	if (rc == 0 && memcmp(&at, &nowhere, sizeof(at)) != 0)
		out->from = (struct mst_origins){ 1, { at } };
	return rc;
}

static void begin_servers(const char *servers)
{
	addressed = mst_shm;
	addressed_listener = *mst_shm.listener;
	addressed_listener.next_request = next_request;
	addressed.listener = &addressed_listener;
	at = nowhere;
	now_ns = mst_now_ns();
	const char *const set[][2] = {
		{ "listen", "127.0.0.1:0" }, { "workers", "2" },       { "lease", "1h" },
		{ "patience", "1h" },        { "join-timeout", "1h" }, { "shards", "1" },
		{ "servers", servers },
	};
	struct mst_plane_cfg cfg = { .options = &options,
				     .stream = &mst_plain,
				     .networks = &(struct mst_networks){
					     1, { &addressed }, false } };
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_options_init(&parsed, mst_server_table, &options), 0);
	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		CU_ASSERT_EQUAL_FATAL(mst_options_set(&parsed, set[i][0], set[i][1]), 0);
	CU_ASSERT_EQUAL_FATAL(mst_server_options_check(&options, &why), 0);
	CU_ASSERT_EQUAL_FATAL(mst_plane_new(&cfg, &plane, &why), 0);
}

static void begin(void)
{
	begin_servers("1");
}

static void end(void)
{
	mst_plain.close(worker);
	mst_plain.close(follower);
	worker = follower = NULL;
	mst_plane_free(plane);
	mst_options_free(&parsed);
}

static void step(void)
{
	mst_plane_step(plane, now_ns);
	if (mst_plane_server(plane) != NULL)
		mst_server_step(mst_plane_server(plane), now_ns);
}

static void say(struct mst_stream *s, const struct mst_message *m)
{
	static unsigned char frame[64 << 10];
	int64_t length = mst_message_encode(m, frame, sizeof(frame));

	CU_ASSERT_EQUAL_FATAL(mst_plain.send(s, frame, (size_t)length), length);
}

static void read_whole(struct mst_stream *s, unsigned char *out, size_t len)
{
	uint64_t end_ns = mst_now_ns() + LONG_NS;

	while (len > 0 && mst_now_ns() < end_ns) {
		ssize_t got = mst_plain.receive(s, out, len);
		CU_ASSERT_FATAL(got > 0 || got == -EAGAIN);
		out += got > 0 ? got : 0;
		len -= got > 0 ? (size_t)got : 0;
		step();
	}
	CU_ASSERT_EQUAL_FATAL(len, 0);
}

/* Reads up to the next message of this kind. */
static void hear(struct mst_stream *s, enum mst_message_kind kind, struct mst_message *m)
{
	static unsigned char frame[64 << 10];

	do {
		read_whole(s, frame, MST_FRAME_HEADER);
		int64_t length = mst_frame_length(frame, MST_FRAME_HEADER, NULL);
		CU_ASSERT_FATAL(length >= MST_FRAME_HEADER && length <= (int64_t)sizeof(frame));
		read_whole(s, frame + MST_FRAME_HEADER, (size_t)length - MST_FRAME_HEADER);
		CU_ASSERT_EQUAL_FATAL(mst_message_decode(frame, (size_t)length, m, NULL), 0);
	} while (m->kind != kind);
}

static void say_hello(void)
{
	struct mst_message m = { .kind = MST_MSG_HELLO };

	snprintf(m.hello.job, sizeof(m.hello.job), "%s", options.job);
	m.hello.elems = ELEMS;
	m.hello.owner = options.owner;
	m.hello.origins = (struct mst_origins){ 1, { here } };
	CU_ASSERT_EQUAL_FATAL(mst_plain.connect(mst_plane_address(plane), LONG_NS, NULL, &worker),
			      0);
	say(worker, &m);
}

/* Rank 0 says its hello, and gets its welcome. */
static void join(void)
{
	struct mst_message m;

	say_hello();
	hear(worker, MST_MSG_WELCOME, &m);
	welcome = m.welcome;
}

/* Server 1 of 2 offers itself, and is appointed because of a hello. What it is told is kept in
 * `welcome`.
 * Return: the figures of its link. */
static struct mst_lanes serve(void)
{
	struct mst_message m = { .kind = MST_MSG_SERVE };

	snprintf(m.serve.job, sizeof(m.serve.job), "%s", options.job);
	snprintf(m.serve.schemes, sizeof(m.serve.schemes), "%s", mst_shm.scheme);
	m.serve.origins = (struct mst_origins){ 1, { here } };
	CU_ASSERT_EQUAL_FATAL(mst_plain.connect(mst_plane_address(plane), LONG_NS, NULL, &follower),
			      0);
	say(follower, &m);
	say_hello();
	hear(follower, MST_MSG_APPOINT, &m);
	memcpy(welcome.server[0].address, m.appoint.address, sizeof(m.appoint.address));
	memcpy(welcome.server[0].token, m.appoint.token, sizeof(m.appoint.token));
	return mst_peer_lanes(mst_peer_window(m.appoint.workers, m.appoint.slots));
}

/* The follower asks for another link in place of the last one, and is offered it. */
static void relink(void)
{
	struct mst_message m = { .kind = MST_MSG_RELINK };

	memcpy(m.token, welcome.server[0].token, sizeof(m.token));
	say(follower, &m);
	hear(follower, MST_MSG_RELINK, &m);
	memcpy(welcome.server[0].token, m.token, sizeof(m.token));
}

/* A caller with the token of the welcome, on a thread of its own, because dial() blocks. */
struct token_caller {
	struct mst_lanes lanes;
	struct mst_net *net;
	struct mst_link *link;
	int rc;
	atomic_bool done;
};

static void *dial(void *arg)
{
	struct token_caller *c = arg;
	struct mst_dial how = { .address = welcome.server[0].address,
				.lanes = c->lanes,
				.timeout_ns = LONG_NS };
	struct mst_net_cfg cfg = { .links_max = 1 };

	memcpy(how.token, welcome.server[0].token, sizeof(how.token));
	c->rc = mst_shm.net_open(&cfg, &c->net, UT_UNREAD);
	if (c->rc == 0)
		c->rc = mst_shm.dial(c->net, &how, &c->link, UT_UNREAD);
	/* Release: pairs with the acquire in asks(). */
	atomic_store_explicit(&c->done, true, memory_order_release);
	return NULL;
}

/* What becomes of a caller that shows the token, and these figures. */
static int asks(struct token_caller *c, const struct mst_lanes *lanes)
{
	pthread_t thread;

	*c = (struct token_caller){ .lanes = *lanes };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, dial, c), 0);
	/* Acquire: pairs with the release in dial(). */
	while (!atomic_load_explicit(&c->done, memory_order_acquire))
		step();
	pthread_join(thread, NULL);
	return c->rc;
}

static void leave(struct token_caller *c)
{
	if (c->link != NULL) {
		mst_shm.detach(c->link);
		mst_shm.link_free(c->link);
	}
	mst_shm.net_close(c->net);
}

/* The server answers requests all the time, for so long. */
static void serve_for(uint64_t long_ns)
{
	uint64_t end_ns = now_ns + long_ns;

	while (now_ns < end_ns) {
		now_ns += MST_SECOND / 10;
		step();
	}
}

/* The figures of the welcome. */
static struct mst_lanes right_lanes(void)
{
	struct mst_lane_figures figures = { .elems = ELEMS,
					    .type_bytes = 4,
					    .result_type_bytes = 4,
					    .slots = welcome.slots,
					    .workers = welcome.workers };
	struct mst_lane_layout layout;

	mst_lane_layout(&figures, &layout);
	return mst_plan_lanes(&layout);
}

/* The first user is still there when the second comes. */
static void a_token_lets_its_first_user_in_and_nobody_after_it(void)
{
	struct token_caller one, two;

	begin();
	join();
	struct mst_lanes lanes = right_lanes();
	CU_ASSERT_EQUAL(asks(&one, &lanes), 0);
	CU_ASSERT_EQUAL(asks(&two, &lanes), -EACCES);
	leave(&one);
	leave(&two);
	end();
}

static void a_refused_request_spends_its_token(void)
{
	struct token_caller one, two;

	begin();
	join();
	struct mst_lanes lanes = right_lanes(), other = lanes;
	other.up_credits++;
	CU_ASSERT_EQUAL(asks(&one, &other), -EACCES);
	CU_ASSERT_EQUAL(asks(&two, &lanes), -EACCES);
	leave(&one);
	leave(&two);
	end();
}

static void a_token_shown_from_elsewhere_is_not_known_and_not_spent(void)
{
	struct token_caller thief, worker_itself;

	begin();
	join();
	struct mst_lanes lanes = right_lanes();
	at = elsewhere;
	CU_ASSERT_EQUAL(asks(&thief, &lanes), -EACCES);
	at = here;
	CU_ASSERT_EQUAL(asks(&worker_itself, &lanes), 0);
	leave(&thief);
	leave(&worker_itself);
	end();
}

/* A NAT gives the caller another address than its own, the same for both of its connections. */
static void a_token_is_known_from_where_its_owner_is_connected(void)
{
	struct token_caller behind_nat;

	begin();
	join();
	struct mst_lanes lanes = right_lanes();
	at = loopback;
	CU_ASSERT_EQUAL(asks(&behind_nat, &lanes), 0);
	leave(&behind_nat);
	end();
	begin_servers("2");
	lanes = serve();
	at = loopback;
	CU_ASSERT_EQUAL(asks(&behind_nat, &lanes), 0);
	leave(&behind_nat);
	end();
}

/* As if an address led to another server of the job. */
static void a_token_of_another_server_is_not_known_and_not_spent(void)
{
	struct token_caller astray, right;

	begin();
	join();
	struct mst_lanes lanes = right_lanes();
	mst_token_of_server(welcome.server[0].token, 1);
	CU_ASSERT_EQUAL(asks(&astray, &lanes), -EACCES);
	mst_token_of_server(welcome.server[0].token, 1);
	CU_ASSERT_EQUAL(asks(&right, &lanes), 0);
	leave(&astray);
	leave(&right);
	end();
}

static void a_token_lets_in_to_the_end_of_its_time_and_not_after_it(void)
{
	struct token_caller late, in_time;

	begin();
	join();
	serve_for(MST_TOKEN_NS);
	struct mst_lanes lanes = right_lanes();
	CU_ASSERT_EQUAL(asks(&in_time, &lanes), 0);
	leave(&in_time);
	end();
	begin();
	join();
	serve_for(MST_TOKEN_NS + MST_SECOND / 10);
	CU_ASSERT_EQUAL(asks(&late, &lanes), -EACCES);
	leave(&late);
	end();
}

static void a_follower_s_token_is_good_for_as_long_and_another_can_be_had(void)
{
	struct token_caller late, in_time, again;

	begin_servers("2");
	struct mst_lanes lanes = serve();
	serve_for(MST_TOKEN_NS);
	CU_ASSERT_EQUAL(asks(&in_time, &lanes), 0);
	leave(&in_time);
	end();
	begin_servers("2");
	lanes = serve();
	serve_for(MST_TOKEN_NS + MST_SECOND / 10);
	CU_ASSERT_EQUAL(asks(&late, &lanes), -EACCES);
	relink();
	CU_ASSERT_EQUAL(asks(&again, &lanes), 0);
	leave(&late);
	leave(&again);
	end();
}

int main(void)
{
	CU_TestInfo cases[] = {
		{ "a token lets its first user in and nobody after it",
		  a_token_lets_its_first_user_in_and_nobody_after_it },
		{ "a refused request spends its token", a_refused_request_spends_its_token },
		{ "a token shown from elsewhere is not known and not spent",
		  a_token_shown_from_elsewhere_is_not_known_and_not_spent },
		{ "a token is known from where its owner is connected",
		  a_token_is_known_from_where_its_owner_is_connected },
		{ "a token of another server is not known and not spent",
		  a_token_of_another_server_is_not_known_and_not_spent },
		{ "a token lets in to the end of its time and not after it",
		  a_token_lets_in_to_the_end_of_its_time_and_not_after_it },
		{ "a follower's token is good for as long, and another can be had",
		  a_follower_s_token_is_good_for_as_long_and_another_can_be_had },
		CU_TEST_INFO_NULL,
	};

	return ut_main("token", cases);
}
