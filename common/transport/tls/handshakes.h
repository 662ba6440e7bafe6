/* SPDX-License-Identifier: MIT */
/*
 * Callers of a TLS listener, from the moment they are taken until they have proven who they are,
 * and are handed over. A caller has no TLS before its first byte has come, so one that says nothing
 * costs a descriptor and a few words. Callers have seconds, a number of bytes and places
 * (callers.h). A caller that is not believed is told so, and stays a moment: were the connection
 * closed at once, what it has sent meanwhile could wipe out that word.
 *
 * Handshakes that have begun go on; new ones are begun in the order of mst_callers_precedes(). In
 * the order in which they came, each caller would wait for the whole crowd.
 *
 * For one thread, which waits by an epoll of its own.
 */
#ifndef MST_TRANSPORT_TLS_HANDSHAKES_H
#define MST_TRANSPORT_TLS_HANDSHAKES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "common/transport/stream.h"
#include "common/transport/tls/handoff.h"

#define MST_HANDSHAKES_MAX 1024u

/* How long a caller may take to prove who it is. A variable for tests alone, whose callers may
 * stand still on a busy host; it is set while no listener is there. */
extern uint64_t mst_tls_handshake_ns;

struct mst_handshakes;

struct mst_handshakes_cfg {
	struct mst_credentials *own;
	bool channels;
	const void *refusal; /* of channels, to callers that do not speak TLS */
	size_t refusal_bytes;
	int epoll; /* callers are watched by it; the data of their events are below the maximum */
	struct mst_handoff *handoff; /* takes those that have proven who they are */
};

/* 0 or -errno. */
int mst_handshakes_new(const struct mst_handshakes_cfg *cfg, struct mst_handshakes **out);
/* Closes the callers that are there. Accepts NULL. */
void mst_handshakes_free(struct mst_handshakes *h);
/* A caller has been taken, and is taken over. @peer: as accept() gives it. */
void mst_handshakes_enter(struct mst_handshakes *h, struct mst_stream *below, const char *peer);
/* Goes on with the callers that @event tells of; other events are the owner's. */
void mst_handshakes_serve(struct mst_handshakes *h, const struct epoll_event *event, int count);
/* What is due by the clock: callers that are late are closed. */
void mst_handshakes_tick(struct mst_handshakes *h, uint64_t now_ns);
/* Will anything be due soon? */
bool mst_handshakes_are_timed(const struct mst_handshakes *h);
/* A line of the log about callers; of many in a short time only the first, and their number. */
__attribute__((format(printf, 2, 3))) void mst_handshakes_complain(struct mst_handshakes *h,
								   const char *fmt, ...);

#endif
