/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/state.h"

#include "common/base/assert.h"

struct mst_decision *mst_decide(struct mst_ledger *l, enum mst_decision_kind kind,
				const struct mst_member *m)
{
	MST_ASSERT(l->queue_count < l->queue_size);
	struct mst_decision *d = &l->queue[(l->queue_head + l->queue_count++) % l->queue_size];
	*d = (struct mst_decision){ .kind = kind };
	if (m != NULL)
		d->who = (struct mst_identity){ m->rank, m->incarnation };
	return d;
}

void mst_changed(struct mst_ledger *l, struct mst_member *m)
{
	mst_counts_note(&l->counts, m, l->cfg.slots, l->cfg.shards);
	mst_waits_for(&l->waits, m, m->asks ? MST_WAIT_TRIAL : MST_WAIT_ITSELF);
}

const struct mst_record *mst_record_of(const struct mst_ledger *l, uint64_t version)
{
	uint32_t buffer;

	return mst_store_find(&l->store, version, &buffer) ? &l->record[buffer] : NULL;
}
