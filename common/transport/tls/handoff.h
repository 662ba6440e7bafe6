/* SPDX-License-Identifier: MIT */
/*
 * Streams whose peers have proven who they are, on their way from the thread that shakes hands to
 * the one that accepts: a queue, and an eventfd that is readable while something is in it.
 */
#ifndef MST_TRANSPORT_TLS_HANDOFF_H
#define MST_TRANSPORT_TLS_HANDOFF_H

#include <pthread.h>
#include <stdint.h>

#include "common/transport/stream.h"

#define MST_HANDOFF_PEER_LEN 64u
#define MST_HANDOFF_MAX 256u

struct mst_handoff {
	int fd; /* the eventfd */
	uint32_t max;
	pthread_mutex_t lock; /* of what follows */
	uint32_t first, count;
	struct mst_handoff_item {
		struct mst_stream *stream;
		char peer[MST_HANDOFF_PEER_LEN];
	} item[MST_HANDOFF_MAX];
};

/* @max: streams that can be on their way, MST_HANDOFF_MAX at most. Return: 0 or -errno. */
int mst_handoff_init(struct mst_handoff *h, uint32_t max);
/* Closes what nobody has taken. */
void mst_handoff_fini(struct mst_handoff *h);
/* Any thread. Return: 0; -ENOBUFS there is no room, or another -errno where whoever accepts could
 * not be told: the stream is the caller's still. */
int mst_handoff_give(struct mst_handoff *h, struct mst_stream *stream, const char *peer);
/* Any thread. Return: 0 or -EAGAIN. */
int mst_handoff_take(struct mst_handoff *h, struct mst_handoff_item *out);

#endif
