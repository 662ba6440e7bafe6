/* SPDX-License-Identifier: MIT */
/* A TLS stream over a stream of mst_plain, from its handshake on. Private to this directory. */
#ifndef MST_TRANSPORT_TLS_STREAM_H
#define MST_TRANSPORT_TLS_STREAM_H

#include <openssl/ssl.h>
#include <sys/types.h>

#include "common/base/reason.h"
#include "common/transport/stream.h"
#include "common/transport/tls/bio.h"
#include "common/transport/tls/context.h"

#define MST_TLS_PEER_LEN 280u
/* What a record holds at most. */
#define MST_TLS_RECORD_BYTES ((size_t)16 << 10)

/* What a stream has more if it is a channel (common/transport/channel.h). */
struct mst_tls_bulk {
	/* Small parts are put together to a record here. */
	unsigned char gather[MST_TLS_RECORD_BYTES];
	unsigned char out[MST_TLS_OUT_BYTES]; /* of the wire */
	/* Bytes of the caller that are in `out`, and that it has not been told to be taken. */
	size_t owed;
	uint64_t records;  /* sent since the last change of keys */
	uint64_t received; /* bytes, */
	uint64_t idle;     /* and messages after the handshake that are none of the reader's: */
	bool floods;       /* too many */
	bool more;         /* receive() has more */
	bool over;         /* from now on it gives: */
	ssize_t last;
	bool told; /* the peer, that no more comes */
};

/* What a stream of this directory is. */
struct mst_tls_state {
	SSL *ssl;
	struct mst_tls_wire wire;
	struct mst_tls_peer who;
	struct mst_credentials *own;
	bool serves, shaken, wants_room;
	bool mute;     /* a send has failed: SSL_shutdown() is not for such a stream */
	unsigned idle; /* records in a row that had nothing for the reader */
	int broken;    /* what each call gives from now on; 0: all is well */
	pid_t owner;   /* who may say to the peer that the stream is closed */
	char peer[MST_TLS_PEER_LEN];
	struct mst_reason why;
	struct mst_tls_bulk *bulk; /* NULL: it is no channel */
};

struct mst_tls_begin {
	struct mst_stream *below; /* of mst_plain; taken over, also on failure */
	struct mst_credentials *own;
	const char *peer; /* its address, for sentences */
	bool serves;      /* this end has listened */
	bool channel;
};

/* Return: 0 or -ENOMEM. */
int mst_tls_stream_new(const struct mst_tls_begin *begin, struct mst_stream **out);
/* A step of the handshake.
 * Return: 0: it is done; -EAGAIN: call again when the descriptor is readable, or writable if
 * mst_tls_stream_wants_room(); -EACCES the ends do not believe each other, -EPROTO the peer speaks
 * something else, -ECONNRESET it has gone, -ENOMEM this process is short of memory;
 * mst_tls_stream_why() has the sentence. */
int mst_tls_stream_shake(struct mst_stream *s);
bool mst_tls_stream_wants_room(const struct mst_stream *s);

ssize_t mst_tls_stream_send(struct mst_stream *s, const void *data, size_t len);
ssize_t mst_tls_stream_receive(struct mst_stream *s, void *data, size_t len);
bool mst_tls_stream_buffered(const struct mst_stream *s);
const char *mst_tls_stream_why(const struct mst_stream *s);
void mst_tls_stream_close(struct mst_stream *s);
void mst_tls_stream_principal(const struct mst_stream *s, struct mst_principal *out);
int mst_tls_stream_fd(const struct mst_stream *s);

struct mst_tls_state *mst_tls_state_of(struct mst_stream *s);
/* After SSL_read_ex() has given @rc, which is not 1. Return: 0: the peer has ended the stream;
 * -EAGAIN: nothing is here; 1: a record was not the reader's, read again; else what is broken. */
ssize_t mst_tls_stream_read_nothing(struct mst_stream *s, int rc);

/* ---- channel.c ---- */

/* So many records of one key: AES-GCM is good for 2^24.5 (RFC 8446, 5.5). A variable for tests
 * alone. */
extern uint64_t mst_tls_records_of_key;

/* Watches what the peer sends after the handshake. */
void mst_tls_channel_begin(struct mst_tls_state *s);
void mst_tls_channel_end(struct mst_stream *s);

#endif
