/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/start_state.h"

#include "common/kernels/sum.h"

/* How many bytes may be queued on a follower's connection before the next piece. */
#define STATE_QUEUED_MAX ((size_t)1 << 20)

bool mst_start_state_room(const struct mst_leading *l)
{
	for (uint32_t i = 1; i < mst_job_servers(&l->base->job); i++) {
		const struct mst_conn *c = mst_leading_conn(l, i);
		if (c != NULL && c->out_have > STATE_QUEUED_MAX)
			return false;
	}
	return true;
}

static void pass_to(struct mst_leading *l, uint32_t server, const struct mst_state_piece *piece)
{
	uint64_t size = mst_type_bytes(l->base->job.plan.vector.result_type), first, count;

	mst_job_part(&l->base->job, server, &first, &count);
	uint64_t begin = first * size, end = (first + count) * size;
	uint64_t from = piece->offset > begin ? piece->offset : begin;
	uint64_t to = piece->offset + piece->length < end ? piece->offset + piece->length : end;
	if (from >= to)
		return;
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_STATE);
	m->state = (struct mst_state_piece){
		.offset = from - begin,
		.total = end - begin,
		.length = (uint32_t)(to - from),
		.data = (const char *)piece->data + (from - piece->offset),
	};
	mst_leading_send(l, server, m);
	l->follower[server].states_sent += to == end;
}

/* The follower has its part of the state already. */
static void pass_none_to(struct mst_leading *l, uint32_t server)
{
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_STATE);

	mst_leading_send(l, server, m);
	l->follower[server].states_sent++;
}

void mst_start_state_pass(struct mst_leading *l, const struct mst_state_piece *piece)
{
	for (uint32_t i = 1; i < mst_job_servers(&l->base->job); i++)
		piece->total > 0 ? pass_to(l, i, piece) : pass_none_to(l, i);
}

void mst_start_state_pass_tensors(struct mst_leading *l, const struct mst_tensor_piece *piece)
{
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_TENSORS);

	m->piece = *piece;
	for (uint32_t i = 1; i < mst_job_servers(&l->base->job); i++)
		mst_leading_send(l, i, m);
}

void mst_start_state_ends(struct mst_leading *l, struct mst_identity who)
{
	l->passes_state = true;
	l->state_of = who;
}

void mst_start_state_drop(struct mst_leading *l)
{
	l->passes_state = false;
}

/* When the state has arrived at every follower, the ledger is told. */
void mst_start_state_step(struct mst_leading *l)
{
	struct mst_ledger_event ev = { .kind = MST_EV_STATE, .who = l->state_of };

	if (!l->passes_state)
		return;
	for (uint32_t i = 1; i < mst_job_servers(&l->base->job); i++) {
		if (l->follower[i].states_done != l->follower[i].states_sent)
			return;
	}
	if (mst_requests_event(&l->base->job.requests, &ev))
		l->passes_state = false;
}
