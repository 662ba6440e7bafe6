/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/ledger/ledger_world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rand.h"
#include "tests/unit/server/core/ledger/ledger_channel.h"

#define CHANNELS_MAX 5u /* control, and shards */

enum world_worker_state {
	PEER_AWAY,
	PEER_REQUESTING, /* its JOIN is on the way */
	PEER_IN,
	PEER_GOING, /* it has said that it leaves, or is dead: only an eviction is still to come */
};

struct world_worker {
	enum world_worker_state state;
	struct mst_identity who;
	bool silent; /* no heartbeat, no action */
	bool asking, running;
	bool kept; /* it has pushed without asking since it asked last */
	uint64_t asks, have, seq;
	uint64_t judged; /* the newest ticket with a verdict, which it has heard or will hear */
	uint64_t heard;  /* so far */
	uint64_t epoch[MST_SLOTS_MAX];
	bool granted[MST_SLOTS_MAX];
	uint64_t beat_ns;
	uint64_t busy_ns; /* it computes until then */
	uint64_t wanted;  /* what is finished of a contribution on this version is asked for */
	struct channel channel[CHANNELS_MAX];
};

struct ledger_world {
	struct ledger_world_cfg cfg;
	struct mst_rand rand;
	uint64_t now_ns, ticked_ns;
	uint64_t heard_ns, deaf_until; /* all was read then; nothing is, until then */
	uint64_t newest;
	bool calm, born, wronged;
	/* A few at 1. Among many, time passes more slowly, so that all can be heard within a lease,
	 * and each has fewer adventures, so that not all time is spent on them. */
	uint32_t many;
	uint32_t turn; /* until a job of many is born they act in turn, or that would not happen */
	struct world_worker *worker;
	uint32_t worker_count; /* one more than there are ranks */
	struct channel stray;  /* responses to sessions that have ended */
	struct channel done;   /* what shards say of their work: settled, spoilt */
	struct channel slow;   /* start states, and answers being copied, that take their time */
};

static uint32_t below(struct ledger_world *w, uint32_t bound)
{
	return (uint32_t)mst_rand_below(&w->rand, bound);
}

/* Once in so many times. */
static bool rarely(struct ledger_world *w, uint32_t times)
{
	return below(w, times) == 0;
}

/* Nothing unusual happens now. */
static bool is_spared(struct ledger_world *w)
{
	if (w->calm || w->many == 1)
		return w->calm;
	return !rarely(w, w->born ? 1 + w->many / 8 : 8 * w->many);
}

static struct channel *control(struct world_worker *p)
{
	return &p->channel[0];
}

static struct mst_ledger_event event(const struct world_worker *p, enum mst_ledger_event_kind kind)
{
	struct mst_ledger_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.kind = kind;
	ev.who = p->who;
	return ev;
}

static void say(struct world_worker *p, enum mst_ledger_event_kind kind)
{
	struct mst_ledger_event ev = event(p, kind);

	channel_post(control(p), &ev);
}

static void request(struct ledger_world *w, struct world_worker *p)
{
	struct mst_ledger_event ev = event(p, MST_EV_JOIN);

	ev.join.cookie = (uint64_t)(p - w->worker);
	bool any = (w->many > 1 && !w->born) || rarely(w, 3);
	ev.join.rank = any ? -1 : (int32_t)below(w, w->cfg.ledger.workers);
	channel_post(control(p), &ev);
	p->state = PEER_REQUESTING;
}

static void admitted(struct ledger_world *w, struct world_worker *p, struct mst_identity who)
{
	p->state = PEER_IN;
	p->who = who;
	p->silent = p->running = false;
	p->asking = true; /* START is the first ask */
	p->kept = false;
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
		struct mst_ledger_event ev = event(p, MST_EV_LINKED);
		ev.shard = shard;
		channel_post(&p->channel[1 + shard], &ev);
	}
	if (!is_spared(w) && rarely(w, 12)) {
		p->silent = true; /* it stops before it has called start */
		return;
	}
	struct mst_ledger_event ev = event(p, MST_EV_START);
	ev.offers = w->cfg.ledger.owner == MUSTER_SERVERS_OWN ? !rarely(w, 4) : rarely(w, 3);
	channel_post(control(p), &ev);
}

static struct mst_lane_ask next_ask(struct world_worker *p)
{
	p->asking = true;
	p->running = p->kept = false;
	return (struct mst_lane_ask){ .number = ++p->asks, .have = p->have };
}

static void pull(struct world_worker *p)
{
	struct mst_ledger_event ev = event(p, MST_EV_ASK);

	ev.ask = next_ask(p);
	channel_post(&p->channel[1], &ev);
}

static double random_weight(struct ledger_world *w)
{
	static const double wrong[] = { 0, -1, (double)NAN, (double)INFINITY, 0x1p54, 0x1p-54 };

	if (!w->calm && rarely(w, 60))
		return wrong[below(w, 6)];
	return 0.25 * (1 + below(w, 64));
}

/* Has it been asked to hand in what it has finished? */
static bool is_wanted(const struct world_worker *p)
{
	return p->wanted == p->have && p->have != MST_VERSION_NONE;
}

static uint32_t random_flags(struct ledger_world *w, const struct world_worker *p)
{
	bool part = !w->calm && (is_wanted(p) || rarely(w, 4));
	bool nothing = (w->cfg.passes && rarely(w, 12)) || (is_wanted(p) && rarely(w, 3));
	uint32_t flags = part ? 0 : MST_HEADER_FULL;

	if (rarely(w, 3))
		flags |= MST_HEADER_SUM;
	if (!rarely(w, 4))
		flags |= MST_HEADER_LOSS;
	if (rarely(w, 6))
		flags |= MST_HEADER_CLIPPED;
	if (!w->calm && rarely(w, 50))
		flags |= MST_HEADER_EMPTY;
	else if (!w->calm && nothing)
		flags |= MST_HEADER_PASS;
	return flags;
}

/* Mostly what a worker may say that limits its norm. */
static float random_clip(struct ledger_world *w)
{
	static const float wrong[] = { 0, -1, 1.5f, (float)NAN, (float)INFINITY };

	if (!w->calm && rarely(w, 30))
		return wrong[below(w, 5)];
	return (1 + (float)below(w, 16)) / 16;
}

static uint64_t random_tag(struct ledger_world *w, const struct world_worker *p)
{
	if (w->calm || p->have == MST_VERSION_NONE || !rarely(w, w->cfg.lags ? 3 : 12))
		return p->have;
	return rarely(w, 6) ? p->have + 1 + below(w, 3) : p->have - below(w, (uint32_t)p->have + 1);
}

static int free_slot(struct ledger_world *w, const struct world_worker *p)
{
	uint32_t first = below(w, w->cfg.ledger.slots);

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

	if (w->calm || too_many || rarely(w, 2))
		p->heard = p->judged;
	else if (p->heard < p->judged && rarely(w, 2))
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
		.loss = rarely(w, 8) ? (double)NAN : 0.5 * below(w, 8),
		.slot = (uint16_t)slot,
		.flags = random_flags(w, p),
		.clip = random_clip(w),
	};

	if ((h.flags & MST_HEADER_PASS) != 0)
		h.weight = 0;
	bool keep = w->cfg.keeps ? !rarely(w, 3) : !w->calm && rarely(w, 6);
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
	double size = 1 + below(w, 16);

	if (rarely(w, 8))
		return size * 1e4;
	if (rarely(w, 12))
		return rarely(w, 3) ? (double)INFINITY : 0;
	return size;
}

static void push(struct ledger_world *w, struct world_worker *p, uint32_t slot)
{
	struct mst_ledger_event ev = event(p, MST_EV_FULL);

	ev.full.header = random_header(w, p, slot);
	p->granted[slot] = false;
	for (uint32_t shard = 0; shard < w->cfg.ledger.shards; shard++) {
		ev.full.shard = shard;
		if (w->cfg.ledger.norm_limit > 0)
			ev.full.squares = random_squares(w);
		ev.full.damaged = w->cfg.damages && rarely(w, 10);
		channel_post(&p->channel[1 + shard], &ev);
	}
}

static void abandon(struct ledger_world *w, struct world_worker *p, uint32_t slot)
{
	struct mst_ledger_event ev = event(p, MST_EV_ABANDONED);

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
	struct mst_ledger_event ev = event(p, MST_EV_ASK);

	ev.ask = next_ask(p);
	if (rarely(w, 3))
		ev.ask.number++;
	else if (p->have == MST_VERSION_NONE)
		ev.ask.have = 0;
	else
		ev.ask.have = rarely(w, 4) ? MST_VERSION_NONE : p->have - 1 + below(w, 4);
	channel_post(&p->channel[1], &ev);
}

/* One of the ways to break the protocol, on one shard only where that is a way. */
static void misbehave(struct ledger_world *w, struct world_worker *p)
{
	uint32_t slots = w->cfg.ledger.slots, kind = below(w, 7);
	struct mst_ledger_event ev = event(p, MST_EV_FULL);

	if (kind < 3) {
		ask_wrongly(w, p);
		return;
	}
	if (kind == 6) {
		ev = event(p, MST_EV_LOST);
		ev.error = -EPROTO; /* a shell has seen what the ledger cannot */
		channel_post(control(p), &ev);
		return;
	}
	struct world_worker tampered = *p;
	ev.full.shard = below(w, w->cfg.ledger.shards);
	ev.full.header = random_header(w, &tampered, below(w, slots));
	if (kind == 3)
		ev.full.header.epoch++;
	else if (kind == 4)
		ev.full.header.seq += 1 + below(w, 2);
	else
		ev.full.header.slot = (uint16_t)slots;
	channel_post(&p->channel[1 + ev.full.shard], &ev);
}

/* A header whose weight one shard tells otherwise. */
static void contradict(struct ledger_world *w, struct world_worker *p, uint32_t slot)
{
	push(w, p, slot);
	struct channel *c = &p->channel[1 + below(w, w->cfg.ledger.shards)];
	c->event[c->first + c->count - 1].full.header.weight += 1;
}

static void depart(struct ledger_world *w, struct world_worker *p)
{
	struct mst_ledger_event ev = event(p, MST_EV_LEAVE);

	ev.seq = p->seq;
	channel_post(control(p), &ev);
	p->state = PEER_GOING;
	if (!rarely(w, 3))
		return;
	ev = event(p, MST_EV_LOST);
	ev.error = w->cfg.mischief && rarely(w, 3) ? -EPROTO : -ECONNRESET;
	channel_post(control(p), &ev);
}

static void die(struct ledger_world *w, struct world_worker *p)
{
	struct mst_ledger_event ev = event(p, MST_EV_LOST);

	ev.error = -ECONNRESET;
	channel_post(&p->channel[below(w, 1 + w->cfg.ledger.shards)], &ev);
	p->state = PEER_GOING;
}

/* Return: true if something unusual was done. */
static bool act_unusually(struct ledger_world *w, struct world_worker *p, int slot)
{
	if (is_spared(w))
		return false;
	if (rarely(w, 90))
		die(w, p);
	else if (rarely(w, 120))
		depart(w, p);
	else if (rarely(w, 80))
		p->silent = true;
	else if (rarely(w, 40))
		p->busy_ns = w->now_ns + mst_rand_below(&w->rand, 20 * w->cfg.ledger.lease_ns);
	else if (rarely(w, 800))
		say(p, MST_EV_FINISH);
	else if (w->cfg.mischief && rarely(w, 60))
		misbehave(w, p);
	else if (w->cfg.mischief && slot >= 0 && p->running && rarely(w, 60))
		contradict(w, p, (uint32_t)slot);
	else if (w->cfg.mischief && slot >= 0 && !p->running && rarely(w, 30))
		push(w, p, (uint32_t)slot); /* before its first version, or while it waits */
	else
		return false;
	return true;
}

static void act(struct ledger_world *w, struct world_worker *p)
{
	if (p->state == PEER_AWAY && (w->calm || rarely(w, w->born ? 8 : 2)))
		request(w, p);
	if (p->state != PEER_IN || p->silent || (!w->calm && w->now_ns < p->busy_ns))
		return;
	if (w->cfg.dawdles && !w->calm && !is_wanted(p) && !rarely(w, 8))
		return;
	int slot = free_slot(w, p);
	if (act_unusually(w, p, slot))
		return;
	if (!p->running && (w->calm || !rarely(w, 40) || p->have == MST_VERSION_NONE))
		return;
	if (slot < 0 || (p->kept && !rarely(w, 3)) || (!w->calm && rarely(w, 12))) {
		if (!p->asking)
			pull(p);
	} else if (!w->calm && rarely(w, 20)) {
		abandon(w, p, (uint32_t)slot);
	} else {
		push(w, p, (uint32_t)slot);
	}
}

/* What the other servers than the leader say comes late. */
static bool lags(struct ledger_world *w, uint32_t channel)
{
	return w->cfg.lags && !w->calm && channel > 1 + MST_SHARD_LEAD && !rarely(w, 12);
}

static bool deliver(struct ledger_world *w, struct mst_ledger_event *out)
{
	uint32_t channels = 1 + w->cfg.ledger.shards, total = w->worker_count * channels;
	uint32_t first = below(w, total);

	if ((rarely(w, 5) && channel_take(&w->done, out)) ||
	    (rarely(w, 30) && channel_take(&w->slow, out)) ||
	    (rarely(w, 20) && channel_take(&w->stray, out)))
		return true;
	for (uint32_t i = 0; i < total; i++) {
		uint32_t at = (first + i) % total;
		if (!lags(w, at % channels) &&
		    channel_take(&w->worker[at / channels].channel[at % channels], out))
			return true;
	}
	return false;
}

static bool listen(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->now_ns < w->deaf_until)
		return false;
	for (uint32_t i = 0; i < w->worker_count; i++) {
		struct world_worker *p = &w->worker[i];
		bool alive = p->state == PEER_IN && !p->silent;
		if (!alive || w->now_ns - p->beat_ns < w->cfg.ledger.lease_ns / 4)
			continue;
		p->beat_ns = w->now_ns;
		*out = event(p, MST_EV_HEARTBEAT);
		return true;
	}
	/* Nobody's heartbeat is left unread. */
	if (w->now_ns - w->heard_ns < w->cfg.ledger.lease_ns / 16)
		return false;
	w->heard_ns = w->now_ns;
	*out = (struct mst_ledger_event){ .kind = MST_EV_HEARD, .heard_ns = w->now_ns };
	return true;
}

static bool change_policy(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->calm || w->cfg.rule_count == 0 || !rarely(w, 40))
		return false;
	memset(out, 0, sizeof(*out));
	out->kind = MST_EV_POLICY;
	out->rule = w->cfg.rule[below(w, w->cfg.rule_count)];
	return true;
}

/* The server is told to end. */
static bool stop(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->calm || !w->cfg.ledger.saves.wanted || !rarely(w, 1000))
		return false;
	memset(out, 0, sizeof(*out));
	out->kind = MST_EV_STOP;
	return true;
}

/* A worker asks for the average. */
static bool lend(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->calm || w->cfg.ledger.average == 0 || !rarely(w, 100))
		return false;
	memset(out, 0, sizeof(*out));
	out->kind = MST_EV_LEND;
	return true;
}

/* Anybody is told so, whatever it does. */
static bool rest(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->calm || !w->cfg.rests || !rarely(w, 25))
		return false;
	*out = event(&w->worker[below(w, w->worker_count)], MST_EV_REST);
	out->rests = !rarely(w, 2);
	return true;
}

/* So may an operator, of any worker, and of the job. A worker gives a version to end with, mostly
 * one that is still to come. */
static bool end(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->calm || !w->cfg.rests || !rarely(w, 150))
		return false;
	*out = event(&w->worker[below(w, w->worker_count)], rarely(w, 20)  ? MST_EV_END
							    : rarely(w, 2) ? MST_EV_GOAL
									   : MST_EV_EVICT);
	if (out->kind == MST_EV_GOAL)
		out->goal = 1 + mst_rand_below(&w->rand, w->newest + 30);
	return true;
}

static void pass_time(struct ledger_world *w)
{
	uint64_t lease_ns = w->cfg.ledger.lease_ns;
	bool odd = w->cfg.sleeps && !w->calm;

	w->now_ns += 1 + mst_rand_below(&w->rand, lease_ns / 60 / w->many);
	if (w->many > 1 && rarely(w, 3 * w->worker_count))
		w->now_ns += lease_ns / 5; /* too short to be a gap in which nobody was heard */
	if (odd && rarely(w, 60))
		w->now_ns += mst_rand_below(&w->rand, 3 * lease_ns);
	if (odd && rarely(w, 60))
		w->deaf_until = w->now_ns + mst_rand_below(&w->rand, 3 * lease_ns);
}

static struct world_worker *somebody(struct ledger_world *w)
{
	bool in_turn = w->many > 1 && !w->born;

	return &w->worker[in_turn ? w->turn++ % w->worker_count : below(w, w->worker_count)];
}

bool world_next(struct ledger_world *w, struct mst_ledger_event *out)
{
	pass_time(w);
	if (listen(w, out) || change_policy(w, out) || rest(w, out) || end(w, out) ||
	    stop(w, out) || lend(w, out))
		return true;
	for (int tries = 0; tries < 4; tries++) {
		if (!rarely(w, 3) && deliver(w, out))
			return true;
		act(w, somebody(w));
	}
	return deliver(w, out);
}

uint64_t world_now(const struct ledger_world *w)
{
	return w->now_ns;
}

bool world_ticks(struct ledger_world *w)
{
	if (!rarely(w, 3) && w->now_ns - w->ticked_ns < w->cfg.ledger.lease_ns / 3)
		return false;
	w->ticked_ns = w->now_ns;
	return true;
}

static struct world_worker *peer_of(struct ledger_world *w, struct mst_identity who)
{
	for (uint32_t i = 0; i < w->worker_count; i++) {
		struct world_worker *p = &w->worker[i];
		bool there = p->state == PEER_IN || p->state == PEER_GOING;
		if (there && p->who.rank == who.rank && p->who.incarnation == who.incarnation)
			return p;
	}
	return NULL;
}

static void released(struct ledger_world *w, struct world_worker *p, const struct mst_decision *d)
{
	p->have = d->answer.version;
	p->asking = false;
	p->running = true;
	if (d->answer.where != MST_WHERE_COPIED)
		return;
	for (uint32_t shard = 0; shard < w->cfg.ledger.shards; shard++) {
		struct mst_ledger_event ev = event(p, MST_EV_ANSWERED);
		ev.answered.shard = shard;
		ev.answered.number = d->answer.number;
		channel_post(rarely(w, 4) ? &w->slow : &p->channel[1 + shard], &ev);
	}
}

static void evicted(struct ledger_world *w, struct world_worker *p)
{
	struct mst_ledger_event ev;

	for (uint32_t i = 0; i < CHANNELS_MAX; i++) {
		while (channel_take(&p->channel[i], &ev))
			channel_post(&w->stray, &ev);
	}
	p->state = PEER_AWAY;
	p->running = p->asking = false;
	p->have = MST_VERSION_NONE;
}

/* The shards have done what was decided so far; or one of them has not, for good. */
static void worked(struct ledger_world *w, const struct mst_decision *d)
{
	uint32_t first = below(w, w->cfg.ledger.shards);
	struct mst_ledger_event ev;

	memset(&ev, 0, sizeof(ev));
	if (d->kind == MST_DO_COMMIT && w->cfg.spoils && !w->calm && rarely(w, 40)) {
		ev.kind = MST_EV_SPOILT;
		ev.spoilt.version = d->commit.version;
		channel_post(&w->done, &ev);
	}
	for (uint32_t i = 0; d->kind == MST_DO_SAVE && i < w->cfg.ledger.shards; i++) {
		ev.kind = MST_EV_SAVED;
		ev.saved.shard = (first + i) % w->cfg.ledger.shards;
		ev.saved.version = d->commit.version;
		ev.saved.failed = rarely(w, 8);
		channel_post(rarely(w, 2) ? &w->slow : &w->done, &ev);
	}
	for (uint32_t i = 0; d->kind == MST_DO_LEND && i < w->cfg.ledger.shards; i++) {
		ev.kind = MST_EV_RETURNED;
		ev.lent.shard = (first + i) % w->cfg.ledger.shards;
		ev.lent.version = d->commit.version;
		channel_post(rarely(w, 2) ? &w->slow : &w->done, &ev);
	}
	for (uint32_t i = 0; d->kind == MST_DO_SETTLE && i < w->cfg.ledger.shards; i++) {
		ev.kind = MST_EV_SETTLED;
		ev.shard = (first + i) % w->cfg.ledger.shards;
		channel_post(&w->done, &ev);
	}
}

bool world_told(struct ledger_world *w, const struct mst_decision *d)
{
	if (d->kind == MST_DO_ADMIT)
		admitted(w, &w->worker[d->join.cookie], d->who);
	if (d->kind == MST_DO_REFUSE)
		w->worker[d->join.cookie].state = PEER_AWAY;
	if (d->kind == MST_DO_START)
		w->born = true;
	worked(w, d);
	struct world_worker *p = peer_of(w, d->who);
	if (p == NULL)
		return true;
	if (d->kind == MST_DO_SEND_STATE) {
		struct mst_ledger_event ev = event(p, MST_EV_STATE);
		channel_post(rarely(w, 2) ? control(p) : &w->slow, &ev);
	} else if (d->kind == MST_DO_VERDICT) {
		p->judged = d->verdict.seq;
	} else if (d->kind == MST_DO_REGRANT) {
		p->epoch[d->grant.slot] = d->grant.epoch;
		p->granted[d->grant.slot] = true;
	} else if (d->kind == MST_DO_RELEASE) {
		released(w, p, d);
	} else if (d->kind == MST_DO_ADVISE) {
		p->wanted = d->advice.hand_in ? d->advice.version : MST_VERSION_NONE;
	} else if (d->kind == MST_DO_EVICT) {
		w->wronged |= d->evict == MST_EVICT_LEASE && p->state == PEER_IN && !p->silent;
		evicted(w, p);
	}
	return !w->wronged;
}

void world_calm(struct ledger_world *w)
{
	w->calm = true;
}

struct ledger_world *world_new(const struct ledger_world_cfg *cfg)
{
	struct ledger_world *w = calloc(1, sizeof(*w));

	if (w == NULL || cfg->ledger.shards + 1 > CHANNELS_MAX)
		abort();
	w->cfg = *cfg;
	w->many = 1 + cfg->ledger.workers / 8;
	w->now_ns = w->ticked_ns = 1000000;
	mst_rand_seed(&w->rand, cfg->seed);
	w->worker_count = cfg->ledger.workers + 1;
	w->worker = calloc(w->worker_count, sizeof(*w->worker));
	for (uint32_t i = 0; i < w->worker_count; i++)
		w->worker[i].have = MST_VERSION_NONE;
	return w;
}

void world_free(struct ledger_world *w)
{
	for (uint32_t i = 0; i < w->worker_count; i++) {
		for (uint32_t c = 0; c < CHANNELS_MAX; c++)
			free(w->worker[i].channel[c].event);
	}
	free(w->stray.event);
	free(w->done.event);
	free(w->slow.event);
	free(w->worker);
	free(w);
}
