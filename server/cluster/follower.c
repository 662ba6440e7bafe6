/* SPDX-License-Identifier: MIT */
/*
 * A follower does not decide. It reports to the leader what arrives, and executes what the leader
 * decides, in the leader's order. This file is the follower's end of the server link.
 *
 * Sessions end by an order of the leader. The order may come before the link of the session that it
 * ends; therefore the last incarnation that was ended is kept for each rank.
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
#include "server/cluster/follower.h"
#include "server/cluster/peer.h"

/* The fraction of a lease that a leader may take to answer a link request. Meanwhile this server
 * sums nothing, and it could not be told what to sum either. */
#define DIAL_SHARE 4u

struct mst_follower {
	struct mst_decider decider; /* first */
	struct mst_follower_cfg cfg;
	struct mst_entry_limits limits;
	char address[MST_ADDRESS_LEN];
	struct mst_peer peer;
	bool cut_off;    /* for good */
	uint64_t dials;  /* links that were asked for so far */
	uint32_t *ended; /* by rank: sessions up to this incarnation have ended */
	struct mst_order order;
};

static struct mst_follower *follower_of(struct mst_decider *d)
{
	return (struct mst_follower *)d;
}

static void follower_free(struct mst_decider *d)
{
	struct mst_follower *f = follower_of(d);

	mst_peer_fini(&f->peer);
	free(f->ended);
	free(f);
}

static void note_peer(struct mst_follower *f, enum mst_notice_kind kind, int error)
{
	struct mst_notice notice = { .kind = kind };

	notice.peer.error = error;
	notice.peer.number = f->dials;
	f->decider.note(f->decider.note_ctx, &notice);
}

static void cut_off(struct mst_follower *f, int error, uint64_t now_ns)
{
	mst_peer_drop(&f->peer, now_ns);
	if (f->cut_off)
		return;
	f->cut_off = true;
	note_peer(f, MST_NOTE_PEER_GONE, error);
}

/* There is no link any more, or none could be made. */
static void lost(struct mst_follower *f, int error, const struct mst_reason *why, uint64_t now_ns)
{
	if (!f->cut_off && !f->peer.prompt)
		mst_warn("the link with the leader is lost: %s", mst_reason_or_errno(why, error));
	mst_peer_drop(&f->peer, now_ns);
	if (!f->cut_off)
		note_peer(f, MST_NOTE_PEER_LOST, error);
}

/* ---- the link ---- */

static void dial(struct mst_follower *f, const uint8_t *token, uint64_t now_ns)
{
	struct mst_dial how = { .address = f->address,
				.lanes = mst_peer_lanes(f->cfg.window),
				.timeout_ns = f->cfg.lease_ns / DIAL_SHARE };
	struct mst_link *link;
	struct mst_reason why;

	f->dials++;
	if (f->cut_off)
		return;
	memcpy(how.token, token, sizeof(how.token));
	mst_peer_drop(&f->peer, now_ns);
	int rc = f->cfg.net->ops->dial(f->cfg.net, &how, &link, &why);
	if (rc != 0) { /* the link is lost, and could not be replaced */
		lost(f, rc, &why, now_ns);
		return;
	}
	mst_peer_use(&f->peer, link, now_ns);
	note_peer(f, MST_NOTE_PEER_LINKED, 0);
}

static void follower_request(struct mst_decider *d, const struct mst_request *request,
			     uint64_t now_ns)
{
	MST_ASSERT(request->kind == MST_REQ_DIAL); /* a follower is not asked for snapshots */
	dial(follower_of(d), request->token, now_ns);
}

static void follower_arrived(struct mst_decider *d, const struct mst_net_event *ev, uint64_t now_ns)
{
	struct mst_follower *f = follower_of(d);

	if (f->peer.link != ev->link)
		return;
	if (ev->kind == MST_LOST)
		lost(f, ev->error, &ev->link->why, now_ns);
	else if (ev->kind == MST_ARRIVED && mst_peer_arrived(&f->peer, ev->imm) != 0)
		cut_off(f, -EPROTO, now_ns);
}

static bool follower_flush(struct mst_decider *d, uint64_t now_ns)
{
	struct mst_follower *f = follower_of(d);
	int rc = mst_peer_flush(&f->peer);

	if (rc != 0 && rc != -EAGAIN)
		lost(f, rc, &f->peer.link->why, now_ns);
	return rc != -EAGAIN;
}

/* ---- reports ---- */

static bool follower_takes(const struct mst_decider *d)
{
	const struct mst_follower *f = (const struct mst_follower *)d;

	return f->cut_off || mst_resend_room(f->peer.resend) > 0;
}

static bool follower_wants(const struct mst_decider *d, struct mst_identity who)
{
	const struct mst_follower *f = (const struct mst_follower *)d;

	return who.incarnation > f->ended[who.rank];
}

/* Events of sessions that have ended are not reported: the leader has ended them itself. */
static void follower_handle(struct mst_decider *d, const struct mst_ledger_event *ev,
			    uint64_t now_ns)
{
	struct mst_follower *f = follower_of(d);
	struct mst_peer_entry entry;

	(void)now_ns;
	bool about_work = ev->kind == MST_EV_SPOILT || ev->kind == MST_EV_SETTLED ||
			  ev->kind == MST_EV_REDUCED || ev->kind == MST_EV_SAVED ||
			  ev->kind == MST_EV_RETURNED;
	if (f->cut_off || (!about_work && !follower_wants(d, ev->who)))
		return;
	mst_entry_of_event(ev, &entry);
	mst_resend_say(f->peer.resend, &entry);
}

static bool follower_reported(struct mst_decider *d, struct mst_ledger_event *out, uint64_t now_ns)
{
	(void)d;
	(void)out;
	(void)now_ns;
	return false;
}

/* ---- orders ---- */

static bool follower_next(struct mst_decider *d, struct mst_orders *out, uint64_t now_ns)
{
	struct mst_follower *f = follower_of(d);
	struct mst_peer_entry entry;
	int rc = f->cut_off ? 0 : mst_peer_take(&f->peer, &entry);

	if (rc == 0)
		return false;
	if (rc < 0 || !mst_entry_order(&entry, &f->limits, &f->order)) {
		cut_off(f, -EPROTO, now_ns);
		return false;
	}
	out->decision = f->order.decision;
	out->record = &f->order.record;
	out->rule = NULL; /* the decisions say all that executing them needs */
	if (out->decision.kind != MST_DO_EVICT)
		return true;
	if (!follower_wants(d, out->decision.who)) { /* a session ends once */
		cut_off(f, -EPROTO, now_ns);
		return false;
	}
	f->ended[out->decision.who.rank] = out->decision.who.incarnation;
	return true;
}

static void follower_refuse(struct mst_decider *d, uint64_t now_ns)
{
	cut_off(follower_of(d), -EPROTO, now_ns);
}

/* After the end of the job few entries follow that could carry acknowledgements, so these are sent
 * at once. */
static void follower_done(struct mst_decider *d, const struct mst_orders *orders, uint64_t now_ns)
{
	struct mst_follower *f = follower_of(d);
	const struct mst_decision *done = &orders->decision;
	struct mst_notice notice = { .kind = MST_NOTE_EVICTED, .who = done->who };

	(void)now_ns;
	if (done->kind == MST_DO_EVICT) {
		notice.evict.why = done->evict;
	} else if (done->kind == MST_DO_FINISH) {
		f->peer.prompt = true;
		notice.kind = MST_NOTE_FINISHED;
		notice.finish.why = done->finish.why;
		notice.finish.version = done->finish.version;
	} else {
		return;
	}
	f->decider.note(f->decider.note_ctx, &notice);
}

/* ---- timers ---- */

/* A follower has no timers of steps, so a lag changes nothing. */
static void follower_lags(struct mst_decider *d, uint64_t lag_ns)
{
	(void)d;
	(void)lag_ns;
}

static uint64_t follower_deadline(const struct mst_decider *d)
{
	const struct mst_follower *f = (const struct mst_follower *)d;
	return f->cut_off ? MST_NEVER : mst_peer_deadline(&f->peer);
}

static void follower_tick(struct mst_decider *d, uint64_t now_ns)
{
	struct mst_follower *f = follower_of(d);

	if (!f->cut_off && mst_peer_is_over(&f->peer, now_ns))
		cut_off(f, -ETIMEDOUT, now_ns);
}

static const struct mst_decider_ops ops = {
	.free = follower_free,
	.takes = follower_takes,
	.handle = follower_handle,
	.reported = follower_reported,
	.next = follower_next,
	.refuse = follower_refuse,
	.done = follower_done,
	.wants = follower_wants,
	.request = follower_request,
	.arrived = follower_arrived,
	.flush = follower_flush,
	.lags = follower_lags,
	.deadline = follower_deadline,
	.tick = follower_tick,
};

int mst_follower_new(const struct mst_follower_cfg *cfg, struct mst_decider **out)
{
	struct mst_follower *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->decider.ops = &ops;
	f->cfg = *cfg;
	f->limits = (struct mst_entry_limits){ cfg->workers, cfg->slots, cfg->buffers };
	snprintf(f->address, sizeof(f->address), "%s", cfg->address);
	f->cfg.address = f->address;
	f->ended = calloc(cfg->workers, sizeof(*f->ended));
	int rc = f->ended != NULL ? mst_peer_init(&f->peer, cfg->window, cfg->server_lease_ns)
				  : -ENOMEM;
	if (rc != 0) {
		follower_free(&f->decider);
		return rc;
	}
	*out = &f->decider;
	return 0;
}

int mst_follower_make(const struct mst_server_cfg *cfg, struct mst_net *net,
		      struct mst_decider **out)
{
	const struct mst_aggregator_cfg *a = &cfg->aggregator;
	struct mst_follower_cfg follower = { .net = net,
					     .window = mst_peer_window(a->workers, a->slots),
					     .workers = a->workers,
					     .slots = a->slots,
					     .buffers = a->buffers,
					     .lease_ns = cfg->ledger.lease_ns,
					     .server_lease_ns = cfg->server_lease_ns,
					     .address = cfg->leader };

	return mst_follower_new(&follower, out);
}
