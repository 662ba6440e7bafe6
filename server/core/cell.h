/* SPDX-License-Identifier: MIT */
/*
 * Events and decisions as cells: what of them travels between servers, and the checks of what has
 * come. Pure.
 */
#ifndef MST_SERVER_CORE_CELL_H
#define MST_SERVER_CORE_CELL_H

#include <stdbool.h>

#include "common/wire/peer.h"
#include "server/core/ledger.h"

/* Figures of the job, against which a cell is checked. */
struct mst_cell_limits {
	uint32_t workers, slots, buffers;
};

/* What a member reports. The event must be one that its data side makes. */
void mst_cell_of_event(const struct mst_ledger_event *ev, struct mst_peer_cell *out);
/* @server: the member that reports. False: no member of this release says that. */
bool mst_cell_event(const struct mst_peer_cell *cell, const struct mst_cell_limits *limits,
		    uint32_t server, struct mst_ledger_event *out);

/* A decision that members execute; false: it is the lead's alone. @record: of COMMIT. @repeats: may
 * a rank contribute again in this step? */
bool mst_cell_of_decision(const struct mst_decision *d, const struct mst_record *record,
			  bool repeats, struct mst_peer_cell *out);
/* What a member is to execute, and with which figures. */
struct mst_order {
	struct mst_decision decision;
	struct mst_record record; /* COMMIT: divisor and rate alone */
	bool repeats;             /* COUNT */
};
/* False: no lead of this release says that. */
bool mst_cell_order(const struct mst_peer_cell *cell, const struct mst_cell_limits *limits,
		    struct mst_order *out);

#endif
