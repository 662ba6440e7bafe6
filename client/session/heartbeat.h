/* SPDX-License-Identifier: MIT */
/* The library's one thread: steps the control connection, so that a worker that computes for a
 * minute still counts as alive, and one whose server dies hears of it at once. */
#ifndef MST_CLIENT_SESSION_HEARTBEAT_H
#define MST_CLIENT_SESSION_HEARTBEAT_H

#include "client/session/control.h"

struct mst_heartbeat;

/* What the thread does when the connection has ended: it returns the one that it goes on with, or
 * NULL. It may block, but not once it has been told otherwise that the thread is to end. */
struct mst_heartbeat_next {
	struct mst_control *(*seek)(void *ctx, struct mst_control *lost);
	void *ctx;
};

/* 0 or a negative errno. */
int mst_heartbeat_new(struct mst_control *control, const struct mst_heartbeat_next *next,
		      struct mst_heartbeat **out);
/* In a child of fork(), where there is no such thread: closes the notify descriptor. Afterwards it
 * may only be freed. */
void mst_heartbeat_disown(struct mst_heartbeat *h);
/* Ends the thread; blocks for a moment at most. Accepts NULL. */
void mst_heartbeat_free(struct mst_heartbeat *h);
/* Wakes the thread: a message was queued that could not be sent at once. */
void mst_heartbeat_ring(struct mst_heartbeat *h);

#endif
