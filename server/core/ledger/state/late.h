/* SPDX-License-Identifier: MIT */
/*
 * Late starts (PROTOCOL 7, "Late starts"). A worker whose contribution was late is out of phase
 * with the others. If it starts again at once, in the middle of a step, it finishes after that
 * step's commit, and is late again: with equal workers, one nap makes a rank late in most of the
 * steps that follow. So its answer may be held until the next commit, from which all start
 * together.
 *
 * Only the ask that came with a late contribution is held, under a rule that lets workers go on at
 * the commit, and only while the open step certainly gets its quorum from others. When it might
 * not, every ask that is held is answered. The step does not wait for a worker whose ask is held.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_LATE_H
#define MST_SERVER_CORE_LEDGER_STATE_LATE_H

#include "server/core/ledger/state/state.h"

/* Is the ask of @m, whose contribution was late, to wait for the next version? */
bool mst_late_holds(const struct mst_ledger *l, const struct mst_member *m);
/* Lets all asks that are held go on, if the open step may need their workers. */
void mst_late_release_if_needed(struct mst_ledger *l);
void mst_late_release_all(struct mst_ledger *l);
/* When the asks that are held have been held for long enough; MST_NEVER: none is held. */
uint64_t mst_late_deadline(const struct mst_ledger *l);

#endif
