/* SPDX-License-Identifier: MIT */
/*
 * The control stream: ordered bytes, non-blocking. A seam of the shells beside transport and clock,
 * so that a simulated world can stand in for TCP.
 *
 * Threads: a stream or listener belongs to one thread at a time.
 */
#ifndef MST_TRANSPORT_STREAM_H
#define MST_TRANSPORT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/reason.h"
#include "common/transport/principal.h"

struct mst_stream;
struct mst_listener;
/* What this process proves itself with, and whom it believes (tls/credentials.h). */
struct mst_credentials;

/* What a caller shows, and why the other end was not believed. */
struct mst_proof {
	struct mst_credentials *own; /* NULL: plain streams; they must outlive the stream */
	struct mst_reason why;       /* a sentence; "": the errno says all */
};

/* No member is NULL. Failures are negative errno. */
struct mst_stream_ops {
	/* @address HOST:PORT or HOST (hostport.h; port 0: any). @own: NULL for plain streams; it
	 * must outlive the listener. @bound: what it became, "127.0.0.1:17077". -EDESTADDRREQ: an
	 * address of one link, fe80::, without its interface. */
	int (*listen)(const char *address, struct mst_credentials *own, struct mst_listener **out,
		      char *bound, size_t bound_len);
	/* A connection, or -EAGAIN. @peer: "127.0.0.1:51234". */
	int (*accept)(struct mst_listener *l, struct mst_stream **out, char *peer, size_t peer_len);
	void (*unlisten)(struct mst_listener *l); /* accepts NULL */
	/* Blocks at most timeout_ns. -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH; -ENOENT there is no
	 * such host; -EINVAL bad address; -EACCES the ends do not believe each other; -EPROTO the
	 * peer speaks something else. @proof: NULL: plain streams, and no sentence. */
	int (*connect)(const char *address, uint64_t timeout_ns, struct mst_proof *proof,
		       struct mst_stream **out);
	/* Bytes taken, perhaps fewer; -EAGAIN none now; -EPIPE closed. After -EAGAIN the next call
	 * must begin with the same bytes, and not have fewer of them. */
	ssize_t (*send)(struct mst_stream *s, const void *data, size_t len);
	/* Bytes read; 0 closed by the peer; -EAGAIN none now; -ECONNRESET; -EACCES the peer does
	 * not believe this end. */
	ssize_t (*receive)(struct mst_stream *s, void *data, size_t len);
	/* Does the stream hold bytes that receive() would give, and of which its descriptor knows
	 * nothing? */
	bool (*buffered)(const struct mst_stream *s);
	/* Why receive() or send() failed, if the stream knows more than the errno: a sentence that
	 * is valid until close(); or NULL. */
	const char *(*why)(const struct mst_stream *s);
	/* In a child of fork() the peer and the parent notice nothing of it. */
	void (*close)(struct mst_stream *s); /* accepts NULL */
	/* Tells who the peer is. The answer is the same during the life of the stream. */
	void (*principal)(const struct mst_stream *s, struct mst_principal *out);
	/* Descriptors to sleep on in epoll; -1: there is none, step by the clock. */
	int (*stream_fd)(const struct mst_stream *s);
	int (*listener_fd)(const struct mst_listener *l);
};

/* The principal() of streams that prove nothing: every peer that reaches the port has all roles. */
static inline void mst_stream_unproven(const struct mst_stream *s, struct mst_principal *out)
{
	(void)s;
	*out = (struct mst_principal){ .roles = MST_ROLES_ALL };
}

/* The buffered() and why() of streams that hold nothing back and know nothing more. */
static inline bool mst_stream_unbuffered(const struct mst_stream *s)
{
	(void)s;
	return false;
}

static inline const char *mst_stream_no_why(const struct mst_stream *s)
{
	(void)s;
	return NULL;
}

/* Plain streams: TCP. */
extern const struct mst_stream_ops mst_plain;
/* Make one of a socket that does not block: one that is connected, and one that listens. The socket
 * is taken over, also on failure. 0 or -ENOMEM. */
int mst_plain_stream_of(int fd, struct mst_stream **out);
int mst_plain_listener_of(int fd, struct mst_listener **out);
/* TLS 1.3 over mst_plain; both ends show certificates (tls/credentials.h). A listener has a thread
 * that shakes hands, so that accept() gives peers that have proven who they are. */
extern const struct mst_stream_ops mst_tls;

/* The streams of a process with these credentials. */
#define mst_stream_of(credentials) ((credentials) != NULL ? &mst_tls : &mst_plain)

#endif
