/* SPDX-License-Identifier: MIT */
/* What the files of struct mst_worker share. Private to client/core. */
#ifndef MST_CLIENT_CORE_WORKER_STATE_H
#define MST_CLIENT_CORE_WORKER_STATE_H

#include "client/core/worker.h"

/* The one place that changes the phase. */
void mst_worker_enter(struct mst_worker *w, enum mst_worker_phase next);

/* May this slot be filled? It is granted, and no put reads what it held before. */
static inline bool mst_worker_fillable(const struct mst_worker_slot *slot)
{
	return slot->state == MST_GRANT_FREE && slot->sends == 0;
}

#endif
