/* SPDX-License-Identifier: MIT */
/*
 * Events and decisions as the entries that travel between servers, and the checks of entries that
 * have come. Pure.
 */
#ifndef MST_SERVER_CLUSTER_ENTRY_H
#define MST_SERVER_CLUSTER_ENTRY_H

#include <stdbool.h>

#include "common/wire/peer.h"
#include "server/core/ledger/ledger.h"

/* Figures of the job that an entry is checked against. */
struct mst_entry_limits {
	uint32_t workers, slots, buffers;
};

/* Writes an event that a follower reports. It must be one that the data side makes. */
void mst_entry_of_event(const struct mst_ledger_event *ev, struct mst_peer_entry *out);
/* Reads an event. @server: the follower that reports it.
 * Return: false: no follower of this release sends such an entry. */
bool mst_entry_event(const struct mst_peer_entry *entry, const struct mst_entry_limits *limits,
		     uint32_t server, struct mst_ledger_event *out);

/* Writes a decision. @record: of COMMIT.
 * Return: false: only the leader executes such a decision. */
bool mst_entry_of_decision(const struct mst_decision *d, const struct mst_record *record,
			   struct mst_peer_entry *out);
/* What a follower is to execute, and with which figures. */
struct mst_order {
	struct mst_decision decision;
	struct mst_record record; /* COMMIT: only version, divisor and rate */
};
/* Reads an order.
 * Return: false: no leader of this release sends such an entry. */
bool mst_entry_order(const struct mst_peer_entry *entry, const struct mst_entry_limits *limits,
		     struct mst_order *out);

#endif
