/* SPDX-License-Identifier: MIT */
/*
 * How a worker comes back whose session is lost (PROTOCOL 11). The heartbeat's thread looks for a
 * server and says hello, so that a rank that computes is there at once; the handle's thread makes
 * the links, in its next wait. Between the two a session waits here that has been welcomed, and
 * whose heart beats.
 */
#ifndef MST_CLIENT_SESSION_RECONNECT_H
#define MST_CLIENT_SESSION_RECONNECT_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/session/lineage.h"
#include "client/session/session.h"

enum mst_reconnect_state {
	MST_RECONNECT_NONE,     /* no session is lost, or the next one has been taken */
	MST_RECONNECT_SEEKS,    /* a server is looked for */
	MST_RECONNECT_WELCOMED, /* the next session is there */
	MST_RECONNECT_OVER,     /* nobody is looked for any more */
};

struct mst_reconnect {
	struct mst_lineage *lineage;
	_Atomic bool stop; /* the handle is over, or being closed */

	pthread_mutex_t lock; /* of all that follows */
	bool may;             /* the handle is open: before that nobody is looked for */
	bool missed;          /* before that a session was lost */
	enum mst_reconnect_state state;
	struct mst_client_session next; /* SEEKS: the thread's alone; WELCOMED: whole */
	struct mst_reason why;          /* of the last try, or of the loss */
	bool refused;                   /* a server has answered the last try, */
	bool strange;                   /* and does not take the place of the lost one */
	int error;                      /* OVER: what the program is told */
	uint64_t lost_ns, until_ns;     /* 0: no session is lost */
	struct mst_told last;           /* the thread's: of the session that was lost last */
	/* The thread's: the last change of policy that a session has told of. One that is lost
	 * before its generation has begun tells nothing. */
	struct mst_in_force in_force;
};

/* @first: the session that the handle has joined; what it was joined with is kept for the next. */
void mst_reconnect_init(struct mst_reconnect *c, struct mst_lineage *lineage,
			const struct mst_client_session *first);
/* No thread uses it any more. Accepts zeroed memory. */
void mst_reconnect_fini(struct mst_reconnect *c);
/* In a child of fork(). */
void mst_reconnect_disown(struct mst_reconnect *c);

/* The handle's thread: the handle is open. Return: false: its session has been lost before, and
 * nobody is looked for. */
bool mst_reconnect_allow(struct mst_reconnect *c);
/* Nobody is looked for any more. There is no heartbeat. */
void mst_reconnect_forbid(struct mst_reconnect *c);

/* The handle is over, though its session could have gone on at another server. That server must not
 * wait for this worker until the handle is closed. The heartbeat's thread is to be rung then. */
void mst_reconnect_end(struct mst_reconnect *c);

/* For the heartbeat's thread: the session of this connection has ended. Looks for another server,
 * until there is one, or patience is over. Blocks for that time, or until `stop` is set.
 * Return: the connection of the next session; NULL: there is none. */
struct mst_control *mst_reconnect_seek(void *reconnect, struct mst_control *lost);

/* The handle's thread: how far is it? OVER: @why gets the sentence. */
enum mst_reconnect_state mst_reconnect_look(struct mst_reconnect *c, struct mst_reason *why);
/* Takes the next session, whose heart goes on beating. Return: false: it has been lost again. */
bool mst_reconnect_take(struct mst_reconnect *c, struct mst_client_session *out);
/* The session that was taken has begun: what is lost next has all the time again.
 * Return: how long it was lost. */
uint64_t mst_reconnect_settle(struct mst_reconnect *c);
/* How long it is lost, and how long it may be. */
void mst_reconnect_times(struct mst_reconnect *c, uint64_t *lost_ns, uint64_t *left_ns);

#endif
