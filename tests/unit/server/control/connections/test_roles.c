/* SPDX-License-Identifier: MIT */
/* What a peer may say to a leader, by the role that its certificate gives: a whole control plane
 * over real sockets, whose streams say who the peer is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/wire/message_fields.h"
#include "server/control/connections/roles.h"
#include "server/control/plane.h"
#include "tests/ut.h"

#define LONG_NS (60 * MST_SECOND)

static struct mst_stream_ops stream;
static struct mst_principal says; /* who all peers are */
static struct mst_server_options options;
static struct mst_options parsed;
static struct mst_plane *plane;
static struct mst_message message;

static void principal(const struct mst_stream *s, struct mst_principal *out)
{
	(void)s;
	*out = says;
}

static void begin(void)
{
	static const char *const set[][2] = { { "listen", "127.0.0.1:0" },
					      { "workers", "2" },
					      { "servers", "2" },
					      { "shards", "1" } };
	struct mst_plane_cfg cfg = { .options = &options,
				     .stream = &stream,
				     .networks = &(struct mst_networks){ 1, { &mst_shm }, false } };
	struct mst_reason why;

	stream = mst_plain;
	stream.principal = principal;
	CU_ASSERT_EQUAL_FATAL(mst_options_init(&parsed, mst_server_table, &options), 0);
	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		CU_ASSERT_EQUAL_FATAL(mst_options_set(&parsed, set[i][0], set[i][1]), 0);
	CU_ASSERT_EQUAL_FATAL(mst_plane_new(&cfg, &plane, &why), 0);
}

static void end(void)
{
	mst_plane_free(plane);
	mst_options_free(&parsed);
}

/* What the leader answers to one message of this kind, from a new peer, in @message. */
static void ask(enum mst_message_kind kind)
{
	static unsigned char frame[64 << 10];
	uint64_t end_ns = mst_now_ns() + LONG_NS;
	struct mst_stream *s;
	size_t have = 0;
	int64_t length;

	CU_ASSERT_EQUAL_FATAL(mst_plain.connect(mst_plane_address(plane), LONG_NS, NULL, &s), 0);
	memset(&message, 0, sizeof(message));
	message.kind = kind;
	if (kind == MST_MSG_HELLO || kind == MST_MSG_SERVE)
		snprintf(message.hello.job, sizeof(message.hello.job), "of another name");
	if (kind == MST_MSG_REPORT)
		snprintf(message.metric.name, sizeof(message.metric.name), "loss");
	if (kind == MST_MSG_ERROR)
		message.error.code = -ENOTCONN;
	length = mst_message_encode(&message, frame, sizeof(frame));
	CU_ASSERT_EQUAL_FATAL(mst_plain.send(s, frame, (size_t)length), length);
	do {
		mst_plane_step(plane, mst_now_ns());
		ssize_t got = mst_plain.receive(s, frame + have, sizeof(frame) - have);
		have += got > 0 ? (size_t)got : 0;
		length = mst_frame_length(frame, have, NULL);
	} while ((length == 0 || (size_t)length > have) && mst_now_ns() < end_ns);
	CU_ASSERT_FATAL(length > 0 && (size_t)length <= have);
	CU_ASSERT_EQUAL_FATAL(mst_message_decode(frame, (size_t)length, &message, NULL), 0);
	mst_plain.close(s);
}

static bool is_refused(enum mst_message_kind kind)
{
	ask(kind);
	return message.kind == MST_MSG_ERROR && message.error.code == -EACCES;
}

static void be(uint32_t roles, const char *name)
{
	says = (struct mst_principal){ .roles = roles, .proven = true };
	snprintf(says.name, sizeof(says.name), "%s", name);
}

/* ---- cases ---- */

/* The role that each kind of message asks for, stated once more. */
#define NOBODYS 0 /* of what a leader sends; said to a leader it breaks the protocol */
#define UNLISTED UINT32_MAX

static uint32_t owner_of(uint32_t kind)
{
	switch ((enum mst_message_kind)kind) {
	case MST_MSG_HELLO:
	case MST_MSG_START:
	case MST_MSG_STATE:
	case MST_MSG_HEARTBEAT:
	case MST_MSG_LEAVE:
	case MST_MSG_FINISH:
	case MST_MSG_TENSORS:
	case MST_MSG_REPORT:
	case MST_MSG_CLAIM:
	case MST_MSG_SET:
	case MST_MSG_COMPARE:
	case MST_MSG_GIVE:
	case MST_MSG_TOOK:
	case MST_MSG_ASK_AVERAGE:
		return MST_ROLE_WORKER;
	case MST_MSG_SERVE:
	case MST_MSG_ERROR:
	case MST_MSG_READY:
	case MST_MSG_EXPECT:
	case MST_MSG_STATE_DONE:
	case MST_MSG_RELINK:
	case MST_MSG_BEAT:
	case MST_MSG_AVERAGE:
		return MST_ROLE_SERVER;
	case MST_MSG_POLICY:
	case MST_MSG_REST:
	case MST_MSG_EVICT:
	case MST_MSG_END_JOB:
	case MST_MSG_WORKERS:
		return MST_ROLE_OPERATOR;
	case MST_MSG_ASK_STATUS:
		return MST_ROLES_ALL;
	case MST_MSG_WELCOME:
	case MST_MSG_SEND_STATE:
	case MST_MSG_SEND_TABLE:
	case MST_MSG_FINISHED:
	case MST_MSG_STATUS:
	case MST_MSG_STATUS_RANKS:
	case MST_MSG_APPOINT:
	case MST_MSG_FORGET:
	case MST_MSG_DONE:
	case MST_MSG_BEHIND:
	case MST_MSG_STATE_WANTED:
	case MST_MSG_TAKE:
	case MST_MSG_AGREE:
	case MST_MSG_DIFFERS:
	case MST_MSG_FETCH:
	case MST_MSG_BEGINS:
	case MST_MSG_IN_FORCE:
		return NOBODYS;
	}
	return UNLISTED;
}

/* More than there are: the encoder's table says which. */
#define KINDS 256u

static void every_kind_of_message_is_somebody_s_or_nobody_s(void)
{
	uint32_t known = 0;

	for (uint32_t kind = 0; kind < KINDS; kind++) {
		if (mst_body_of(kind) == NULL)
			continue;
		known++;
		if (owner_of(kind) == UNLISTED)
			printf("message %u: whose is it? (roles.c, and owner_of() here)\n", kind);
		CU_ASSERT_NOT_EQUAL(owner_of(kind), UNLISTED);
		CU_ASSERT_EQUAL(mst_roles_for((enum mst_message_kind)kind, MST_CONN_NEW),
				owner_of(kind));
	}
	CU_ASSERT(known > 30);
}

/* What is asked for by a role that may is answered otherwise: there is no such job, it has not
 * started, this is no message of a new peer. */
static void each_role_may_what_is_its_own_and_nothing_else(void)
{
	begin();
	for (uint32_t role = 1; role < MST_ROLES_ALL; role *= 2) {
		be(role, "somebody");
		for (uint32_t kind = 0; kind < KINDS; kind++) {
			if (mst_body_of(kind) == NULL)
				continue;
			uint32_t may = owner_of(kind);
			CU_ASSERT_EQUAL(is_refused((enum mst_message_kind)kind),
					may != NOBODYS && (may & role) == 0);
		}
	}
	end();
}

static void without_a_role_nothing_is_told(void)
{
	begin();
	be(0, "of the site");
	CU_ASSERT(is_refused(MST_MSG_ASK_STATUS));
	CU_ASSERT_PTR_NOT_NULL(strstr(message.error.reason, "gives the role none"));
	CU_ASSERT(is_refused(MST_MSG_HELLO));
	end();
}

static void a_refusal_names_the_peer_its_role_and_the_role_it_needs(void)
{
	begin();
	be(MST_ROLE_OBSERVER | MST_ROLE_WORKER, "dashboard");
	CU_ASSERT(is_refused(MST_MSG_EVICT));
	CU_ASSERT_PTR_NOT_NULL(strstr(message.error.reason, "127.0.0.1:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(message.error.reason,
				      "(certificate \"dashboard\") may not evict a worker: its "
				      "certificate gives the role worker, observer, and the role "
				      "operator is needed"));
	end();
}

static void who_has_proven_nothing_may_all(void)
{
	begin();
	says = (struct mst_principal){ .roles = MST_ROLES_ALL };
	CU_ASSERT_FALSE(is_refused(MST_MSG_HELLO));
	CU_ASSERT_FALSE(is_refused(MST_MSG_SERVE));
	CU_ASSERT_FALSE(is_refused(MST_MSG_END_JOB));
	end();
}

static void a_leader_is_believed_as_a_server_alone(void)
{
	struct mst_conn c = { .role = MST_CONN_LEAD };
	struct mst_reason why;

	c.principal.roles = MST_ROLES_ALL & ~(uint32_t)MST_ROLE_SERVER;
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		if (mst_body_of(kind) != NULL)
			CU_ASSERT_FALSE(mst_roles_allow(&c, (enum mst_message_kind)kind, &why));
	}
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "may not lead this server"));
	c.principal.roles = MST_ROLE_SERVER;
	CU_ASSERT(mst_roles_allow(&c, MST_MSG_APPOINT, &why));
}

int main(void)
{
	CU_TestInfo cases[] = {
		{ "every kind of message is somebody's or nobody's",
		  every_kind_of_message_is_somebody_s_or_nobody_s },
		{ "each role may what is its own and nothing else",
		  each_role_may_what_is_its_own_and_nothing_else },
		{ "without a role nothing is told", without_a_role_nothing_is_told },
		{ "a refusal names the peer its role and the role it needs",
		  a_refusal_names_the_peer_its_role_and_the_role_it_needs },
		{ "who has proven nothing may all", who_has_proven_nothing_may_all },
		{ "a leader is believed as a server alone",
		  a_leader_is_believed_as_a_server_alone },
		CU_TEST_INFO_NULL,
	};

	return ut_main("roles", cases);
}
