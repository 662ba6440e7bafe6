/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/start_sender.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/kernels/finite.h"
#include "common/kernels/sum.h"

/* Has a worker that comes back no whole copy of its version? Then it sends its sets alone. */
static bool is_bare(const struct mst_conn *c)
{
	return c->claimed.number > 0 && !c->offers;
}

/* The bytes that are to come. */
static uint64_t total_of(const struct mst_job *j, const struct mst_conn *c)
{
	return is_bare(c) ? 0 : mst_job_state_bytes(j, j->plan.vector.elems);
}

/* The first element of the piece that is infinite or NaN; the number of elements: none is. */
static uint64_t first_nonfinite(const struct mst_job *j, const struct mst_state_piece *piece)
{
	_Alignas(sizeof(float)) char block[4096]; /* data in a frame need not be aligned */
	uint64_t size = mst_type_bytes(j->plan.vector.result_type);

	for (uint64_t done = 0; done < piece->length; done += sizeof(block)) {
		uint64_t left = piece->length - done;
		uint64_t bytes = left < sizeof(block) ? left : sizeof(block);
		memcpy(block, (const char *)piece->data + done, bytes);
		uint64_t at = mst_first_nonfinite(block, j->plan.vector.result_type, bytes / size);
		if (at < bytes / size)
			return done / size + at;
	}
	return piece->length / size;
}

/* libmuster checks a state before it sends it, so a state that fails here comes from another
 * client. Every piece for every server passes here, so version 0 is finite wherever the guard is
 * on. */
static int check_finite(const struct mst_job *j, const struct mst_state_piece *piece,
			struct mst_reason *why)
{
	uint64_t size = mst_type_bytes(j->plan.vector.result_type);

	if (j->o->guard == MST_GUARD_OFF)
		return 0;
	uint64_t at = first_nonfinite(j, piece);
	if (at == piece->length / size)
		return 0;
	return mst_reason_fail(
		why, -EPROTO,
		"broke the protocol: a start state that is infinite or NaN at element %" PRIu64
		" (--guard off lets it pass)",
		piece->offset / size + at);
}

/* The part of a piece that belongs to this server is copied into the buffer of version 0. */
static void keep_state(struct mst_job *j, const struct mst_state_piece *piece)
{
	uint64_t own = mst_job_state_bytes(j, j->plan.count);
	uint64_t length = piece->length;

	if (piece->offset >= own)
		return;
	if (length > own - piece->offset)
		length = own - piece->offset;
	memcpy((char *)mst_server_start_buffer(j->server) + piece->offset, piece->data, length);
}

/* The tensor table comes right after the welcome, where the leader asks for it then; or else right
 * before the state. */
int mst_start_sender_tensors(struct mst_start_state *s, struct mst_conn *c,
			     const struct mst_tensor_piece *piece, struct mst_reason *why)
{
	const char *wrong = "a table of tensors that nobody asked for";
	struct mst_job *j = &s->followers->base->job;

	if (!mst_start_state_room(s))
		return -EAGAIN;
	if (c->sends_table || (c->sends_state && c->state_received == 0))
		wrong = mst_job_take_tensors(j, piece);
	if (wrong != NULL)
		return mst_reason_fail(why, -EPROTO, "broke the protocol: %s", wrong);
	mst_start_state_pass_tensors(s, piece);
	c->sends_table &= mst_job_lacks_table(j);
	return 0;
}

/* The job keeps the table of its first hello. A worker without a table cannot be asked for it. */
static bool wants_tensors(const struct mst_job *j, const struct mst_conn *c)
{
	return j->tensors != NULL && c->table.tensors > 0;
}

static bool lacks_tensors(const struct mst_job *j, const struct mst_conn *c)
{
	return wants_tensors(j, c) ? !mst_tensor_table_is_whole(j->tensors)
				   : !mst_job_has_tensors(j);
}

/* The record of what this worker has sent. false: a version came without its set. */
static bool take_set(const struct mst_job *j, const struct mst_conn *c, struct mst_brought *out)
{
	bool has = mst_job_sets_newest(&j->sets, c->claimed.version, out);

	out->bare = is_bare(c); /* without a set if it took that version with a state */
	return has || out->bare || c->claimed.number == 0;
}

int mst_start_sender_state(struct mst_start_state *s, struct mst_conn *c,
			   const struct mst_state_piece *piece, struct mst_reason *why)
{
	struct mst_job *j = &s->followers->base->job;
	uint64_t size = mst_type_bytes(j->plan.vector.result_type);
	uint64_t total = total_of(j, c);

	if (!c->sends_state || j->state != MST_JOB_GATHERING ||
	    piece->offset != c->state_received || piece->total != total ||
	    piece->length % size != 0 || lacks_tensors(j, c))
		return mst_reason_fail(
			why, -EPROTO,
			"broke the protocol: a start state that nobody asked for, or with a gap, "
			"or before the table of tensors");
	/* otherwise it would not have been decoded */
	MST_ASSERT(piece->length <= total - piece->offset);
	if (!mst_start_state_room(s))
		return -EAGAIN;
	if (check_finite(j, piece, why) != 0)
		return -EPROTO;
	keep_state(j, piece);
	if (!is_bare(c))
		mst_start_state_pass(s, piece);
	c->state_received += piece->length;
	if (c->state_received < total)
		return 0;
	struct mst_brought brought = { .lr_scale = 1 };

	if (!mst_job_has_state(j) && !take_set(j, c, &brought))
		return mst_reason_fail(why, -EPROTO,
				       "broke the protocol: a version without its set");
	c->sends_state = false;
	mst_start_state_ends(s, c->who, &brought);
	return 0;
}

int mst_start_sender_set(struct mst_start_state *s, struct mst_conn *c,
			 const struct mst_set_piece *piece, struct mst_reason *why)
{
	struct mst_job *j = &s->followers->base->job;
	const char *wrong = "broke the protocol: a set of a version that nobody asked for";

	if (c->sends_state && j->state == MST_JOB_GATHERING && c->claimed.number > 0 &&
	    c->state_received == 0)
		wrong = mst_job_sets_take(&j->sets, piece, mst_job_record_ranks(j), j->o->history);
	return wrong != NULL ? mst_reason_fail(why, -EPROTO, "%s", wrong) : 0;
}

void mst_start_sender_ask(struct mst_start_state *s, struct mst_identity who)
{
	struct mst_base *b = s->followers->base;
	struct mst_conn *c = mst_frontend_worker(&b->front, who);

	if (c == NULL)
		return; /* the worker is gone; the ledger will hear of it */
	c->sends_state = true;
	c->state_received = 0;
	mst_start_state_drop(s);
	mst_job_sets_forget(&b->job.sets);
	struct mst_message *m = mst_frontend_draft(&b->front, MST_MSG_SEND_STATE);
	m->wanted.tensors = wants_tensors(&b->job, c) && mst_job_lacks_table(&b->job);
	m->wanted.state = !mst_job_has_state(&b->job) && !is_bare(c);
	m->wanted.sets = !mst_job_has_state(&b->job) && c->claimed.number > 0;
	mst_frontend_send(&b->front, c, m);
}

void mst_start_sender_name(struct mst_frontend *front, struct mst_reason *why)
{
	const struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next(front, &i)) != NULL;) {
		if (c->sends_state)
			mst_reason_set(why,
				       "rank %" PRIu32
				       " was asked for its start state and did not send it "
				       "within the join timeout",
				       c->who.rank);
	}
}
