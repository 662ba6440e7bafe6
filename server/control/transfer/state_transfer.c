/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/state_transfer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/wire/lane.h"

/* How many bytes may be queued on a connection before the next piece of a state. */
#define QUEUED_MAX ((size_t)256 << 10)
/* How many bytes a step sends to one worker, so that others are heard meanwhile. */
#define STEP_BYTES (4u << 20)

static void drop(struct mst_state_transfer *h)
{
	free(h->state);
	h->state = NULL;
	h->bytes = 0;
}

void mst_state_transfer_fini(struct mst_state_transfer *h)
{
	drop(h);
}

/* ---- what a donor gives ---- */

/* Returns how a piece breaks the protocol; NULL: it does not. A worker may begin once for each time
 * that it was asked, with a number that it was asked with after the last that it gave. */
static const char *check_piece(const struct mst_state_transfer *h, const struct mst_conn *c,
			       const struct mst_handed *p)
{
	bool begins = !c->gives && p->piece.offset == 0;

	if (p->piece.total > h->base->job.o->state_max)
		return "broke the protocol: it gives a state that is larger than --state-max";
	if (begins && (p->number <= c->state_given || p->number > c->state_asked ||
		       c->state_gifts >= c->state_asks))
		return "broke the protocol: it gives a state that nobody asked for";
	if (!begins &&
	    (!c->gives || p->number != c->state_given || p->version != c->state_version ||
	     p->piece.total != c->state_total || p->piece.offset != c->state_have))
		return "broke the protocol: it gives a state with a gap, or of two versions";
	if (p->piece.length == 0 && p->piece.total > 0)
		return "broke the protocol: it gives a state in pieces without bytes";
	if (p->too_large != 0 && (p->piece.total > 0 || p->too_large <= h->base->job.o->state_max))
		return "broke the protocol: it says of a state that fits that it does not";
	return NULL;
}

/* Keeps a piece of the state that is wanted. One of an earlier asking, which is not wanted any
 * more, is only counted. */
static bool keep(struct mst_state_transfer *h, const struct mst_handed *p)
{
	if (p->number != h->number)
		return true;
	if (p->piece.offset == 0) {
		drop(h);
		h->state = malloc(p->piece.total);
		h->bytes = p->piece.total;
		h->version = p->version;
	}
	if (h->state == NULL)
		return false;
	memcpy(h->state + p->piece.offset, p->piece.data, p->piece.length);
	return true;
}

static bool is_last(const struct mst_handed *p)
{
	return p->piece.offset + p->piece.length == p->piece.total;
}

static bool tell_given(struct mst_state_transfer *h, const struct mst_conn *c,
		       const struct mst_handed *p, bool has)
{
	struct mst_ledger_event ev = { .kind = MST_EV_GIVEN, .who = c->who };

	ev.given.number = p->number;
	ev.given.version = has ? p->version : MST_VERSION_NONE;
	return mst_requests_event(&h->base->job.requests, &ev);
}

/* A worker that comes back may be refused for such a state, and only the operator can fix that. */
static void note_too_large(struct mst_state_transfer *h, const struct mst_conn *c, uint64_t bytes)
{
	h->base->job.state_too_large = bytes;
	h->base->job.state_of = c->who.rank;
	mst_complain(&h->base->front.complaints, MST_COMPLAINT_STATE,
		     "rank %" PRIu32 " cannot give its state to a worker that comes back: it has "
		     "%" PRIu64 " bytes, and --state-max is %" PRIu64
		     ": start the server with a larger --state-max",
		     c->who.rank, bytes, h->base->job.o->state_max);
}

static bool take_piece(struct mst_state_transfer *h, struct mst_conn *c, const struct mst_handed *p,
		       const char **wrong)
{
	*wrong = check_piece(h, c, p);
	if (*wrong != NULL)
		return true;
	bool has = p->piece.total > 0 && keep(h, p);
	if (is_last(p) && !tell_given(h, c, p, has))
		return false; /* the piece comes once more, and is kept once more */
	if (p->too_large > 0)
		note_too_large(h, c, p->too_large);
	if (!c->gives)
		c->state_gifts++;
	c->state_given = p->number;
	c->state_version = p->version;
	c->state_total = p->piece.total;
	c->state_have = p->piece.offset + p->piece.length;
	c->gives = !is_last(p);
	return true;
}

bool mst_state_transfer_message(struct mst_state_transfer *h, struct mst_conn *c,
				const struct mst_message *msg, const char **wrong)
{
	struct mst_ledger_event ev = { .kind = MST_EV_TAKEN, .who = c->who };

	*wrong = NULL;
	if (msg->kind == MST_MSG_GIVE)
		return take_piece(h, c, &msg->handed, wrong);
	ev.given.number = msg->number;
	if (c->takes == 0 || msg->number != c->takes || c->taken_bytes != h->bytes) {
		*wrong = "broke the protocol: it says that it has taken a state that it was not "
			 "sent";
		return true;
	}
	if (!mst_requests_event(&h->base->job.requests, &ev))
		return false;
	c->takes = 0;
	c->took = true;
	return true;
}

/* ---- what the ledger says ---- */

static void say_number(struct mst_state_transfer *h, struct mst_conn *c, enum mst_message_kind kind,
		       uint64_t number)
{
	struct mst_message *m = mst_frontend_draft(&h->base->front, kind);

	m->number = number;
	mst_frontend_send(&h->base->front, c, m);
}

/* The worker asks for a newer state, again and again: so somebody is to know that it does, and what
 * would help. */
static void note_outrun(struct mst_state_transfer *h, const struct mst_notice *notice)
{
	const struct mst_server_options *o = h->base->job.o;

	mst_complain(&h->base->front.complaints, MST_COMPLAINT_OUTRUN,
		     "rank %" PRIu32 " gets a newer state: when it had taken the last one, the job "
		     "had made more than the %" PRIu32
		     " versions that it keeps for that, and is at "
		     "version %" PRIu64 " now (%" PRIu64 " in a row; raise --catch-up, now %" PRIu32
		     ", or --history, now %" PRIu32 ")",
		     notice->who.rank, o->history + o->catch_up, notice->state.version,
		     notice->state.number, o->catch_up, o->history);
}

static void want(struct mst_state_transfer *h, struct mst_conn *c, const struct mst_notice *notice)
{
	drop(h);
	h->number = notice->state.number;
	if (c == NULL)
		return; /* the worker is gone; the ledger will hear of it */
	c->state_asks++;
	c->state_asked = h->number;
	say_number(h, c, MST_MSG_STATE_WANTED, h->number);
}

static void hand(struct mst_state_transfer *h, struct mst_conn *c, const struct mst_notice *notice)
{
	if (c == NULL)
		return;
	mst_info("rank %" PRIu32 " comes back with the state of version %" PRIu64 " (%" PRIu64
		 " bytes)",
		 notice->who.rank, notice->state.version, h->bytes);
	c->takes = notice->state.number;
	c->taken_bytes = 0;
	h->sends = true;
}

bool mst_state_transfer_notice(struct mst_state_transfer *h, const struct mst_notice *notice)
{
	struct mst_conn *c = mst_frontend_worker(&h->base->front, notice->who);

	switch (notice->kind) {
	case MST_NOTE_BEHIND:
		if (notice->state.number > 0)
			note_outrun(h, notice);
		if (c != NULL)
			say_number(h, c, MST_MSG_BEHIND, notice->state.version);
		return true;
	case MST_NOTE_WANT:
		want(h, c, notice);
		return true;
	case MST_NOTE_HAND:
		hand(h, c, notice);
		return true;
	case MST_NOTE_HANDED:
		drop(h);
		h->number = 0;
		return true;
	default:
		return false;
	}
}

/* ---- what is sent ---- */

/* Return: there is more to send to this worker; *@room: and it takes more at once. */
static bool send_pieces(struct mst_state_transfer *h, struct mst_conn *c, bool *room)
{
	uint64_t left, end = c->taken_bytes + STEP_BYTES;

	while ((left = h->bytes - c->taken_bytes) > 0 && c->out_have < QUEUED_MAX &&
	       c->taken_bytes < end) {
		struct mst_message *m = mst_frontend_draft(&h->base->front, MST_MSG_TAKE);
		m->handed = (struct mst_handed){
			.number = h->number,
			.version = h->version,
			.piece = { .offset = c->taken_bytes,
				   .total = h->bytes,
				   .length = (uint32_t)(left < MST_TAKE_CHUNK ? left
									      : MST_TAKE_CHUNK),
				   .data = h->state + c->taken_bytes },
		};
		c->taken_bytes += m->handed.piece.length;
		mst_frontend_send(&h->base->front, c, m);
		if (c->stream == NULL || c->role != MST_CONN_WORKER)
			return false;
	}
	*room |= left > 0 && c->out_have < QUEUED_MAX;
	return left > 0;
}

void mst_state_transfer_step(struct mst_state_transfer *h)
{
	struct mst_conn *c;
	bool more = false, room = false;

	if (!h->sends)
		return;
	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&h->base->front, MST_CONN_WORKER, &i)) != NULL;)
		if (c->takes != 0 && c->takes == h->number && h->state != NULL)
			more |= send_pieces(h, c, &room);
	h->sends = more;
	if (room) /* epoll reports it only where there was none */
		mst_frontend_wake(&h->base->front);
}
