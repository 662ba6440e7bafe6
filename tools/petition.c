/* SPDX-License-Identifier: MIT */
#include "tools/petition.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/stream.h"
#include "tools/command.h"
#include "tools/secure.h"
#include "tools/watch.h"

#define SILENT_NS (5 * MST_SECOND) /* for a connection; and before the user is told that we wait */
#define FRAME_BYTES 2048u          /* holds a request, and its answer with a sentence */

struct petition {
	const struct mst_stream_ops *ops;
	struct mst_stream *stream;
	char *answer;
	size_t len;
	size_t have;
	unsigned char frame[FRAME_BYTES];
};

__attribute__((format(printf, 3, 4))) static int fail(struct petition *p, int error,
						      const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(p->answer, p->len, fmt, args);
	va_end(args);
	return error;
}

static int say(struct petition *p, const struct mst_message *msg)
{
	int64_t length = mst_message_encode(msg, p->frame, sizeof(p->frame));

	MST_ASSERT(length > 0);
	/* the socket is new, so its buffer has room for all of it */
	ssize_t sent = p->ops->send(p->stream, p->frame, (size_t)length);
	if (sent == length)
		return 0;
	return fail(p, sent < 0 ? (int)sent : -EPIPE, "cannot ask: %s",
		    strerror(sent < 0 ? (int)-sent : EPIPE));
}

/* The frame is whole. */
static int take(struct petition *p, size_t length)
{
	struct mst_message *msg = malloc(sizeof(*msg));

	if (msg == NULL)
		return fail(p, -ENOMEM, "no memory for the answer");
	struct mst_unknown unknown;
	int rc = mst_message_decode(p->frame, length, msg, &unknown);
	if (rc == 0 && msg->kind == MST_MSG_DONE)
		(void)fail(p, 0, "%s", msg->why);
	else if (rc == 0 && msg->kind == MST_MSG_ERROR)
		rc = fail(p, msg->error.code, "%s", msg->error.reason);
	else if (unknown.tag != 0)
		(void)fail(p, rc, "musterd %s", mst_unknown_say(&unknown).text);
	else
		rc = fail(p, -EPROTO, "what listens there does not answer as musterd does");
	free(msg);
	return rc;
}

/* Return: the length of the answer; 0: it is not all there; -errno. */
static int64_t length_of(struct petition *p)
{
	uint32_t protocol = 0;
	int64_t length = mst_frame_length(p->frame, p->have, &protocol);

	if (length == -EPROTO && protocol != 0)
		return fail(p, -EPROTO, "musterd speaks protocol %u, this program %u", protocol,
			    MST_PROTOCOL);
	if (length < 0 || length > (int64_t)sizeof(p->frame))
		return fail(p, -EPROTO, "what listens there is not musterd");
	return length <= (int64_t)p->have ? length : 0;
}

/* Return: 0, or -errno: the connection is of no use any more. */
static int receive(struct petition *p)
{
	ssize_t got = p->ops->receive(p->stream, p->frame + p->have, sizeof(p->frame) - p->have);

	if (got == 0)
		return fail(p, -EPIPE, "musterd has closed the connection without an answer");
	if (got < 0 && p->ops->why(p->stream) != NULL)
		return fail(p, (int)got, "%s", p->ops->why(p->stream));
	if (got < 0 && got != -EAGAIN)
		return fail(p, (int)got, "the connection to musterd broke: %s",
			    strerror((int)-got));
	p->have += got > 0 ? (size_t)got : 0;
	return 0;
}

/* Tells once that there is no answer yet. */
static void tell_silence(uint64_t *tell_ns, uint64_t deadline_ns, uint64_t now_ns)
{
	if (now_ns < *tell_ns)
		return;
	*tell_ns = MST_NEVER;
	mst_warn("musterd has not answered for %d s; waiting for %.3g s more (--timeout)",
		 (int)(SILENT_NS / MST_SECOND),
		 (double)(deadline_ns - now_ns) / (double)MST_SECOND);
}

static int await(struct petition *p, uint64_t deadline_ns)
{
	uint64_t tell_ns = mst_now_ns() + SILENT_NS;

	for (;;) {
		int rc = receive(p);
		if (rc != 0)
			return rc;
		int64_t length = length_of(p);
		if (length != 0)
			return length > 0 ? take(p, (size_t)length) : (int)length;
		uint64_t now_ns = mst_now_ns();
		if (now_ns >= deadline_ns)
			return fail(p, -ETIMEDOUT,
				    "musterd has not answered in time; muster status says whether "
				    "it has done it");
		tell_silence(&tell_ns, deadline_ns, now_ns);
		uint64_t until_ns = tell_ns < deadline_ns ? tell_ns : deadline_ns;
		struct pollfd fd = { .fd = p->ops->stream_fd(p->stream), .events = POLLIN };
		(void)poll(&fd, 1, (int)((until_ns - now_ns) / MST_MS) + 1);
	}
}

/* @answer: a sentence: what will be, or why not.
 * Return: 0: it is done; or -errno, of the leader's refusal or of the connection. */
static int ask(const char *address, const struct mst_message *msg, uint64_t timeout_ns,
	       char *answer, size_t len)
{
	struct petition p = { .ops = mst_secure_stream(), .answer = answer, .len = len };
	struct mst_proof proof = { .own = mst_secure() };
	uint64_t deadline_ns = mst_now_ns() + timeout_ns;

	uint64_t connect_ns = timeout_ns < SILENT_NS ? timeout_ns : SILENT_NS;
	int rc = p.ops->connect(address, connect_ns, &proof, &p.stream);
	if (rc < 0 && proof.why[0] != '\0')
		return fail(&p, mst_watch_unproven(rc), "%s", proof.why);
	if (rc < 0) {
		mst_watch_explain(rc, address, answer, len);
		return rc;
	}
	rc = say(&p, msg);
	if (rc == 0)
		rc = await(&p, deadline_ns);
	p.ops->close(p.stream);
	return rc;
}

int mst_petition(const char *address, const struct mst_message *msg, uint64_t timeout_ns)
{
	char answer[MST_REASON_LEN];
	int rc = ask(address, msg, timeout_ns, answer, sizeof(answer));

	if (rc == 0)
		(void)puts(answer);
	else
		mst_error("%s", answer);
	return mst_secure_exit(rc);
}
