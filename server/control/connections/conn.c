/* SPDX-License-Identifier: MIT */
#include "server/control/connections/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

#define IN_FIRST MST_FRAME_STRANGER
/* How often a call reads the stream at most. An honest peer's bytes come in fewer reads, or are
 * read on in the next call; others could have each read give one byte, and the call last. */
#define READS_MAX 8u
#define OUT_MAX (4u << 20)
#define FRAME_MAX (MST_FRAME_HEADER + MST_FRAME_BODY_MAX)

/* ---- floods ---- */

/* A period in which everything that had come was handled ends the count. */
static void begin_period(struct mst_flood *f, uint64_t now_ns)
{
	if (!f->more)
		f->periods = 0;
	f->more = false;
	f->since_ns = now_ns;
	f->handled = 0;
}

bool mst_flood_admits(struct mst_flood *f, uint64_t now_ns)
{
	if (mst_flood_is_one(f))
		return false;
	if (now_ns - f->since_ns >= MST_FLOOD_PERIOD_NS)
		begin_period(f, now_ns);
	if (f->handled < MST_FLOOD_MESSAGES) {
		f->handled++;
		return true;
	}
	f->periods += !f->more;
	f->more = true;
	return false;
}

void mst_flood_again(struct mst_flood *f)
{
	f->handled--;
}

/* ---- roles ---- */

#define NEVER (-1)
#define NEW MST_CONN_NEW
#define JOINING MST_CONN_JOINING
#define WORKER MST_CONN_WORKER
#define WATCHER MST_CONN_WATCHER
#define SERVER MST_CONN_SERVER
#define LEAD MST_CONN_LEAD
#define CLOSING MST_CONN_CLOSING

static const int after[MST_CONN_ROLES][MST_CONN_EVENTS] = {
	/*             HELLO   ADMIT    WATCH   SERVE  LEADS     PART */
	[NEW] = { JOINING, NEVER, WATCHER, SERVER, LEAD, CLOSING },
	[JOINING] = { NEVER, WORKER, NEVER, NEVER, NEVER, CLOSING },
	[WORKER] = { NEVER, NEVER, NEVER, NEVER, NEVER, CLOSING },
	[WATCHER] = { NEVER, NEVER, NEVER, NEVER, NEVER, CLOSING },
	[SERVER] = { NEVER, NEVER, NEVER, NEVER, NEVER, CLOSING },
	[LEAD] = { NEVER, NEVER, NEVER, NEVER, NEVER, CLOSING },
	[CLOSING] = { NEVER, NEVER, NEVER, NEVER, NEVER, NEVER },
};

bool mst_conn_enter(enum mst_conn_role *role, enum mst_conn_event event)
{
	int next = after[*role][event];

	if (next == NEVER)
		return false;
	*role = (enum mst_conn_role)next;
	return true;
}

/* ---- beginning and end ---- */

void mst_conn_open(struct mst_conn *c, const struct mst_stream_ops *ops, struct mst_stream *stream,
		   uint64_t id)
{
	char peer[sizeof(c->peer)];

	memcpy(peer, c->peer, sizeof(peer));
	*c = (struct mst_conn){ .ops = ops, .stream = stream, .id = id };
	memcpy(c->peer, peer, sizeof(peer));
	ops->principal(stream, &c->principal);
}

void mst_conn_close(struct mst_conn *c)
{
	if (c->stream == NULL)
		return;
	c->ops->close(c->stream);
	free(c->in);
	free(c->out);
	*c = (struct mst_conn){ 0 };
}

/* ---- frames ---- */

/* The longest frame that the peer may send now. All messages to a server are shorter than IN_FIRST,
 * but for the tensor tables and pieces of states: they come from a leader, and from workers that
 * were asked for them; and for pieces of the average, which come from a follower. So nobody else
 * gets more memory. */
static int64_t frame_max(const struct mst_conn *c)
{
	bool gives = c->sends_state || c->state_asks > 0 || c->gives_agreed;

	if (c->role == MST_CONN_LEAD || gives)
		return (int64_t)FRAME_MAX;
	return c->role == MST_CONN_SERVER ? MST_TAKE_CHUNK + IN_FIRST : IN_FIRST;
}

static int grow(char **buffer, size_t *room, size_t need)
{
	size_t size = *room > 0 ? *room : IN_FIRST;

	while (size < need)
		size *= 2;
	if (size == *room)
		return 0;
	char *bigger = realloc(*buffer, size);
	if (bigger == NULL)
		return -ENOMEM;
	*buffer = bigger;
	*room = size;
	return 0;
}

/* Drops the last message without moving any bytes, so that many small frames cost no more than
 * their bytes. */
static void drop_used(struct mst_conn *c)
{
	c->in_at += c->in_used;
	c->in_have -= c->in_used;
	c->in_used = 0;
	if (c->in_have == 0)
		c->in_at = 0;
}

/* Makes room for @need bytes from in_at on. The bytes that may be moved for it are the beginning of
 * one frame, or a message that waits. */
static int make_room(struct mst_conn *c, size_t need)
{
	if (c->in_at + need <= c->in_room)
		return 0;
	if (c->in_at > 0)
		memmove(c->in, c->in + c->in_at, c->in_have);
	c->in_at = 0;
	return grow(&c->in, &c->in_room, need);
}

int mst_conn_receive(struct mst_conn *c)
{
	drop_used(c);
	c->dry = false;
	for (uint32_t i = 0; i < READS_MAX; i++) {
		int64_t want = mst_frame_length(c->in + c->in_at, c->in_have, NULL);
		if (want < 0 || want > frame_max(c))
			return 0; /* mst_conn_next() reports it */
		size_t need = want > 0 ? (size_t)want : c->in_have + MST_FRAME_HEADER;
		if (need <= c->in_have) {
			/* A whole frame waits, so the rest may stay in the socket. But a new peer
			 * is read on, because it must not be admitted if it has already closed. */
			if (c->role != MST_CONN_NEW || c->in_have >= IN_FIRST)
				return 0;
			need = IN_FIRST;
		}
		if (make_room(c, need) != 0)
			return -ENOMEM;
		size_t end = c->in_at + c->in_have;
		ssize_t got = c->ops->receive(c->stream, c->in + end, c->in_room - end);
		c->dry = got == -EAGAIN;
		if (got == -EAGAIN)
			return 0;
		c->refused = got == -EACCES;
		if (got <= 0)
			return -EPIPE;
		c->in_have += (size_t)got;
	}
	return 0;
}

int mst_conn_next(struct mst_conn *c, struct mst_message *out, uint32_t *protocol,
		  struct mst_unknown *unknown)
{
	drop_used(c);
	*unknown = (struct mst_unknown){ 0, 0 };
	int64_t length = mst_frame_length(c->in + c->in_at, c->in_have, protocol);
	if (length < 0)
		return -EPROTO;
	if (length > frame_max(c))
		return -EMSGSIZE;
	if (length == 0 || (size_t)length > c->in_have)
		return 0;
	int rc = mst_message_decode(c->in + c->in_at, (size_t)length, out, unknown);
	if (rc != 0)
		return rc;
	c->in_used = (size_t)length;
	return 1;
}

void mst_conn_again(struct mst_conn *c)
{
	c->in_used = 0;
	c->dry = false;
}

int mst_conn_flush(struct mst_conn *c)
{
	size_t sent = 0;
	ssize_t n = 0;

	while (sent < c->out_have && n >= 0) {
		n = c->ops->send(c->stream, c->out + sent, c->out_have - sent);
		if (n > 0)
			sent += (size_t)n;
	}
	if (sent > 0)
		memmove(c->out, c->out + sent, c->out_have - sent);
	c->out_have -= sent;
	return n < 0 && n != -EAGAIN ? -EPIPE : 0;
}

int mst_conn_send(struct mst_conn *c, const struct mst_message *msg)
{
	if (c->out_have > OUT_MAX)
		return -ENOBUFS;
	size_t piece = msg->kind == MST_MSG_STATE  ? msg->state.length
		       : msg->kind == MST_MSG_TAKE ? msg->handed.piece.length
						   : 0;
	if (grow(&c->out, &c->out_room, c->out_have + MST_FRAME_PLAIN + piece) != 0)
		return -ENOMEM;
	int64_t length = mst_message_encode(msg, c->out + c->out_have, c->out_room - c->out_have);
	MST_ASSERT(length > 0);
	c->out_have += (size_t)length;
	return 0;
}
