/* SPDX-License-Identifier: MIT */
/* Several servers, each with a part of the vector: what counts only once all have said it, what is
 * the first one's word alone, and what they must not say differently. */
#include <errno.h>
#include <string.h>

#include "tests/unit/client/core/session_case.h"
#include "tests/ut.h"

#define SERVERS 3u

static const struct session_kind three = { .slots = 1, .window = 4, .servers = SERVERS };
static const struct session_kind three_in_order = {
	.slots = 1, .workers_own = true, .window = 4, .servers = SERVERS
};

static uint8_t
	inbound[sizeof(struct mst_lane_record) + SESSION_WORKERS * sizeof(struct mst_lane_share)];

static struct mst_lane_answer answer_now(uint64_t version)
{
	return (struct mst_lane_answer){ session_worker.ask_number, version, version,
					 MST_WHERE_IN_PLACE, 1 };
}

static int say(uint32_t server, const struct mst_lane_answer *a)
{
	struct mst_lane_record record = {
		.version = a->version, .weight = 5, .window = 4, .size = MST_RECORD_SIZE
	};

	if (server == 0)
		memcpy(inbound, &record, sizeof(record));
	return mst_worker_answered(&session_worker, server, a, server == 0 ? inbound : NULL);
}

static int say_all(uint64_t version)
{
	struct mst_lane_answer a = answer_now(version);
	int rc = 0;

	for (uint32_t k = 0; k < SERVERS && rc == 0; k++)
		rc = say(k, &a);
	return rc;
}

static void begin_with(const struct session_kind *kind)
{
	session_begin(kind);
	mst_worker_start(&session_worker);
	CU_ASSERT_EQUAL_FATAL(say_all(0), 0);
	CU_ASSERT_EQUAL_FATAL(session_take(), 0);
}

static int grant_all(void)
{
	uint64_t epoch = session_worker.slot[0].epoch + 1;
	int rc = 0;

	for (uint32_t k = 0; k < SERVERS && rc == 0; k++)
		rc = mst_worker_granted(&session_worker, k, 0, epoch);
	return rc;
}

static void a_version_is_seen_when_all_servers_have_it(void)
{
	static const uint32_t orders[][SERVERS] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 } };

	begin_with(&three);
	for (uint64_t i = 0; i < 3; i++) {
		session_fill_and_push(false);
		CU_ASSERT_EQUAL(session_judge(i + 1, MUSTER_COUNTED, i + 1), 0);
		CU_ASSERT_EQUAL(grant_all(), 0);
		struct mst_lane_answer a = answer_now(i + 1);
		for (uint32_t k = 0; k < SERVERS; k++) {
			CU_ASSERT_EQUAL(mst_worker_misses(&session_worker), MST_MISSES_ANSWER);
			CU_ASSERT_EQUAL(session_worker.held.version, i);
			CU_ASSERT_EQUAL(say(orders[i][k], &a), 0);
		}
		CU_ASSERT_EQUAL(session_take(), 0);
		CU_ASSERT_EQUAL(session_out.version, i + 1);
		CU_ASSERT_EQUAL(session_out.weight, 5);
	}
	session_end();
}

/* What lies there when all have answered counts: until then the server may be writing it. */
static void the_record_is_read_when_all_have_answered(void)
{
	begin_with(&three);
	session_fill_and_push(false);
	struct mst_lane_answer a = answer_now(1);
	CU_ASSERT_EQUAL(say(0, &a), 0);
	memset(inbound, 0xff, sizeof(inbound));
	CU_ASSERT_EQUAL(say(1, &a), 0);
	CU_ASSERT_EQUAL(say(2, &a), -EPROTO);
	session_end();
}

static void a_slot_is_granted_when_all_servers_say_so(void)
{
	begin_with(&three);
	session_fill_and_push(true);
	for (uint32_t k = SERVERS; k-- > 0;) {
		CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
		CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, k, 0, 2), 0);
	}
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), 0);
	CU_ASSERT_EQUAL(session_worker.slot[0].epoch, 2);
	CU_ASSERT_EQUAL(session_push(true), 1);
	CU_ASSERT_EQUAL(session_sent.epoch, 2);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker),
			-EAGAIN); /* nobody has granted it since */
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 1, 0, 3), 0);
	CU_ASSERT_EQUAL(mst_worker_fill(&session_worker), -EAGAIN);
	session_end();
}

static void grants_differ_in_nothing(void)
{
	begin_with(&three);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, SERVERS, 0, 2), -EPROTO);
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, UINT32_MAX, 0, 2), -EPROTO);
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 1, 0, 2), 0);
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 1, 0, 2), -EPROTO); /* twice */
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 0, 0, 3), -EPROTO); /* another epoch */
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 0, 0, 2), 0);
	CU_ASSERT_EQUAL(mst_worker_granted(&session_worker, 2, 0, 2), 0);
	session_end();
}

static void a_verdict_is_the_first_servers_word(void)
{
	struct mst_lane_verdict v = { 1, 1, MUSTER_COUNTED, 0 };

	begin_with(&three);
	session_fill_and_push(true);
	CU_ASSERT_EQUAL(mst_worker_judged(&session_worker, 1, 0, &v), -EPROTO);
	CU_ASSERT_EQUAL(mst_worker_judged(&session_worker, 2, 0, &v), -EPROTO);
	CU_ASSERT_EQUAL(mst_worker_judged(&session_worker, 0, 0, &v), 0);
	session_end();
}

struct difference {
	const char *what;
	uint64_t number, version;
	uint32_t where, buffer;
};

/* After one that says {number 2, version 1, in place, buffer 1}. */
static void answers_differ_in_nothing(void)
{
	static const struct difference differences[] = {
		{ "the ask", 1, 1, MST_WHERE_IN_PLACE, 1 },
		{ "the version", 2, 2, MST_WHERE_IN_PLACE, 1 },
		{ "the place", 2, 1, MST_WHERE_COPIED, 1 },
		{ "the buffer", 2, 1, MST_WHERE_IN_PLACE, 2 },
	};

	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		const struct difference *d = &differences[i];
		begin_with(&three);
		session_fill_and_push(false);
		CU_ASSERT_EQUAL_FATAL(session_worker.ask_number, 2);
		struct mst_lane_answer good = answer_now(1);
		struct mst_lane_answer bad = { d->number, d->version, 2, d->where, d->buffer };
		CU_ASSERT_EQUAL(say(1, &good), 0);
		CU_ASSERT_EQUAL(say(2, &bad), -EPROTO);
		CU_ASSERT_EQUAL(session_worker.ask, MST_ASK_OUT);
		session_end();
	}
}

static void nobody_answers_twice_or_from_nowhere(void)
{
	begin_with(&three);
	session_fill_and_push(false);
	struct mst_lane_answer a = answer_now(1);
	CU_ASSERT_EQUAL(say(SERVERS, &a), -EPROTO);
	CU_ASSERT_EQUAL(say(UINT32_MAX, &a), -EPROTO);
	CU_ASSERT_EQUAL(say(1, &a), 0);
	CU_ASSERT_EQUAL(say(1, &a), -EPROTO);
	session_end();
}

/* What was handed out stays as it was while the next version comes in part after part. */
static void a_version_in_hand_stays_whole(void)
{
	begin_with(&three_in_order);
	session_fill_and_push(false);
	CU_ASSERT_EQUAL(session_judge(1, MUSTER_COUNTED, 1), 0);
	CU_ASSERT_EQUAL(grant_all(), 0);
	struct mst_lane_answer a = answer_now(1);
	CU_ASSERT_EQUAL(say(0, &a), 0);
	CU_ASSERT_EQUAL(say(2, &a), 0);
	CU_ASSERT_EQUAL(session_worker.held.version, 0);
	CU_ASSERT_EQUAL(mst_worker_ended(&session_worker, 0), 0);
	CU_ASSERT_EQUAL(mst_worker_misses(&session_worker), 0);
	CU_ASSERT_EQUAL(mst_worker_take(&session_worker, &session_out), 0);
	CU_ASSERT_EQUAL(session_out.version, 0);
	CU_ASSERT_EQUAL(session_out.weight, 5);
	CU_ASSERT_TRUE(session_out.finished);
	session_end();
}

static void the_most_servers_there_can_be(void)
{
	const struct session_kind most = { .slots = 1, .window = 4, .servers = MST_SERVERS_MAX };

	session_begin(&most);
	mst_worker_start(&session_worker);
	struct mst_lane_answer a = answer_now(0);
	for (uint32_t k = MST_SERVERS_MAX; k-- > 0;) {
		CU_ASSERT_EQUAL(mst_worker_misses(&session_worker), MST_MISSES_ANSWER);
		CU_ASSERT_EQUAL(say(k, &a), 0);
	}
	CU_ASSERT_EQUAL(session_take(), 0);
	session_end();
}

static CU_TestInfo cases[] = {
	{ "a version is seen when all servers have it",
	  a_version_is_seen_when_all_servers_have_it },
	{ "the record is read when all have answered", the_record_is_read_when_all_have_answered },
	{ "a slot is granted when all servers say so", a_slot_is_granted_when_all_servers_say_so },
	{ "grants differ in nothing", grants_differ_in_nothing },
	{ "a verdict is the first server's word", a_verdict_is_the_first_servers_word },
	{ "answers differ in nothing", answers_differ_in_nothing },
	{ "nobody answers twice, or from nowhere", nobody_answers_twice_or_from_nowhere },
	{ "a version in hand stays whole", a_version_in_hand_stays_whole },
	{ "the most servers there can be", the_most_servers_there_can_be },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("session: several servers", cases);
}
