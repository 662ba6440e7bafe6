/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/start_state.h"

#include "common/kernels/sum.h"

/* How many bytes may be queued on a follower's connection before the next piece. */
#define STATE_QUEUED_MAX ((size_t)1 << 20)

bool mst_start_state_room(const struct mst_start_state *s)
{
	for (uint32_t i = 1; i < mst_followers_servers(s->followers); i++) {
		const struct mst_conn *c = mst_followers_conn(s->followers, i);
		if (c != NULL && c->out_have > STATE_QUEUED_MAX)
			return false;
	}
	return true;
}

static void pass_to(struct mst_start_state *s, uint32_t server, const struct mst_state_piece *piece)
{
	uint64_t size = mst_type_bytes(s->followers->base->job.plan.vector.result_type), first,
		 count;

	mst_job_part(&s->followers->base->job, server, &first, &count);
	uint64_t begin = first * size, end = (first + count) * size;
	uint64_t from = piece->offset > begin ? piece->offset : begin;
	uint64_t to = piece->offset + piece->length < end ? piece->offset + piece->length : end;
	if (from >= to)
		return;
	struct mst_message *m = mst_frontend_draft(&s->followers->base->front, MST_MSG_STATE);
	m->state = (struct mst_state_piece){
		.offset = from - begin,
		.total = end - begin,
		.length = (uint32_t)(to - from),
		.data = (const char *)piece->data + (from - piece->offset),
	};
	mst_followers_send(s->followers, server, m);
	s->followers->place[server].states_sent += to == end;
}

/* The follower has its part of the state already. */
static void pass_none_to(struct mst_start_state *s, uint32_t server)
{
	struct mst_message *m = mst_frontend_draft(&s->followers->base->front, MST_MSG_STATE);

	mst_followers_send(s->followers, server, m);
	s->followers->place[server].states_sent++;
}

void mst_start_state_pass(struct mst_start_state *s, const struct mst_state_piece *piece)
{
	for (uint32_t i = 1; i < mst_followers_servers(s->followers); i++)
		piece->total > 0 ? pass_to(s, i, piece) : pass_none_to(s, i);
}

void mst_start_state_pass_tensors(struct mst_start_state *s, const struct mst_tensor_piece *piece)
{
	struct mst_message *m = mst_frontend_draft(&s->followers->base->front, MST_MSG_TENSORS);

	m->piece = *piece;
	for (uint32_t i = 1; i < mst_followers_servers(s->followers); i++)
		mst_followers_send(s->followers, i, m);
}

void mst_start_state_ends(struct mst_start_state *s, struct mst_identity who,
			  const struct mst_brought *brought)
{
	s->brought = *brought;
	s->passes = true;
	s->of = who;
}

void mst_start_state_drop(struct mst_start_state *s)
{
	s->passes = false;
}

/* When the state has arrived at every follower, the ledger is told. */
void mst_start_state_step(struct mst_start_state *s)
{
	struct mst_ledger_event ev = { .kind = MST_EV_STATE, .who = s->of, .brought = s->brought };

	if (!s->passes)
		return;
	for (uint32_t i = 1; i < mst_followers_servers(s->followers); i++) {
		if (s->followers->place[i].states_done != s->followers->place[i].states_sent)
			return;
	}
	if (mst_requests_event(&s->followers->base->job.requests, &ev))
		s->passes = false;
}
