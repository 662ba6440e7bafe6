/* SPDX-License-Identifier: MIT */
/*
 * Workers that come back (PROTOCOL 7). Where workers own the parameters, one that lacks versions
 * which are gone cannot apply the versions that follow. So a worker that is up to date, the donor,
 * is asked for its state, and the state is handed to all that wait at that moment. The versions
 * after it are pinned until they have them, as far as there are buffers.
 *
 * A worker that is behind takes no part in the steps until it has the newest version, so no step
 * waits for it. A donor has a time to give, and each worker a time to take. A donor or worker that
 * exceeds its time is not waited for. One state is on its way at a time, and workers that come
 * meanwhile wait for the next one.
 *
 * A round serves the workers that wait when it begins. In a round, each donor is asked once. A
 * donor that dies, rests, gives nothing, takes too long or is outrun by the job costs these workers
 * only the time until another donor has been asked.
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_HANDING_H
#define MST_SERVER_CORE_LEDGER_PHASES_HANDING_H

#include "server/core/ledger/state/state.h"

void mst_transfer_given(struct mst_ledger *l, struct mst_member *m, uint64_t number,
			uint64_t version);
void mst_transfer_taken(struct mst_ledger *l, struct mst_member *m, uint64_t number);
/* Does what follows from any event: asks a donor, gives one up, pins versions. */
void mst_transfer_settle(struct mst_ledger *l);
/* When the time of a donor, or of a worker that waits or takes, is over; MST_NEVER: none runs. */
uint64_t mst_transfer_deadline(const struct mst_ledger *l);

#endif
