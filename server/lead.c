/* SPDX-License-Identifier: MIT */
/*
 * The lead decides: the ledger, the tally that watches it, and a line to each member, down which
 * every decision goes before it is executed here.
 *
 * Where a line has no room, the ledger gets no event until its member has caught up, or is gone for
 * good: so nothing that members or workers do makes more decisions pile up than the lines hold.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/core/cell.h"
#include "server/core/rule.h"
#include "server/decider.h"
#include "server/peer.h"
#include "server/tally.h"

struct mst_lead {
	struct mst_decider decider; /* first */
	struct mst_lead_cfg cfg;
	struct mst_cell_limits limits;
	struct mst_ledger *ledger;
	struct mst_tally *tally;
	bool held;  /* the ledger has decided more than there is room to tell */
	bool fails; /* a server is gone for good; the ledger is still to be told */
	bool over;  /* the job is: links go without a word */

	struct mst_peer peer[MST_SERVERS_MAX]; /* from 1 on */
	uint64_t offer[MST_SERVERS_MAX];       /* that made the link */
	bool gone[MST_SERVERS_MAX];            /* for good */
	/* By rank: the session that a member reported lost last, and which member did. */
	struct {
		uint32_t incarnation, server;
	} * lost_at;
};

static struct mst_lead *lead_of(struct mst_decider *d)
{
	return (struct mst_lead *)d;
}

static uint32_t servers(const struct mst_lead *l)
{
	return l->cfg.ledger.shards;
}

static void lead_free(struct mst_decider *d)
{
	struct mst_lead *l = lead_of(d);

	for (uint32_t i = 1; i < MST_SERVERS_MAX; i++)
		mst_peer_fini(&l->peer[i]);
	mst_tally_free(l->tally);
	mst_ledger_free(l->ledger);
	free(l->lost_at);
	free(l);
}

/* ---- members ---- */

static void note_peer(struct mst_lead *l, enum mst_notice_kind kind, uint32_t server, int error)
{
	struct mst_notice notice = { .kind = kind };

	notice.peer.server = server;
	notice.peer.error = error;
	notice.peer.number = l->offer[server];
	l->decider.note(l->decider.note_ctx, &notice);
}

/* Its control side offers another link; without one it is gone when its lease is over. */
static void peer_lost(struct mst_lead *l, uint32_t server, int error, uint64_t now_ns)
{
	if (!l->gone[server] && !l->over)
		mst_warn("the link with server %" PRIu32 " is lost: %s", server,
			 mst_peer_why(&l->peer[server], error));
	mst_peer_drop(&l->peer[server], now_ns);
	if (!l->gone[server])
		note_peer(l, MST_NOTE_PEER_LOST, server, error);
}

static void peer_gone(struct mst_lead *l, uint32_t server, int error, uint64_t now_ns)
{
	if (l->gone[server])
		return;
	l->gone[server] = true;
	mst_peer_drop(&l->peer[server], now_ns);
	note_peer(l, MST_NOTE_PEER_GONE, server, error);
	l->fails = true;
}

static void peer_linked(struct mst_lead *l, const struct mst_request *request, uint64_t now_ns)
{
	uint32_t server = request->peer.server;
	struct mst_link *link = request->peer.link;

	mst_peer_drop(&l->peer[server], now_ns);
	l->offer[server] = request->peer.number;
	int rc = l->gone[server] ? -ENOTCONN : l->cfg.net->ops->attach(l->cfg.net, link);

	if (rc != 0) {
		link->ops->link_free(link);
		if (!l->gone[server])
			note_peer(l, MST_NOTE_PEER_LOST, server, rc);
		return;
	}
	mst_peer_use(&l->peer[server], link, now_ns);
}

static void lead_arrived(struct mst_decider *d, const struct mst_net_event *ev, uint64_t now_ns)
{
	struct mst_lead *l = lead_of(d);

	for (uint32_t i = 1; i < servers(l); i++) {
		if (l->peer[i].link != ev->link)
			continue;
		if (ev->kind == MST_LOST)
			peer_lost(l, i, ev->error, now_ns);
		else if (ev->kind == MST_ARRIVED && mst_peer_arrived(&l->peer[i], ev->imm) != 0)
			peer_gone(l, i, -EPROTO, now_ns);
		return;
	}
}

static void note_loss(struct mst_lead *l, const struct mst_ledger_event *ev, uint32_t server)
{
	if (ev->kind != MST_EV_LOST)
		return;
	l->lost_at[ev->who.rank].incarnation = ev->who.incarnation;
	l->lost_at[ev->who.rank].server = server;
}

/* What no member can have said ends it: its part of the vector cannot be trusted any more. */
static bool lead_reported(struct mst_decider *d, struct mst_ledger_event *out, uint64_t now_ns)
{
	struct mst_lead *l = lead_of(d);
	struct mst_peer_cell cell;

	for (uint32_t i = 1; i < servers(l); i++) {
		int rc = mst_peer_take(&l->peer[i], &cell);
		if (rc > 0 && mst_cell_event(&cell, &l->limits, i, out)) {
			note_loss(l, out, i);
			return true;
		}
		if (rc != 0)
			peer_gone(l, i, -EPROTO, now_ns);
	}
	return false;
}

static bool lead_flush(struct mst_decider *d, uint64_t now_ns)
{
	struct mst_lead *l = lead_of(d);
	bool all = true;

	for (uint32_t i = 1; i < servers(l); i++) {
		int rc = mst_peer_flush(&l->peer[i]);
		if (rc == -EAGAIN)
			all = false;
		else if (rc != 0)
			peer_lost(l, i, rc, now_ns);
	}
	return all;
}

static bool has_room(const struct mst_lead *l)
{
	for (uint32_t i = 1; i < servers(l); i++) {
		if (!l->gone[i] && mst_relay_room(l->peer[i].relay) == 0)
			return false;
	}
	return true;
}

/* ---- deciding ---- */

static bool lead_takes(const struct mst_decider *d)
{
	const struct mst_lead *l = (const struct mst_lead *)d;

	return !l->held && has_room(l);
}

static void lead_handle(struct mst_decider *d, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	mst_ledger_handle(lead_of(d)->ledger, ev, now_ns);
}

static const struct mst_record *record_for(const struct mst_lead *l, const struct mst_decision *d)
{
	if (d->kind == MST_DO_COMMIT)
		return mst_ledger_record(l->ledger, d->commit.buffer);
	if (d->kind == MST_DO_RELEASE)
		return mst_ledger_record(l->ledger, d->answer.buffer);
	return NULL;
}

static void tell_members(struct mst_lead *l, const struct mst_orders *o)
{
	struct mst_peer_cell cell;
	bool repeats = mst_rule_repeats(o->rule);

	if (servers(l) == 1 || !mst_cell_of_decision(&o->decision, o->record, repeats, &cell))
		return;
	for (uint32_t i = 1; i < servers(l); i++) {
		if (!l->gone[i])
			mst_relay_say(l->peer[i].relay, &cell);
	}
}

/* ---- decisions to the control side ---- */

static void note_join(const struct mst_lead *l, const struct mst_decision *d)
{
	struct mst_notice notice = { .kind = MST_NOTE_REFUSED, .who = d->who };

	notice.join.cookie = d->join.cookie;
	notice.join.error = d->join.error;
	if (d->kind == MST_DO_ADMIT) {
		struct mst_member_view view;
		mst_ledger_member(l->ledger, d->who.rank, &view);
		notice.kind = MST_NOTE_ADMITTED;
		notice.join.fate_count = view.fate_count;
		for (uint32_t i = 0; i < view.fate_count; i++)
			notice.join.fate[i] = view.fate[i];
	}
	l->decider.note(l->decider.note_ctx, &notice);
}

static void note_decision(const struct mst_lead *l, const struct mst_decision *d)
{
	struct mst_notice notice = { .who = d->who };

	switch (d->kind) {
	case MST_DO_ADMIT:
	case MST_DO_REFUSE:
		note_join(l, d);
		return;
	case MST_DO_SEND_STATE:
		notice.kind = MST_NOTE_SEND_STATE;
		break;
	case MST_DO_START:
		notice.kind = MST_NOTE_STARTED;
		break;
	case MST_DO_EVICT:
		notice.kind = MST_NOTE_EVICTED;
		notice.evict.why = d->evict;
		if (l->lost_at[d->who.rank].incarnation == d->who.incarnation)
			notice.evict.server = l->lost_at[d->who.rank].server;
		break;
	case MST_DO_FINISH:
		notice.kind = MST_NOTE_FINISHED;
		notice.finish.why = d->finish.why;
		notice.finish.version = d->finish.version;
		break;
	default:
		return;
	}
	l->decider.note(l->decider.note_ctx, &notice);
}

/* The next of the ledger's; once there is none, that a server is gone. */
static bool decide(struct mst_lead *l, struct mst_decision *out, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_SERVER };

	if (mst_ledger_next(l->ledger, out))
		return true;
	if (!l->fails)
		return false;
	l->fails = false;
	mst_ledger_handle(l->ledger, &ev, now_ns);
	return mst_ledger_next(l->ledger, out);
}

static bool lead_next(struct mst_decider *d, struct mst_orders *out, uint64_t now_ns)
{
	struct mst_lead *l = lead_of(d);

	l->held = !has_room(l);
	if (l->held || !decide(l, &out->decision, now_ns))
		return false;
	out->record = record_for(l, &out->decision);
	out->rule = mst_ledger_rule(l->ledger);
	tell_members(l, out);
	return true;
}

static void lead_done(struct mst_decider *d, const struct mst_orders *orders, uint64_t now_ns)
{
	struct mst_lead *l = lead_of(d);

	l->over |= orders->decision.kind == MST_DO_FINISH;
	mst_tally_decided(l->tally, &orders->decision, orders->record, now_ns);
	note_decision(l, &orders->decision);
}

/* What the ledger decides can be executed. */
static void lead_refuse(struct mst_decider *d, uint64_t now_ns)
{
	(void)d;
	(void)now_ns;
	MST_ASSERT(false);
}

static bool lead_wants(const struct mst_decider *d, struct mst_identity who)
{
	const struct mst_lead *l = (const struct mst_lead *)d;
	struct mst_member_view view;

	mst_ledger_member(l->ledger, who.rank, &view);
	return view.live && view.incarnation == who.incarnation;
}

static void fill_snapshot(struct mst_lead *l, struct mst_snapshot *snapshot, uint64_t now_ns)
{
	struct mst_status *status = &snapshot->status;

	status->live = 0;
	for (uint32_t rank = 0; rank < l->cfg.ledger.workers; rank++) {
		struct mst_member_view view;
		mst_ledger_member(l->ledger, rank, &view);
		snapshot->rank[rank].awaited = view.awaited;
		mst_tally_rank(l->tally, rank, now_ns, &snapshot->rank[rank]);
		status->live += view.started;
	}
	mst_tally_job(l->tally, now_ns, status);
	l->decider.note(l->decider.note_ctx, &(struct mst_notice){ .kind = MST_NOTE_SNAPSHOT });
}

static void lead_request(struct mst_decider *d, const struct mst_request *request, uint64_t now_ns)
{
	struct mst_lead *l = lead_of(d);

	switch (request->kind) {
	case MST_REQ_SNAPSHOT:
		fill_snapshot(l, request->snapshot, now_ns);
		break;
	case MST_REQ_PEER_LINKED:
		peer_linked(l, request, now_ns);
		break;
	case MST_REQ_PEER_GONE:
		peer_gone(l, request->peer.server, -ENOTCONN, now_ns);
		break;
	default:
		MST_ASSERT(false); /* a member's, or the loop's own */
	}
}

/* ---- timers ---- */

static uint64_t peer_deadline(const struct mst_lead *l, uint32_t server)
{
	uint64_t since = l->peer[server].lost_ns;

	return since == MST_NEVER || l->gone[server] ? MST_NEVER : since + l->cfg.ledger.lease_ns;
}

static uint64_t lead_deadline(const struct mst_decider *d)
{
	const struct mst_lead *l = (const struct mst_lead *)d;
	uint64_t due = lead_takes(d) ? mst_ledger_deadline(l->ledger) : MST_NEVER;

	for (uint32_t i = 1; i < servers(l); i++) {
		uint64_t peer = peer_deadline(l, i);
		due = peer < due ? peer : due;
	}
	return due;
}

static void lead_tick(struct mst_decider *d, uint64_t now_ns)
{
	struct mst_lead *l = lead_of(d);

	for (uint32_t i = 1; i < servers(l); i++) {
		if (now_ns >= peer_deadline(l, i))
			peer_gone(l, i, -ETIMEDOUT, now_ns);
	}
	if (lead_takes(d) && now_ns >= mst_ledger_deadline(l->ledger))
		mst_ledger_tick(l->ledger, now_ns);
}

static const struct mst_decider_ops ops = {
	.free = lead_free,
	.takes = lead_takes,
	.handle = lead_handle,
	.reported = lead_reported,
	.next = lead_next,
	.refuse = lead_refuse,
	.done = lead_done,
	.wants = lead_wants,
	.request = lead_request,
	.arrived = lead_arrived,
	.flush = lead_flush,
	.deadline = lead_deadline,
	.tick = lead_tick,
};

int mst_lead_new(const struct mst_lead_cfg *cfg, struct mst_decider **out)
{
	struct mst_lead *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->decider.ops = &ops;
	l->cfg = *cfg;
	l->limits = (struct mst_cell_limits){ cfg->ledger.workers, cfg->ledger.slots,
					      mst_ledger_buffers(&cfg->ledger) };
	l->lost_at = calloc(cfg->ledger.workers, sizeof(*l->lost_at));
	int rc = l->lost_at != NULL ? mst_ledger_new(&cfg->ledger, &l->ledger) : -ENOMEM;
	if (rc == 0)
		rc = mst_tally_new(cfg->ledger.workers, &l->tally);
	for (uint32_t i = 1; rc == 0 && i < servers(l); i++)
		rc = mst_peer_init(&l->peer[i], cfg->window);
	if (rc != 0) {
		lead_free(&l->decider);
		return rc;
	}
	*out = &l->decider;
	return 0;
}
