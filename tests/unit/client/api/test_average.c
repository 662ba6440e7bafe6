/* SPDX-License-Identifier: MIT */
/* muster_average(): what a worker does whose question finds no room, or no leader. */
#include <errno.h>
#include <string.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

#define AVERAGE 5.5f
#define VERSION 7u
#define PIECE_ELEMS (FAKE_ELEMS / 2)

static _Atomic bool reads; /* the leader is to read what the worker has sent */

static bool hear_question(struct fake_leader *f)
{
	while (!atomic_load(&f->released) &&
	       (fake_hear(f, MST_MSG_ASK_AVERAGE) || f->message.kind == MST_MSG_REPORT))
		if (f->message.kind == MST_MSG_ASK_AVERAGE)
			return true;
	return false;
}

static bool say_average(struct fake_leader *f)
{
	static struct mst_message msg;
	static float piece[PIECE_ELEMS];

	for (uint32_t i = 0; i < PIECE_ELEMS; i++)
		piece[i] = AVERAGE;
	msg.kind = MST_MSG_AVERAGE;
	msg.handed = (struct mst_handed){ .number = f->message.number, .version = VERSION };
	msg.handed.piece.total = FAKE_ELEMS * sizeof(float);
	msg.handed.piece.length = sizeof(piece);
	msg.handed.piece.data = piece;
	bool said = fake_say(f, &msg);
	msg.handed.piece.offset = sizeof(piece);
	return said && fake_say(f, &msg);
}

static bool read_late(struct fake_leader *f)
{
	f->welcome.averages = 1;
	if (!fake_begin(f))
		return false;
	while (!atomic_load(&reads) && !atomic_load(&f->released))
		mst_sleep_ns(MST_MS);
	return hear_question(f) && say_average(f) && fake_stay(f);
}

/* Messages of this kind, until there is no room for one. */
static void fill_with(enum mst_message_kind kind)
{
	static struct mst_message msg;
	int rc = 0;

	memset(&msg, 0, sizeof(msg));
	msg.kind = kind;
	if (kind == MST_MSG_REPORT)
		memset(msg.metric.name, 'x', MUSTER_METRIC_NAME_MAX);
	while (rc == 0)
		rc = mst_client_session_tell(&client_handle->session, &msg);
	CU_ASSERT_EQUAL_FATAL(rc, -EAGAIN);
}

/* The leader does not read. In the end there is no room for the shortest of messages; the kernel
 * may move a little on meanwhile. */
static void fill_connection(void)
{
	for (int i = 0; i < 20; i++) {
		fill_with(MST_MSG_REPORT);
		fill_with(MST_MSG_HEARTBEAT);
		mst_sleep_ns(MST_MS);
	}
}

/* The first call times out before there is room, and the second one begins while there is none. */
static void a_question_that_found_no_room_is_asked_when_there_is_room(void)
{
	const float *average = NULL;
	uint64_t version = 0;

	atomic_store(&reads, false);
	client_begin(read_late);
	fill_connection();
	CU_ASSERT_EQUAL(muster_average(client_handle, &average, &version), -ETIMEDOUT);
	client_handle->wait_ns = CLIENT_LONG_MS * MST_MS;
	atomic_store(&reads, true);
	CU_ASSERT_EQUAL(muster_average(client_handle, &average, &version), 0);
	CU_ASSERT_EQUAL(version, VERSION);
	CU_ASSERT_FATAL(average != NULL);
	CU_ASSERT_EQUAL(average[0], AVERAGE);
	CU_ASSERT_EQUAL(average[FAKE_ELEMS - 1], AVERAGE);
	client_close();
}

/* Its worker has not waited for the last version yet. */
static bool finish(struct fake_leader *f)
{
	const struct mst_message msg = { .kind = MST_MSG_FINISHED, .why = "enough" };

	f->welcome.averages = 1;
	return fake_begin(f) && fake_say(f, &msg); /* and hangs up */
}

static void a_worker_whose_leader_has_gone_waits_for_no_average(void)
{
	const float *average = NULL;
	uint64_t version = 0;

	client_begin(finish);
	client_handle->wait_ns = CLIENT_LONG_MS * MST_MS;
	CU_ASSERT_EQUAL(muster_average(client_handle, &average, &version), -ENOTCONN);
	CU_ASSERT(client_says(muster_error(client_handle), "before this worker had all"));
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	client_close();
}

static CU_TestInfo cases[] = {
	{ "a question that found no room is asked when there is room",
	  a_question_that_found_no_room_is_asked_when_there_is_room },
	{ "a worker whose leader has gone waits for no average",
	  a_worker_whose_leader_has_gone_waits_for_no_average },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client average", cases);
}
