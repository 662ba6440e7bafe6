/* SPDX-License-Identifier: MIT */
/*
 * How long the ranks compute, as events tell it: kept for late starts, and told to the judge of who
 * is slow (server/core/stragglers).
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_STRIDES_H
#define MST_SERVER_CORE_LEDGER_STATE_STRIDES_H

#include "server/core/ledger/state/state.h"

/* A worker was answered. */
void mst_stride_answered(struct mst_ledger *l, const struct mst_member *m);
/* Its next contribution has come. Where contributions are parts of a batch, a rank is judged by how
 * long a sample takes; and one that passes goes on with the part that it has begun. */
void mst_stride_came(struct mst_ledger *l, const struct mst_member *m,
		     const struct mst_lane_header *h);
/* The worker reports how many gradients its session has given up so far. */
void mst_stride_gave_up(struct mst_ledger *l, const struct mst_member *m, uint64_t so_far);
/* A contribution on version @tag that came at @came_ns has its verdict. */
void mst_stride_judged(struct mst_ledger *l, const struct mst_member *m, uint64_t tag,
		       enum muster_verdict verdict, uint64_t came_ns);
/* The member's session is about to end. */
void mst_stride_gone(struct mst_ledger *l, const struct mst_member *m);
/* Are contributions parts of batches, whose times say nothing without their samples? */
static inline bool mst_stride_by_samples(const struct mst_rule *rule)
{
	return rule->collect || rule->by_micro;
}
/* Another rule than @before is in force. */
void mst_stride_rule(struct mst_ledger *l, const struct mst_rule *before);
/* The open step has been committed. */
void mst_stride_step(struct mst_ledger *l);

#endif
