/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/ledger/world_worker.h"

#include <errno.h>
#include <math.h>

static void say(struct world_worker *p, enum mst_ledger_event_kind kind)
{
	struct mst_ledger_event ev = world_event(p, kind);

	channel_post(world_control(p), &ev);
}

static void request(struct ledger_world *w, struct world_worker *p)
{
	struct mst_ledger_event ev = world_event(p, MST_EV_JOIN);

	ev.join.cookie = (uint64_t)(p - w->worker);
	bool any = (w->many > 1 && !w->born) || world_rarely(w, 3);
	ev.join.rank = any ? -1 : (int32_t)world_below(w, w->cfg.ledger.workers);
	channel_post(world_control(p), &ev);
	p->state = PEER_REQUESTING;
}

void world_worker_admitted(struct ledger_world *w, struct world_worker *p, struct mst_identity who)
{
	p->state = PEER_IN;
	p->who = who;
	p->silent = p->running = false;
	p->asking = true; /* START is the first ask */
	p->kept = false;
	p->far = w->cfg.mixes && world_rarely(w, 3);
	p->asks = 1;
	p->seq = p->judged = p->heard = 0;
	p->beat_ns = w->now_ns;
	p->busy_ns = 0;
	p->wanted = MST_VERSION_NONE;
	for (uint32_t slot = 0; slot < w->cfg.ledger.slots; slot++) {
		p->epoch[slot] = 1;
		p->granted[slot] = true;
	}
	for (uint32_t shard = 0; shard < w->cfg.ledger.shards; shard++) {
		struct mst_ledger_event ev = world_event(p, MST_EV_LINKED);
		ev.shard = shard;
		ev.far = shard == MST_SHARD_LEAD && p->far;
		channel_post(&p->channel[1 + shard], &ev);
	}
	if (!world_is_spared(w) && world_rarely(w, 12)) {
		p->silent = true; /* it stops before it has called start */
		return;
	}
	struct mst_ledger_event ev = world_event(p, MST_EV_START);
	ev.offers = w->cfg.ledger.owner == MUSTER_SERVERS_OWN ? !world_rarely(w, 4)
							      : world_rarely(w, 3);
	channel_post(world_control(p), &ev);
}

static struct mst_lane_ask next_ask(struct world_worker *p)
{
	p->asking = true;
	p->running = p->kept = false;
	return (struct mst_lane_ask){ .number = ++p->asks, .have = p->have };
}

static void pull(struct world_worker *p)
{
	struct mst_ledger_event ev = world_event(p, MST_EV_ASK);

	ev.ask = next_ask(p);
	channel_post(&p->channel[1], &ev);
}

static double random_weight(struct ledger_world *w)
{
	static const double wrong[] = { 0, -1, (double)NAN, (double)INFINITY, 0x1p54, 0x1p-54 };

	if (!w->calm && world_rarely(w, 60))
		return wrong[world_below(w, 6)];
	return 0.25 * (1 + world_below(w, 64));
}

/* Has it been asked to hand in what it has finished? */
static bool is_wanted(const struct world_worker *p)
{
	return p->wanted == p->have && p->have != MST_VERSION_NONE;
}

static uint32_t random_flags(struct ledger_world *w, const struct world_worker *p)
{
	bool part = !w->calm && (is_wanted(p) || world_rarely(w, 4));
	bool nothing = (w->cfg.passes && world_rarely(w, 12)) ||
		       (is_wanted(p) && world_rarely(w, 3));
	uint32_t flags = part ? MST_HEADER_PART : MST_HEADER_FULL;

	if (world_rarely(w, 3))
		flags |= MST_HEADER_SUM;
	if (!world_rarely(w, 4))
		flags |= MST_HEADER_LOSS;
	if (world_rarely(w, 6))
		flags |= MST_HEADER_CLIPPED;
	if (!w->calm && world_rarely(w, 50))
		flags |= MST_HEADER_EMPTY;
	else if (!w->calm && nothing)
		flags |= MST_HEADER_PASS;
	return flags;
}

/* Mostly what a worker may say that limits its norm. */
static float random_clip(struct ledger_world *w)
{
	static const float wrong[] = { 0, -1, 1.5f, (float)NAN, (float)INFINITY };

	if (!w->calm && world_rarely(w, 30))
		return wrong[world_below(w, 5)];
	return (1 + (float)world_below(w, 16)) / 16;
}

static uint64_t random_tag(struct ledger_world *w, const struct world_worker *p)
{
	if (w->calm || p->have == MST_VERSION_NONE || !world_rarely(w, w->cfg.lags ? 3 : 12))
		return p->have;
	return world_rarely(w, 6) ? p->have + 1 + world_below(w, 3)
				  : p->have - world_below(w, (uint32_t)p->have + 1);
}

static int free_slot(struct ledger_world *w, const struct world_worker *p)
{
	uint32_t first = world_below(w, w->cfg.ledger.slots);

	for (uint32_t i = 0; i < w->cfg.ledger.slots; i++) {
		uint32_t slot = (first + i) % w->cfg.ledger.slots;
		if (p->granted[slot])
			return (int)slot;
	}
	return -1;
}

/* Some at a time, as outcomes bring them; all of them before too many are open. */
static void hear_verdicts(struct ledger_world *w, struct world_worker *p)
{
	bool too_many = p->seq - p->heard > MUSTER_TICKETS_MAX - MST_SLOTS_MAX;

	if (w->calm || too_many || world_rarely(w, 2))
		p->heard = p->judged;
	else if (p->heard < p->judged && world_rarely(w, 2))
		p->heard++;
}

static struct mst_lane_header random_header(struct ledger_world *w, struct world_worker *p,
					    uint32_t slot)
{
	hear_verdicts(w, p);
	p->seq++;
	struct mst_lane_header h = {
		.seq = p->seq,
		.unheard = (uint16_t)(p->seq - 1 - p->heard),
		.epoch = p->epoch[slot],
		.tag = random_tag(w, p),
		.weight = random_weight(w),
		.loss = world_rarely(w, 8) ? (double)NAN : 0.5 * world_below(w, 8),
		.slot = (uint16_t)slot,
		.flags = random_flags(w, p),
		.clip = random_clip(w),
	};

	if ((h.flags & MST_HEADER_PASS) != 0)
		h.weight = 0;
	bool keep = w->cfg.keeps ? !world_rarely(w, 3) : !w->calm && world_rarely(w, 6);
	if (!p->asking && !keep) {
		h.ask = next_ask(p);
		h.flags |= MST_HEADER_ASK;
	}
	p->kept |= !p->asking;
	return h;
}

/* What a shard measures. Most are of one size; some are far beyond, and some are nothing. */
static double random_squares(struct ledger_world *w)
{
	double size = 1 + world_below(w, 16);

	if (world_rarely(w, 8))
		return size * 1e4;
	if (world_rarely(w, 12))
		return world_rarely(w, 3) ? (double)INFINITY : 0;
	return size;
}

static void push(struct ledger_world *w, struct world_worker *p, uint32_t slot)
{
	struct mst_ledger_event ev = world_event(p, MST_EV_FULL);

	ev.full.header = random_header(w, p, slot);
	p->granted[slot] = false;
	for (uint32_t shard = 0; shard < w->cfg.ledger.shards; shard++) {
		ev.full.shard = shard;
		if (w->cfg.ledger.norm_limit > 0)
			ev.full.squares = random_squares(w);
		ev.full.damaged = w->cfg.damages && world_rarely(w, 10);
		channel_post(&p->channel[1 + shard], &ev);
	}
}

static void abandon(struct ledger_world *w, struct world_worker *p, uint32_t slot)
{
	struct mst_ledger_event ev = world_event(p, MST_EV_ABANDONED);

	ev.abandoned.slot = slot;
	ev.abandoned.epoch = p->epoch[slot];
	p->granted[slot] = false;
	for (uint32_t shard = 0; shard < w->cfg.ledger.shards; shard++) {
		ev.abandoned.shard = shard;
		channel_post(&p->channel[1 + shard], &ev);
	}
}

/* An ask that is out of turn, or names a version that it was not given last. */
static void ask_wrongly(struct ledger_world *w, struct world_worker *p)
{
	struct mst_ledger_event ev = world_event(p, MST_EV_ASK);

	ev.ask = next_ask(p);
	if (world_rarely(w, 3))
		ev.ask.number++;
	else if (p->have == MST_VERSION_NONE)
		ev.ask.have = 0;
	else
		ev.ask.have = world_rarely(w, 4) ? MST_VERSION_NONE
						 : p->have - 1 + world_below(w, 4);
	channel_post(&p->channel[1], &ev);
}

/* One of the ways to break the protocol, on one shard only where that is a way. */
static void misbehave(struct ledger_world *w, struct world_worker *p)
{
	uint32_t slots = w->cfg.ledger.slots, kind = world_below(w, 7);
	struct mst_ledger_event ev = world_event(p, MST_EV_FULL);

	if (kind < 3) {
		ask_wrongly(w, p);
		return;
	}
	if (kind == 6) {
		ev = world_event(p, MST_EV_LOST);
		ev.error = -EPROTO; /* a shell has seen what the ledger cannot */
		channel_post(world_control(p), &ev);
		return;
	}
	struct world_worker tampered = *p;
	ev.full.shard = world_below(w, w->cfg.ledger.shards);
	ev.full.header = random_header(w, &tampered, world_below(w, slots));
	if (kind == 3)
		ev.full.header.epoch++;
	else if (kind == 4)
		ev.full.header.seq += 1 + world_below(w, 2);
	else
		ev.full.header.slot = (uint16_t)slots;
	channel_post(&p->channel[1 + ev.full.shard], &ev);
}

/* A header whose weight one shard tells otherwise. */
static void contradict(struct ledger_world *w, struct world_worker *p, uint32_t slot)
{
	push(w, p, slot);
	struct channel *c = &p->channel[1 + world_below(w, w->cfg.ledger.shards)];
	c->event[c->first + c->count - 1].full.header.weight += 1;
}

/* Its link with this shard is gone, after what it has sent there. */
static void unlink_from(struct world_worker *p, uint32_t shard)
{
	struct mst_ledger_event ev = world_event(p, MST_EV_UNLINKED);

	ev.shard = shard;
	channel_post(&p->channel[1 + shard], &ev);
}

static void depart(struct ledger_world *w, struct world_worker *p)
{
	struct mst_ledger_event ev = world_event(p, MST_EV_LEAVE);

	ev.seq = p->seq;
	if (w->cfg.mischief && world_rarely(w, 3))
		ev.seq += 1 + world_below(w, 2); /* which never come */
	channel_post(world_control(p), &ev);
	p->state = PEER_GOING;
	if (world_rarely(w, 2))
		unlink_from(p, world_below(w, w->cfg.ledger.shards));
	if (!world_rarely(w, 3))
		return;
	ev = world_event(p, MST_EV_LOST);
	ev.error = w->cfg.mischief && world_rarely(w, 3) ? -EPROTO : -ECONNRESET;
	channel_post(world_control(p), &ev);
}

static void die(struct ledger_world *w, struct world_worker *p)
{
	struct mst_ledger_event ev = world_event(p, MST_EV_LOST);

	ev.error = -ECONNRESET;
	channel_post(&p->channel[world_below(w, 1 + w->cfg.ledger.shards)], &ev);
	p->state = PEER_GOING;
}

/* Return: true if something unusual was done. */
static bool act_unusually(struct ledger_world *w, struct world_worker *p, int slot)
{
	if (world_is_spared(w))
		return false;
	if (world_rarely(w, 90))
		die(w, p);
	else if (world_rarely(w, 120))
		depart(w, p);
	else if (world_rarely(w, 80))
		p->silent = true;
	else if (world_rarely(w, 40))
		p->busy_ns = w->now_ns + mst_rand_below(&w->rand, 20 * w->cfg.ledger.lease_ns);
	else if (world_rarely(w, 800))
		say(p, MST_EV_FINISH);
	else if (w->cfg.mischief && world_rarely(w, 60))
		misbehave(w, p);
	else if (w->cfg.mischief && slot >= 0 && p->running && world_rarely(w, 60))
		contradict(w, p, (uint32_t)slot);
	else if (w->cfg.mischief && slot >= 0 && !p->running && world_rarely(w, 30))
		push(w, p, (uint32_t)slot); /* before its first version, or while it waits */
	else
		return false;
	return true;
}

void world_worker_act(struct ledger_world *w, struct world_worker *p)
{
	if (p->state == PEER_AWAY && (w->calm || world_rarely(w, w->born ? 8 : 2)))
		request(w, p);
	if (p->state != PEER_IN || p->silent || (!w->calm && w->now_ns < p->busy_ns))
		return;
	if (w->cfg.dawdles && !w->calm && !is_wanted(p) && !world_rarely(w, 8))
		return;
	int slot = free_slot(w, p);
	if (act_unusually(w, p, slot))
		return;
	if (!p->running && (w->calm || !world_rarely(w, 40) || p->have == MST_VERSION_NONE))
		return;
	if (slot < 0 || (p->kept && !world_rarely(w, 3)) || (!w->calm && world_rarely(w, 12))) {
		if (!p->asking)
			pull(p);
	} else if (!w->calm && world_rarely(w, 20)) {
		abandon(w, p, (uint32_t)slot);
	} else {
		push(w, p, (uint32_t)slot);
	}
}
