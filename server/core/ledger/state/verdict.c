/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/state/verdict.h"

#include <math.h>

double mst_verdict_norm(const struct mst_ledger *l, const struct mst_pending_header *p)
{
	const struct mst_lane_header *h = &p->header;
	double norm = h->flags & MST_HEADER_NORM ? h->norm : (double)NAN;

	if (h->flags & (MST_HEADER_EMPTY | MST_HEADER_PASS))
		return (double)NAN;
	if (l->cfg.norm_limit > 0)
		norm = sqrt(p->squares);
	if (h->flags & MST_HEADER_CLIPPED)
		norm *= (double)h->clip;
	return h->flags & MST_HEADER_SUM ? norm / h->weight : norm;
}

void mst_verdict_tell(struct mst_ledger *l, struct mst_member *m,
		      const struct mst_pending_header *p, enum muster_verdict verdict)
{
	const struct mst_lane_header *h = &p->header;
	uint64_t counted_in = verdict == MUSTER_COUNTED ? l->store.newest + 1 : 0;
	struct mst_decision *d = mst_decide(l, MST_DO_VERDICT, m);

	d->verdict.seq = h->seq;
	d->verdict.tag = h->tag;
	d->verdict.slot = h->slot;
	d->verdict.verdict = verdict;
	d->verdict.counted_in = counted_in;
	d->verdict.norm = mst_verdict_norm(l, p);
	d->verdict.samples = mst_weight_is_sane(h->weight) ? h->weight : 0;
	mst_verdicts_add(m->verdicts, h->seq, verdict, counted_in);
}

void mst_judge_cancel(struct mst_ledger *l, struct mst_member *m)
{
	for (uint64_t seq = m->judged + 1; seq <= m->judged + l->cfg.slots; seq++) {
		const struct mst_pending_header *p = mst_member_pending(m, l->cfg.slots, seq);
		if (p != NULL && !(p->header.flags & MST_HEADER_PASS))
			mst_verdict_tell(l, m, p, MUSTER_CANCELLED);
	}
}
