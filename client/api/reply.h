/* SPDX-License-Identifier: MIT */
/*
 * Waits for the leader's reply to what a call has told it. The calls differ in what they tell, and
 * in what they take for the reply; the wait, and all that may end it, is the same.
 */
#ifndef MST_CLIENT_API_REPLY_H
#define MST_CLIENT_API_REPLY_H

#include "client/api/handle.h"

/* Both functions are called in turn, until one of them ends the wait. They return 0: the wait goes
 * on; a positive value: it is over; or an error with its sentence. */
struct mst_reply {
	void *ctx;
	/* Takes in what has come. Positive: the reply is here. */
	int (*look)(struct muster *m, void *ctx);
	/* Tells the leader what has not been told yet. Without room for the message the next
	 * turn tries again: the wait is woken when there is room. If the connection is over, the
	 * next look tells why. */
	int (*tell)(struct muster *m, void *ctx);
	const char *late; /* what is missing when the time is over, and what to do then */
	/* The last version of the job is a reply, too. If it cannot come any more, the wait is
	 * over. */
	bool or_last_version;
};

/* Blocks for the time of a wait at most (options.wait_ms).
 * Return: what look() or tell() has returned; or -ETIMEDOUT, -EINTR, or another error, with its
 * sentence. */
int mst_reply_await(struct muster *m, const struct mst_reply *r);

#endif
