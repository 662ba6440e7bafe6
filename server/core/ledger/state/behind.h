/* SPDX-License-Identifier: MIT */
/*
 * Members that fall behind, because the version that they need next is gone, and members that have
 * caught up (PROTOCOL 7). Between the two, phases/transfer.c gives them a state.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_BEHIND_H
#define MST_SERVER_CORE_LEDGER_STATE_BEHIND_H

#include "server/core/ledger/state/state.h"

/* The version that @m needs next is gone, in a job that runs. */
/* @why: ends its session, if it takes no states. */
void mst_behind_lacks(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why);
/* Has the version that answers @m's ask, who is behind, still to come? Then it is up to date. */
void mst_behind_reached(struct mst_member *m);
/* Does @m wait for a state, or take one? */
static inline bool mst_behind_holds(const struct mst_member *m)
{
	return m->behind == MST_BEHIND_WAITS || m->behind == MST_BEHIND_TAKES;
}

/* Can @m be asked for its state? The program of a worker that rests may stand in a wait until the
 * worker returns. */
static inline bool mst_behind_may_give(const struct mst_member *m)
{
	return m->state == MST_MEMBER_STARTED && m->comes_back && !m->rests && !m->strays &&
	       m->behind == MST_UP_TO_DATE && m->given != MST_VERSION_NONE;
}

/* @m begins to be behind in another way. */
void mst_behind_enter(struct mst_ledger *l, struct mst_member *m, enum mst_behind behind);

#endif
