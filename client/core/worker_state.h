/* SPDX-License-Identifier: MIT */
/* Declarations that the files of struct mst_worker share. Private to client/core. */
#ifndef MST_CLIENT_CORE_WORKER_STATE_H
#define MST_CLIENT_CORE_WORKER_STATE_H

#include "client/core/worker.h"

/* The one place that changes the phase. */
void mst_worker_enter(struct mst_worker *w, enum mst_worker_phase next);

/* Leaves the slot that is being filled, if there is one, in @state. */
void mst_worker_stop_filling(struct mst_worker *w, enum mst_grant_state state);

/* Is what is handed in looked at by nobody? */
static inline bool mst_worker_is_unheard(const struct mst_worker *w)
{
	return w->last != MST_VERSION_NONE || w->adrift;
}

/* Nothing is being filled. A slot that may be: it is granted, and no put reads what it held before.
 * -1: there is none. */
static inline int mst_worker_find_fillable(const struct mst_worker *w)
{
	for (uint32_t i = 0; i < w->cfg.slots; i++) {
		if (w->slot[i].state == MST_GRANT_FREE && w->slot[i].sends == 0)
			return (int)i;
	}
	return -1;
}

/* Where versions are handed out in order: is one here that must go out before anything else? An
 * answer that brings no version is not, unless it says that the last one cannot come. */
static inline bool mst_worker_holds_next(const struct mst_worker *w)
{
	return w->cfg.in_order && w->ask == MST_ASK_ANSWERED &&
	       (w->held.version != w->given || w->incomplete);
}

#endif
