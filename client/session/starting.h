/* SPDX-License-Identifier: MIT */
/* How a worker starts: it says that it is ready, sends the start state if the leader asks for it,
 * and waits for the first version. */
#ifndef MST_CLIENT_SESSION_STARTING_H
#define MST_CLIENT_SESSION_STARTING_H

#include "client/local/guard.h"
#include "client/session/engine.h"
#include "client/session/lineage.h"
#include "client/session/state_transfer.h"

struct mst_starting {
	struct mst_client_session *session;
	struct mst_worker *worker;
	struct mst_engine *engine;
	const struct mst_client_guard *guard;
	struct mst_client_transfer *transfer;
	struct mst_reason *failure;

	/* A worker that comes back: its last result, and what it knows of it. NULL: it is new. */
	struct mst_lineage *lineage;
	const void *brings; /* NULL: it has no whole copy */
	uint64_t set;       /* the version whose set is sent next, */
	uint32_t share;     /* and of this the next share */

	uint64_t sent;         /* bytes of the start state */
	uint32_t tensors_sent; /* of the table, which goes before it */
	bool ended;            /* no state is wanted, and the server has been told its end */
	bool behind;           /* a new worker has been told to take a state, and has none yet */
};

/* A worker that comes back says that it is ready, in the session that has just been linked. */
void mst_starting_again(struct mst_starting *s, const void *brings);
/* Sends what the leader has asked for, as far as there is room. @own: as below. 0, or an error with
 * its sentence. */
int mst_starting_serve(struct mst_starting *s, const void *own);

/* @own: the start state to offer, or NULL. 0: the first outcome is ready. Else an error with its
 * sentence; after -EDOM, -ETIMEDOUT and -EINTR it may be called again. MST_AGAIN, without a
 * sentence: the session is lost, and the worker may come back. */
int mst_starting_run(struct mst_starting *s, const void *own);

#endif
