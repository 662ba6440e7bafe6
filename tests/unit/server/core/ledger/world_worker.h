/* SPDX-License-Identifier: MIT */
/* A worker of a simulated world: what it does next, by chance, mostly by the rules. */
#ifndef MST_TESTS_UNIT_SERVER_CORE_LEDGER_WORLD_WORKER_H
#define MST_TESTS_UNIT_SERVER_CORE_LEDGER_WORLD_WORKER_H

#include "tests/unit/server/core/ledger/world_state.h"

/* The ledger has let it in: it starts, or does not come so far. */
void world_worker_admitted(struct ledger_world *w, struct world_worker *p, struct mst_identity who);
/* It joins, pushes, pulls, gives up, leaves or fails; or nothing, if it waits or computes. */
void world_worker_act(struct ledger_world *w, struct world_worker *p);

#endif
