/* SPDX-License-Identifier: MIT */
/* Passes the start state on from the leader to its followers, each of which gets its part, and the
 * tensor table. */
#ifndef MST_SERVER_CONTROL_TRANSFER_START_STATE_H
#define MST_SERVER_CONTROL_TRANSFER_START_STATE_H

#include "server/control/members/leading.h"

/* Is there room to pass on another piece? */
bool mst_start_state_room(const struct mst_leading *l);
/* Passes a piece on. */
void mst_start_state_pass(struct mst_leading *l, const struct mst_state_piece *piece);
/* Passes on a piece of the tensor table: each follower gets all. */
void mst_start_state_pass_tensors(struct mst_leading *l, const struct mst_tensor_piece *piece);
/* All pieces of that worker have been passed on; the ledger is told when they have arrived
 * everywhere. */
void mst_start_state_ends(struct mst_leading *l, struct mst_identity who);
/* Forgets the state that is being passed on, because another worker is to send one. */
void mst_start_state_drop(struct mst_leading *l);
/* Tells the ledger, if the state has arrived everywhere. */
void mst_start_state_step(struct mst_leading *l);

#endif
