/* SPDX-License-Identifier: MIT */
#include "tools/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/transport/stream.h"
#include "tools/secure.h"

/* Holds the longest frame an requester is sent: a STATUS_RANKS with all its rows. */
#define INBOX_BYTES MST_FRAME_PLAIN
#define ASK_BYTES_MAX 64u

struct mst_watch {
	const struct mst_stream_ops *ops;
	struct mst_stream *stream;
	bool asking;
	struct mst_job_snapshot *whole; /* NULL before the first */
	struct mst_job_snapshot *next;  /* being put together */
	bool gathering;                 /* rows of `next` are still to come */
	struct mst_message message;
	struct mst_job_snapshot snapshot[2];
	struct mst_reason error;
	size_t have; /* bytes in the inbox */
	unsigned char inbox[INBOX_BYTES];
};

const struct mst_status_rank *mst_snapshot_rank(const struct mst_job_snapshot *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->row_count; i++)
		if (s->row[i].rank == rank)
			return &s->row[i];
	return NULL;
}

__attribute__((format(printf, 3, 4))) static int fail(struct mst_watch *w, int error,
						      const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	mst_reason_vset(&w->error, fmt, args);
	va_end(args);
	return error;
}

void mst_watch_explain(int error, const char *address, struct mst_reason *why)
{
	if (error == -ECONNREFUSED)
		mst_reason_set(why,
			       "nobody listens on %s: the job is over, or has another control "
			       "address (`muster run` prints it when it starts)",
			       address);
	else if (error == -EINVAL)
		mst_reason_set(why, "%s is no address: HOST:PORT is wanted", address);
	else if (error == -ENOENT)
		mst_reason_set(why, "there is no host of the name in %s", address);
	else
		mst_reason_set(why, "cannot connect to %s: %s", address, strerror(-error));
}

int mst_watch_unproven(int error)
{
	return error == -EPROTO ? -EACCES : error;
}

int mst_watch_open(const char *address, uint64_t timeout_ns, struct mst_watch **out,
		   struct mst_reason *why)
{
	struct mst_watch *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		mst_reason_set(why, "no memory to watch %s", address);
		return -ENOMEM;
	}
	struct mst_proof proof = { .own = mst_secure() };
	w->ops = mst_secure_stream();
	int rc = w->ops->connect(address, timeout_ns, &proof, &w->stream);
	if (rc < 0) {
		if (proof.why.text[0] != '\0')
			mst_reason_set(why, "%s", proof.why.text);
		else
			mst_watch_explain(rc, address, why);
		free(w);
		return proof.why.text[0] != '\0' ? mst_watch_unproven(rc) : rc;
	}
	w->next = &w->snapshot[0];
	*out = w;
	return 0;
}

void mst_watch_close(struct mst_watch *w)
{
	if (w == NULL)
		return;
	w->ops->close(w->stream);
	free(w);
}

int mst_watch_fd(const struct mst_watch *w)
{
	return w->ops->stream_fd(w->stream);
}

/* An ask is a few bytes, and one is out at a time: the socket's buffer always has room for it, so
 * that a short write means a broken connection. */
int mst_watch_ask(struct mst_watch *w, bool watch)
{
	struct mst_message ask = { .kind = MST_MSG_ASK_STATUS };
	unsigned char frame[ASK_BYTES_MAX];

	ask.watch = watch;
	int64_t length = mst_message_encode(&ask, frame, sizeof(frame));
	MST_ASSERT(length > 0);
	ssize_t sent = w->ops->send(w->stream, frame, (size_t)length);
	if (sent != length)
		return fail(w, sent < 0 ? (int)sent : -EPIPE, "cannot ask for the status: %s",
			    strerror(sent < 0 ? (int)-sent : EPIPE));
	w->asking = true;
	return 0;
}

bool mst_watch_asking(const struct mst_watch *w)
{
	return w->asking;
}

/* The rows are all there: what was `next` is the whole one now. Return: 1. */
static int complete(struct mst_watch *w)
{
	w->gathering = false;
	w->asking = false;
	w->whole = w->next;
	w->next = w->whole == &w->snapshot[0] ? &w->snapshot[1] : &w->snapshot[0];
	return 1;
}

static int take_status(struct mst_watch *w, const struct mst_status *status)
{
	if (w->gathering)
		return fail(w, -EPROTO, "musterd began a status before the last one was complete");
	if (status->rank_count > MST_WORKERS_MAX)
		return fail(w, -EPROTO, "musterd announced %u ranks, and %u is the most",
			    status->rank_count, MST_WORKERS_MAX);
	w->next->job = *status;
	w->next->row_count = 0;
	w->gathering = status->rank_count > 0;
	return w->gathering ? 0 : complete(w);
}

static int take_rows(struct mst_watch *w, const struct mst_status_rank *row, uint32_t count)
{
	struct mst_job_snapshot *s = w->next;

	if (!w->gathering || count > s->job.rank_count - s->row_count)
		return fail(w, -EPROTO, "musterd sent %u rows that its status did not announce",
			    count);
	memcpy(&s->row[s->row_count], row, count * sizeof(row[0]));
	s->row_count += count;
	return s->row_count == s->job.rank_count ? complete(w) : 0;
}

static int take_message(struct mst_watch *w, const struct mst_message *msg)
{
	switch (msg->kind) {
	case MST_MSG_STATUS:
		return take_status(w, &msg->status);
	case MST_MSG_STATUS_RANKS:
		return take_rows(w, msg->ranks.row, msg->ranks.count);
	case MST_MSG_ERROR:
		return fail(w, msg->error.code < 0 ? msg->error.code : -EPROTO, "%s",
			    msg->error.reason);
	default:
		return fail(w, -EPROTO, "a message of kind %d is no answer to a status question",
			    (int)msg->kind);
	}
}

static int take_frame(struct mst_watch *w, size_t length)
{
	struct mst_unknown unknown;
	int rc = mst_message_decode(w->inbox, length, &w->message, &unknown);

	if (unknown.tag != 0)
		return fail(w, rc, "musterd %s", mst_unknown_say(&unknown).text);
	if (rc < 0)
		return fail(w, rc, "musterd sent a message of %zu bytes that makes no sense",
			    length);
	rc = take_message(w, &w->message);
	w->have -= length;
	memmove(w->inbox, w->inbox + length, w->have);
	return rc;
}

/* Length of the first frame, 0 if it is not all there yet, or -errno. */
static int64_t first_frame(struct mst_watch *w)
{
	uint32_t protocol = 0;
	int64_t length = mst_frame_length(w->inbox, w->have, &protocol);

	if (length == -EPROTO && protocol == 0)
		return fail(w, -EPROTO, "what listens there is not musterd");
	if (length == -EPROTO)
		return fail(w, -EPROTO, "musterd speaks protocol %u, this program %u", protocol,
			    MST_PROTOCOL);
	if (length < 0 || length > (int64_t)sizeof(w->inbox))
		return fail(w, -EMSGSIZE, "musterd sent a message longer than any status");
	return length <= (int64_t)w->have ? length : 0;
}

/* Stops after the first snapshot that becomes complete, so that no caller misses one. */
static int take_inbox(struct mst_watch *w)
{
	int64_t length;

	while ((length = first_frame(w)) > 0) {
		int rc = take_frame(w, (size_t)length);

		if (rc != 0)
			return rc;
	}
	return (int)length;
}

int mst_watch_read(struct mst_watch *w)
{
	for (;;) {
		int rc = take_inbox(w);

		if (rc != 0)
			return rc;
		ssize_t got = w->ops->receive(w->stream, w->inbox + w->have,
					      sizeof(w->inbox) - w->have);
		if (got == -EAGAIN)
			return 0;
		if (got == 0)
			return fail(w, -EPIPE, "musterd has closed the connection");
		if (got < 0 && w->ops->why(w->stream) != NULL)
			return fail(w, (int)got, "%s", w->ops->why(w->stream));
		if (got < 0)
			return fail(w, (int)got, "the connection to musterd broke: %s",
				    strerror((int)-got));
		w->have += (size_t)got;
	}
}

int mst_watch_await(struct mst_watch *w, uint64_t deadline_ns)
{
	for (;;) {
		int rc = mst_watch_read(w);
		uint64_t now = mst_now_ns();

		if (rc != 0)
			return rc;
		if (now >= deadline_ns)
			return fail(w, -ETIMEDOUT,
				    "musterd accepts connections but does not answer");
		struct pollfd fd = { .fd = mst_watch_fd(w), .events = POLLIN };
		(void)poll(&fd, 1, (int)((deadline_ns - now) / MST_MS) + 1);
	}
}

const char *mst_watch_error(const struct mst_watch *w)
{
	return w->error.text;
}

const struct mst_job_snapshot *mst_watch_snapshot(const struct mst_watch *w)
{
	return w->whole;
}
