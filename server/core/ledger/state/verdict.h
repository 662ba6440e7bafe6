/* SPDX-License-Identifier: MIT */
/* Verdicts: what a worker is told of its contribution. */
#ifndef MST_SERVER_CORE_LEDGER_STATE_VERDICT_H
#define MST_SERVER_CORE_LEDGER_STATE_VERDICT_H

#include "server/core/ledger/state/state.h"

/* The norm of the mean gradient over the samples, so that contributions of different sizes can be
 * compared. If the worker has limited the gradient by a factor, the norm is that of the limited
 * gradient. NaN: the norm is not known. */
double mst_verdict_norm(const struct mst_ledger *l, const struct mst_pending_header *p);

static inline bool mst_weight_is_sane(double weight)
{
	return weight >= MST_WEIGHT_MIN && weight <= MST_WEIGHT_MAX;
}

/* @p: the header of the contribution, which @m has pushed. */
void mst_verdict_tell(struct mst_ledger *l, struct mst_member *m,
		      const struct mst_pending_header *p, enum muster_verdict verdict);
/* When a session ends: cancels what was reported and has not been judged, in the order of seq. */
void mst_judge_cancel(struct mst_ledger *l, struct mst_member *m);

#endif
