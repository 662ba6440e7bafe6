/* SPDX-License-Identifier: MIT */
/* The library's one thread: steps the control connection, so that a worker that computes for a
 * minute still counts as alive, and one whose server dies hears of it at once. */
#ifndef MST_CLIENT_SESSION_HEARTBEAT_H
#define MST_CLIENT_SESSION_HEARTBEAT_H

#include "client/session/control.h"

struct mst_heartbeat;

/* 0 or a negative errno. */
int mst_heartbeat_new(struct mst_control *control, struct mst_heartbeat **out);
/* In a child of fork(), where there is no such thread: closes the notify descriptor. Afterwards it
 * may only be freed. */
void mst_heartbeat_disown(struct mst_heartbeat *h);
/* Ends the thread; blocks for a moment at most. Accepts NULL. */
void mst_heartbeat_free(struct mst_heartbeat *h);
/* Wakes the thread: a message was queued that could not be sent at once. */
void mst_heartbeat_ring(struct mst_heartbeat *h);

#endif
