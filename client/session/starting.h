/* SPDX-License-Identifier: MIT */
/* How a worker starts: it says that it is ready, sends the start state if the leader asks for it,
 * and waits for the first version. */
#ifndef MST_CLIENT_SESSION_STARTING_H
#define MST_CLIENT_SESSION_STARTING_H

#include "client/local/guard.h"
#include "client/session/engine.h"
#include "client/session/state_transfer.h"

struct mst_starting {
	struct mst_client_session *session;
	struct mst_worker *worker;
	struct mst_engine *engine;
	const struct mst_client_guard *guard;
	struct mst_client_transfer *transfer;
	struct mst_reason *failure;

	uint64_t sent;         /* bytes of the start state */
	uint32_t tensors_sent; /* of the table, which goes before it */
	bool ended;            /* no state is wanted, and the server has been told its end */
};

/* @own: the start state to offer, or NULL. 0: the first outcome is ready. Else an error with its
 * sentence; after -EDOM, -ETIMEDOUT and -EINTR it may be called again. */
int mst_starting_run(struct mst_starting *s, const void *own);

#endif
