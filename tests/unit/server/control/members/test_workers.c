/* SPDX-License-Identifier: MIT */
/*
 * The start state of a job, as the leader takes it from the worker that it has asked. The worker
 * and the data side are played by the test.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/reason.h"
#include "server/control/members/workers.h"
#include "server/control/transfer/start_sender.h"
#include "tests/unit/server/control/stub_stream.h"
#include "tests/ut.h"

#define ELEMS 1000u
#define BYTES (ELEMS * sizeof(float))

static struct mst_server_options options;
static struct mst_base base;
static struct mst_leading leading;
static struct mst_workers workers;
static char line; /* of the worker: whatever stands for a stream */
static struct mst_conn *conn;
static float state[ELEMS], buffer[ELEMS];
static bool present[1];
static int error;        /* of the last event that ends the session */
static char frame[2048]; /* the last message to the worker */
static size_t frame_bytes;
static uint32_t arrived, lost; /* events: the state is there; the worker broke the protocol */

bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request);
bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	(void)s;
	arrived += request->event.kind == MST_EV_STATE;
	lost += request->event.kind == MST_EV_LOST && request->event.error == -EPROTO;
	error = request->event.kind == MST_EV_LOST ? request->event.error : 0;
	return true;
}

void *__wrap_mst_server_start_buffer(struct mst_server *s);
void *__wrap_mst_server_start_buffer(struct mst_server *s)
{
	(void)s;
	return buffer;
}

static ssize_t take_all(struct mst_stream *s, const void *data, size_t len)
{
	(void)s;
	if (len <= sizeof(frame))
		memcpy(frame, data, frame_bytes = len);
	return (ssize_t)len;
}

static const struct mst_stream_ops stream = { .send = take_all,
					      .close = stub_stream_close,
					      STUB_STREAM };

static void gone(void *ctx, struct mst_conn *c)
{
	(void)ctx, (void)c;
}

static const struct mst_frontend_ops front_ops = { .gone = gone };

static void open_job(void)
{
	options = (struct mst_server_options){
		.job = "test", .servers = 1, .workers = 1, .guard = MST_GUARD_WORKER
	};
	base.job = (struct mst_job){ .o = &options,
				     .front = &base.front,
				     .present = present,
				     .terms.weights = { 1 },
				     .plan.vector.elems = ELEMS,
				     .plan.count = ELEMS };
	leading = (struct mst_leading){ .base = &base, .followers.base = &base };
	workers = (struct mst_workers){ .base = &base,
					.leading = &leading,
					.dismissal.base = &base,
					.start_state.followers = &leading.followers };
	arrived = lost = 0;
	memset(buffer, 0, sizeof(buffer));
	for (uint32_t i = 0; i < ELEMS; i++)
		state[i] = (float)i;
}

/* A job that has a worker; it has been asked for its state. */
static void begin(void)
{
	struct mst_frontend_cfg cfg = {
		.stream = &stream, .members = 2, .workers = 1, .ops = &front_ops
	};
	struct mst_requests_cfg requests = { 1, 1, 1 };
	struct mst_reason why;

	open_job();
	CU_ASSERT_EQUAL_FATAL(mst_requests_init(&base.job.requests, &requests), 0);
	mst_requests_open(&base.job.requests, NULL);
	CU_ASSERT_EQUAL_FATAL(mst_frontend_open(&base.front, &cfg, &why), 0);
	conn = mst_frontend_adopt(&base.front, (struct mst_stream *)(void *)&line, "10.0.0.7:5",
				  MST_CONN_HELLO);
	CU_ASSERT_PTR_NOT_NULL_FATAL(conn);
	mst_frontend_admit(&base.front, conn, (struct mst_identity){ 0, 1 });
	mst_start_sender_ask(&workers.start_state, (struct mst_identity){ 0, 1 });
}

static void end(void)
{
	mst_frontend_close(&base.front);
	mst_requests_close(&base.job.requests);
	mst_requests_fini(&base.job.requests);
}

/* The worker sends @length bytes of its state, and says where they begin and how many all are. */
static void sends(uint64_t offset, uint32_t length, uint64_t total)
{
	struct mst_message m = { .kind = MST_MSG_STATE,
				 .state = { .offset = offset,
					    .total = total,
					    .length = length,
					    .data = (const char *)state + offset } };

	CU_ASSERT(mst_workers_message(&workers, conn, &m, 1));
	mst_start_state_step(&workers.start_state);
}

static void pieces_in_their_order_are_the_state(void)
{
	begin();
	sends(0, 400, BYTES);
	sends(400, 3596, BYTES);
	CU_ASSERT_EQUAL(arrived, 0);
	sends(3996, 4, BYTES);
	CU_ASSERT_EQUAL(arrived, 1);
	CU_ASSERT_EQUAL(lost, 0);
	CU_ASSERT_EQUAL(memcmp(buffer, state, BYTES), 0);
	sends(0, 400, BYTES); /* nobody has asked again */
	CU_ASSERT_EQUAL(lost, 1);
	end();
}

/* The first piece is right. Nothing of a wrong one gets into the buffer. */
static void a_second_is_refused(uint64_t offset, uint32_t length, uint64_t total)
{
	begin();
	sends(0, 400, BYTES);
	sends(offset, length, total);
	CU_ASSERT_EQUAL(lost, 1);
	CU_ASSERT_EQUAL(arrived, 0);
	CU_ASSERT_TRUE(conn->left);
	CU_ASSERT_EQUAL(memcmp(buffer, state, 400), 0);
	for (uint32_t i = 100; i < ELEMS; i++)
		CU_ASSERT_EQUAL(buffer[i], 0);
	end();
}

static void a_gap_or_another_state_breaks_the_protocol(void)
{
	a_second_is_refused(404, 400, BYTES);
	a_second_is_refused(404, BYTES - 404, BYTES);
	a_second_is_refused(396, 400, BYTES);
	a_second_is_refused(0, 400, BYTES);
	a_second_is_refused(400, 400, BYTES - 4);
	a_second_is_refused(400, 400, BYTES + 4);
	a_second_is_refused(400, 402, BYTES);
}

static void what_is_not_finite_breaks_the_protocol(void)
{
	begin();
	sends(0, 400, BYTES);
	state[700] = NAN;
	sends(400, BYTES - 400, BYTES);
	CU_ASSERT_EQUAL(lost, 1);
	CU_ASSERT_EQUAL(arrived, 0);
	CU_ASSERT_EQUAL(buffer[500], 0);
	end();
}

/* A worker that comes after the others have begun, with another state, has broken nothing. */
static void a_worker_that_comes_late_has_not_broken_it(void)
{
	static struct mst_message told;
	struct mst_message m = { .kind = MST_MSG_CLAIM,
				 .claim = { .count = 1, .part[0] = { .name = "lr" } } };
	struct mst_identity who = { 0, 1 }, other = { 0, 2 };

	begin();
	workers.agreement.base = &base;
	CU_ASSERT_EQUAL_FATAL(mst_agreement_init(&workers.agreement), 0);
	workers.agreement.begun = workers.agreement.over = true;
	workers.agreement.agreed = m.claim;
	workers.agreement.agreed.part[0].digest = 1;
	CU_ASSERT(mst_workers_message(&workers, conn, &m, 1));
	CU_ASSERT_EQUAL(error, -ENOTCONN);
	CU_ASSERT_EQUAL_FATAL(mst_message_decode(frame, frame_bytes, &told, NULL), 0);
	CU_ASSERT_EQUAL(told.kind, MST_MSG_ERROR);
	CU_ASSERT_EQUAL(told.error.code, -ENOTCONN);
	CU_ASSERT(strncmp(told.error.reason, "rank 0 came late, and would", 27) == 0);
	CU_ASSERT_PTR_NULL(strstr(told.error.reason, "protocol"));
	const char *why = mst_dismissal_why(&workers.dismissal, who);
	CU_ASSERT(why != NULL && strncmp(why, "it came late, and would", 23) == 0);
	CU_ASSERT_PTR_NULL(mst_dismissal_why(&workers.dismissal, other));
	mst_agreement_fini(&workers.agreement);
	end();
}

static void one_that_leaves_long_before_the_others_is_told_of_once(void)
{
	struct mst_leaver l = { .at_ns = 0 };

	CU_ASSERT_FALSE(mst_leaver_is_due(&l, 99 * MST_SECOND));
	mst_leaver_left(&l, 3, 100 * MST_SECOND);
	mst_leaver_left(&l, 1, 104 * MST_SECOND);
	CU_ASSERT_FALSE(mst_leaver_is_due(&l, 104 * MST_SECOND));
	CU_ASSERT_TRUE(mst_leaver_is_due(&l, 105 * MST_SECOND));
	CU_ASSERT_EQUAL(l.rank, 3);
	CU_ASSERT_FALSE(mst_leaver_is_due(&l, 200 * MST_SECOND));
}

static void one_that_comes_back_has_not_left(void)
{
	struct mst_leaver l = { .at_ns = 0 };

	mst_leaver_left(&l, 3, 100 * MST_SECOND);
	mst_leaver_joined(&l, 1);
	mst_leaver_joined(&l, 3);
	CU_ASSERT_FALSE(mst_leaver_is_due(&l, 200 * MST_SECOND));
	mst_leaver_left(&l, 2, 300 * MST_SECOND);
	CU_ASSERT_TRUE(mst_leaver_is_due(&l, 305 * MST_SECOND));
}

static CU_TestInfo cases[] = {
	{ "one that leaves long before the others is told of, once",
	  one_that_leaves_long_before_the_others_is_told_of_once },
	{ "one that comes back has not left", one_that_comes_back_has_not_left },
	{ "pieces in their order are the start state", pieces_in_their_order_are_the_state },
	{ "a gap, a piece twice, or of another state breaks the protocol",
	  a_gap_or_another_state_breaks_the_protocol },
	{ "a state that is not finite breaks the protocol",
	  what_is_not_finite_breaks_the_protocol },
	{ "a worker that comes late has not broken the protocol",
	  a_worker_that_comes_late_has_not_broken_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("workers at the leader", cases);
}
