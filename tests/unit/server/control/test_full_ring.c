/* SPDX-License-Identifier: MIT */
/* The control side of a server over real sockets, while the data side has no room for requests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "server/control/plane.h"
#include "tests/ut.h"

#define ELEMS 64u
#define LONG_NS (60 * MST_SECOND)

/* A client's end of a control connection. */
struct control_client {
	struct mst_stream *stream;
	unsigned char in[64 << 10];
	size_t have;
};

static const struct mst_stream_ops *plain = &mst_plain;
static struct mst_server_options options;
static struct mst_options parsed;
static struct mst_plane *plane;
static struct control_client caller[4];
static struct mst_message message;
static bool full;
static uint32_t losses;    /* that there was no room for */
static uint64_t ahead_ns;  /* of the clock */
static uint32_t snapshots; /* that the data side was asked for */
static uint32_t values;    /* that were reported, and the ledger was told of */

bool __real_mst_server_request(struct mst_server *s, const struct mst_request *request);
bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request);
bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	snapshots += request->kind == MST_REQ_SNAPSHOT;
	losses += full && request->kind == MST_REQ_EVENT && request->event.kind == MST_EV_LOST;
	values += request->kind == MST_REQ_EVENT && request->event.kind == MST_EV_METRIC;
	return !full && __real_mst_server_request(s, request);
}

/* Its policy follows what workers report as "loss". */
static void begin(void)
{
	/* Only the end of its connection ends a session. */
	static const char *const set[][2] = { { "listen", "127.0.0.1:0" },
					      { "workers", "2" },
					      { "lease", "1h" },
					      { "patience", "1h" },
					      { "join-timeout", "1h" },
					      { "shards", "1" },
					      { "policy", "adasync:ksync,loss=loss" } };
	struct mst_plane_cfg cfg = { .options = &options,
				     .stream = &mst_plain,
				     .networks = &(struct mst_networks){ 1, { &mst_shm }, false } };
	struct mst_reason why;

	full = false;
	ahead_ns = 0;
	memset(caller, 0, sizeof(caller));
	CU_ASSERT_EQUAL_FATAL(mst_options_init(&parsed, mst_server_table, &options), 0);
	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		CU_ASSERT_EQUAL_FATAL(mst_options_set(&parsed, set[i][0], set[i][1]), 0);
	CU_ASSERT_EQUAL_FATAL(mst_server_options_check(&options, &why), 0);
	CU_ASSERT_EQUAL_FATAL(mst_plane_new(&cfg, &plane, &why), 0);
}

static void hang_up(struct control_client *c)
{
	plain->close(c->stream);
	c->stream = NULL;
}

static void end(void)
{
	for (size_t i = 0; i < sizeof(caller) / sizeof(caller[0]); i++) {
		if (caller[i].stream != NULL)
			hang_up(&caller[i]);
	}
	mst_plane_free(plane);
	mst_options_free(&parsed);
}

static void step(void)
{
	uint64_t now_ns = mst_now_ns() + ahead_ns;

	mst_plane_step(plane, now_ns);
	if (mst_plane_server(plane) != NULL)
		mst_server_step(mst_plane_server(plane), now_ns);
}

static void call(struct control_client *c)
{
	c->have = 0;
	CU_ASSERT_EQUAL_FATAL(plain->connect(mst_plane_address(plane), LONG_NS, NULL, &c->stream),
			      0);
}

static void say(struct control_client *c)
{
	unsigned char frame[4096];
	int64_t length = mst_message_encode(&message, frame, sizeof(frame));

	CU_ASSERT_FATAL(length > 0);
	CU_ASSERT_EQUAL_FATAL(plain->send(c->stream, frame, (size_t)length), length);
}

static void say_hello(struct control_client *c, int32_t rank)
{
	memset(&message, 0, sizeof(message));
	message.kind = MST_MSG_HELLO;
	snprintf(message.hello.job, sizeof(message.hello.job), "%s", options.job);
	message.hello.rank = rank;
	message.hello.elems = ELEMS;
	message.hello.owner = options.owner;
	say(c);
}

/* The next that it is told, in @message, while both sides go on. Return: false: nothing. */
static bool hears(struct control_client *c)
{
	uint64_t end_ns = mst_now_ns() + LONG_NS;

	while (mst_now_ns() < end_ns) {
		int64_t length = mst_frame_length(c->in, c->have, NULL);
		if (length > 0 && (size_t)length <= c->have) {
			int rc = mst_message_decode(c->in, (size_t)length, &message, NULL);
			c->have -= (size_t)length;
			memmove(c->in, c->in + length, c->have);
			return rc == 0;
		}
		step();
		ssize_t got = plain->receive(c->stream, c->in + c->have, sizeof(c->in) - c->have);
		if (got > 0)
			c->have += (size_t)got;
	}
	return false;
}

static bool hears_of(struct control_client *c, enum mst_message_kind kind)
{
	while (hears(c)) {
		if (message.kind == kind)
			return true;
		if (message.kind == MST_MSG_ERROR)
			return false;
	}
	return false;
}

static void join(struct control_client *c, int32_t rank)
{
	call(c);
	say_hello(c, rank);
	CU_ASSERT_FATAL(hears_of(c, MST_MSG_WELCOME));
}

/* A message that no stranger may say is answered by an error. */
static bool is_heard(struct control_client *c)
{
	call(c);
	memset(&message, 0, sizeof(message));
	message.kind = MST_MSG_LEAVE;
	say(c);
	return hears_of(c, MST_MSG_ERROR);
}

/* What one connection brings may come later than what another has brought after it, so the loss is
 * waited for. */
static void loses_a_worker_without_room(void)
{
	uint64_t end_ns = mst_now_ns() + LONG_NS;

	join(&caller[0], 0);
	join(&caller[1], 1);
	losses = 0;
	full = true;
	hang_up(&caller[0]);
	while (losses == 0 && mst_now_ns() < end_ns)
		step();
	CU_ASSERT_FATAL(losses > 0);
}

static void control_hears_others_while_a_loss_waits(void)
{
	begin();
	loses_a_worker_without_room();
	CU_ASSERT(is_heard(&caller[2]));
	end();
}

static void control_comes_back_soon_while_a_loss_waits(void)
{
	begin();
	uint64_t nap_ns = mst_plane_nap(plane);
	loses_a_worker_without_room();
	CU_ASSERT(is_heard(&caller[2]));
	CU_ASSERT(mst_plane_nap(plane) < nap_ns);
	end();
}

/* Its rank is free again, as it is once the ledger has ended its session. */
static void the_ledger_hears_of_a_loss_that_waited(void)
{
	begin();
	loses_a_worker_without_room();
	CU_ASSERT(is_heard(&caller[2]));
	full = false;
	call(&caller[3]);
	say_hello(&caller[3], 0);
	CU_ASSERT_FATAL(hears_of(&caller[3], MST_MSG_WELCOME));
	CU_ASSERT_EQUAL(message.welcome.rank, 0);
	CU_ASSERT_EQUAL(message.welcome.incarnation, 2);
	end();
}

static void a_stop_ends_all_without_room(void)
{
	begin();
	join(&caller[0], 0);
	join(&caller[1], 1);
	full = true;
	for (int again = 0; again < 3; again++)
		mst_plane_stop(plane, "it is enough", false, mst_now_ns());
	CU_ASSERT(hears_of(&caller[0], MST_MSG_ERROR));
	full = false;
	uint64_t end_ns = mst_now_ns() + LONG_NS;
	while (mst_plane_over(plane) == 0 && mst_now_ns() < end_ns)
		step();
	CU_ASSERT_EQUAL(mst_plane_over(plane), -1);
	end();
}

/* As much as the connection takes, from *@at on, again and again. Return: it is still there. */
static bool fill(const struct control_client *c, const unsigned char *frames, size_t bytes,
		 size_t *at)
{
	ssize_t sent;

	while ((sent = plain->send(c->stream, frames + *at, bytes - *at)) > 0)
		*at = (*at + (size_t)sent) % bytes;
	return sent == -EAGAIN;
}

/* Before each step, of an eighth of a millisecond or more, there is more than a step takes.
 * Return: how many steps there were. */
static uint32_t flood_with(enum mst_message_kind kind, const char *name)
{
	unsigned char frames[1 << 16];
	size_t bytes = 0, at = 0;
	uint32_t steps = 0;

	begin();
	join(&caller[0], 0);
	values = 0;
	memset(&message, 0, sizeof(message));
	message.kind = kind;
	if (kind == MST_MSG_REPORT)
		snprintf(message.metric.name, sizeof(message.metric.name), "%s", name);
	while (sizeof(frames) - bytes >= 128)
		bytes += (size_t)mst_message_encode(&message, frames + bytes, 128);
	for (; steps < 100000 && fill(&caller[0], frames, bytes, &at); steps++) {
		ahead_ns += MST_MS / 8;
		step();
	}
	CU_ASSERT(steps < 100000);
	call(&caller[1]);
	say_hello(&caller[1], 0);
	CU_ASSERT_FATAL(hears_of(&caller[1], MST_MSG_WELCOME));
	CU_ASSERT_EQUAL(message.welcome.rank, 0);
	end();
	return steps;
}

static void a_worker_that_floods_loses_its_rank(void)
{
	(void)flood_with(MST_MSG_HEARTBEAT, "");
	uint32_t steps = flood_with(MST_MSG_REPORT, "loss");
	CU_ASSERT(values > 0 && values <= steps);
	(void)flood_with(MST_MSG_REPORT, "accuracy");
	CU_ASSERT_EQUAL(values, 0);
}

/* Time goes on by a millisecond a step, and in each somebody asks. */
static void questions_without_end_take_fifty_snapshots_a_second(void)
{
	begin();
	join(&caller[0], 0);
	call(&caller[1]);
	memset(&message, 0, sizeof(message));
	message.kind = MST_MSG_ASK_STATUS;
	snapshots = 0;
	for (uint64_t ms = 0, from_ns = mst_now_ns(); ms < 1000; ms++) {
		say(&caller[1]);
		mst_plane_step(plane, from_ns + ms * MST_MS);
		mst_server_step(mst_plane_server(plane), from_ns + ms * MST_MS);
		while (plain->receive(caller[1].stream, caller[1].in, sizeof(caller[1].in)) > 0)
			continue;
	}
	CU_ASSERT(snapshots > 0 && snapshots <= 50);
	end();
}

static CU_TestInfo cases[] = {
	{ "a worker that floods loses its rank", a_worker_that_floods_loses_its_rank },
	{ "questions without end take fifty snapshots a second",
	  questions_without_end_take_fifty_snapshots_a_second },
	{ "control hears others while a loss waits", control_hears_others_while_a_loss_waits },
	{ "control comes back soon while a loss waits",
	  control_comes_back_soon_while_a_loss_waits },
	{ "the ledger hears of a loss that waited", the_ledger_hears_of_a_loss_that_waited },
	{ "a stop ends all without room", a_stop_ends_all_without_room },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("full ring", cases);
}
