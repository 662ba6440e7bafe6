/* SPDX-License-Identifier: MIT */
/*
 * Channels: streams of TLS for the data of a network.
 *
 * Out: what is to be sent is encrypted to records of 16 KiB, small parts together in one, and 16
 * records go to the kernel with a call. What it does not take at once has been counted as nothing
 * so far: the caller offers the same bytes again, of which the encrypted ones are left out. So what
 * counts as taken is with the kernel, as without TLS.
 *
 * In: the library reads 64 KiB at a time. receive() goes on until there is no room or the socket
 * is empty, but READS_MAX records at most, so that a peer that sends much leaves others their turn.
 *
 * Keys are changed after so many records, each direction by its sender. A peer may change its own
 * more often than an honest one does, but not without end.
 */
#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/transport/channel.h"
#include "common/transport/tls/listener.h"
#include "common/transport/tls/stream.h"

#define BATCH 16u         /* records with one call, and with one send() */
#define READS_MAX 64u     /* records with one receive() */
#define IDLE_MAX 16u      /* messages that hold nothing, and one more for each of: */
#define IDLE_BYTES_LOG 24 /* 16 MiB */

uint64_t mst_tls_records_of_key = UINT64_C(1) << 24;

/* ---- sending ---- */

/* The parts that are to be sent, from `at` of part[0] on. */
struct parts {
	const struct iovec *part;
	uint32_t count;
	size_t at;
};

static void skip(struct parts *p, size_t bytes)
{
	while (p->count > 0 && bytes >= p->part->iov_len - p->at) {
		bytes -= p->part->iov_len - p->at;
		p->part++;
		p->count--;
		p->at = 0;
	}
	p->at += bytes;
	MST_ASSERT(p->count > 0 || bytes == 0);
}

/* The next record's bytes, which lie together: those of a part, or of several that were copied.
 * Return: how many. */
static size_t next_record(struct mst_tls_bulk *b, struct parts *p, const void **out)
{
	size_t has = 0;

	if (p->count == 0)
		return 0;
	*out = (const unsigned char *)p->part->iov_base + p->at;
	if (p->part->iov_len - p->at >= MST_TLS_RECORD_BYTES) {
		skip(p, MST_TLS_RECORD_BYTES);
		return MST_TLS_RECORD_BYTES;
	}
	while (p->count > 0 && has < MST_TLS_RECORD_BYTES) {
		size_t bytes = p->part->iov_len - p->at, room = MST_TLS_RECORD_BYTES - has;
		if (bytes > room)
			bytes = room;
		memcpy(b->gather + has, (const unsigned char *)p->part->iov_base + p->at, bytes);
		has += bytes;
		skip(p, bytes);
	}
	*out = b->gather;
	return has;
}

static int change_keys(struct mst_tls_state *s)
{
	if (s->bulk->records < mst_tls_records_of_key)
		return 0;
	s->bulk->records = 0;
	return SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 ? 0 : -EPIPE;
}

/* Return: bytes that are encrypted now; -EPIPE. */
static ssize_t encrypt(struct mst_tls_state *s, struct parts *p)
{
	size_t all = 0, done = 0;
	const void *from = NULL;

	for (uint32_t i = 0; i < BATCH; i++) {
		size_t bytes = next_record(s->bulk, p, &from);
		if (bytes == 0)
			break;
		ERR_clear_error();
		if (change_keys(s) != 0 || SSL_write_ex(s->ssl, from, bytes, &done) != 1 ||
		    done != bytes)
			return -EPIPE;
		s->bulk->records++;
		all += bytes;
	}
	return (ssize_t)all;
}

/* The peer may have said why before: receive() still reads that. */
static ssize_t mute(struct mst_tls_state *s)
{
	ERR_clear_error();
	s->mute = true;
	return -EPIPE;
}

static ssize_t channel_send(struct mst_stream *stream, const struct iovec *from, uint32_t count)
{
	struct mst_tls_state *s = mst_tls_state_of(stream);
	struct parts p = { from, count, 0 };

	if (s->broken != 0 || s->mute)
		return -EPIPE;
	int rc = mst_tls_wire_flush(&s->wire);
	if (rc != 0)
		return rc == -EAGAIN ? rc : mute(s);
	size_t taken = s->bulk->owed;
	skip(&p, taken);
	s->bulk->owed = 0;
	ssize_t bytes = encrypt(s, &p);
	rc = bytes < 0 ? (int)bytes : mst_tls_wire_flush(&s->wire);
	if (rc == -EAGAIN) {
		s->bulk->owed = (size_t)bytes;
		return taken > 0 ? (ssize_t)taken : rc;
	}
	return rc != 0 ? mute(s) : (ssize_t)taken + bytes;
}

/* ---- receiving ---- */

/* A peer that changes its keys without end would keep the library in one call: it reads on where
 * something follows. Called for each message of a handshake, also of one that was over long ago. */
static void note(int sent, int version, int type, const void *data, size_t len, SSL *ssl, void *arg)
{
	struct mst_tls_state *s = arg;
	struct mst_tls_bulk *b = s->bulk;

	(void)version, (void)data, (void)len, (void)ssl;
	if (sent != 0 || type != SSL3_RT_HANDSHAKE || !s->shaken)
		return;
	if (++b->idle > IDLE_MAX + (b->received >> IDLE_BYTES_LOG)) {
		b->floods = true;
		s->wire.allowed = 0; /* the next read gives nothing more */
	}
}

void mst_tls_channel_begin(struct mst_tls_state *s)
{
	SSL_set_msg_callback(s->ssl, note);
	SSL_set_msg_callback_arg(s->ssl, s);
}

static ssize_t flooded(struct mst_tls_state *s)
{
	ERR_clear_error();
	mst_reason_set(&s->why,
		       "%s sent %llu messages of TLS that hold nothing, with %llu bytes: it is "
		       "broken, or hostile",
		       s->peer, (unsigned long long)s->bulk->idle,
		       (unsigned long long)s->bulk->received);
	s->broken = -EPROTO;
	return s->broken;
}

/* Without the peer's word the end may be anybody's on the path. */
static ssize_t ended(struct mst_tls_state *s)
{
	if ((SSL_get_shutdown(s->ssl) & SSL_RECEIVED_SHUTDOWN) != 0)
		return 0;
	mst_reason_set(&s->why,
		       "the connection to %s has ended without the word of TLS that ends one: its "
		       "process was killed, or something on the path has cut the connection",
		       s->peer);
	return -ECONNABORTED;
}

/* Once. Return: bytes; 0: the end; -EAGAIN; 1 and *idle: a record held nothing. */
static ssize_t read_once(struct mst_stream *stream, void *to, size_t len, bool *idle)
{
	struct mst_tls_state *s = mst_tls_state_of(stream);
	size_t got = 0;

	*idle = false;
	ERR_clear_error();
	s->wire.starved = false;
	int rc = SSL_read_ex(s->ssl, to, len, &got);
	if (rc == 1)
		return (ssize_t)got;
	if (s->bulk->floods)
		return flooded(s);
	ssize_t nothing = mst_tls_stream_read_nothing(stream, rc);
	*idle = nothing == 1;
	return nothing == 0 ? ended(s) : nothing;
}

static ssize_t channel_receive(struct mst_stream *stream, const struct iovec *to, uint32_t count)
{
	struct mst_tls_state *s = mst_tls_state_of(stream);
	struct mst_tls_bulk *b = s->bulk;
	size_t all = 0, at = 0;

	for (uint32_t reads = 0; count > 0 && !b->over; reads++) {
		bool idle = false;
		b->more = reads == READS_MAX;
		if (b->more)
			break;
		ssize_t got = read_once(stream, (unsigned char *)to->iov_base + at,
					to->iov_len - at, &idle);
		if (got == -EAGAIN)
			break;
		b->over = got <= 0;
		b->last = got;
		if (got <= 0 || idle)
			continue;
		all += (size_t)got;
		at += (size_t)got;
		b->received += (size_t)got;
		if (at == to->iov_len) {
			to++;
			count--;
			at = 0;
		}
	}
	b->more |= b->over;
	if (all > 0)
		return (ssize_t)all;
	return b->over ? b->last : -EAGAIN;
}

static bool channel_holds(struct mst_stream *stream)
{
	return mst_tls_state_of(stream)->bulk->more;
}

/* ---- beginning and end ---- */

static int channel_connect(struct mst_credentials *own, int fd, const char *peer,
			   struct mst_stream **out)
{
	struct mst_tls_begin begin = { .own = own, .peer = peer, .channel = true };
	int rc = mst_plain_stream_of(fd, &begin.below);

	return rc != 0 ? rc : mst_tls_stream_new(&begin, out);
}

void mst_tls_channel_end(struct mst_stream *stream)
{
	struct mst_tls_state *s = mst_tls_state_of(stream);

	/* A child of fork() has no word in it: what it sent would be the parent's. */
	if (!s->shaken || s->broken != 0 || s->mute || s->bulk->told || s->owner != getpid())
		return;
	s->bulk->told = true;
	(void)SSL_shutdown(s->ssl);
	ERR_clear_error();
	(void)mst_tls_wire_flush(&s->wire);
}

const struct mst_channel_ops mst_tls_channel = {
	.stream = &mst_tls,
	.connect = channel_connect,
	.shake = mst_tls_stream_shake,
	.wants_room = mst_tls_stream_wants_room,
	.listen = mst_tls_listen_for_channels,
	.send = channel_send,
	.receive = channel_receive,
	.holds = channel_holds,
	.end = mst_tls_channel_end,
};
