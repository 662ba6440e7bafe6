/* SPDX-License-Identifier: MIT */
/* A stream that holds bytes of which its descriptor knows nothing, as one over TLS does once it has
 * decrypted a record: the frontend goes on reading them, and does not sleep on them. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "server/control/connections/frontend.h"
#include "tests/unit/server/control/stub_stream.h"
#include "tests/ut.h"

#define MESSAGES 100u /* more than a step reads */
#define HANG_S 60u

/* All messages come with one event of the descriptor, and each read gives one of them. */
struct mst_stream {
	int fd;
	uint32_t left; /* messages */
	unsigned char frame[256];
	size_t length; /* of the frame */
};

static struct mst_frontend front;
static struct mst_stream peer;
static uint32_t heard;
static volatile sig_atomic_t hangs;

static ssize_t swallow(struct mst_stream *s, const void *data, size_t len)
{
	(void)s;
	(void)data;
	return (ssize_t)len;
}

static ssize_t give(struct mst_stream *s, void *data, size_t len)
{
	uint64_t taken;

	(void)!read(s->fd, &taken, sizeof(taken));
	if (s->left == 0)
		return -EAGAIN;
	CU_ASSERT_FATAL(len >= s->length);
	memcpy(data, s->frame, s->length);
	s->left--;
	return (ssize_t)s->length;
}

static bool holds(const struct mst_stream *s)
{
	return s->left > 0;
}

static int fd_of(const struct mst_stream *s)
{
	return s->fd;
}

static const struct mst_stream_ops stream = { .send = swallow,
					      .receive = give,
					      .close = stub_stream_close,
					      .buffered = holds,
					      .why = mst_stream_no_why,
					      .principal = mst_stream_unproven,
					      .stream_fd = fd_of,
					      .unlisten = stub_stream_unlisten };

static bool message(void *ctx, struct mst_conn *c, const struct mst_message *msg, uint64_t at_ns)
{
	(void)ctx, (void)c, (void)at_ns;
	CU_ASSERT_EQUAL(msg->kind, MST_MSG_HEARTBEAT);
	heard++;
	return true;
}

static bool broken(void *ctx, struct mst_conn *c, const char *what, uint64_t at_ns)
{
	(void)ctx, (void)c, (void)what, (void)at_ns;
	CU_FAIL("a heartbeat broke the protocol");
	return true;
}

static void gone(void *ctx, struct mst_conn *c)
{
	(void)ctx, (void)c;
}

static const struct mst_frontend_ops ops = { message, broken, gone };

static void give_up(int signo)
{
	(void)signo;
	hangs = 1;
	mst_frontend_wake(&front);
}

static void begin(void)
{
	struct mst_frontend_cfg cfg = {
		.stream = &stream, .members = 1, .workers = 1, .ops = &ops
	};
	struct mst_message beat = { .kind = MST_MSG_HEARTBEAT };
	uint64_t one = 1;
	struct mst_reason why;

	(void)signal(SIGALRM, give_up);
	peer.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	peer.length = (size_t)mst_message_encode(&beat, peer.frame, sizeof(peer.frame));
	CU_ASSERT_EQUAL_FATAL(mst_frontend_open(&front, &cfg, &why), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mst_frontend_adopt(&front, &peer, "peer", MST_CONN_HELLO));
	peer.left = MESSAGES;
	CU_ASSERT_EQUAL_FATAL(write(peer.fd, &one, sizeof(one)), (ssize_t)sizeof(one));
}

/* No wait is ended by its time: each is an hour. */
static void a_wait_ends_at_once_while_a_stream_holds_bytes(void)
{
	uint64_t now_ns = MST_SECOND;
	uint32_t steps = 0;

	begin();
	(void)alarm(HANG_S);
	for (; heard < MESSAGES && !hangs; steps++) {
		mst_frontend_wait(&front, 3600 * MST_SECOND);
		mst_frontend_step(&front, now_ns++);
	}
	(void)alarm(0);
	CU_ASSERT_FALSE(hangs);
	CU_ASSERT_EQUAL(heard, MESSAGES);
	CU_ASSERT(steps > 2); /* else there was nothing to wait for */
	mst_frontend_close(&front);
	close(peer.fd);
}

int main(void)
{
	CU_TestInfo cases[] = {
		{ "a wait ends at once while a stream holds bytes",
		  a_wait_ends_at_once_while_a_stream_holds_bytes },
		CU_TEST_INFO_NULL,
	};

	return ut_main("frontend_buffered", cases);
}
