/* SPDX-License-Identifier: MIT */
/* The frontend with thousands of members, nearly all of which compute and say nothing. The test
 * counts what the frontend asks of their streams. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "server/control/connections/frontend.h"
#include "tests/ut.h"

#define MEMBERS 2000u
#define DESCRIPTORS (MEMBERS + 64u) /* with those of the frontend and of the test's own process */
#define SPOKEN 1234u

struct many_stream {
	int fd; /* an eventfd: readable while there is something to receive */
	unsigned char frame[256];
	size_t have;
	bool closed;
};

static struct many_stream stream[MEMBERS];
static struct mst_conn *conn[MEMBERS];
static struct mst_frontend front;
static uint64_t now_ns;
static int listener; /* an eventfd: readable while somebody calls */
static uint32_t receives, looks, accepts, messages, gone_members;
static bool takes;

/* ---- streams ---- */

static ssize_t many_receive(struct mst_stream *s, void *data, size_t len)
{
	struct many_stream *m = (struct many_stream *)s;
	size_t have = m->have < len ? m->have : len;
	uint64_t count;

	receives++;
	memcpy(data, m->frame, have);
	m->have = 0;
	(void)!read(m->fd, &count, sizeof(count));
	return have > 0 ? (ssize_t)have : m->closed ? 0 : -EAGAIN;
}

static ssize_t many_send(struct mst_stream *s, const void *data, size_t len)
{
	(void)s;
	(void)data;
	return (ssize_t)len;
}

static void many_close(struct mst_stream *s)
{
	close(((struct many_stream *)s)->fd);
}

/* The frontend asks for a connection's descriptor when it looks whether something has come. */
static int many_fd(const struct mst_stream *s)
{
	looks++;
	return ((const struct many_stream *)s)->fd;
}

static int many_listen(const char *address, struct mst_credentials *own, struct mst_listener **out,
		       char *bound, size_t len)
{
	(void)own;
	listener = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*out = (struct mst_listener *)&listener;
	snprintf(bound, len, "%s", address);
	return listener < 0 ? -errno : 0;
}

/* The caller has hung up again. */
static int many_accept(struct mst_listener *l, struct mst_stream **out, char *peer, size_t len)
{
	uint64_t count;

	(void)l;
	(void)out;
	(void)peer;
	(void)len;
	accepts++;
	(void)!read(listener, &count, sizeof(count));
	return -EAGAIN;
}

static int many_listener_fd(const struct mst_listener *l)
{
	(void)l;
	return listener;
}

static void many_unlisten(struct mst_listener *l)
{
	(void)l;
	close(listener);
}

static const struct mst_stream_ops streams = {
	.listen = many_listen,
	.accept = many_accept,
	.listener_fd = many_listener_fd,
	.unlisten = many_unlisten,
	.send = many_send,
	.receive = many_receive,
	.close = many_close,
	.buffered = mst_stream_unbuffered,
	.why = mst_stream_no_why,
	.principal = mst_stream_unproven,
	.stream_fd = many_fd,
};

/* ---- the owner ---- */

static bool message(void *ctx, struct mst_conn *c, const struct mst_message *msg, uint64_t at_ns)
{
	(void)ctx;
	(void)at_ns;
	CU_ASSERT_PTR_EQUAL(c, conn[SPOKEN]);
	CU_ASSERT_EQUAL(msg->kind, MST_MSG_HEARTBEAT);
	messages++;
	return takes;
}

static bool broken(void *ctx, struct mst_conn *c, const char *what, uint64_t at_ns)
{
	(void)ctx;
	mst_frontend_error(&front, c, -EPROTO, what, at_ns);
	return true;
}

static void gone(void *ctx, struct mst_conn *c)
{
	(void)ctx;
	(void)c;
	gone_members++;
}

static const struct mst_frontend_ops owner = { message, broken, gone };

static struct mst_conn *admit(struct many_stream *s, struct mst_identity who)
{
	*s = (struct many_stream){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	struct mst_conn *c = mst_frontend_adopt(&front, (struct mst_stream *)s, "10.0.0.7:5",
						MST_CONN_HELLO);

	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	mst_frontend_admit(&front, c, who);
	return c;
}

static void begin(void)
{
	struct mst_frontend_cfg cfg = { .stream = &streams,
					.listen = "10.0.0.1:17077",
					.members = MEMBERS,
					.workers = MEMBERS,
					.ops = &owner };
	struct mst_reason why;

	now_ns = MST_SECOND;
	takes = true;
	CU_ASSERT_EQUAL_FATAL(mst_frontend_open(&front, &cfg, &why), 0);
	for (uint32_t rank = 0; rank < MEMBERS; rank++)
		conn[rank] = admit(&stream[rank], (struct mst_identity){ rank, 1 });
	receives = looks = accepts = messages = gone_members = 0;
}

static void end(void)
{
	mst_frontend_close(&front);
}

static void step(void)
{
	mst_frontend_step(&front, now_ns++);
}

static void make_readable(int fd)
{
	uint64_t one = 1;

	CU_ASSERT_EQUAL(write(fd, &one, sizeof(one)), sizeof(one));
}

static void speak(void)
{
	static const struct mst_message beat = { .kind = MST_MSG_HEARTBEAT };
	struct many_stream *s = &stream[SPOKEN];

	int64_t length = mst_message_encode(&beat, s->frame, sizeof(s->frame));
	CU_ASSERT_FATAL(length > 0);
	s->have = (size_t)length;
	make_readable(s->fd);
}

/* ---- cases ---- */

/* A connection is received from until there is nothing left, and then once more at most. */
static void only_who_has_said_something_is_read(void)
{
	begin();
	for (uint32_t i = 1; i <= 3; i++) {
		receives = looks = 0;
		speak();
		step();
		CU_ASSERT_EQUAL(messages, i);
		CU_ASSERT(receives > 0 && receives <= 3);
		CU_ASSERT(looks <= 3);
	}
	end();
}

static void where_nobody_says_anything_nobody_is_looked_at(void)
{
	begin();
	speak();
	step();
	receives = looks = 0;
	for (int i = 0; i < 100; i++)
		step();
	CU_ASSERT_EQUAL(receives, 0);
	CU_ASSERT_EQUAL(looks, 0);
	CU_ASSERT_EQUAL(accepts, 0);
	end();
}

static void who_calls_is_accepted_in_the_next_step(void)
{
	begin();
	for (uint32_t i = 1; i <= 3; i++) {
		make_readable(listener);
		step();
		CU_ASSERT_EQUAL(accepts, i);
		step();
		CU_ASSERT_EQUAL(accepts, i);
	}
	end();
}

/* A wake that comes between two waits ends the second, and only that. */
static void a_wake_ends_one_wait(void)
{
	begin();
	mst_frontend_wake(&front);
	step();
	uint64_t begin_ns = mst_now_ns();
	mst_frontend_wait(&front, 60 * MST_SECOND);
	CU_ASSERT(mst_now_ns() - begin_ns < 30 * MST_SECOND);
	begin_ns = mst_now_ns();
	mst_frontend_wait(&front, 20 * MST_MS);
	CU_ASSERT(mst_now_ns() - begin_ns >= 10 * MST_MS);
	end();
}

static void what_ends_a_wait_is_read_in_the_next_step(void)
{
	begin();
	speak();
	mst_frontend_wait(&front, 10 * MST_SECOND);
	step();
	CU_ASSERT_EQUAL(messages, 1);
	end();
}

/* Nobody else is looked at because of it. */
static void a_message_that_waits_is_given_in_each_step(void)
{
	begin();
	takes = false;
	speak();
	for (uint32_t i = 1; i <= 5; i++) {
		step();
		CU_ASSERT_EQUAL(messages, i);
	}
	CU_ASSERT(looks <= 3 * 5);
	takes = true;
	step();
	step();
	CU_ASSERT_EQUAL(messages, 6);
	end();
}

static void who_is_told_to_part_is_closed_in_the_next_step(void)
{
	begin();
	mst_frontend_part(&front, conn[SPOKEN], now_ns);
	CU_ASSERT_EQUAL(mst_frontend_count(&front, MST_CONN_CLOSING), 1);
	step();
	CU_ASSERT_EQUAL(gone_members, 1);
	CU_ASSERT_EQUAL(mst_frontend_count(&front, MST_CONN_CLOSING), 0);
	CU_ASSERT_EQUAL(mst_frontend_count(&front, MST_CONN_WORKER), MEMBERS - 1);
	CU_ASSERT(receives <= 1 && looks <= 3);
	end();
}

static void a_worker_is_found_by_its_session(void)
{
	struct mst_identity now = { SPOKEN, 1 }, later = { SPOKEN, 2 };

	begin();
	CU_ASSERT_PTR_EQUAL(mst_frontend_worker(&front, now), conn[SPOKEN]);
	CU_ASSERT_PTR_NULL(mst_frontend_worker(&front, later));
	mst_frontend_hang_up(&front, conn[SPOKEN]);
	CU_ASSERT_PTR_NULL(mst_frontend_worker(&front, now));
	struct mst_conn *again = admit(&stream[SPOKEN], later);
	CU_ASSERT_PTR_EQUAL(mst_frontend_worker(&front, later), again);
	CU_ASSERT_PTR_NULL(mst_frontend_worker(&front, now));
	mst_frontend_part(&front, again, now_ns);
	CU_ASSERT_PTR_NULL(mst_frontend_worker(&front, later));
	CU_ASSERT_PTR_NULL(mst_frontend_worker(&front, (struct mst_identity){ MEMBERS, 1 }));
	end();
}

static CU_TestInfo cases[] = {
	{ "only who has said something is read", only_who_has_said_something_is_read },
	{ "where nobody says anything nobody is looked at",
	  where_nobody_says_anything_nobody_is_looked_at },
	{ "who calls is accepted in the next step", who_calls_is_accepted_in_the_next_step },
	{ "a wake ends one wait", a_wake_ends_one_wait },
	{ "what ends a wait is read in the next step", what_ends_a_wait_is_read_in_the_next_step },
	{ "a message that waits is given in each step",
	  a_message_that_waits_is_given_in_each_step },
	{ "who is told to part is closed in the next step",
	  who_is_told_to_part_is_closed_in_the_next_step },
	{ "a worker is found by its session", a_worker_is_found_by_its_session },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < DESCRIPTORS) {
		printf("skipped: the hard limit of file descriptors is below %u\n", DESCRIPTORS);
		return UT_SKIP;
	}
	if (limit.rlim_cur < DESCRIPTORS)
		limit.rlim_cur = DESCRIPTORS;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 1;
	return ut_main("frontend with many", cases);
}
