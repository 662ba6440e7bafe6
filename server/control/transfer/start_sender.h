/* SPDX-License-Identifier: MIT */
/*
 * Takes the start state of a job, and the table of tensors, from the worker that the leader has
 * asked for them. The leader keeps its own part of the state; start_state.h passes the other parts
 * on to the followers.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_TRANSFER_START_SENDER_H
#define MST_SERVER_CONTROL_TRANSFER_START_SENDER_H

#include "server/control/transfer/start_state.h"

/* Asks the worker for its start state. */
void mst_start_sender_ask(struct mst_start_state *s, struct mst_identity who);
/* Take a piece of the table, and of the state.
 * Return: 0; -EAGAIN: not now, because a follower has not yet read enough of what has been passed
 * on to it; -EPROTO with why: the worker broke the protocol. */
int mst_start_sender_tensors(struct mst_start_state *s, struct mst_conn *c,
			     const struct mst_tensor_piece *piece, struct mst_reason *why);
int mst_start_sender_state(struct mst_start_state *s, struct mst_conn *c,
			   const struct mst_state_piece *piece, struct mst_reason *why);
/* Takes a piece of a set that such a worker sends before, if it comes back. Return: 0, or -EPROTO
 * with why. */
int mst_start_sender_set(struct mst_start_state *s, struct mst_conn *c,
			 const struct mst_set_piece *piece, struct mst_reason *why);
/* Names the worker that has not sent its start state, after all have started.
 * @why: written only if there is one. */
void mst_start_sender_name(struct mst_frontend *front, struct mst_reason *why);

#endif
