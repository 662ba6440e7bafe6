/* SPDX-License-Identifier: MIT */
/* The state of a worker on its way to one that comes back, at the leader: who may say what, and
 * when. The workers, the data side and the network are the test's. */
#include <string.h>

#include "common/base/clock.h"
#include "common/wire/lane.h"
#include "server/control/transfer/state_transfer.h"
#include "tests/unit/server/control/stub_stream.h"
#include "tests/ut.h"

#define BYTES (6u << 20) /* more than a step sends to one worker */
#define VERSION 9u

static struct mst_server_options options;
static struct mst_base base;
static struct mst_state_transfer transfer;
static char line[2]; /* of each worker: whatever stands for a stream */
static struct mst_conn *conn[2];
static bool present[2];
static char state[BYTES];
static uint32_t given, taken;        /* events */
static struct mst_ledger_event last; /* of these */

bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request);
bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	(void)s;
	given += request->event.kind == MST_EV_GIVEN;
	taken += request->event.kind == MST_EV_TAKEN;
	last = request->event;
	return true;
}

static ssize_t take_all(struct mst_stream *s, const void *data, size_t len)
{
	(void)s, (void)data;
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

static void begin(void)
{
	struct mst_frontend_cfg cfg = {
		.stream = &stream, .members = 2, .workers = 2, .ops = &front_ops
	};
	struct mst_requests_cfg requests = { 2, 2, 1 };
	struct mst_reason why;

	options = (struct mst_server_options){
		.job = "test", .servers = 1, .workers = 2, .state_max = BYTES, .history = 2
	};
	base.job = (struct mst_job){ .o = &options, .front = &base.front, .present = present };
	transfer = (struct mst_state_transfer){ .base = &base };
	given = taken = 0;
	CU_ASSERT_EQUAL_FATAL(mst_requests_init(&base.job.requests, &requests), 0);
	mst_requests_open(&base.job.requests, NULL);
	CU_ASSERT_EQUAL_FATAL(mst_frontend_open(&base.front, &cfg, &why), 0);
	for (uint32_t rank = 0; rank < 2; rank++) {
		conn[rank] = mst_frontend_adopt(&base.front,
						(struct mst_stream *)(void *)&line[rank],
						"10.0.0.7:5", MST_CONN_HELLO);
		CU_ASSERT_PTR_NOT_NULL_FATAL(conn[rank]);
		mst_frontend_admit(&base.front, conn[rank], (struct mst_identity){ rank, 1 });
	}
}

static void end(void)
{
	mst_state_transfer_fini(&transfer);
	mst_frontend_close(&base.front);
	mst_requests_close(&base.job.requests);
	mst_requests_fini(&base.job.requests);
}

/* ---- what the ledger and the workers say ---- */

static void notice(enum mst_notice_kind kind, uint32_t rank, uint64_t number)
{
	struct mst_notice n = { .kind = kind, .who = { rank, 1 } };

	n.state.number = number;
	n.state.version = VERSION;
	CU_ASSERT_TRUE(mst_state_transfer_notice(&transfer, &n));
}

/* Return: how the worker has broken the protocol; NULL: it has not. */
static const char *gives_piece(uint32_t rank, uint64_t number, uint64_t offset, uint64_t total)
{
	uint64_t left = total - offset;
	struct mst_message m = { .kind = MST_MSG_GIVE };
	const char *wrong;

	m.handed = (struct mst_handed){
		.number = number,
		.version = VERSION,
		.piece = { .offset = offset,
			   .total = total,
			   .length = (uint32_t)(left < MST_STATE_CHUNK ? left : MST_STATE_CHUNK),
			   .data = state + offset },
	};
	CU_ASSERT_TRUE(mst_state_transfer_message(&transfer, conn[rank], &m, &wrong));
	return wrong;
}

static const char *gives(uint32_t rank, uint64_t number, uint64_t total)
{
	const char *wrong = NULL;

	for (uint64_t at = 0; wrong == NULL && at < total; at += MST_STATE_CHUNK)
		wrong = gives_piece(rank, number, at, total);
	return wrong;
}

static const char *says_took(uint32_t rank, uint64_t number)
{
	struct mst_message m = { .kind = MST_MSG_TOOK, .number = number };
	const char *wrong;

	CU_ASSERT_TRUE(mst_state_transfer_message(&transfer, conn[rank], &m, &wrong));
	return wrong;
}

static bool is_unasked(const char *wrong)
{
	return wrong != NULL && strstr(wrong, "that nobody asked for") != NULL;
}

static bool was_not_sent(const char *wrong)
{
	return wrong != NULL && strstr(wrong, "that it was not sent") != NULL;
}

/* ---- giving ---- */

/* The numbers between are those of other workers' askings. */
static void a_worker_gives_once_for_each_time_that_it_was_asked(void)
{
	begin();
	notice(MST_NOTE_WANT, 0, 1);
	for (uint64_t number = 2; number <= 4; number++)
		notice(MST_NOTE_WANT, 1, number);
	notice(MST_NOTE_WANT, 0, 5);
	CU_ASSERT_PTR_NULL(gives(0, 2, 100));
	CU_ASSERT_PTR_NULL(gives(0, 3, 100));
	CU_ASSERT_EQUAL(given, 2);
	CU_ASSERT(is_unasked(gives(0, 4, 100)));
	CU_ASSERT(is_unasked(gives(0, 5, 100)));
	CU_ASSERT_EQUAL(given, 2);
	end();
}

static void a_worker_gives_under_a_number_that_it_was_asked_with(void)
{
	begin();
	CU_ASSERT(is_unasked(gives(0, 1, 100)));
	notice(MST_NOTE_WANT, 0, 1);
	notice(MST_NOTE_WANT, 0, 2);
	CU_ASSERT(is_unasked(gives(0, 3, 100)));
	CU_ASSERT(is_unasked(gives(0, 0, 100)));
	CU_ASSERT_PTR_NULL(gives(0, 2, 100));
	CU_ASSERT(is_unasked(gives(0, 2, 100)));
	CU_ASSERT(is_unasked(gives(0, 1, 100)));
	CU_ASSERT_EQUAL(given, 1);
	end();
}

/* The ledger has given that worker up meanwhile, and asked another. */
static void the_rest_of_what_is_not_wanted_any_more_is_dropped(void)
{
	begin();
	notice(MST_NOTE_WANT, 0, 1);
	CU_ASSERT_PTR_NULL(gives_piece(0, 1, 0, BYTES));
	CU_ASSERT_PTR_NOT_NULL(transfer.state);
	notice(MST_NOTE_HANDED, 0, 0);
	notice(MST_NOTE_WANT, 1, 2);
	CU_ASSERT_PTR_NULL(gives_piece(0, 1, MST_STATE_CHUNK, BYTES));
	CU_ASSERT_PTR_NULL(transfer.state);
	CU_ASSERT_PTR_NULL(gives(1, 2, 100));
	CU_ASSERT_EQUAL(given, 1);
	CU_ASSERT(last.who.rank == 1 && last.given.number == 2 && last.given.version == VERSION);
	end();
}

/* ---- taking ---- */

static void give_and_hand(void)
{
	begin();
	notice(MST_NOTE_WANT, 0, 1);
	CU_ASSERT_PTR_NULL(gives(0, 1, BYTES));
	CU_ASSERT_EQUAL(given, 1);
	notice(MST_NOTE_HAND, 1, 1);
}

static void a_state_is_taken_when_all_of_it_has_been_sent(void)
{
	give_and_hand();
	CU_ASSERT(was_not_sent(says_took(1, 1)));
	mst_state_transfer_step(&transfer);
	CU_ASSERT(conn[1]->taken_bytes > 0 && conn[1]->taken_bytes < BYTES);
	CU_ASSERT(was_not_sent(says_took(1, 1)));
	CU_ASSERT_EQUAL(taken, 0);
	while (transfer.sends)
		mst_state_transfer_step(&transfer);
	CU_ASSERT_EQUAL(conn[1]->taken_bytes, BYTES);
	CU_ASSERT_PTR_NULL(says_took(1, 1));
	CU_ASSERT_EQUAL(taken, 1);
	CU_ASSERT(last.who.rank == 1 && last.given.number == 1);
	end();
}

static void a_state_is_taken_once_and_by_who_is_sent_it(void)
{
	give_and_hand();
	while (transfer.sends)
		mst_state_transfer_step(&transfer);
	CU_ASSERT(was_not_sent(says_took(0, 1)));
	CU_ASSERT(was_not_sent(says_took(1, 2)));
	CU_ASSERT_PTR_NULL(says_took(1, 1));
	CU_ASSERT(was_not_sent(says_took(1, 1)));
	CU_ASSERT_EQUAL(taken, 1);
	end();
}

static CU_TestInfo cases[] = {
	{ "a worker gives once for each time that it was asked",
	  a_worker_gives_once_for_each_time_that_it_was_asked },
	{ "a worker gives under a number that it was asked with",
	  a_worker_gives_under_a_number_that_it_was_asked_with },
	{ "the rest of what is not wanted any more is dropped",
	  the_rest_of_what_is_not_wanted_any_more_is_dropped },
	{ "a state is taken when all of it has been sent",
	  a_state_is_taken_when_all_of_it_has_been_sent },
	{ "a state is taken once, and by who is sent it",
	  a_state_is_taken_once_and_by_who_is_sent_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("state transfer", cases);
}
