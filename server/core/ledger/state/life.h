/* SPDX-License-Identifier: MIT */
/*
 * What ends a session, or has its member rest, and what follows from that for the job; and the mark
 * that the job is to end.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_LIFE_H
#define MST_SERVER_CORE_LEDGER_STATE_LIFE_H

#include "server/core/ledger/state/state.h"

/* Members that take part in the job. */
static inline uint32_t mst_life_count(const struct mst_ledger *l)
{
	return mst_counts_count(&l->counts, MST_STANDS_IN);
}

/* Lets the job end, because a worker asks for it or a limit of the job has been reached. */
void mst_life_end(struct mst_ledger *l, enum mst_finish_why why);
/* Ends @m's session. What that means for the job follows from on_loss and min_workers. */
void mst_life_lose(struct mst_ledger *l, struct mst_member *m, enum mst_evict_why why);
/* Ends @m's session if the worker has left and all it announced has been judged, or what is to be
 * judged next can no longer come. */
void mst_life_leave_if_over(struct mst_ledger *l, struct mst_member *m);
/* If no worker takes part in the steps, the workers that rest return. */
void mst_life_wake_if_alone(struct mst_ledger *l);
void mst_life_rest(struct mst_ledger *l, struct mst_member *m, bool rests);

#endif
