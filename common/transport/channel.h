/* SPDX-License-Identifier: MIT */
/*
 * Encrypted connections of a network that uses sockets: the seam between such a network and the
 * directory that has TLS. The owner of a net gives it this table with its credentials
 * (struct mst_channels), and the network sees no more of either.
 *
 * A channel is a stream (stream.h) over a socket that the network has connected, or listens at.
 * Both ends have proven who they are before the first byte. Its table of functions is `stream`, of
 * which a network uses close(), why(), stream_fd(), accept(), unlisten() and listener_fd(); bytes
 * go through send() and receive() of this table, which are made for many.
 *
 * Threads: as of streams.
 */
#ifndef MST_TRANSPORT_CHANNEL_H
#define MST_TRANSPORT_CHANNEL_H

#include <sys/uio.h>

#include "common/transport/stream.h"

#define MST_CHANNEL_SOCKETS_MAX 8u
/* At most so many callers of a listener prove who they are, and at most as many more have and wait
 * to be accepted. Each costs a descriptor, and 200 KiB of memory once its first byte has come. */
#define MST_CHANNEL_CALLERS_MAX 64u
/* Descriptors of a listener, beside its sockets: three of its thread, and those of callers. */
#define MST_CHANNEL_DESCRIPTORS (3u + 2u * MST_CHANNEL_CALLERS_MAX)

/* Bytes of its connection that a channel may have read and not given yet: less than that. */
#define MST_CHANNEL_AHEAD_MAX ((size_t)128 << 10)

/* Where channels are asked for. */
struct mst_channel_port {
	struct mst_credentials *own; /* must outlive the listener */
	/* Listening sockets, which do not block; taken over, also on failure. */
	int socket[MST_CHANNEL_SOCKETS_MAX];
	uint32_t sockets;
	/* What a caller is answered that sends something else than TLS; must outlive it. */
	const void *refusal;
	size_t refusal_bytes;
};

struct mst_channel_ops {
	const struct mst_stream_ops *stream;
	/* The end that has connected @fd, which is taken over, also on failure. @peer: its address.
	 * It has yet to shake hands. 0 or -ENOMEM. */
	int (*connect)(struct mst_credentials *own, int fd, const char *peer,
		       struct mst_stream **out);
	/* A step of the handshake, which does not block. 0: done; -EAGAIN: to be called again when
	 * the descriptor is readable, or writable if wants_room(); -EACCES the ends do not believe
	 * each other; -EPROTO the peer speaks something else; -ECONNRESET it has gone;
	 * -ENOMEM this process is short of memory. The stream's why() has the sentence. */
	int (*shake)(struct mst_stream *s);
	bool (*wants_room)(const struct mst_stream *s);
	/* Starts the thread that shakes hands with callers. The stream's accept() gives those that
	 * are done with it. 0 or -errno. */
	int (*listen)(const struct mst_channel_port *port, struct mst_listener **out);
	/* Bytes taken, of a bounded number; -EAGAIN none now; -EPIPE. A call after fewer were taken
	 * than were offered must begin with those that were not, and not offer fewer. What was
	 * taken is with the kernel. */
	ssize_t (*send)(struct mst_stream *s, const struct iovec *from, uint32_t count);
	/* Bytes received; 0 the peer has ended the channel; -EAGAIN none now; -ECONNABORTED the
	 * connection has ended without the peer's word; else what has broken it. If there is room
	 * left, and not holds(), the descriptor becomes readable again when there is more. */
	ssize_t (*receive)(struct mst_stream *s, const struct iovec *to, uint32_t count);
	/* Has receive() more to give, or to tell, of which the descriptor knows nothing? */
	bool (*holds)(struct mst_stream *s);
	/* Tells the peer that no more comes, as far as the kernel takes that at once. Only in the
	 * process that has made the channel. */
	void (*end)(struct mst_stream *s);
};

/* TLS 1.3 (common/transport/tls/channel.c). */
extern const struct mst_channel_ops mst_tls_channel;

/* How the links of a net are encrypted, where its fabric says that they are. */
struct mst_channels {
	const struct mst_channel_ops *ops; /* NULL: they cannot be */
	struct mst_credentials *own;
};

/* The channels of a process with these credentials; NULL: it has none. */
#define mst_channels_of(credentials)                                                               \
	((struct mst_channels){ (credentials) != NULL ? &mst_tls_channel : NULL, (credentials) })

#endif
