/* SPDX-License-Identifier: MIT */
/*
 * At a follower: its leader fetches this server's part of the average, piece by piece.
 *
 * Control thread only. No function blocks.
 */
#ifndef MST_SERVER_CONTROL_TRANSFER_FETCHING_H
#define MST_SERVER_CONTROL_TRANSFER_FETCHING_H

#include "server/control/transfer/lent.h"

struct mst_fetching {
	struct mst_base *base;
	struct mst_lent lent;

	bool waits; /* the leader has asked, and not been answered yet */
	struct mst_fetch fetch;
};

/* The leader fetches. Returns how it has broken the protocol, or NULL. */
const char *mst_fetching_ask(struct mst_fetching *f, const struct mst_fetch *fetch);
/* Sends what there is room for. @lead: the connection with the leader, or NULL. */
void mst_fetching_step(struct mst_fetching *f, struct mst_conn *lead);

#endif
