/* SPDX-License-Identifier: MIT */
/* The average on its way to workers, at the leader and at a follower. Workers, the follower and the
 * data side are played by the test: how much of what is sent they take, and when they answer. */
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "server/control/transfer/fetching.h"
#include "server/control/transfer/lending.h"
#include "tests/unit/server/control/stub_stream.h"
#include "tests/ut.h"

#define PATIENCE (30 * MST_SECOND)
#define STEP (MST_SECOND / 10)
#define VERSION 7u
#define SMALL 20000u             /* elements: several pieces of each server */
#define LARGE (6u * 1024 * 1024) /* 24 MiB */
#define QUEUED (300u << 10)      /* more than is queued on a connection before it is full */

/* The other end of a connection. It reads a message as soon as it has come. */
struct peer {
	struct mst_conn *conn;
	size_t room; /* bytes that it takes now */
	unsigned char in[64 << 10];
	size_t have;
	struct mst_handed last; /* the piece that came last */
	uint64_t taken;         /* bytes of the average, in order, as they are in memory */
	bool spoiled;           /* something else came */
	uint32_t fetches;
	struct mst_fetch fetch;
};

static struct mst_server_options options;
static struct mst_base base;
static struct mst_followers followers;
static struct mst_lending lending;
static struct mst_fetching fetching;
static struct peer worker[2], follower;
static bool present[2];
static uint64_t now_ns;
static float average[LARGE];
static bool full; /* the ring to the data side */
static uint32_t lends, returns;
static uint64_t returned; /* the version */

/* ---- what the lending sees ---- */

bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request);
bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	(void)s;
	if (full || request->kind != MST_REQ_EVENT)
		return false;
	lends += request->event.kind == MST_EV_LEND;
	returns += request->event.kind == MST_EV_RETURNED;
	if (request->event.kind == MST_EV_RETURNED)
		returned = request->event.lent.version;
	return true;
}

static void hear(struct peer *p, const struct mst_message *m)
{
	const struct mst_state_piece *piece = &m->handed.piece;

	if (m->kind == MST_MSG_FETCH) {
		p->fetches++;
		p->fetch = m->fetch;
		return;
	}
	p->spoiled |= m->kind != MST_MSG_AVERAGE || piece->offset != p->taken ||
		      piece->offset + piece->length > sizeof(average) ||
		      memcmp((char *)average + piece->offset, piece->data, piece->length) != 0;
	p->last = m->handed;
	p->taken += piece->length;
}

static void read_frames(struct peer *p)
{
	static struct mst_message m;
	int64_t length;

	while ((length = mst_frame_length(p->in, p->have, NULL)) > 0 && (size_t)length <= p->have) {
		CU_ASSERT_EQUAL_FATAL(mst_message_decode(p->in, (size_t)length, &m, NULL), 0);
		hear(p, &m);
		p->have -= (size_t)length;
		memmove(p->in, p->in + length, p->have);
	}
}

static ssize_t take(struct mst_stream *s, const void *data, size_t len)
{
	struct peer *p = (struct peer *)s;
	size_t space = sizeof(p->in) - p->have, most = p->room < space ? p->room : space;

	if (most == 0)
		return -EAGAIN;
	most = len < most ? len : most;
	memcpy(p->in + p->have, data, most);
	p->have += most;
	p->room -= most;
	read_frames(p);
	return (ssize_t)most;
}

static void hang_up(struct mst_stream *s)
{
	((struct peer *)s)->conn = NULL;
}

static const struct mst_stream_ops stream = { .send = take, .close = hang_up, STUB_STREAM };

static void gone(void *ctx, struct mst_conn *c)
{
	(void)ctx;
	(void)c;
}

static const struct mst_frontend_ops front_ops = { .gone = gone };

/* ---- two sides ---- */

static void open_peer(struct peer *p, enum mst_conn_event is)
{
	*p = (struct peer){ .room = SIZE_MAX };
	p->conn = mst_frontend_adopt(&base.front, (struct mst_stream *)p, "10.0.0.7:5", is);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p->conn);
}

static void open_job(uint64_t elems, uint32_t servers)
{
	options = (struct mst_server_options){
		.job = "test", .servers = servers, .workers = 2, .patience_ns = PATIENCE
	};
	base.job = (struct mst_job){ .o = &options,
				     .front = &base.front,
				     .state = MST_JOB_RUNNING,
				     .present = present,
				     .terms.weights = { 1, 1 },
				     .plan.vector.elems = elems,
				     .plan.server.aggregator.averages = 1 };
	followers = (struct mst_followers){ .base = &base };
	lending = (struct mst_lending){ .base = &base,
					.lent.base = &base,
					.followers = &followers };
	fetching = (struct mst_fetching){ .base = &base, .lent.base = &base };
	full = false;
	lends = returns = 0;
	returned = 0;
	now_ns = MST_SECOND;
	present[0] = present[1] = true;
	for (uint32_t i = 0; i < LARGE; i++)
		average[i] = (float)i;
}

static void open_connections(void)
{
	struct mst_frontend_cfg cfg = {
		.stream = &stream, .members = 3, .workers = 2, .ops = &front_ops
	};
	struct mst_requests_cfg requests = { 2, 4, 2 };
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_requests_init(&base.job.requests, &requests), 0);
	mst_requests_open(&base.job.requests, NULL);
	CU_ASSERT_EQUAL_FATAL(mst_frontend_open(&base.front, &cfg, &why), 0);
}

static void begin(uint64_t elems, uint32_t servers)
{
	open_job(elems, servers);
	open_connections();
	for (uint32_t i = 0; i < 2; i++) {
		open_peer(&worker[i], MST_CONN_HELLO);
		mst_frontend_admit(&base.front, worker[i].conn, (struct mst_identity){ i, 1 });
	}
	if (servers == 1)
		return;
	open_peer(&follower, MST_CONN_SERVE);
	follower.conn->server = 1;
}

static void begin_follower(void)
{
	static char data_side;

	open_job(SMALL, 2);
	base.job.server = (struct mst_server *)&data_side;
	base.job.plan.count = SMALL;
	base.job.plan.server.aggregator.index = 1;
	open_connections();
	open_peer(&follower, MST_CONN_LEADS);
}

static void end(void)
{
	mst_frontend_close(&base.front);
	mst_requests_close(&base.job.requests);
	mst_requests_fini(&base.job.requests);
}

static const char *ask(struct peer *p, uint64_t number)
{
	const char *wrong;

	CU_ASSERT(mst_lending_ask(&lending, p->conn, number, &wrong));
	return wrong;
}

static void asks(struct peer *p, uint64_t number)
{
	const char *wrong = ask(p, number);

	CU_ASSERT_PTR_NULL(wrong);
}

static void step(void)
{
	now_ns += STEP;
	mst_lending_step(&lending, now_ns);
}

static void step_follower(void)
{
	mst_fetching_step(&fetching, follower.conn);
}

static void data_side_lends(const float *of)
{
	const struct mst_notice notice = { .kind = MST_NOTE_LENT,
					   .lent = { .version = VERSION, .average = of } };

	mst_lending_lent(&lending, &notice);
	mst_lent_take(&fetching.lent, &notice);
}

/* The worker asks, and all that can be sent without a follower is sent. */
static void reads(struct peer *p, uint64_t number)
{
	uint32_t before = lends;

	asks(p, number);
	step();
	CU_ASSERT_EQUAL_FATAL(lends, before + 1);
	data_side_lends(average);
	step();
}

static uint64_t follower_begins(void)
{
	uint64_t first, count;

	mst_job_part(&base.job, 1, &first, &count);
	return first * sizeof(float);
}

/* The next piece of what was last fetched. */
static struct mst_handed piece_from(const struct peer *p)
{
	uint64_t at = lending.sent - follower_begins();
	uint64_t left = p->fetch.offset + p->fetch.length - at;

	return (struct mst_handed){
		.number = p->fetch.number,
		.version = VERSION,
		.piece = { .offset = at,
			   .length = (uint32_t)(left < MST_TAKE_CHUNK ? left : MST_TAKE_CHUNK),
			   .data = (const char *)average + lending.sent },
	};
}

static void follower_sends(void)
{
	struct mst_handed piece = piece_from(&follower);
	const char *wrong = mst_lending_piece(&lending, follower.conn, &piece);

	CU_ASSERT_PTR_NULL(wrong);
}

static bool has_all(const struct peer *p, uint64_t number)
{
	return !p->spoiled && p->taken == base.job.plan.vector.elems * sizeof(float) &&
	       p->last.number == number && p->last.version == VERSION &&
	       p->last.piece.total == p->taken;
}

/* ---- cases ---- */

static void a_worker_gets_the_parts_of_all_servers_in_order(void)
{
	begin(SMALL, 2);
	reads(&worker[0], 3);
	CU_ASSERT_EQUAL(worker[0].taken, follower_begins());
	CU_ASSERT_EQUAL_FATAL(follower.fetches, 1);
	while (worker[0].taken < SMALL * sizeof(float) && !worker[0].spoiled)
		follower_sends();
	CU_ASSERT(has_all(&worker[0], 3));
	step();
	CU_ASSERT_EQUAL(follower.fetch.length, 0); /* it reads no more either */
	CU_ASSERT_EQUAL(returns, 1);
	CU_ASSERT_EQUAL(returned, VERSION);
	end();
}

/* All that was fetched for it comes before the next step finds it gone, or a step later. */
static void pieces_for_a_worker_that_has_gone_are_dropped(void)
{
	begin(SMALL, 2);
	reads(&worker[0], 1);
	struct mst_handed late[2] = { piece_from(&follower), piece_from(&follower) };
	late[1].piece.offset += late[0].piece.length;
	CU_ASSERT_FATAL(follower.fetch.length >= late[0].piece.length + late[1].piece.length);
	mst_frontend_hang_up(&base.front, worker[0].conn);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_PTR_NULL(mst_lending_piece(&lending, follower.conn, &late[i]));
	step();
	CU_ASSERT_EQUAL(returns, 1);
	CU_ASSERT_PTR_NULL(mst_lending_piece(&lending, follower.conn, &late[1]));
	reads(&worker[1], 1);
	CU_ASSERT_PTR_NULL(mst_lending_piece(&lending, follower.conn, &late[1]));
	while (worker[1].taken < SMALL * sizeof(float) && !worker[1].spoiled)
		follower_sends();
	CU_ASSERT(has_all(&worker[1], 1));
	end();
}

/* Before there is another step. */
static void a_worker_that_has_all_may_ask_again_at_once(void)
{
	for (uint32_t servers = 1; servers <= 2; servers++) {
		begin(SMALL, servers);
		reads(&worker[0], 1);
		while (worker[0].taken < SMALL * sizeof(float) && !worker[0].spoiled)
			follower_sends();
		worker[0].taken = 0;
		reads(&worker[0], 2);
		while (worker[0].taken < SMALL * sizeof(float) && !worker[0].spoiled)
			follower_sends();
		CU_ASSERT(has_all(&worker[0], 2));
		end();
	}
}

static void workers_are_served_in_the_order_in_which_they_asked(void)
{
	begin(SMALL, 1);
	asks(&worker[1], 1);
	reads(&worker[0], 1);
	CU_ASSERT(has_all(&worker[1], 1));
	CU_ASSERT_EQUAL(worker[0].taken, 0);
	step();
	data_side_lends(average);
	step();
	CU_ASSERT(has_all(&worker[0], 1));
	end();
}

static void a_worker_asks_for_one_average_at_a_time(void)
{
	const char *wrong;

	begin(SMALL, 1);
	asks(&worker[0], 1);
	CU_ASSERT_PTR_NOT_NULL(ask(&worker[0], 2));
	base.job.state = MST_JOB_GATHERING;
	present[1] = false;
	CU_ASSERT_PTR_NOT_NULL(ask(&worker[1], 1));
	present[1] = true; /* it has started, and the leader hears of the job's start soon */
	CU_ASSERT_FALSE(mst_lending_ask(&lending, worker[1].conn, 1, &wrong));
	CU_ASSERT_PTR_NULL(wrong);
	base.job.state = MST_JOB_RUNNING;
	base.job.plan.server.aggregator.averages = 0;
	CU_ASSERT_PTR_NOT_NULL(ask(&worker[1], 1));
	end();
}

static void a_follower_sends_what_was_fetched_and_nothing_else(void)
{
	struct mst_handed good, bad[5];

	begin(SMALL, 2);
	reads(&worker[0], 1);
	good = piece_from(&follower);
	for (size_t i = 0; i < 5; i++)
		bad[i] = good;
	bad[0].number++;
	bad[1].version++;
	bad[2].piece.offset += 4;
	bad[3].piece.length = 0;
	bad[4].piece.length = (uint32_t)follower.fetch.length + 4;
	for (size_t i = 0; i < 5; i++)
		CU_ASSERT_PTR_NOT_NULL(mst_lending_piece(&lending, follower.conn, &bad[i]));
	CU_ASSERT_EQUAL(worker[0].taken, follower_begins());
	CU_ASSERT_PTR_NULL(mst_lending_piece(&lending, follower.conn, &good));
	end();
}

static void what_finds_no_room_in_the_ring_goes_on_later(void)
{
	begin(SMALL, 1);
	asks(&worker[0], 1);
	asks(&worker[1], 1);
	full = true;
	step();
	full = false;
	step();
	CU_ASSERT_EQUAL(lends, 1);
	data_side_lends(average);
	full = true;
	step();
	CU_ASSERT(has_all(&worker[0], 1));
	step();
	full = false;
	step();
	CU_ASSERT_EQUAL(returns, 1);
	CU_ASSERT_EQUAL(lends, 2);
	end();
}

/* The job fails then; its reader is told so by others. */
static void an_average_that_is_not_finite_is_not_sent(void)
{
	begin(SMALL, 2);
	asks(&worker[0], 1);
	step();
	data_side_lends(NULL);
	step();
	CU_ASSERT_EQUAL(worker[0].taken, 0);
	CU_ASSERT_FALSE(worker[0].spoiled);
	CU_ASSERT_EQUAL(returns, 1);
	end();
}

/* ---- how fast a worker has to take it ---- */

static void takes_more(struct peer *p, size_t bytes)
{
	p->room = bytes;
	CU_ASSERT_EQUAL(mst_conn_flush(p->conn), 0);
}

/* The worker takes @bytes in each of two halves of a patience, for as long as this takes all, or
 * until it is hung up on. Return: it has all. */
static bool takes_all_by(struct peer *p, size_t bytes)
{
	p->room = QUEUED;
	reads(p, 1);
	while (p->conn != NULL && p->taken < LARGE * sizeof(float)) {
		takes_more(p, bytes);
		for (uint64_t ns = 0; ns < PATIENCE / 2; ns += STEP)
			step();
	}
	return p->conn != NULL;
}

static void a_worker_that_takes_four_megabytes_in_a_patience_gets_all(void)
{
	begin(LARGE, 1);
	CU_ASSERT_TRUE(takes_all_by(&worker[0], (size_t)9 << 19));
	CU_ASSERT(has_all(&worker[0], 1));
	end();
}

static void a_worker_that_takes_less_holds_nobody_up_for_longer_than_a_patience(void)
{
	begin(LARGE, 1);
	CU_ASSERT_FALSE(takes_all_by(&worker[0], 64u << 10));
	CU_ASSERT(worker[0].taken < (size_t)4 << 20);
	CU_ASSERT(now_ns < 2 * PATIENCE);
	reads(&worker[1], 1);
	while (worker[1].taken < LARGE * sizeof(float) && !worker[1].spoiled)
		step();
	CU_ASSERT(has_all(&worker[1], 1));
	end();
}

/* A step after which this server has been away says nothing about a worker. */
static void a_worker_is_not_judged_by_time_in_which_its_server_stood_still(void)
{
	begin(LARGE, 1);
	worker[0].room = QUEUED;
	reads(&worker[0], 1);
	for (int i = 0; i < 100; i++) {
		now_ns += PATIENCE;
		step();
	}
	CU_ASSERT_PTR_NOT_NULL(worker[0].conn);
	end();
}

/* ---- a follower ---- */

static const char *fetch(uint64_t offset, uint64_t length)
{
	const struct mst_fetch what = { .number = 4, .offset = offset, .length = length };

	return mst_fetching_ask(&fetching, &what);
}

static void a_follower_gives_what_the_leader_fetches_once_it_is_lent(void)
{
	uint64_t bytes = SMALL * sizeof(float);

	begin_follower();
	CU_ASSERT_PTR_NULL(fetch(0, bytes - 4096));
	step_follower();
	CU_ASSERT_EQUAL(follower.taken, 0);
	data_side_lends(average);
	step_follower();
	CU_ASSERT_EQUAL(follower.taken, bytes - 4096);
	CU_ASSERT_PTR_NULL(fetch(bytes - 4096, 4096));
	step_follower();
	CU_ASSERT(has_all(&follower, 4));
	CU_ASSERT_EQUAL(returns, 0);
	CU_ASSERT_PTR_NULL(fetch(0, 0));
	step_follower();
	CU_ASSERT_EQUAL(returns, 1);
	CU_ASSERT_EQUAL(returned, VERSION);
	end();
}

static void a_follower_gives_nothing_beyond_its_part_and_answers_one_request(void)
{
	uint64_t bytes = SMALL * sizeof(float);

	begin_follower();
	CU_ASSERT_PTR_NOT_NULL(fetch(bytes, 4));
	CU_ASSERT_PTR_NOT_NULL(fetch(bytes + 4, 0));
	CU_ASSERT_PTR_NOT_NULL(fetch(4, UINT64_MAX));
	CU_ASSERT_PTR_NULL(fetch(0, 4096));
	CU_ASSERT_PTR_NOT_NULL(fetch(4096, 4096));
	base.job.plan.server.aggregator.averages = 0;
	CU_ASSERT_PTR_NOT_NULL(fetch(0, 0));
	end();
}

static CU_TestInfo cases[] = {
	{ "a worker gets the parts of all servers, in order",
	  a_worker_gets_the_parts_of_all_servers_in_order },
	{ "pieces for a worker that has gone are dropped",
	  pieces_for_a_worker_that_has_gone_are_dropped },
	{ "a worker that has all may ask again at once",
	  a_worker_that_has_all_may_ask_again_at_once },
	{ "workers are served in the order in which they asked",
	  workers_are_served_in_the_order_in_which_they_asked },
	{ "a worker asks for one average at a time", a_worker_asks_for_one_average_at_a_time },
	{ "a follower sends what was fetched, and nothing else",
	  a_follower_sends_what_was_fetched_and_nothing_else },
	{ "what finds no room in the ring goes on later",
	  what_finds_no_room_in_the_ring_goes_on_later },
	{ "an average that is not finite is not sent", an_average_that_is_not_finite_is_not_sent },
	{ "a worker that takes four megabytes in a patience gets all",
	  a_worker_that_takes_four_megabytes_in_a_patience_gets_all },
	{ "a worker that takes less holds nobody up for longer than a patience",
	  a_worker_that_takes_less_holds_nobody_up_for_longer_than_a_patience },
	{ "a worker is not judged by time in which its server stood still",
	  a_worker_is_not_judged_by_time_in_which_its_server_stood_still },
	{ "a follower gives what the leader fetches, once it is lent",
	  a_follower_gives_what_the_leader_fetches_once_it_is_lent },
	{ "a follower gives nothing beyond its part, and answers one request",
	  a_follower_gives_nothing_beyond_its_part_and_answers_one_request },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("lending", cases);
}
