/* SPDX-License-Identifier: MIT */
/* What the user does: filling, pushing, abandoning, asking. */
#include "client/core/worker.h"

#include <errno.h>
#include <math.h>

#include "client/core/worker_state.h"
#include "common/base/assert.h"

static const unsigned next_legal[] = {
	/* Back to JOINED: another session goes on in place of the one that is lost. */
	[MST_WORKER_JOINED] = 1u << MST_WORKER_STARTING | 1u << MST_WORKER_FAILED |
			      1u << MST_WORKER_JOINED,
	[MST_WORKER_STARTING] = 1u << MST_WORKER_WORKING | 1u << MST_WORKER_FAILED |
				1u << MST_WORKER_JOINED,
	[MST_WORKER_WORKING] = 1u << MST_WORKER_OVER | 1u << MST_WORKER_FAILED |
			       1u << MST_WORKER_JOINED,
	[MST_WORKER_OVER] = 0,
	[MST_WORKER_FAILED] = 0,
};

void mst_worker_enter(struct mst_worker *w, enum mst_worker_phase next)
{
	MST_ASSERT(next_legal[w->phase] & 1u << next);
	w->phase = next;
}

int mst_worker_init(struct mst_worker *w, const struct mst_worker_cfg *cfg)
{
	MST_ASSERT(cfg->slots > 0 && cfg->slots <= MST_SLOTS_MAX && cfg->workers > 0);
	MST_ASSERT(cfg->servers > 0 && cfg->servers <= MST_SERVERS_MAX);
	*w = (struct mst_worker){
		.cfg = *cfg,
		.filling = -1,
		.held = { .version = MST_VERSION_NONE },
		.given = MST_VERSION_NONE,
		.last = MST_VERSION_NONE,
	};
	for (uint32_t i = 0; i < cfg->slots; i++)
		w->slot[i].epoch = 1; /* granted by the welcome */
	if (mst_sets_init(&w->sets, &(struct mst_sets_figures){ cfg->history, cfg->workers }) !=
		    0 ||
	    mst_ranges_init(&w->ranges, cfg->elems) != 0) {
		mst_worker_fini(w);
		return -ENOMEM;
	}
	w->held.share = w->sets.share;
	return 0;
}

void mst_worker_fini(struct mst_worker *w)
{
	mst_ranges_fini(&w->ranges);
	mst_sets_fini(&w->sets);
}

void mst_worker_start(struct mst_worker *w)
{
	mst_worker_enter(w, MST_WORKER_STARTING);
	w->ask = MST_ASK_OUT;
	w->ask_number = 1;
}

/* ---- filling ---- */

int mst_worker_fill(struct mst_worker *w)
{
	if (w->phase != MST_WORKER_WORKING)
		return -EAGAIN;
	if (w->filling >= 0)
		return w->filling;
	int slot = mst_worker_find_fillable(w);
	if (slot < 0 || mst_tickets_full(&w->tickets))
		return -EAGAIN;
	w->filling = slot;
	w->slot[slot].posted = false;
	w->slot[slot].lender = 0;
	w->tag = w->given;
	w->squares = 0;
	return slot;
}

int mst_worker_range(struct mst_worker *w, uint64_t first, uint64_t count)
{
	MST_ASSERT(w->filling >= 0);
	return mst_ranges_add(&w->ranges, first, count);
}

void mst_worker_posted(struct mst_worker *w)
{
	MST_ASSERT(w->filling >= 0);
	w->slot[w->filling].sends++;
	w->slot[w->filling].posted = true;
}

void mst_worker_sent(struct mst_worker *w, uint32_t slot)
{
	MST_ASSERT(slot < w->cfg.slots && w->slot[slot].sends > 0);
	w->slot[slot].sends--;
}

/* ---- lending ---- */

void mst_worker_lent(struct mst_worker *w)
{
	int slot = w->filling;

	MST_ASSERT(slot >= 0 && w->slot[slot].lent < w->slot[slot].sends);
	w->slot[slot].lent++;
}

void mst_worker_returned(struct mst_worker *w, uint32_t slot)
{
	MST_ASSERT(slot < w->cfg.slots && w->slot[slot].lent > 0);
	w->slot[slot].lent--;
}

void mst_worker_cut(struct mst_worker *w)
{
	w->cut = true;
}

/* A slot is not filled again before everything is back, so its last push tells whose it is. */
bool mst_worker_released(const struct mst_worker *w, uint64_t ticket)
{
	for (uint32_t i = 0; i < w->cfg.slots; i++) {
		if (w->slot[i].lent > 0 && (ticket == 0 || w->slot[i].lender == ticket))
			return false;
	}
	return true;
}

/* ---- giving up ---- */

void mst_worker_stop_filling(struct mst_worker *w, enum mst_grant_state state)
{
	if (w->filling >= 0)
		w->slot[w->filling].state = state;
	w->filling = -1;
	mst_ranges_clear(&w->ranges);
}

/* After the end of the job, and of the session, nobody reads a slot any more. So one that was sent
 * in part is free, too. */
int mst_worker_abandon(struct mst_worker *w)
{
	int slot = w->filling;

	if (w->phase != MST_WORKER_WORKING)
		return -1;
	bool tell = slot >= 0 && w->slot[slot].posted && !mst_worker_is_unheard(w);
	mst_worker_stop_filling(w, tell ? MST_GRANT_SPENT : MST_GRANT_FREE);
	w->abandoned = true;
	return tell ? slot : -1;
}

/* ---- asking ---- */

/* The ticket that was sent last in this session, or before it. */
static uint64_t last_ticket(const struct mst_worker *w)
{
	return w->base + w->headers;
}

static struct mst_lane_ask send_ask(struct mst_worker *w)
{
	MST_ASSERT(w->ask != MST_ASK_OUT);
	w->ask = MST_ASK_OUT;
	w->asking = last_ticket(w);
	w->renew = false;
	w->more = false;
	return (struct mst_lane_ask){ .number = ++w->ask_number, .have = w->held.version };
}

/* An answer that has not been handed out may be replaced by a newer one, but not where workers need
 * every version and the answer brings one. */
static bool may_ask(const struct mst_worker *w)
{
	return w->ask == MST_ASK_NONE || (w->ask == MST_ASK_ANSWERED && !mst_worker_holds_next(w));
}

/* The ask that is out, or its answer, is older than the push with @ticket: another ask must
 * follow. */
static void ask_again(struct mst_worker *w, uint64_t ticket)
{
	w->asking = ticket;
	w->renew = true;
}

bool mst_worker_pull(struct mst_worker *w, struct mst_lane_ask *ask)
{
	if (w->phase != MST_WORKER_WORKING || w->adrift)
		return false;
	if (!may_ask(w)) {
		if (last_ticket(w) > w->asking)
			ask_again(w, last_ticket(w));
		return false;
	}
	*ask = send_ask(w);
	return true;
}

bool mst_worker_wait_asks(struct mst_worker *w, struct mst_lane_ask *ask)
{
	if (w->phase != MST_WORKER_WORKING || w->adrift)
		return false;
	if (w->more || !mst_worker_misses_words(w) || !may_ask(w))
		return false;
	bool ended = w->last != MST_VERSION_NONE;
	if (!ended && (w->finishing || (w->ask == MST_ASK_ANSWERED && !w->renew)))
		return false;
	*ask = send_ask(w);
	return true;
}

/* ---- pushing ---- */

/* If an ask may go out now, the header of the push carries it. */
static uint32_t ask_with(struct mst_worker *w, uint64_t ticket, struct mst_lane_ask *ask)
{
	if (!may_ask(w)) {
		ask_again(w, ticket);
		return 0;
	}
	*ask = send_ask(w);
	w->asking = ticket;
	return MST_HEADER_ASK;
}

/* No rule that is in force for the open step can count the contribution: nobody needs its data. */
static bool is_outside(const struct mst_worker *w)
{
	return w->held.newest - w->tag > w->held.window;
}

void mst_worker_squares(struct mst_worker *w, double squares)
{
	w->squares += squares;
}

bool mst_worker_rest(const struct mst_worker *w, uint64_t from, struct mst_range *out)
{
	if (w->filling < 0 || is_outside(w) || mst_worker_is_unheard(w))
		return false;
	return mst_ranges_gap(&w->ranges, from, out);
}

static uint32_t flags_of(const struct mst_worker *w, const struct muster_contribution *c)
{
	return (c->full ? MST_HEADER_FULL : 0) | (c->sum ? MST_HEADER_SUM : 0) |
	       (c->part && !c->full ? MST_HEADER_PART : 0) | (c->has_loss ? MST_HEADER_LOSS : 0) |
	       (is_outside(w) ? MST_HEADER_EMPTY : 0) |
	       (w->cfg.norms && !is_outside(w) ? MST_HEADER_NORM : 0);
}

/* These servers know the tickets of this session alone. */
static uint32_t unheard_of(const struct mst_worker *w)
{
	uint32_t open = mst_tickets_open(&w->tickets);

	return open < w->headers ? open : (uint32_t)w->headers;
}

/* A header without contents. It uses up its slot. */
static struct mst_lane_header header_of(struct mst_worker *w, int slot, uint64_t number,
					uint32_t unheard)
{
	w->slot[slot].ticket = number;
	w->headers = number - w->base;
	return (struct mst_lane_header){
		.seq = w->headers,
		.epoch = w->slot[slot].epoch,
		.tag = w->tag,
		.slot = (uint16_t)slot,
		.unheard = (uint16_t)unheard,
		.size = MST_HEADER_SIZE,
	};
}

int mst_worker_push(struct mst_worker *w, const struct muster_contribution *c,
		    struct mst_lane_header *header, uint64_t *ticket)
{
	int slot = mst_worker_fill(w);

	if (slot < 0)
		return slot;
	uint32_t unheard = unheard_of(w);
	*ticket = mst_tickets_issue(&w->tickets, w->tag);
	w->slot[slot].lender = *ticket;
	if (mst_worker_is_unheard(w)) {
		mst_worker_stop_filling(w, MST_GRANT_FREE);
		if (w->last != MST_VERSION_NONE)
			mst_tickets_cancel_rest(&w->tickets);
		return 0;
	}
	*header = header_of(w, slot, *ticket, unheard);
	header->weight = c->weight;
	header->loss = c->has_loss ? c->loss : 0;
	header->flags = flags_of(w, c);
	header->norm = header->flags & MST_HEADER_NORM ? sqrt(w->squares) : 0;
	if (!c->keep)
		header->flags |= ask_with(w, *ticket, &header->ask);
	mst_worker_stop_filling(w, MST_GRANT_SPENT);
	return 1;
}

bool mst_worker_pass(struct mst_worker *w, struct mst_lane_header *header)
{
	int slot = mst_worker_is_unheard(w) ? -1 : mst_worker_fill(w);

	if (slot < 0)
		return false;
	uint32_t unheard = unheard_of(w);
	uint64_t number = mst_tickets_issue_pass(&w->tickets);
	w->slot[slot].passed = true;
	*header = header_of(w, slot, number, unheard);
	header->flags = MST_HEADER_PASS;
	w->abandoned |= w->ranges.count > 0;
	mst_worker_stop_filling(w, MST_GRANT_SPENT);
	return true;
}
