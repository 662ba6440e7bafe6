/* SPDX-License-Identifier: MIT */
/* Proven streams on their way from the thread that shakes hands to the one that accepts: a queue,
 * and an eventfd that is readable while something is in it. Private to this directory. */
#ifndef MST_TRANSPORT_TLS_HANDOFF_H
#define MST_TRANSPORT_TLS_HANDOFF_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/transport/stream.h"

#define MST_HANDOFF_PEER_LEN 64u
#define MST_HANDOFF_MAX 256u

struct mst_handoff {
	int fd;
	pthread_mutex_t lock; /* of what follows */
	uint32_t first, count;
	struct mst_proven {
		struct mst_stream *stream;
		char peer[MST_HANDOFF_PEER_LEN];
	} item[MST_HANDOFF_MAX];
};

/* Return: 0 or -errno. */
int mst_handoff_init(struct mst_handoff *h);
/* Closes what nobody has taken. */
void mst_handoff_fini(struct mst_handoff *h);
/* Return: false: there is no room. */
bool mst_handoff_give(struct mst_handoff *h, struct mst_stream *stream, const char *peer);
/* Return: 0 or -EAGAIN. */
int mst_handoff_take(struct mst_handoff *h, struct mst_proven *out);

#endif
