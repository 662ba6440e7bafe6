/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/lending.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"

/* How many bytes a step sends, so that others are heard meanwhile. */
#define STEP_BYTES (4u << 20)
/* How many bytes the leader fetches of a follower at a time. */
#define FETCH_BYTES (128u << 10)
/* A worker that takes fewer bytes of the average than this in a patience is disconnected. */
#define PROGRESS_BYTES (4u << 20)
/* What a step counts at most as time in which the taker was waited for: in a longer one this
 * server stood still. */
#define STEP_MOST_NS (100 * MST_MS)

static const struct mst_server_cfg *figures(const struct mst_lending *l)
{
	return &l->base->job.plan.server;
}

static uint64_t total_bytes(const struct mst_lending *l)
{
	return l->base->job.plan.vector.elems * sizeof(float);
}

void mst_lending_lent(struct mst_lending *l, const struct mst_notice *notice)
{
	mst_lent_take(&l->lent, notice);
	if (l->state == MST_LENDING_ASKED)
		l->state = MST_LENDING_SENDS;
}

/* ---- who is served ---- */

bool mst_lending_ask(struct mst_lending *l, struct mst_conn *c, uint64_t number, const char **wrong)
{
	*wrong = NULL;
	if (figures(l)->aggregator.averages == 0)
		*wrong = "broke the protocol: it asks for an average that the servers do not keep";
	else if (l->base->job.state == MST_JOB_GATHERING && !l->base->job.present[c->who.rank])
		*wrong = "broke the protocol: it asks for the average before it has started";
	else if (c->average_turn != 0)
		*wrong = "broke the protocol: it asks for the average before it has all of the one "
			 "that it asked for";
	if (*wrong != NULL)
		return true;
	/* what the ledger has told the worker by its link may be heard here a little later */
	if (l->base->job.state == MST_JOB_GATHERING)
		return false;
	c->average_turn = ++l->turns;
	c->average_number = number;
	return true;
}

/* The worker that has waited longest. */
static struct mst_conn *next_taker(const struct mst_lending *l)
{
	struct mst_conn *c, *first = NULL;

	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&l->base->front, MST_CONN_WORKER, &i)) != NULL;)
		if (c->average_turn != 0 &&
		    (first == NULL || c->average_turn < first->average_turn))
			first = c;
	return first;
}

static void begin(struct mst_lending *l)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LEND };
	const struct mst_conn *c = l->turns > 0 ? next_taker(l) : NULL;

	if (c == NULL) {
		l->turns = 0; /* nobody waits, and the next to ask is the first */
		return;
	}
	if (!mst_requests_event(&l->base->job.requests, &ev))
		return;
	l->state = MST_LENDING_ASKED;
	l->taker = c->who;
	l->number++;
	l->sent = l->asked = l->waited_from = l->waited_ns = 0;
}

static void end(struct mst_lending *l, struct mst_conn *c)
{
	if (c != NULL)
		c->average_turn = 0;
	mst_lent_done(&l->lent);
	l->state = MST_LENDING_IDLE;
	for (uint32_t i = 1; i < mst_job_servers(&l->base->job); i++) {
		struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_FETCH);
		m->fetch = (struct mst_fetch){ .number = l->number };
		mst_followers_send(l->followers, i, m);
	}
}

/* ---- what is sent ---- */

/* The server whose part is to be sent next, and that part in bytes of the whole average. */
static uint32_t server_of(const struct mst_lending *l, uint64_t *begins, uint64_t *ends)
{
	uint64_t first, count;
	uint32_t server = 0;

	do {
		mst_job_part(&l->base->job, server, &first, &count);
		*begins = first * sizeof(float);
		*ends = (first + count) * sizeof(float);
	} while (l->sent >= *ends && ++server < mst_job_servers(&l->base->job));
	return server;
}

/* Sends a piece to the taker, whose place is after what was sent. */
static void send_on(struct mst_lending *l, struct mst_conn *c, const struct mst_handed *piece)
{
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_AVERAGE);

	m->handed = *piece;
	m->handed.number = c->average_number;
	m->handed.piece.offset = l->sent;
	m->handed.piece.total = total_bytes(l);
	l->sent += piece->piece.length;
	if (l->sent - l->waited_from >= PROGRESS_BYTES) {
		l->waited_from = l->sent;
		l->waited_ns = 0;
	}
	mst_frontend_send(&l->base->front, c, m);
}

static void fetch_from(struct mst_lending *l, uint32_t server, uint64_t begins, uint64_t ends)
{
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_FETCH);
	uint64_t left = ends - l->sent;

	m->fetch = (struct mst_fetch){ .number = l->number,
				       .offset = l->sent - begins,
				       .length = left < FETCH_BYTES ? left : FETCH_BYTES };
	l->asked = l->sent + m->fetch.length;
	mst_followers_send(l->followers, server, m);
}

/* Return: false: nothing more can be sent now. */
static bool send_next(struct mst_lending *l, struct mst_conn *c)
{
	uint64_t begins, ends;

	if (l->sent == total_bytes(l) || l->asked > l->sent || c->out_have >= MST_LENT_QUEUED_MAX)
		return false;
	uint32_t server = server_of(l, &begins, &ends);
	if (server != 0) {
		fetch_from(l, server, begins, ends);
		return false;
	}
	struct mst_handed piece = mst_lent_piece(&l->lent, l->sent, ends - l->sent);
	send_on(l, c, &piece);
	l->asked = l->sent;
	return c->stream != NULL && c->role == MST_CONN_WORKER;
}

/* A worker that takes little holds up all workers that wait after it. */
static void judge_taker(struct mst_lending *l, struct mst_conn *c, uint64_t past_ns)
{
	struct mst_reason reason;

	if (c->out_have < MST_LENT_QUEUED_MAX)
		return;
	l->waited_ns += past_ns < STEP_MOST_NS ? past_ns : STEP_MOST_NS;
	if (l->waited_ns <= l->base->job.o->patience_ns)
		return;
	mst_reason_set(
		&reason,
		"rank %" PRIu32 " takes the average that it asked for too slowly, and holds up "
		"others: of %" PRIu64 " bytes %" PRIu64 " were sent, and only %" PRIu64
		" (of %u) in the last %.3g s in which this server waited for it (--patience); "
		"closed",
		c->who.rank, total_bytes(l), l->sent, l->sent - l->waited_from, PROGRESS_BYTES,
		(double)l->waited_ns / (double)MST_SECOND);
	mst_frontend_blame(&l->base->front, c, MST_COMPLAINT_UNREAD, reason.text);
	mst_frontend_hang_up(&l->base->front, c);
}

static void send_pieces(struct mst_lending *l, uint64_t past_ns)
{
	struct mst_conn *c = mst_frontend_worker(&l->base->front, l->taker);
	uint64_t stop = l->sent + STEP_BYTES;

	if (c == NULL || l->lent.average == NULL) {
		end(l, c);
		return;
	}
	while (l->sent < stop && send_next(l, c))
		;
	c = mst_frontend_worker(&l->base->front, l->taker);
	if (c == NULL || l->sent == total_bytes(l))
		end(l, c);
	else if (l->sent >= stop) /* epoll reports room only where there was none */
		mst_frontend_wake(&l->base->front);
	else
		judge_taker(l, c, past_ns);
}

const char *mst_lending_piece(struct mst_lending *l, const struct mst_conn *c,
			      const struct mst_handed *p)
{
	uint64_t begins, ends;

	if (p->number > l->number)
		return "broke the protocol: a piece of an average that was not asked for";
	struct mst_conn *taker = mst_frontend_worker(&l->base->front, l->taker);
	if (p->number < l->number || l->state != MST_LENDING_SENDS || taker == NULL)
		return NULL; /* its taker is gone, or will be found gone in this step */
	if (server_of(l, &begins, &ends) != c->server || p->piece.offset != l->sent - begins ||
	    p->piece.length == 0 || p->piece.length > l->asked - l->sent ||
	    p->version != l->lent.version)
		return "broke the protocol: a piece of an average with a gap, or of two versions";
	send_on(l, taker, p);
	/* the taker may ask again as soon as it has the last piece, and be heard in this step */
	if (l->sent == total_bytes(l))
		end(l, mst_frontend_worker(&l->base->front, l->taker));
	return NULL;
}

void mst_lending_step(struct mst_lending *l, uint64_t now_ns)
{
	uint64_t past_ns = now_ns - l->step_ns;

	l->step_ns = now_ns;
	if (l->state == MST_LENDING_SENDS)
		send_pieces(l, past_ns);
	mst_lent_give_back(&l->lent);
	if (l->state == MST_LENDING_IDLE && !l->lent.return_due)
		begin(l);
}
