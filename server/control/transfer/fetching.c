/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/fetching.h"

static uint64_t part_bytes(const struct mst_fetching *f)
{
	return f->base->job.plan.count * sizeof(float);
}

const char *mst_fetching_ask(struct mst_fetching *f, const struct mst_fetch *fetch)
{
	uint64_t bytes = part_bytes(f);

	if (f->base->job.server == NULL)
		return "a request for an average before the start";
	if (f->base->job.plan.server.aggregator.averages == 0)
		return "a request for an average that this server does not keep";
	if (fetch->offset > bytes || fetch->length > bytes - fetch->offset)
		return "a request for an average beyond this server's part";
	if (fetch->length > 0 && f->waits)
		return "a request for an average before the last was answered";
	/* it may come before the data side has executed LEND */
	f->waits = true;
	f->fetch = *fetch;
	return NULL;
}

static void answer(struct mst_fetching *f, struct mst_conn *lead)
{
	while (f->fetch.length > 0 && lead->out_have < MST_LENT_QUEUED_MAX) {
		struct mst_message *m = mst_frontend_draft(&f->base->front, MST_MSG_AVERAGE);
		m->handed = mst_lent_piece(&f->lent, f->fetch.offset, f->fetch.length);
		m->handed.number = f->fetch.number;
		m->handed.piece.total = part_bytes(f);
		f->fetch.offset += m->handed.piece.length;
		f->fetch.length -= m->handed.piece.length;
		mst_frontend_send(&f->base->front, lead, m);
		if (lead->stream == NULL)
			return;
	}
	f->waits = f->fetch.length > 0;
}

/* A part that is not finite is not sent: the job fails, and the leader hears of that. */
void mst_fetching_step(struct mst_fetching *f, struct mst_conn *lead)
{
	if (f->lent.is_here && f->waits && f->fetch.length == 0) {
		mst_lent_done(&f->lent);
		f->waits = false;
	} else if (f->lent.is_here && f->waits && f->lent.average != NULL && lead != NULL) {
		answer(f, lead);
	}
	mst_lent_give_back(&f->lent);
}
