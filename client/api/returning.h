/* SPDX-License-Identifier: MIT */
/*
 * A handle comes back whose session is lost (PROTOCOL 11). The heartbeat's thread has found a
 * server (client/session/reconnect.h), and a wait of the handle's thread puts the next session in
 * the place of the last. Only calls that wait may do so: no gradient buffer is in use then.
 */
#ifndef MST_CLIENT_API_RETURNING_H
#define MST_CLIENT_API_RETURNING_H

#include "client/api/handle.h"

/* Is the session lost, and may the handle come back? */
static inline bool mst_return_is_due(const struct muster *m)
{
	return m->worker.adrift;
}

/* One step on the way back; blocks only as long as links take to be made. 0: the next session
 * stands, and START has been said if there was an outcome before; -EAGAIN: not yet; else an error
 * with its sentence, after which nobody comes back. */
int mst_return_step(struct muster *m);
/* Steps until then, or until the deadline: -ETIMEDOUT; or -EINTR. With sentences. */
int mst_return_await(struct muster *m, uint64_t deadline_ns);
/* The next session is there, and it is known which generation it is of: what was pushed in the last
 * gets its verdicts. Does nothing if they have been given. */
void mst_return_settle(struct muster *m);
/* The first outcome of a session is given. */
void mst_return_done(struct muster *m, struct muster_outcome *out);
/* Tells the leader that the user wants the end of the job, if it has still to be told, and listens
 * to that by now. */
void mst_return_tell_end(struct muster *m);
/* Another version is given, or has been taken: nobody reads the copy of the last any more. */
void mst_return_drop_copy(struct muster *m);

#endif
