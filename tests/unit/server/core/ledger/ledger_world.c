/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/ledger/ledger_world.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/server/core/ledger/ledger_channel.h"
#include "tests/unit/server/core/ledger/world_worker.h"

/* What the other servers than the leader say comes late. */
static bool lags(struct ledger_world *w, uint32_t channel)
{
	return w->cfg.lags && !w->calm && channel > 1 + MST_SHARD_LEAD && !world_rarely(w, 12);
}

static bool deliver(struct ledger_world *w, struct mst_ledger_event *out)
{
	uint32_t channels = 1 + w->cfg.ledger.shards, total = w->worker_count * channels;
	uint32_t first = world_below(w, total);

	if ((world_rarely(w, 5) && channel_take(&w->done, out)) ||
	    (world_rarely(w, 30) && channel_take(&w->slow, out)) ||
	    (world_rarely(w, 20) && channel_take(&w->stray, out)))
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
		*out = world_event(p, MST_EV_HEARTBEAT);
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
	if (w->calm || w->cfg.rule_count == 0 || !world_rarely(w, 40))
		return false;
	memset(out, 0, sizeof(*out));
	out->kind = MST_EV_POLICY;
	out->rule = w->cfg.rule[world_below(w, w->cfg.rule_count)];
	return true;
}

/* The server is told to end. */
static bool stop(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->calm || !w->cfg.ledger.saves.wanted || !world_rarely(w, 1000))
		return false;
	memset(out, 0, sizeof(*out));
	out->kind = MST_EV_STOP;
	return true;
}

/* A worker asks for the average. */
static bool lend(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->calm || w->cfg.ledger.average == 0 || !world_rarely(w, 100))
		return false;
	memset(out, 0, sizeof(*out));
	out->kind = MST_EV_LEND;
	return true;
}

/* Anybody is told so, whatever it does. */
static bool rest(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->calm || !w->cfg.rests || !world_rarely(w, 25))
		return false;
	*out = world_event(&w->worker[world_below(w, w->worker_count)], MST_EV_REST);
	out->rests = !world_rarely(w, 2);
	return true;
}

/* So may an operator, of any worker, and of the job. A worker gives a version to end with, mostly
 * one that is still to come. */
static bool end(struct ledger_world *w, struct mst_ledger_event *out)
{
	if (w->calm || !w->cfg.rests || !world_rarely(w, 150))
		return false;
	*out = world_event(&w->worker[world_below(w, w->worker_count)],
			   world_rarely(w, 20)  ? MST_EV_END
			   : world_rarely(w, 2) ? MST_EV_GOAL
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
	if (w->many > 1 && world_rarely(w, 3 * w->worker_count))
		w->now_ns += lease_ns / 5; /* too short to be a gap in which nobody was heard */
	if (odd && world_rarely(w, 60))
		w->now_ns += mst_rand_below(&w->rand, 3 * lease_ns);
	if (odd && world_rarely(w, 60))
		w->deaf_until = w->now_ns + mst_rand_below(&w->rand, 3 * lease_ns);
}

static struct world_worker *somebody(struct ledger_world *w)
{
	bool in_turn = w->many > 1 && !w->born;

	return &w->worker[in_turn ? w->turn++ % w->worker_count : world_below(w, w->worker_count)];
}

bool world_next(struct ledger_world *w, struct mst_ledger_event *out)
{
	pass_time(w);
	if (listen(w, out) || change_policy(w, out) || rest(w, out) || end(w, out) ||
	    stop(w, out) || lend(w, out))
		return true;
	for (int tries = 0; tries < 4; tries++) {
		if (!world_rarely(w, 3) && deliver(w, out))
			return true;
		world_worker_act(w, somebody(w));
	}
	return deliver(w, out);
}

uint64_t world_now(const struct ledger_world *w)
{
	return w->now_ns;
}

bool world_ticks(struct ledger_world *w)
{
	if (!world_rarely(w, 3) && w->now_ns - w->ticked_ns < w->cfg.ledger.lease_ns / 3)
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
		struct mst_ledger_event ev = world_event(p, MST_EV_ANSWERED);
		ev.answered.shard = shard;
		ev.answered.number = d->answer.number;
		bool slow = world_rarely(w, 4) || (p->far && world_rarely(w, 2));
		channel_post(slow ? &w->slow : &p->channel[1 + shard], &ev);
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
	uint32_t first = world_below(w, w->cfg.ledger.shards);
	struct mst_ledger_event ev;

	memset(&ev, 0, sizeof(ev));
	if (d->kind == MST_DO_COMMIT && w->cfg.spoils && !w->calm && world_rarely(w, 40)) {
		ev.kind = MST_EV_SPOILT;
		ev.spoilt.version = d->commit.version;
		channel_post(&w->done, &ev);
	}
	for (uint32_t i = 0; d->kind == MST_DO_SAVE && i < w->cfg.ledger.shards; i++) {
		ev.kind = MST_EV_SAVED;
		ev.saved.shard = (first + i) % w->cfg.ledger.shards;
		ev.saved.version = d->commit.version;
		ev.saved.failed = world_rarely(w, 8);
		channel_post(world_rarely(w, 2) ? &w->slow : &w->done, &ev);
	}
	for (uint32_t i = 0; d->kind == MST_DO_LEND && i < w->cfg.ledger.shards; i++) {
		ev.kind = MST_EV_RETURNED;
		ev.lent.shard = (first + i) % w->cfg.ledger.shards;
		ev.lent.version = d->commit.version;
		channel_post(world_rarely(w, 2) ? &w->slow : &w->done, &ev);
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
		world_worker_admitted(w, &w->worker[d->join.cookie], d->who);
	if (d->kind == MST_DO_REFUSE)
		w->worker[d->join.cookie].state = PEER_AWAY;
	if (d->kind == MST_DO_START)
		w->born = true;
	worked(w, d);
	struct world_worker *p = peer_of(w, d->who);
	if (p == NULL)
		return true;
	if (d->kind == MST_DO_SEND_STATE) {
		struct mst_ledger_event ev = world_event(p, MST_EV_STATE);
		channel_post(world_rarely(w, 2) ? world_control(p) : &w->slow, &ev);
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
