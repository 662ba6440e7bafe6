/* SPDX-License-Identifier: MIT */
/*
 * Where deciding meets moving: arrivals become events for the decider, and what it decides goes
 * to the aggregator and to the control side, in this order. Events that executing a decision causes
 * are queued, never handled within it; and they wait there while the decider takes none.
 */
#include "server/data/server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/spsc.h"
#include "server/data/decider.h"
#include "server/data/lag.h"
#include "server/data/shard.h"

/* Arrivals, and requests, taken in one step: enough to be cheap, few enough that a flood of one
 * kind does not keep the rest from its turn. */
#define POLL_MAX 64
/* Nobody wakes this thread when a line to another server has room again. */
#define LINE_BUSY_NS MST_MS
#define LINES 64u
/* More than the heads of three rings take. */
#define RING_HEADS 1024u

struct mst_server {
	struct mst_server_cfg cfg;
	struct mst_decider *decider;
	struct mst_aggregator *aggregator;
	struct mst_net *net;
	struct mst_spsc *requests, *notices;
	uint64_t requests_max;
	struct mst_spsc *lines; /* requests about other servers: they wait for nothing */

	/* Events that wait for the decider. */
	struct mst_ledger_event *event;
	uint32_t event_size, event_head, event_count;

	uint64_t now_ns;
	struct mst_lag lag;
	bool noted;
	bool line_busy; /* something to be told to another server has to wait */
	/* At a follower: the start state is in its buffer. */
	_Atomic bool state_filled;
	_Atomic uint64_t passes; /* of the data thread through its loop */
};

static uint64_t pow2_above(uint64_t n)
{
	uint64_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

/* What can be queued: of each session its slots full or given up, an ask, its loss and that of its
 * link, an answer sent, its link up, and of a rank's next session the same; and what one look at
 * the net brings. */
static uint64_t events_max(const struct mst_server_cfg *cfg)
{
	return pow2_above(POLL_MAX + cfg->aggregator.workers * UINT64_C(18) + 64);
}

static uint64_t messages_max(const struct mst_server_cfg *cfg)
{
	return pow2_above(cfg->aggregator.workers * UINT64_C(16) + 256);
}

uint64_t mst_server_published(const struct mst_server_cfg *cfg)
{
	return mst_aggregator_published(&cfg->aggregator);
}

uint64_t mst_server_bytes(const struct mst_server_cfg *cfg)
{
	uint64_t messages = messages_max(cfg);
	uint64_t rings = messages * sizeof(struct mst_request) +
			 2 * messages * sizeof(struct mst_notice) +
			 LINES * sizeof(struct mst_request) +
			 events_max(cfg) * sizeof(struct mst_ledger_event);

	return mst_server_published(cfg) + mst_aggregator_bytes(&cfg->aggregator) +
	       (cfg->aggregator.follower ? 0 : mst_local_bytes(&cfg->ledger, cfg->records)) +
	       rings + sizeof(struct mst_server) + RING_HEADS;
}

static int alloc_rings(struct mst_server *s)
{
	uint64_t messages = messages_max(&s->cfg);

	s->event_size = (uint32_t)events_max(&s->cfg);
	s->event = calloc(s->event_size, sizeof(*s->event));
	s->requests_max = messages;
	s->requests = mst_spsc_new(messages, sizeof(struct mst_request));
	/* One of each request that waits, and of each session how it began, began anew, ended. */
	s->notices = mst_spsc_new(2 * messages, sizeof(struct mst_notice));
	s->lines = mst_spsc_new(LINES, sizeof(struct mst_request));
	return s->event != NULL && s->requests != NULL && s->notices != NULL && s->lines != NULL
		       ? 0
		       : -ENOMEM;
}

static void push_event(void *ctx, const struct mst_ledger_event *ev)
{
	struct mst_server *s = ctx;

	MST_ASSERT(s->event_count < s->event_size);
	s->event[(s->event_head + s->event_count++) % s->event_size] = *ev;
}

static void note(void *ctx, const struct mst_notice *notice)
{
	struct mst_server *s = ctx;
	bool pushed = mst_spsc_push(s->notices, notice);

	MST_ASSERT(pushed); /* a session notes a few times, and needs a request to begin */
	s->noted = true;
}

static void session_over(void *ctx, struct mst_session *session)
{
	struct mst_notice notice = { .kind = MST_NOTE_OVER, .who = session->who };

	notice.session = session;
	note(ctx, &notice);
}

static void tell_save(void *ctx, const struct mst_saving *what)
{
	struct mst_notice notice = { .kind = MST_NOTE_SAVE };

	notice.saving = *what;
	note(ctx, &notice);
}

static void tell_lent(void *ctx, uint64_t version, const float *average)
{
	struct mst_notice notice = { .kind = MST_NOTE_LENT };

	notice.lent.version = version;
	notice.lent.average = average;
	note(ctx, &notice);
}

/* From the thread of another shard. */
static void shard_worked(void *ctx)
{
	const struct mst_server *s = ctx;

	s->net->ops->wake(s->net);
}

static int open_data_path(struct mst_server *s, struct mst_reason *why)
{
	struct mst_aggregator_up up = { .ctx = s,
					.event = push_event,
					.over = session_over,
					.worked = shard_worked,
					.save = tell_save,
					.lend = tell_lent };

	s->cfg.net.published_bytes = mst_server_published(&s->cfg);
	s->cfg.net.links_max = s->cfg.aggregator.workers + s->cfg.peers;
	int rc = s->cfg.transport->net_open(&s->cfg.net, &s->net, why);
	if (rc != 0)
		return rc;
	s->cfg.aggregator.published = s->net->published;
	s->cfg.aggregator.spin = s->cfg.net;
	return mst_aggregator_new(&s->cfg.aggregator, &up, &s->aggregator);
}

static int open_decider(struct mst_server *s)
{
	int rc = s->cfg.decider != NULL
			 ? s->cfg.decider(&s->cfg, s->net, &s->decider)
			 : mst_local_new(&s->cfg.ledger, s->cfg.recording, &s->decider);

	if (rc != 0)
		return rc;
	s->decider->note = note;
	s->decider->note_ctx = s;
	return 0;
}

int mst_server_new(const struct mst_server_cfg *cfg, struct mst_server **out,
		   struct mst_reason *why)
{
	struct mst_server *s = calloc(1, sizeof(*s));

	mst_reason_clear(why);
	if (s == NULL)
		return -ENOMEM;
	s->cfg = *cfg;
	int rc = alloc_rings(s);
	if (rc == 0)
		rc = open_data_path(s, why);
	if (rc == 0)
		rc = open_decider(s);
	if (rc != 0) {
		mst_server_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void mst_server_hang_up(struct mst_server *s, int error)
{
	mst_aggregator_hang_up(s->aggregator, error);
}

/* Links that came too late. */
static void drop_lines(struct mst_server *s)
{
	struct mst_request request;

	while (s->lines != NULL && mst_spsc_pop(s->lines, &request)) {
		if (request.kind == MST_REQ_PEER_LINKED)
			request.peer.link->ops->link_free(request.peer.link);
	}
	mst_spsc_free(s->lines);
}

void mst_server_free(struct mst_server *s)
{
	if (s == NULL)
		return;
	mst_aggregator_free(s->aggregator);
	drop_lines(s);
	if (s->decider != NULL)
		s->decider->ops->free(s->decider);
	if (s->net != NULL)
		s->net->ops->net_close(s->net);
	mst_spsc_free(s->requests);
	mst_spsc_free(s->notices);
	free(s->event);
	free(s);
}

struct mst_net *mst_server_net(struct mst_server *s)
{
	return s->net;
}

void *mst_server_start_buffer(struct mst_server *s)
{
	return s->net->published;
}

void mst_server_tensors(struct mst_server *s, const struct mst_tensor_table *tensors)
{
	mst_aggregator_tensors(s->aggregator, tensors);
}

void mst_server_resume(struct mst_server *s, struct mst_resumed *out)
{
	mst_aggregator_resume(s->aggregator, out);
}

void mst_server_state_filled(struct mst_server *s)
{
	/* Release: pairs with execute_all(); the order to start comes by another way. */
	atomic_store_explicit(&s->state_filled, true, memory_order_release);
}

static bool is_about_lines(const struct mst_request *request)
{
	return request->kind == MST_REQ_PEER_LINKED || request->kind == MST_REQ_PEER_GONE ||
	       request->kind == MST_REQ_DIAL;
}

/* Requests wait while a line has no room. Half of their ring is for what nobody can ask again: that
 * a session is linked, or lost. */
static bool has_place(struct mst_server *s, const struct mst_request *request)
{
	return request->kind == MST_REQ_LINKED ||
	       (request->kind == MST_REQ_EVENT && request->event.kind == MST_EV_LOST) ||
	       mst_spsc_room(s->requests) > s->requests_max / 2;
}

bool mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	bool about_lines = is_about_lines(request);

	if (!about_lines && !has_place(s, request))
		return false;
	if (!mst_spsc_push(about_lines ? s->lines : s->requests, request))
		return false;
	mst_server_wake(s);
	return true;
}

bool mst_server_notice(struct mst_server *s, struct mst_notice *out)
{
	return mst_spsc_pop(s->notices, out);
}

void mst_server_wake(struct mst_server *s)
{
	s->net->ops->wake(s->net);
}

/* ---- shards ---- */

uint32_t mst_server_shards(const struct mst_server *s)
{
	return s->cfg.aggregator.shards;
}

bool mst_server_shard_step(struct mst_server *s, uint32_t shard)
{
	return mst_shard_step(mst_aggregator_shard(s->aggregator, shard));
}

void mst_server_shard_wait(struct mst_server *s, uint32_t shard)
{
	mst_shard_wait(mst_aggregator_shard(s->aggregator, shard));
}

void mst_server_shard_stop(struct mst_server *s, uint32_t shard)
{
	mst_shard_stop(mst_aggregator_shard(s->aggregator, shard));
}

/* ---- sessions ---- */

static void let_go(struct mst_server *s, struct mst_session *session)
{
	session->over = session->said_over = true;
	session_over(s, session);
}

/* This session may have been ended while its link came up. */
static void link_wanted(struct mst_server *s, struct mst_session *session)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LINKED,
				       .who = session->who,
				       .shard = s->cfg.aggregator.index,
				       .far = !session->link->ops->maps };
	bool wanted = s->decider->ops->wants(s->decider, session->who);
	struct mst_reason unused; /* a session that was lost is told of by its error */
	int rc = wanted ? s->net->ops->attach(s->net, session->link, &unused) : -ENOTCONN;

	if (rc != 0) {
		let_go(s, session);
		ev.kind = MST_EV_LOST;
		ev.error = rc;
	} else {
		mst_aggregator_admit(s->aggregator, session);
	}
	push_event(s, &ev);
}

/* At a follower the end of the rank's session before may still be on its way from the leader,
 * after contributions of it that count: the newer session waits for that end. */
static void link_session(struct mst_server *s, struct mst_session *session)
{
	struct mst_session *now = mst_aggregator_session(s->aggregator, session->who.rank);

	if (now == NULL) {
		link_wanted(s, session);
		return;
	}
	uint32_t newest = now->next != NULL ? now->next->who.incarnation : now->who.incarnation;
	if (session->who.incarnation <= newest) {
		let_go(s, session);
		return;
	}
	if (now->next != NULL)
		let_go(s, now->next);
	now->next = session;
}

/* ---- deciding ---- */

/* The session that waits for this decision, if the decision is the end of a session. */
static struct mst_session *waiting_for(const struct mst_server *s, const struct mst_decision *d)
{
	if (d->kind != MST_DO_EVICT)
		return NULL;
	const struct mst_session *now = mst_aggregator_session(s->aggregator, d->who.rank);
	return now != NULL && now->who.incarnation == d->who.incarnation ? now->next : NULL;
}

/* Return: was there anything? */
static bool execute_all(struct mst_server *s)
{
	const struct mst_decider_ops *ops = s->decider->ops;
	struct mst_orders orders;
	bool any = false;

	while (ops->next(s->decider, &orders, s->now_ns)) {
		const struct mst_decision *d = &orders.decision;
		any = true;
		if (s->cfg.aggregator.follower && !mst_aggregator_validates(s->aggregator, d)) {
			ops->refuse(s->decider, s->now_ns);
			continue;
		}
		if (d->kind == MST_DO_START)
			(void)atomic_load_explicit(&s->state_filled, memory_order_acquire);
		struct mst_session *next = waiting_for(s, d);
		mst_aggregator_execute(s->aggregator, d, orders.record);
		ops->done(s->decider, &orders, s->now_ns);
		if (next != NULL)
			link_session(s, next);
	}
	return any;
}

static void handle(struct mst_server *s, const struct mst_ledger_event *ev)
{
	s->decider->ops->handle(s->decider, ev, s->now_ns);
	execute_all(s);
}

static bool takes(const struct mst_server *s)
{
	return s->decider->ops->takes(s->decider);
}

static void handle_queued(struct mst_server *s)
{
	while (s->event_count > 0 && takes(s)) {
		struct mst_ledger_event ev = s->event[s->event_head];
		s->event_head = (s->event_head + 1) % s->event_size;
		s->event_count--;
		handle(s, &ev);
	}
}

/* What other servers report. Return: was there anything? */
static bool handle_reported(struct mst_server *s)
{
	struct mst_ledger_event ev;
	bool any = false;

	while (takes(s) && s->decider->ops->reported(s->decider, &ev, s->now_ns)) {
		handle(s, &ev);
		any = true;
	}
	return any;
}

/* Requests of the control side. */

static void handle_requested(struct mst_server *s, const struct mst_ledger_event *ev)
{
	if (ev->kind == MST_EV_SAVED)
		mst_aggregator_saved(s->aggregator, ev->saved.version);
	else if (ev->kind == MST_EV_RETURNED)
		mst_aggregator_returned(s->aggregator);
	handle(s, ev);
}

/* Return: how many there were; POLL_MAX: perhaps there are more. */
static int handle_requests(struct mst_server *s)
{
	struct mst_request request;
	int count = 0;

	while (mst_spsc_pop(s->lines, &request))
		s->decider->ops->request(s->decider, &request, s->now_ns);
	while (count < POLL_MAX && takes(s) && mst_spsc_pop(s->requests, &request)) {
		count++;
		if (request.kind == MST_REQ_EVENT)
			handle_requested(s, &request.event);
		else if (request.kind == MST_REQ_LINKED)
			link_session(s, request.session);
		else
			s->decider->ops->request(s->decider, &request, s->now_ns);
		handle_queued(s);
	}
	return count;
}

/* Return: how many there were; POLL_MAX: perhaps there are more. */
static int handle_arrivals(struct mst_server *s)
{
	struct mst_net_event ev[POLL_MAX];
	int count = s->net->ops->poll(s->net, ev, POLL_MAX);

	for (int i = 0; i < count; i++) {
		if (ev[i].link->user == NULL)
			s->decider->ops->arrived(s->decider, &ev[i], s->now_ns);
		else
			mst_aggregator_arrived(s->aggregator, &ev[i]);
	}
	handle_queued(s);
	return count;
}

uint64_t mst_server_passes(const struct mst_server *s)
{
	/* Relaxed: it guards nothing. */
	return atomic_load_explicit(&s->passes, memory_order_relaxed);
}

bool mst_server_step(struct mst_server *s, uint64_t now_ns)
{
	s->now_ns = now_ns;
	/* No other thread writes it. */
	atomic_store_explicit(&s->passes, mst_server_passes(s) + 1, memory_order_relaxed);
	bool busy = execute_all(s); /* what had to wait, or what another server has decided */
	int requests = handle_requests(s);
	int arrivals = handle_arrivals(s);
	busy |= handle_reported(s);
	busy |= execute_all(s);
	/* Other servers sum meanwhile, not afterwards. */
	(void)s->decider->ops->flush(s->decider, now_ns);
	busy |= mst_aggregator_work(s->aggregator) || requests > 0 || arrivals > 0;
	handle_queued(s);
	/* What has come in is judged before what has not come in time. */
	struct mst_reports reports = mst_aggregator_reports(s->aggregator);
	s->decider->ops->lags(s->decider, mst_lag_look(&s->lag, &reports, now_ns));
	if (requests < POLL_MAX && arrivals < POLL_MAX &&
	    now_ns >= s->decider->ops->deadline(s->decider)) {
		s->decider->ops->tick(s->decider, now_ns);
		busy |= execute_all(s);
		handle_queued(s);
	}
	mst_aggregator_deliver(s->aggregator);
	busy |= s->event_count > 0 && takes(s); /* what could not be put ends a session */
	s->line_busy = !s->decider->ops->flush(s->decider, now_ns);
	if (s->noted) {
		s->noted = false;
		s->cfg.notify(s->cfg.notify_ctx);
	}
	return busy;
}

void mst_server_wait(struct mst_server *s, uint64_t now_ns)
{
	uint64_t deadline = s->decider->ops->deadline(s->decider);
	uint64_t timeout = s->line_busy ? LINE_BUSY_NS : MST_SECOND;

	if (deadline <= now_ns)
		return;
	if (deadline - now_ns < timeout)
		timeout = deadline - now_ns;
	s->net->ops->wait(s->net, timeout);
}
