/* SPDX-License-Identifier: MIT */
/* How a worker comes back if the servers do not have the versions any more that it lacks: it takes
 * the state of another worker. Other workers take its state in the same way. */
#ifndef MST_CLIENT_SESSION_STATE_TRANSFER_H
#define MST_CLIENT_SESSION_STATE_TRANSFER_H

#include "client/session/engine.h"
#include "common/base/reason.h"

struct mst_client_transfer {
	struct mst_client_session *session;
	struct mst_worker *worker;
	struct mst_engine *engine;
	struct mst_reason *failure;
	/* Sends what the start of a later generation asks for meanwhile. Return: 0, or an error. */
	int (*serve)(void *ctx);
	void *ctx;

	uint64_t answered; /* number of the last request for its state that this worker answered */
	uint64_t overcome; /* how often this worker was behind and has taken a state since */
	void *state;       /* the state that it has taken last; kept until its next wait */
};

void mst_client_transfer_fini(struct mst_client_transfer *b); /* accepts a zeroed one */

/* Is this worker behind, and has to take a state? */
static inline bool mst_client_transfer_is_behind(const struct mst_client_transfer *b)
{
	return b->session->told.behind > b->overcome;
}
/* For calls that wait for versions: this worker is behind. Return: -ESTALE with its sentence. */
int mst_client_transfer_tell(struct mst_client_transfer *b);

bool mst_client_transfer_wanted(const struct mst_client_transfer *b);
int mst_client_transfer_give(struct mst_client_transfer *b, const void *state, size_t bytes);
/* Waits until a whole state is there, at most @wait_ns. The caller is to accept it. */
int mst_client_transfer_take(struct mst_client_transfer *b, uint64_t wait_ns, struct mst_gift *out);
/* The state is the worker's now, which has its version. @gift: as it was taken. */
int mst_client_transfer_accept(struct mst_client_transfer *b, const struct mst_gift *gift);
/* Frees what was taken. */
void mst_client_transfer_let_go(struct mst_client_transfer *b);

#endif
