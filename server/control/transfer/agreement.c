/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/agreement.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/reason.h"
#include "server/control/transfer/claims.h"

/* How many bytes may be queued on a connection before the next piece. */
#define QUEUED_MAX ((size_t)256 << 10)
/* How many bytes a step sends to one worker, so that others are heard meanwhile. */
#define STEP_BYTES (4u << 20)
/* The log says of so many ranks what differs. */
#define RANKS_TOLD 8u
/* For this part of a patience those that have said what they have wait for others. */
#define WAIT_SHARE 2u
/* For this part of a patience the one that gives its state may send nothing of it. */
#define GIVE_SHARE 4u

static uint32_t workers(const struct mst_agreement *a)
{
	return a->base->job.o->workers;
}

int mst_agreement_init(struct mst_agreement *a)
{
	a->row = calloc(workers(a), sizeof(*a->row));
	a->giver = MST_RANK_NONE;
	return a->row != NULL ? 0 : -ENOMEM;
}

static void drop_state(struct mst_agreement *a)
{
	free(a->state);
	a->state = NULL;
	a->bytes = a->have = 0;
	a->giver = MST_RANK_NONE;
}

static void drop_claims(struct mst_agreement *a)
{
	for (uint32_t rank = 0; rank < workers(a); rank++) {
		free(a->row[rank].said);
		a->row[rank].said = NULL;
	}
}

void mst_agreement_fini(struct mst_agreement *a)
{
	if (a->row == NULL)
		return;
	drop_state(a);
	drop_claims(a);
	free(a->row);
	a->row = NULL;
}

/* ---- what differs ---- */

static struct mst_apart compare(const struct mst_state_claim *own,
				const struct mst_state_claim *theirs, uint32_t from)
{
	return mst_claims_compare(&(struct mst_parts){ own->part, own->count },
				  &(struct mst_parts){ theirs->part, theirs->count }, from);
}

static struct mst_apart compare_ranks(const struct mst_agreement *a, uint32_t own, uint32_t from)
{
	return compare(a->row[own].said, a->row[from].said, from);
}

/* ---- all have said what they have ---- */

/* Is anybody still to say what its state is made of? */
static bool is_awaited(const struct mst_agreement *a)
{
	for (uint32_t rank = 0; rank < workers(a); rank++) {
		if (a->row[rank].expected && a->row[rank].said == NULL)
			return true;
	}
	return false;
}

/* The rank whose state all get; MST_RANK_NONE: nobody is left. */
static uint32_t choose(const struct mst_agreement *a)
{
	uint32_t best = MST_RANK_NONE;

	for (uint32_t rank = 0; rank < workers(a); rank++) {
		const struct mst_state_claim *said = a->row[rank].said;
		if (a->row[rank].expected &&
		    (best == MST_RANK_NONE || said->version > a->row[best].said->version))
			best = rank;
	}
	return best;
}

static struct mst_conn *conn_of(const struct mst_agreement *a, uint32_t rank)
{
	struct mst_conn *c;

	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&a->base->front, MST_CONN_WORKER, &i)) != NULL;) {
		if (c->who.rank == rank && !c->left)
			return c;
	}
	return NULL;
}

struct found {
	uint32_t from;
	bool state, kernels; /* in some rank this differs from the state of rank @from */
};

/* Says in the log what differs, of the first ranks. */
static struct found look_at_all(const struct mst_agreement *a, uint32_t from)
{
	struct found f = { .from = from };
	uint32_t differ = 0;

	for (uint32_t rank = 0; rank < workers(a); rank++) {
		if (!a->row[rank].expected)
			continue;
		struct mst_apart d = compare_ranks(a, rank, from);
		f.state |= d.state;
		f.kernels |= d.kernels;
		if ((d.state || d.kernels) && ++differ <= RANKS_TOLD)
			mst_warn("rank %" PRIu32 " begins with another state than rank %" PRIu32
				 ": %s%s",
				 rank, from, d.why.text,
				 d.state ? "; it takes the state of that rank" : "");
	}
	if (differ > RANKS_TOLD)
		mst_warn("%" PRIu32 " more ranks begin with another state than rank %" PRIu32,
			 differ - RANKS_TOLD, from);
	return f;
}

static void say(struct mst_agreement *a, uint32_t rank, enum mst_agree_what what, struct found f)
{
	struct mst_conn *c = conn_of(a, rank);

	if (c == NULL)
		return;
	struct mst_message *m = mst_frontend_draft(&a->base->front, MST_MSG_AGREE);
	struct mst_apart d = compare_ranks(a, rank, f.from);
	m->agree = (struct mst_agree){ .what = what,
				       .from = f.from,
				       .version = a->row[f.from].said->version,
				       .kernels = f.kernels };
	memcpy(m->agree.why, d.why.text, sizeof(m->agree.why));
	c->takes_agreed = what == MST_AGREE_TAKE;
	c->agreed_sent = 0;
	a->sends |= c->takes_agreed;
	c->gives_agreed = what == MST_AGREE_GIVE;
	mst_frontend_send(&a->base->front, c, m);
}

/* All have the same now, or are being sent it. */
static void conclude(struct mst_agreement *a, struct found f)
{
	for (uint32_t rank = 0; rank < workers(a); rank++) {
		if (!a->row[rank].expected)
			continue;
		bool takes = f.state && compare_ranks(a, rank, f.from).state;
		say(a, rank, takes ? MST_AGREE_TAKE : MST_AGREE_DONE, f);
		a->row[rank].expected = false;
	}
	a->over = true;
	a->agreed = *a->row[f.from].said;
	a->kernels = f.kernels;
	a->from = f.from;
	drop_claims(a);
	if (!a->sends)
		drop_state(a);
}

/* Something has changed: is there all that is needed for the next thing? */
static void go_on(struct mst_agreement *a)
{
	if (!a->begun || a->over || a->giver != MST_RANK_NONE || is_awaited(a))
		return;
	uint32_t from = choose(a);
	if (from == MST_RANK_NONE) {
		a->over = true;
		return;
	}
	struct found f = look_at_all(a, from);
	if (!f.state) {
		conclude(a, f);
		return;
	}
	a->giver = from;
	a->gave_ns = a->now_ns;
	a->kernels = f.kernels;
	say(a, from, MST_AGREE_GIVE, f);
}

/* ---- what happens ---- */

void mst_agreement_begin(struct mst_agreement *a)
{
	for (uint32_t rank = 0; rank < workers(a); rank++)
		a->row[rank].expected = a->base->job.present[rank];
	a->begun = true;
	go_on(a);
}

static struct mst_parts kernels_of(const struct mst_state_claim *claim,
				   struct mst_claim_part room[MUSTER_PARTS_MAX])
{
	struct mst_parts kernels = { .part = room };

	for (uint32_t i = 0; i < claim->count; i++) {
		if (claim->part[i].kind == MUSTER_PART_KERNEL)
			room[kernels.count++] = claim->part[i];
	}
	return kernels;
}

/* It comes late, with the state of another, or the same: only what it computes with may differ. */
static void agree_at_once(struct mst_agreement *a, struct mst_conn *c,
			  const struct mst_state_claim *claim)
{
	struct mst_claim_part room[2][MUSTER_PARTS_MAX];
	struct mst_parts own = kernels_of(claim, room[0]), theirs = kernels_of(&a->agreed, room[1]);
	struct mst_apart d = { .kernels = false };

	if (a->agreed.count > 0)
		d = mst_claims_compare(&own, &theirs, a->from);
	c->other_kernels = d.kernels;
	if (d.kernels)
		mst_warn("rank %" PRIu32 " computes with other kernels than rank %" PRIu32 ": %s",
			 c->who.rank, a->from, d.why.text);
	struct mst_message *m = mst_frontend_draft(&a->base->front, MST_MSG_AGREE);
	m->agree = (struct mst_agree){ .what = MST_AGREE_DONE,
				       .from = c->who.rank,
				       .version = a->agreed.version,
				       .kernels = d.kernels || a->kernels };
	memcpy(m->agree.why, d.why.text, sizeof(m->agree.why));
	mst_frontend_send(&a->base->front, c, m);
}

static int refuse(int error, const char *does, const char **what)
{
	*what = does;
	return error;
}

int mst_agreement_claim(struct mst_agreement *a, struct mst_conn *c,
			const struct mst_state_claim *claim, const char **what)
{
	struct mst_agreement_row *row = &a->row[c->who.rank];

	if (mst_job_is_over(&a->base->job))
		return 0; /* the worker is told the end of the job */
	if (c->took || a->over) {
		if (!c->took && a->agreed.count > 0 && compare(claim, &a->agreed, a->from).state)
			return refuse(-ENOTCONN,
				      "came late, and would begin with another state than the "
				      "others, which have begun (they wait for half of "
				      "--patience): start it again, and it takes the state of "
				      "another; or raise --patience",
				      what);
		agree_at_once(a, c, claim);
		return 0;
	}
	row->expected |= a->begun; /* the others have not begun yet, so it is in time */
	if (row->said != NULL || claim->count == 0)
		return refuse(-EPROTO,
			      "broke the protocol: it says twice with which state it begins, or "
			      "says nothing of it",
			      what);
	row->said = malloc(sizeof(*row->said));
	if (row->said == NULL)
		return refuse(-ENOMEM,
			      "begins with a state that this server has no memory to compare",
			      what);
	*row->said = *claim;
	go_on(a);
	return 0;
}

int mst_agreement_piece(struct mst_agreement *a, struct mst_conn *c, const struct mst_handed *p,
			const char **what)
{
	const struct mst_state_piece *piece = &p->piece;

	if (a->giver != c->who.rank || a->over)
		return refuse(-EPROTO, "broke the protocol: it gives a state that nobody asked for",
			      what);
	if (piece->offset != a->have || piece->length == 0 ||
	    piece->total > a->base->job.o->state_max ||
	    (a->state != NULL && piece->total != a->bytes))
		return refuse(-EPROTO,
			      "broke the protocol: it gives a state to begin with that has a gap, "
			      "or is larger than --state-max",
			      what);
	if (a->state == NULL) {
		a->state = malloc(piece->total);
		a->bytes = piece->total;
	}
	if (a->state == NULL)
		return refuse(-ENOMEM, "gives a state for which this server has no memory", what);
	memcpy(a->state + piece->offset, piece->data, piece->length);
	a->have += piece->length;
	a->gave_ns = a->now_ns;
	if (a->have == a->bytes)
		conclude(a,
			 (struct found){ .from = a->giver, .state = true, .kernels = a->kernels });
	return 0;
}

void mst_agreement_lost(struct mst_agreement *a, uint32_t rank)
{
	struct mst_agreement_row *row = &a->row[rank];

	free(row->said);
	*row = (struct mst_agreement_row){ .expected = false };
	if (!a->over && a->giver == rank)
		drop_state(a);
	go_on(a);
}

/* ---- what is sent ---- */

/* Return: there is more to send to this worker; *@room: and it takes more at once. */
static bool send_pieces(struct mst_agreement *a, struct mst_conn *c, bool *room)
{
	uint64_t left, end = c->agreed_sent + STEP_BYTES;

	while ((left = a->bytes - c->agreed_sent) > 0 && c->out_have < QUEUED_MAX &&
	       c->agreed_sent < end) {
		struct mst_message *m = mst_frontend_draft(&a->base->front, MST_MSG_TAKE);
		m->handed = (struct mst_handed){
			.number = MST_AGREED_GIFT,
			.piece = { .offset = c->agreed_sent,
				   .total = a->bytes,
				   .length = (uint32_t)(left < MST_TAKE_CHUNK ? left
									      : MST_TAKE_CHUNK),
				   .data = a->state + c->agreed_sent },
		};
		c->agreed_sent += m->handed.piece.length;
		mst_frontend_send(&a->base->front, c, m);
		if (c->stream == NULL || c->role != MST_CONN_WORKER)
			return false;
	}
	c->takes_agreed = left > 0;
	*room |= left > 0 && c->out_have < QUEUED_MAX;
	return left > 0;
}

/* Begins without those that have not said yet what they have. */
static void begin_without(struct mst_agreement *a)
{
	for (uint32_t rank = 0; rank < workers(a); rank++) {
		struct mst_agreement_row *row = &a->row[rank];
		if (!row->expected || row->said != NULL)
			continue;
		mst_warn("rank %" PRIu32 " has not said for %.3g s with which state it begins "
			 "(half of --patience): the others begin without it",
			 rank,
			 (double)a->base->job.o->patience_ns / WAIT_SHARE / (double)MST_SECOND);
		row->expected = false;
	}
	go_on(a);
}

static bool somebody_waits(const struct mst_agreement *a)
{
	if (!a->begun || a->over || a->giver != MST_RANK_NONE)
		return false;
	for (uint32_t rank = 0; rank < workers(a); rank++) {
		if (a->row[rank].expected && a->row[rank].said != NULL)
			return true;
	}
	return false;
}

static void look_at_wait(struct mst_agreement *a, uint64_t now_ns)
{
	if (!somebody_waits(a)) {
		a->since_ns = 0;
		return;
	}
	if (a->since_ns == 0)
		a->since_ns = now_ns;
	else if (now_ns - a->since_ns > a->base->job.o->patience_ns / WAIT_SHARE)
		begin_without(a);
}

struct mst_conn *mst_agreement_stalled(const struct mst_agreement *a, uint64_t now_ns)
{
	if (!a->begun || a->over || a->giver == MST_RANK_NONE ||
	    now_ns - a->gave_ns <= a->base->job.o->patience_ns / GIVE_SHARE)
		return NULL;
	return conn_of(a, a->giver);
}

void mst_agreement_step(struct mst_agreement *a, uint64_t now_ns)
{
	bool more = false, room = false;
	struct mst_conn *c;

	a->now_ns = now_ns;
	look_at_wait(a, now_ns);
	if (!a->sends)
		return;
	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&a->base->front, MST_CONN_WORKER, &i)) != NULL;) {
		if (c->takes_agreed)
			more |= send_pieces(a, c, &room);
	}
	a->sends = more;
	if (!more)
		drop_state(a);
	if (room) /* epoll reports it only where there was none */
		mst_frontend_wake(&a->base->front);
}
