/* SPDX-License-Identifier: MIT */
/* Passes the start state on from the leader to its followers, each of which gets its part, and the
 * tensor table. */
#ifndef MST_SERVER_CONTROL_TRANSFER_START_STATE_H
#define MST_SERVER_CONTROL_TRANSFER_START_STATE_H

#include "server/control/members/followers.h"

/* Zeroed but for its followers it passes nothing on. */
struct mst_start_state {
	struct mst_followers *followers;
	bool passes; /* a state has come and been passed on, but is not at every follower yet */
	struct mst_identity of;     /* the worker that sent it */
	struct mst_brought brought; /* if it comes back: what is known of that version */
};

/* Is there room to pass on another piece? */
bool mst_start_state_room(const struct mst_start_state *s);
/* Passes a piece on. */
void mst_start_state_pass(struct mst_start_state *s, const struct mst_state_piece *piece);
/* Passes on a piece of the tensor table: each follower gets all. */
void mst_start_state_pass_tensors(struct mst_start_state *s, const struct mst_tensor_piece *piece);
/* All pieces of that worker have been passed on; the ledger is told when they have arrived
 * everywhere. */
void mst_start_state_ends(struct mst_start_state *s, struct mst_identity who,
			  const struct mst_brought *brought);
/* Forgets the state that is being passed on, because another worker is to send one. */
void mst_start_state_drop(struct mst_start_state *s);
/* Tells the ledger, if the state has arrived everywhere. */
void mst_start_state_step(struct mst_start_state *s);

#endif
