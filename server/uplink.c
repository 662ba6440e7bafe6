/* SPDX-License-Identifier: MIT */
/*
 * A member does not decide: what arrives is reported to the lead, and what the lead decides is
 * executed in its order. This is the member's end of that line.
 *
 * Sessions end by order, and an order may come before the link of the session it ends: so of each
 * rank the last incarnation that was ended is kept.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/core/cell.h"
#include "server/decider.h"
#include "server/peer.h"

/* Of a lease: as long as the lead may take to answer at its door. The sums wait meanwhile, and
 * there is nothing they could be told. */
#define DIAL_SHARE 4u

struct mst_uplink {
	struct mst_decider decider; /* first */
	struct mst_uplink_cfg cfg;
	struct mst_cell_limits limits;
	char address[MST_ADDRESS_LEN];
	struct mst_peer peer;
	bool cut_off;    /* for good */
	uint64_t dials;  /* so far */
	uint32_t *ended; /* by rank: incarnations up to this one */
	struct mst_order order;
};

static struct mst_uplink *uplink_of(struct mst_decider *d)
{
	return (struct mst_uplink *)d;
}

static void uplink_free(struct mst_decider *d)
{
	struct mst_uplink *u = uplink_of(d);

	mst_peer_fini(&u->peer);
	free(u->ended);
	free(u);
}

static void note_peer(struct mst_uplink *u, enum mst_notice_kind kind, int error)
{
	struct mst_notice notice = { .kind = kind };

	notice.peer.error = error;
	notice.peer.number = u->dials;
	u->decider.note(u->decider.note_ctx, &notice);
}

static void cut_off(struct mst_uplink *u, int error, uint64_t now_ns)
{
	mst_peer_drop(&u->peer, now_ns);
	if (u->cut_off)
		return;
	u->cut_off = true;
	note_peer(u, MST_NOTE_PEER_GONE, error);
}

static void lost(struct mst_uplink *u, int error, uint64_t now_ns)
{
	if (!u->cut_off && !u->peer.prompt)
		mst_warn("the link with the lead is lost: %s", mst_peer_why(&u->peer, error));
	mst_peer_drop(&u->peer, now_ns);
	if (!u->cut_off)
		note_peer(u, MST_NOTE_PEER_LOST, error);
}

/* ---- the link ---- */

static void dial(struct mst_uplink *u, const uint8_t *token, uint64_t now_ns)
{
	struct mst_dial how = { .address = u->address,
				.lanes = mst_peer_lanes(u->cfg.window),
				.timeout_ns = u->cfg.lease_ns / DIAL_SHARE };
	struct mst_link *link;

	u->dials++;
	if (u->cut_off)
		return;
	memcpy(how.token, token, sizeof(how.token));
	mst_peer_drop(&u->peer, now_ns);
	int rc = u->cfg.net->ops->dial(u->cfg.net, &how, &link);
	if (rc != 0) { /* lost, and not found again */
		lost(u, rc, now_ns);
		return;
	}
	mst_peer_use(&u->peer, link, now_ns);
	note_peer(u, MST_NOTE_PEER_LINKED, 0);
}

static void uplink_request(struct mst_decider *d, const struct mst_request *request,
			   uint64_t now_ns)
{
	MST_ASSERT(request->kind == MST_REQ_DIAL); /* nobody lends a member a snapshot */
	dial(uplink_of(d), request->token, now_ns);
}

static void uplink_arrived(struct mst_decider *d, const struct mst_net_event *ev, uint64_t now_ns)
{
	struct mst_uplink *u = uplink_of(d);

	if (u->peer.link != ev->link)
		return;
	if (ev->kind == MST_LOST)
		lost(u, ev->error, now_ns);
	else if (ev->kind == MST_ARRIVED && mst_peer_arrived(&u->peer, ev->imm) != 0)
		cut_off(u, -EPROTO, now_ns);
}

static bool uplink_flush(struct mst_decider *d, uint64_t now_ns)
{
	struct mst_uplink *u = uplink_of(d);
	int rc = mst_peer_flush(&u->peer);

	if (rc != 0 && rc != -EAGAIN)
		lost(u, rc, now_ns);
	return rc != -EAGAIN;
}

/* ---- reports ---- */

static bool uplink_takes(const struct mst_decider *d)
{
	const struct mst_uplink *u = (const struct mst_uplink *)d;

	return u->cut_off || mst_relay_room(u->peer.relay) > 0;
}

static bool uplink_wants(const struct mst_decider *d, struct mst_identity who)
{
	const struct mst_uplink *u = (const struct mst_uplink *)d;

	return who.incarnation > u->ended[who.rank];
}

/* What is over, the lead knows. */
static void uplink_handle(struct mst_decider *d, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	struct mst_uplink *u = uplink_of(d);
	struct mst_peer_cell cell;

	(void)now_ns;
	if (u->cut_off || !uplink_wants(d, ev->who))
		return;
	mst_cell_of_event(ev, &cell);
	mst_relay_say(u->peer.relay, &cell);
}

static bool uplink_reported(struct mst_decider *d, struct mst_ledger_event *out, uint64_t now_ns)
{
	(void)d;
	(void)out;
	(void)now_ns;
	return false;
}

/* ---- orders ---- */

static bool uplink_next(struct mst_decider *d, struct mst_orders *out, uint64_t now_ns)
{
	/* All that is left of a rule where it is executed; the rest is for records. */
	static const struct mst_rule once = { .release = MST_RELEASE_COMMIT },
				     again = { .release = MST_RELEASE_PUSH };
	struct mst_uplink *u = uplink_of(d);
	struct mst_peer_cell cell;
	int rc = u->cut_off ? 0 : mst_peer_take(&u->peer, &cell);

	if (rc == 0)
		return false;
	if (rc < 0 || !mst_cell_order(&cell, &u->limits, &u->order)) {
		cut_off(u, -EPROTO, now_ns);
		return false;
	}
	out->decision = u->order.decision;
	out->record = &u->order.record;
	out->rule = u->order.repeats ? &again : &once;
	if (out->decision.kind != MST_DO_EVICT)
		return true;
	if (!uplink_wants(d, out->decision.who)) { /* a session ends once */
		cut_off(u, -EPROTO, now_ns);
		return false;
	}
	u->ended[out->decision.who.rank] = out->decision.who.incarnation;
	return true;
}

static void uplink_refuse(struct mst_decider *d, uint64_t now_ns)
{
	cut_off(uplink_of(d), -EPROTO, now_ns);
}

/* Behind the end little follows that could take acknowledgements along. */
static void uplink_done(struct mst_decider *d, const struct mst_orders *orders, uint64_t now_ns)
{
	struct mst_uplink *u = uplink_of(d);
	const struct mst_decision *done = &orders->decision;
	struct mst_notice notice = { .kind = MST_NOTE_EVICTED, .who = done->who };

	(void)now_ns;
	if (done->kind == MST_DO_EVICT) {
		notice.evict.why = done->evict;
	} else if (done->kind == MST_DO_FINISH) {
		u->peer.prompt = true;
		notice.kind = MST_NOTE_FINISHED;
		notice.finish.why = done->finish.why;
		notice.finish.version = done->finish.version;
	} else {
		return;
	}
	u->decider.note(u->decider.note_ctx, &notice);
}

/* ---- timers ---- */

static uint64_t uplink_deadline(const struct mst_decider *d)
{
	const struct mst_uplink *u = (const struct mst_uplink *)d;
	uint64_t since = u->peer.lost_ns;

	return since == MST_NEVER || u->cut_off ? MST_NEVER : since + u->cfg.lease_ns;
}

static void uplink_tick(struct mst_decider *d, uint64_t now_ns)
{
	if (now_ns >= uplink_deadline(d))
		cut_off(uplink_of(d), -ETIMEDOUT, now_ns);
}

static const struct mst_decider_ops ops = {
	.free = uplink_free,
	.takes = uplink_takes,
	.handle = uplink_handle,
	.reported = uplink_reported,
	.next = uplink_next,
	.refuse = uplink_refuse,
	.done = uplink_done,
	.wants = uplink_wants,
	.request = uplink_request,
	.arrived = uplink_arrived,
	.flush = uplink_flush,
	.deadline = uplink_deadline,
	.tick = uplink_tick,
};

int mst_uplink_new(const struct mst_uplink_cfg *cfg, struct mst_decider **out)
{
	struct mst_uplink *u = calloc(1, sizeof(*u));

	if (u == NULL)
		return -ENOMEM;
	u->decider.ops = &ops;
	u->cfg = *cfg;
	u->limits = (struct mst_cell_limits){ cfg->workers, cfg->slots, cfg->buffers };
	snprintf(u->address, sizeof(u->address), "%s", cfg->address);
	u->cfg.address = u->address;
	u->ended = calloc(cfg->workers, sizeof(*u->ended));
	int rc = u->ended != NULL ? mst_peer_init(&u->peer, cfg->window) : -ENOMEM;
	if (rc != 0) {
		uplink_free(&u->decider);
		return rc;
	}
	*out = &u->decider;
	return 0;
}
