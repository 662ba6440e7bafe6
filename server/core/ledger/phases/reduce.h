/* SPDX-License-Identifier: MIT */
/*
 * The reduce phase: that of the optimiser, and the distance that a rate depends on. Each shard
 * reports sums of squares of its part; when all have, the version may be applied. Sums are added
 * without rounding, so the order of reports has no influence on the bits.
 *
 * With norms of tensors a shard reports only of the tensors that its borders cut; it knows the
 * norms of the others. A border cuts one tensor at most. A tensor that fills a whole part is cut by
 * both of its borders: then the sums of the borders belong together.
 */
#ifndef MST_SERVER_CORE_LEDGER_PHASES_REDUCE_H
#define MST_SERVER_CORE_LEDGER_PHASES_REDUCE_H

#include "server/core/ledger/state/state.h"

/* Does the newest version wait for what the shards report of it? */
bool mst_reduce_is_due(const struct mst_ledger *l);
/* A shard has reported of the mean of a version. */
void mst_reduce_reported(struct mst_ledger *l, const struct mst_ledger_event *ev);

#endif
