/* SPDX-License-Identifier: MIT */
/*
 * Passes the state of one worker on to another that comes back. A worker that comes back needs the
 * state of another: the ledger says who is asked for it and who gets it
 * (server/core/ledger/transfer.c). The leader receives all of a state first and sends it then, at
 * the pace of each that takes it. So a slow taker holds up nobody who gives, and a donor that dies
 * in the middle has cost nothing but time.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_TRANSFER_STATE_TRANSFER_H
#define MST_SERVER_CONTROL_TRANSFER_STATE_TRANSFER_H

#include "server/control/base.h"

struct mst_state_transfer {
	struct mst_base *base;

	uint64_t number; /* of the last asking */
	uint64_t version;
	uint8_t *state; /* of that asking; NULL: nothing of it has come */
	uint64_t bytes;
	bool sends; /* somebody is being sent it */
};

void mst_state_transfer_fini(struct mst_state_transfer *h);

/* Handles a GIVE or a TOOK of a worker. *@wrong: how the worker has broken the protocol; else NULL.
 * Return: false: not now, because the ring of requests is full. */
bool mst_state_transfer_message(struct mst_state_transfer *h, struct mst_conn *c,
				const struct mst_message *msg, const char **wrong);

/* Handles a notice of the ledger.
 * Return: false: the notice is about something else. */
bool mst_state_transfer_notice(struct mst_state_transfer *h, const struct mst_notice *notice);

/* Sends what there is room for. */
void mst_state_transfer_step(struct mst_state_transfer *h);

#endif
