/* SPDX-License-Identifier: MIT */
/* What the files of struct mst_worker share. Private to client/core. */
#ifndef MST_CLIENT_CORE_WORKER_STATE_H
#define MST_CLIENT_CORE_WORKER_STATE_H

#include "client/core/worker.h"

/* The one place that changes the phase. */
void mst_worker_enter(struct mst_worker *w, enum mst_worker_phase next);

#endif
