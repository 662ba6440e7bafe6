/* SPDX-License-Identifier: MIT */
/*
 * The leader of a job's servers. What the ledger decides (server/data/local.c) is sent to each
 * follower before it is executed here, and what followers report is given to the ledger.
 *
 * While the queue to some follower has no room, the ledger gets no event, until the follower has
 * caught up or is gone for good. So, whatever followers or workers do, there are never more
 * decisions than the queues can hold.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/cluster/entry.h"
#include "server/cluster/leader.h"
#include "server/cluster/peer.h"
#include "server/core/policy/rule.h"

struct mst_leader {
	struct mst_decider decider; /* first */
	struct mst_leader_cfg cfg;
	struct mst_entry_limits limits;
	struct mst_decider *local;
	bool held;      /* decisions wait because a queue to a follower has no room */
	uint64_t fails; /* followers that are gone for good, of whom the ledger is still to hear */
	bool over;      /* the job is over: lost links are not logged any more */

	struct mst_peer peer[MST_SERVERS_MAX]; /* from 1 on */
	uint64_t offer[MST_SERVERS_MAX];       /* number of the offer that the link was made for */
	bool gone[MST_SERVERS_MAX];            /* for good */
	/* By rank: the session that was last reported lost, and the follower that reported it. */
	struct {
		uint32_t incarnation, server;
	} * lost_at;
};

static struct mst_leader *leader_of(struct mst_decider *d)
{
	return (struct mst_leader *)d;
}

static uint32_t servers(const struct mst_leader *l)
{
	return l->cfg.ledger.shards;
}

static void leader_free(struct mst_decider *d)
{
	struct mst_leader *l = leader_of(d);

	for (uint32_t i = 1; i < MST_SERVERS_MAX; i++)
		mst_peer_fini(&l->peer[i]);
	if (l->local != NULL)
		l->local->ops->free(l->local);
	free(l->lost_at);
	free(l);
}

/* ---- followers ---- */

static void note_peer(struct mst_leader *l, enum mst_notice_kind kind, uint32_t server, int error)
{
	struct mst_notice notice = { .kind = kind };

	notice.peer.server = server;
	notice.peer.error = error;
	notice.peer.number = l->offer[server];
	l->decider.note(l->decider.note_ctx, &notice);
}

/* The control side offers another link. A follower without one is gone after the lease of
 * servers. */
static void peer_lost(struct mst_leader *l, uint32_t server, int error, uint64_t now_ns)
{
	if (!l->gone[server] && !l->over)
		mst_warn("the link with server %" PRIu32 " is lost: %s", server,
			 mst_reason_or_errno(&l->peer[server].link->why, error));
	mst_peer_drop(&l->peer[server], now_ns);
	if (!l->gone[server])
		note_peer(l, MST_NOTE_PEER_LOST, server, error);
}

static void peer_gone(struct mst_leader *l, uint32_t server, int error, uint64_t now_ns)
{
	if (l->gone[server])
		return;
	l->gone[server] = true;
	mst_peer_drop(&l->peer[server], now_ns);
	note_peer(l, MST_NOTE_PEER_GONE, server, error);
	l->fails |= UINT64_C(1) << server;
}

static void peer_linked(struct mst_leader *l, const struct mst_request *request, uint64_t now_ns)
{
	uint32_t server = request->peer.server;
	struct mst_link *link = request->peer.link;

	mst_peer_drop(&l->peer[server], now_ns);
	l->offer[server] = request->peer.number;
	struct mst_reason unused; /* the notice has the error */
	int rc = l->gone[server] ? -ENOTCONN : l->cfg.net->ops->attach(l->cfg.net, link, &unused);

	if (rc != 0) {
		link->ops->link_free(link);
		if (!l->gone[server])
			note_peer(l, MST_NOTE_PEER_LOST, server, rc);
		return;
	}
	mst_peer_use(&l->peer[server], link, now_ns);
}

static void leader_arrived(struct mst_decider *d, const struct mst_net_event *ev, uint64_t now_ns)
{
	struct mst_leader *l = leader_of(d);

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

static void note_loss(struct mst_leader *l, const struct mst_ledger_event *ev, uint32_t server)
{
	if (ev->kind != MST_EV_LOST)
		return;
	l->lost_at[ev->who.rank].incarnation = ev->who.incarnation;
	l->lost_at[ev->who.rank].server = server;
}

/* A follower that sends what no follower can send is given up: its part of the vector cannot be
 * trusted any more. */
static bool leader_reported(struct mst_decider *d, struct mst_ledger_event *out, uint64_t now_ns)
{
	struct mst_leader *l = leader_of(d);
	struct mst_peer_entry entry;

	for (uint32_t i = 1; i < servers(l); i++) {
		int rc = mst_peer_take(&l->peer[i], &entry);
		if (rc > 0 && mst_entry_event(&entry, &l->limits, i, out)) {
			note_loss(l, out, i);
			return true;
		}
		if (rc != 0)
			peer_gone(l, i, -EPROTO, now_ns);
	}
	return false;
}

static bool leader_flush(struct mst_decider *d, uint64_t now_ns)
{
	struct mst_leader *l = leader_of(d);
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

static bool has_room(const struct mst_leader *l)
{
	for (uint32_t i = 1; i < servers(l); i++) {
		if (!l->gone[i] && mst_resend_room(l->peer[i].resend) == 0)
			return false;
	}
	return true;
}

/* ---- deciding ---- */

static bool leader_takes(const struct mst_decider *d)
{
	const struct mst_leader *l = (const struct mst_leader *)d;

	return !l->held && has_room(l);
}

static bool misses_follower(const struct mst_leader *l)
{
	for (uint32_t i = 1; i < servers(l); i++) {
		if (!l->gone[i] && l->peer[i].is_lost)
			return true;
	}
	return false;
}

/* The ledger's clock stands still while a follower cannot report what workers have sent to it.
 * Otherwise these workers would be evicted for the lost link. */
static void leader_handle(struct mst_decider *d, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	struct mst_leader *l = leader_of(d);

	if (ev->kind == MST_EV_HEARD && misses_follower(l))
		return;
	l->local->ops->handle(l->local, ev, now_ns);
}

static void tell_followers(struct mst_leader *l, const struct mst_orders *o)
{
	struct mst_peer_entry entry;

	if (!mst_entry_of_decision(&o->decision, o->record, &entry))
		return;
	for (uint32_t i = 1; i < servers(l); i++) {
		if (!l->gone[i])
			mst_resend_say(l->peer[i].resend, &entry);
	}
}

/* Takes the next decision. When there is none, tells the ledger which followers are gone. */
static bool decide(struct mst_leader *l, struct mst_orders *out, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_SERVER };

	if (l->local->ops->next(l->local, out, now_ns))
		return true;
	while (l->fails != 0) {
		ev.shard = (uint32_t)__builtin_ctzll(l->fails);
		l->fails &= l->fails - 1;
		l->local->ops->handle(l->local, &ev, now_ns);
		if (l->local->ops->next(l->local, out, now_ns))
			return true;
	}
	return false;
}

static bool leader_next(struct mst_decider *d, struct mst_orders *out, uint64_t now_ns)
{
	struct mst_leader *l = leader_of(d);

	l->held = !has_room(l);
	if (l->held || !decide(l, out, now_ns))
		return false;
	tell_followers(l, out);
	return true;
}

static void leader_refuse(struct mst_decider *d, uint64_t now_ns)
{
	struct mst_leader *l = leader_of(d);

	l->local->ops->refuse(l->local, now_ns);
}

static void leader_done(struct mst_decider *d, const struct mst_orders *orders, uint64_t now_ns)
{
	struct mst_leader *l = leader_of(d);

	l->over |= orders->decision.kind == MST_DO_FINISH;
	l->local->ops->done(l->local, orders, now_ns);
}

static bool leader_wants(const struct mst_decider *d, struct mst_identity who)
{
	const struct mst_leader *l = (const struct mst_leader *)d;

	return l->local->ops->wants(l->local, who);
}

/* Passes a notice of the ledger on to the control side. If a session is lost, the follower that
 * reported it is added. */
static void pass_note(void *ctx, const struct mst_notice *notice)
{
	const struct mst_leader *l = ctx;
	struct mst_notice passed = *notice;

	if (notice->kind == MST_NOTE_EVICTED &&
	    l->lost_at[notice->who.rank].incarnation == notice->who.incarnation)
		passed.evict.server = l->lost_at[notice->who.rank].server;
	l->decider.note(l->decider.note_ctx, &passed);
}

static void leader_request(struct mst_decider *d, const struct mst_request *request,
			   uint64_t now_ns)
{
	struct mst_leader *l = leader_of(d);

	switch (request->kind) {
	case MST_REQ_SNAPSHOT:
	case MST_REQ_GATHER:
		l->local->ops->request(l->local, request, now_ns);
		break;
	case MST_REQ_PEER_LINKED:
		peer_linked(l, request, now_ns);
		break;
	case MST_REQ_PEER_GONE:
		peer_gone(l, request->peer.server, -ENOTCONN, now_ns);
		break;
	default:
		MST_ASSERT(false); /* all others are for followers, or handled by the loop */
	}
}

/* ---- timers ---- */

/* When a follower lags, the ledger knows it where a member's patience is judged, since not every
 * server has reported the header. The deadline of a step waits only for what the leader reads. */
static void leader_lags(struct mst_decider *d, uint64_t lag_ns)
{
	const struct mst_leader *l = leader_of(d);

	l->local->ops->lags(l->local, lag_ns);
}

static uint64_t leader_deadline(const struct mst_decider *d)
{
	const struct mst_leader *l = (const struct mst_leader *)d;
	uint64_t due = leader_takes(d) ? l->local->ops->deadline(l->local) : MST_NEVER;

	for (uint32_t i = 1; i < servers(l); i++) {
		uint64_t peer = l->gone[i] ? MST_NEVER : mst_peer_deadline(&l->peer[i]);
		due = peer < due ? peer : due;
	}
	return due;
}

static void leader_tick(struct mst_decider *d, uint64_t now_ns)
{
	struct mst_leader *l = leader_of(d);

	for (uint32_t i = 1; i < servers(l); i++) {
		if (!l->gone[i] && mst_peer_is_over(&l->peer[i], now_ns))
			peer_gone(l, i, -ETIMEDOUT, now_ns);
	}
	if (leader_takes(d) && now_ns >= l->local->ops->deadline(l->local))
		l->local->ops->tick(l->local, now_ns);
}

static const struct mst_decider_ops ops = {
	.free = leader_free,
	.takes = leader_takes,
	.handle = leader_handle,
	.reported = leader_reported,
	.next = leader_next,
	.refuse = leader_refuse,
	.done = leader_done,
	.wants = leader_wants,
	.request = leader_request,
	.arrived = leader_arrived,
	.flush = leader_flush,
	.lags = leader_lags,
	.deadline = leader_deadline,
	.tick = leader_tick,
};

int mst_leader_new(const struct mst_leader_cfg *cfg, struct mst_decider **out)
{
	struct mst_leader *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->decider.ops = &ops;
	l->cfg = *cfg;
	l->limits = (struct mst_entry_limits){ cfg->ledger.workers, cfg->ledger.slots,
					       mst_ledger_buffers(&cfg->ledger) };
	l->lost_at = calloc(cfg->ledger.workers, sizeof(*l->lost_at));
	int rc = l->lost_at != NULL ? mst_local_new(&cfg->ledger, cfg->recording, &l->local)
				    : -ENOMEM;
	for (uint32_t i = 1; rc == 0 && i < servers(l); i++)
		rc = mst_peer_init(&l->peer[i], cfg->window, cfg->server_lease_ns);
	if (rc != 0) {
		leader_free(&l->decider);
		return rc;
	}
	l->local->note = pass_note;
	l->local->note_ctx = l;
	*out = &l->decider;
	return 0;
}

int mst_leader_make(const struct mst_server_cfg *cfg, struct mst_net *net, struct mst_decider **out)
{
	const struct mst_aggregator_cfg *a = &cfg->aggregator;
	struct mst_leader_cfg leader = { .ledger = cfg->ledger,
					 .net = net,
					 .window = mst_peer_window(a->workers, a->slots),
					 .server_lease_ns = cfg->server_lease_ns,
					 .recording = cfg->recording };

	return mst_leader_new(&leader, out);
}
