/* SPDX-License-Identifier: MIT */
/*
 * Workers that are told to rest, and to return, by anybody who connects to the leader. The ledger
 * decides; the requester is told what has become of it.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_OPERATOR_RESTING_H
#define MST_SERVER_CONTROL_OPERATOR_RESTING_H

#include "server/control/base.h"

struct mst_resting {
	struct mst_base *base;

	bool waits; /* the ledger has been asked, and has not answered; other requesters wait */
	uint64_t requester;
};

/* The peer of @c asks for a worker's rest or return.
 * Return: false: not now, because another worker's is being decided, or the ring of requests is
 * full. */
bool mst_resting_ask(struct mst_resting *r, struct mst_conn *c, const struct mst_rest *rest,
		     uint64_t now_ns);

/* Handle notices of the data side: the answer to what was asked, and who rests or has returned. */
void mst_resting_taken(struct mst_resting *r, const struct mst_notice *notice, uint64_t now_ns);
void mst_resting_noted(const struct mst_resting *r, const struct mst_notice *notice);

#endif
