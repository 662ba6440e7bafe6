/* SPDX-License-Identifier: MIT */
#include "server/control/lending.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"

/* How many bytes may be queued on a connection before the next piece. */
#define QUEUED_MAX ((size_t)256 << 10)
/* How many bytes a step sends, so that others are heard meanwhile. */
#define STEP_BYTES (4u << 20)
/* How many bytes the leader fetches of a follower at a time. */
#define FETCH_BYTES (128u << 10)
/* Whoever takes the average slower than so many bytes in a patience is hung up on. */
#define PROGRESS_BYTES (4u << 20)
/* What a step counts at most as time in which the taker was waited for: in a longer one this
 * server stood still. */
#define STEP_MOST_NS (100 * MST_MS)

static const struct mst_server_cfg *figures(const struct mst_lending *l)
{
	return &l->job->plan.server;
}

static uint64_t total_bytes(const struct mst_lending *l)
{
	return l->job->plan.vector.elems * sizeof(float);
}

/* A piece of this server's part. */
static struct mst_handed piece_of(const struct mst_lending *l, uint64_t offset, uint64_t most)
{
	uint64_t length = most < MST_TAKE_CHUNK ? most : MST_TAKE_CHUNK;

	return (struct mst_handed){ .version = l->version,
				    .piece = { .offset = offset,
					       .length = (uint32_t)length,
					       .data = (const char *)l->average + offset } };
}

static void give_back(struct mst_lending *l)
{
	struct mst_ledger_event ev = { .kind = MST_EV_RETURNED };

	ev.lent.shard = figures(l)->aggregator.index;
	ev.lent.version = l->version;
	if (l->return_due && mst_requests_event(&l->job->requests, &ev))
		l->return_due = false;
}

static void stop_reading(struct mst_lending *l)
{
	l->lent = false;
	l->average = NULL;
	l->return_due = true;
}

void mst_lending_lent(struct mst_lending *l, const struct mst_notice *notice)
{
	l->lent = true;
	l->version = notice->lent.version;
	l->average = notice->lent.average;
	if (l->state == MST_LENDING_ASKED)
		l->state = MST_LENDING_SENDS;
}

/* ---- at a follower ---- */

const char *mst_lending_fetch(struct mst_lending *l, const struct mst_fetch *fetch)
{
	uint64_t bytes = l->job->plan.count * sizeof(float);

	if (figures(l)->aggregator.averages == 0)
		return "a request for an average that this server does not keep";
	if (fetch->offset > bytes || fetch->length > bytes - fetch->offset)
		return "a request for an average beyond this server's part";
	if (fetch->length > 0 && l->fetches)
		return "a request for an average before the last was answered";
	/* it may come before the data side has executed LEND */
	l->fetches = true;
	l->fetch = *fetch;
	return NULL;
}

static void answer_fetch(struct mst_lending *l, struct mst_conn *lead)
{
	while (l->fetch.length > 0 && lead->out_have < QUEUED_MAX) {
		struct mst_message *m = mst_frontend_draft(l->front, MST_MSG_AVERAGE);
		m->handed = piece_of(l, l->fetch.offset, l->fetch.length);
		m->handed.number = l->fetch.number;
		m->handed.piece.total = l->job->plan.count * sizeof(float);
		l->fetch.offset += m->handed.piece.length;
		l->fetch.length -= m->handed.piece.length;
		mst_frontend_send(l->front, lead, m);
		if (lead->stream == NULL)
			return;
	}
	l->fetches = l->fetch.length > 0;
}

/* A part that is not finite is not sent: the job fails, and the leader hears of that. */
void mst_lending_step_follower(struct mst_lending *l, struct mst_conn *lead)
{
	if (l->lent && l->fetches && l->fetch.length == 0) {
		stop_reading(l);
		l->fetches = false;
	} else if (l->lent && l->fetches && l->average != NULL && lead != NULL) {
		answer_fetch(l, lead);
	}
	give_back(l);
}

/* ---- at the leader: who is served ---- */

bool mst_lending_ask(struct mst_lending *l, struct mst_conn *c, uint64_t number, const char **wrong)
{
	*wrong = NULL;
	if (figures(l)->aggregator.averages == 0)
		*wrong = "broke the protocol: it asks for an average that the servers do not keep";
	else if (l->job->state == MST_JOB_GATHERING && !l->job->present[c->who.rank])
		*wrong = "broke the protocol: it asks for the average before it has started";
	else if (c->average_turn != 0)
		*wrong = "broke the protocol: it asks for the average before it has all of the one "
			 "that it asked for";
	if (*wrong != NULL)
		return true;
	/* what the ledger has told the worker by its link may be heard here a little later */
	if (l->job->state == MST_JOB_GATHERING)
		return false;
	c->average_turn = ++l->turns;
	c->average_number = number;
	return true;
}

/* The worker that has waited longest. */
static struct mst_conn *next_taker(const struct mst_lending *l)
{
	struct mst_conn *c, *first = NULL;

	for (uint32_t i = 0; (c = mst_frontend_next_of(l->front, MST_CONN_WORKER, &i)) != NULL;)
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
	if (!mst_requests_event(&l->job->requests, &ev))
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
	stop_reading(l);
	l->state = MST_LENDING_IDLE;
	for (uint32_t i = 1; i < mst_job_servers(l->job); i++) {
		struct mst_message *m = mst_frontend_draft(l->front, MST_MSG_FETCH);
		m->fetch = (struct mst_fetch){ .number = l->number };
		mst_leading_send(l->leading, i, m);
	}
}

/* ---- at the leader: what is sent ---- */

/* The server whose part is to be sent next, and that part in bytes of the whole average. */
static uint32_t server_of(const struct mst_lending *l, uint64_t *begins, uint64_t *ends)
{
	uint64_t first, count;
	uint32_t server = 0;

	do {
		mst_job_part(l->job, server, &first, &count);
		*begins = first * sizeof(float);
		*ends = (first + count) * sizeof(float);
	} while (l->sent >= *ends && ++server < mst_job_servers(l->job));
	return server;
}

/* Sends a piece to the taker, which has the place behind what was sent. */
static void send_on(struct mst_lending *l, struct mst_conn *c, const struct mst_handed *piece)
{
	struct mst_message *m = mst_frontend_draft(l->front, MST_MSG_AVERAGE);

	m->handed = *piece;
	m->handed.number = c->average_number;
	m->handed.piece.offset = l->sent;
	m->handed.piece.total = total_bytes(l);
	l->sent += piece->piece.length;
	if (l->sent - l->waited_from >= PROGRESS_BYTES) {
		l->waited_from = l->sent;
		l->waited_ns = 0;
	}
	mst_frontend_send(l->front, c, m);
}

static void fetch_from(struct mst_lending *l, uint32_t server, uint64_t begins, uint64_t ends)
{
	struct mst_message *m = mst_frontend_draft(l->front, MST_MSG_FETCH);
	uint64_t left = ends - l->sent;

	m->fetch = (struct mst_fetch){ .number = l->number,
				       .offset = l->sent - begins,
				       .length = left < FETCH_BYTES ? left : FETCH_BYTES };
	l->asked = l->sent + m->fetch.length;
	mst_leading_send(l->leading, server, m);
}

/* Return: false: nothing more can be sent now. */
static bool send_next(struct mst_lending *l, struct mst_conn *c)
{
	uint64_t begins, ends;

	if (l->sent == total_bytes(l) || l->asked > l->sent || c->out_have >= QUEUED_MAX)
		return false;
	uint32_t server = server_of(l, &begins, &ends);
	if (server != 0) {
		fetch_from(l, server, begins, ends);
		return false;
	}
	struct mst_handed piece = piece_of(l, l->sent, ends - l->sent);
	send_on(l, c, &piece);
	l->asked = l->sent;
	return c->stream != NULL && c->role == MST_CONN_WORKER;
}

/* Whoever takes little holds up all who wait behind it. */
static void judge_taker(struct mst_lending *l, struct mst_conn *c, uint64_t past_ns)
{
	char reason[MST_REASON_LEN];

	if (c->out_have < QUEUED_MAX)
		return;
	l->waited_ns += past_ns < STEP_MOST_NS ? past_ns : STEP_MOST_NS;
	if (l->waited_ns <= l->job->o->patience_ns)
		return;
	snprintf(reason, sizeof(reason),
		 "rank %" PRIu32 " takes the average that it asked for too slowly, and holds up "
		 "others: of %" PRIu64 " bytes %" PRIu64 " were sent, and only %" PRIu64
		 " (of %u) in the last %.3g s in which this server waited for it (--patience); "
		 "closed",
		 c->who.rank, total_bytes(l), l->sent, l->sent - l->waited_from, PROGRESS_BYTES,
		 (double)l->waited_ns / (double)MST_SECOND);
	mst_frontend_blame(l->front, c, MST_COMPLAINT_UNREAD, reason);
	mst_frontend_hang_up(l->front, c);
}

static void send_pieces(struct mst_lending *l, uint64_t past_ns)
{
	struct mst_conn *c = mst_frontend_worker(l->front, l->taker);
	uint64_t stop = l->sent + STEP_BYTES;

	if (c == NULL || l->average == NULL) {
		end(l, c);
		return;
	}
	while (l->sent < stop && send_next(l, c))
		;
	c = mst_frontend_worker(l->front, l->taker);
	if (c == NULL || l->sent == total_bytes(l))
		end(l, c);
	else if (l->sent >= stop) /* epoll reports room only where there was none */
		mst_frontend_wake(l->front);
	else
		judge_taker(l, c, past_ns);
}

const char *mst_lending_piece(struct mst_lending *l, const struct mst_conn *c,
			      const struct mst_handed *p)
{
	uint64_t begins, ends;

	if (p->number > l->number)
		return "broke the protocol: a piece of an average that was not asked for";
	struct mst_conn *taker = mst_frontend_worker(l->front, l->taker);
	if (p->number < l->number || l->state != MST_LENDING_SENDS || taker == NULL)
		return NULL; /* its taker is gone, or will be found gone in this step */
	if (server_of(l, &begins, &ends) != c->server || p->piece.offset != l->sent - begins ||
	    p->piece.length == 0 || p->piece.length > l->asked - l->sent ||
	    p->version != l->version)
		return "broke the protocol: a piece of an average with a gap, or of two versions";
	send_on(l, taker, p);
	/* the taker may ask again as soon as it has the last piece, and be heard in this step */
	if (l->sent == total_bytes(l))
		end(l, mst_frontend_worker(l->front, l->taker));
	return NULL;
}

void mst_lending_step(struct mst_lending *l, uint64_t now_ns)
{
	uint64_t past_ns = now_ns - l->step_ns;

	l->step_ns = now_ns;
	if (l->state == MST_LENDING_SENDS)
		send_pieces(l, past_ns);
	give_back(l);
	if (l->state == MST_LENDING_IDLE && !l->return_due)
		begin(l);
}
