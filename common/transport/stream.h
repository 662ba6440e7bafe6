/* SPDX-License-Identifier: MIT */
/*
 * The control stream: ordered bytes, non-blocking. A seam of the shells beside transport and clock,
 * so that a simulated world can stand in for TCP.
 *
 * Threads: a stream or listener belongs to one thread at a time.
 */
#ifndef MST_TRANSPORT_STREAM_H
#define MST_TRANSPORT_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/transport/principal.h"

struct mst_stream;
struct mst_listener;

/* No member is NULL. Failures are negative errno. */
struct mst_stream_ops {
	/* @address HOST:PORT (also [v6]:port; port 0: any). @bound: what it became,
	 * "127.0.0.1:17077". */
	int (*listen)(const char *address, struct mst_listener **out, char *bound,
		      size_t bound_len);
	/* A connection, or -EAGAIN. @peer: "127.0.0.1:51234". */
	int (*accept)(struct mst_listener *l, struct mst_stream **out, char *peer, size_t peer_len);
	void (*unlisten)(struct mst_listener *l); /* accepts NULL */
	/* Blocks at most timeout_ns. -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH; -ENOENT there is no
	 * such host; -EINVAL bad address. */
	int (*connect)(const char *address, uint64_t timeout_ns, struct mst_stream **out);
	/* Bytes taken, perhaps fewer; -EAGAIN none now; -EPIPE closed. */
	ssize_t (*send)(struct mst_stream *s, const void *data, size_t len);
	/* Bytes read; 0 closed by the peer; -EAGAIN none now; -ECONNRESET. */
	ssize_t (*receive)(struct mst_stream *s, void *data, size_t len);
	void (*close)(struct mst_stream *s); /* accepts NULL */
	/* Who the peer is. The answer is the same during the life of the stream. */
	void (*principal)(const struct mst_stream *s, struct mst_principal *out);
	/* Descriptors to sleep on in epoll; -1: there is none, step by the clock. */
	int (*stream_fd)(const struct mst_stream *s);
	int (*listener_fd)(const struct mst_listener *l);
};

/* The principal() of streams that prove nothing: whoever reaches the port has all roles. */
static inline void mst_stream_unproven(const struct mst_stream *s, struct mst_principal *out)
{
	(void)s;
	*out = (struct mst_principal){ .roles = MST_ROLES_ALL };
}

extern const struct mst_stream_ops mst_tcp;

#endif
