/* SPDX-License-Identifier: MIT */
/*
 * What is computed again (docs/policies.md, "bounded"). A worker whose gradient was stale computes
 * the same samples again, on the version that it is given then. If the others make more than
 * `window` versions meanwhile, that gradient would be stale, too, and so would each one after it: a
 * slow worker would count for nothing. So the ledger does not judge the gradient of another worker
 * whose commit would make it stale, until it has come: once for each that was rejected.
 *
 * Only under a rule that rejects old gradients, and makes a version of each that counts. As many
 * workers are waited for at a time as can be without harm to each other, and MST_RECOMPUTING_MAX at
 * most. No worker is waited for longer than patience.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_RECOMPUTING_H
#define MST_SERVER_CORE_LEDGER_STATE_RECOMPUTING_H

#include "server/core/ledger/state/state.h"

/* A contribution of @m has been judged. */
void mst_recomputing_judged(struct mst_ledger *l, struct mst_member *m,
			    enum muster_verdict verdict);
/* @m has been answered, with the version m->given. */
void mst_recomputing_answered(struct mst_ledger *l, struct mst_member *m);
/* Is the contribution @h of @m to wait for what others compute again? */
bool mst_recomputing_holds(const struct mst_ledger *l, const struct mst_member *m,
			   const struct mst_lane_header *h);
/* Patience is over: what is computed again is waited for no more.
 * Return: false: nothing was. */
bool mst_recomputing_give_up(struct mst_ledger *l);

#endif
