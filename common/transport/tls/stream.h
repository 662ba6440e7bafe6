/* SPDX-License-Identifier: MIT */
/* A TLS stream over a stream of mst_plain, from its handshake on. Private to this directory. */
#ifndef MST_TRANSPORT_TLS_STREAM_H
#define MST_TRANSPORT_TLS_STREAM_H

#include "common/transport/stream.h"

struct mst_tls_begin {
	struct mst_stream *below; /* of mst_plain; taken over, also on failure */
	struct mst_credentials *own;
	const char *peer; /* its address, for sentences */
	bool serves;      /* this end has listened */
};

/* Return: 0 or -ENOMEM. */
int mst_tls_stream_new(const struct mst_tls_begin *begin, struct mst_stream **out);
/* A step of the handshake.
 * Return: 0: it is done; -EAGAIN: call again when the descriptor is readable, or writable if
 * mst_tls_stream_wants_room(); -EACCES the ends do not believe each other, -EPROTO the peer speaks
 * something else, -ECONNRESET it has gone; mst_tls_stream_why() has the sentence. */
int mst_tls_stream_shake(struct mst_stream *s);
bool mst_tls_stream_wants_room(const struct mst_stream *s);

ssize_t mst_tls_stream_send(struct mst_stream *s, const void *data, size_t len);
ssize_t mst_tls_stream_receive(struct mst_stream *s, void *data, size_t len);
bool mst_tls_stream_buffered(const struct mst_stream *s);
const char *mst_tls_stream_why(const struct mst_stream *s);
void mst_tls_stream_close(struct mst_stream *s);
void mst_tls_stream_principal(const struct mst_stream *s, struct mst_principal *out);
int mst_tls_stream_fd(const struct mst_stream *s);

#endif
