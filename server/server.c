/* SPDX-License-Identifier: MIT */
/*
 * Where deciding and moving meet: arrivals become events, the ledger's decisions go to the shard,
 * to the tally and to the control side, in this order. Events that executing a decision causes
 * are queued, never handled within it.
 */
#include "server/server.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/spsc.h"
#include "server/shard.h"
#include "server/tally.h"

/* Arrivals, and requests, taken in one step: enough to be cheap, few enough that a flood of one
 * kind does not keep the rest from its turn. */
#define POLL_MAX 64

struct mst_server {
	struct mst_server_cfg cfg;
	struct mst_ledger *ledger;
	struct mst_aggregator *aggregator;
	struct mst_tally *tally;
	struct mst_net *net;
	struct mst_spsc *requests, *notices;

	/* Events waiting for the ledger. */
	struct mst_ledger_event *event;
	uint32_t event_size, event_head, event_count;

	uint64_t now_ns;
	bool noted;
};

static uint64_t pow2_above(uint64_t n)
{
	uint64_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

static uint64_t published_bytes(const struct mst_server_cfg *cfg)
{
	return (uint64_t)mst_ledger_buffers(&cfg->ledger) *
	       mst_version_stride(cfg->aggregator.elems, cfg->aggregator.result_type);
}

uint64_t mst_server_bytes(const struct mst_server_cfg *cfg)
{
	return published_bytes(cfg) + mst_aggregator_bytes(&cfg->aggregator);
}

/* What a step can queue: each arrival one event, each session lost once, an answer sent. */
static int alloc_rings(struct mst_server *s)
{
	uint32_t workers = s->cfg.ledger.workers;
	uint64_t messages = pow2_above(workers * UINT64_C(16) + 256);

	s->event_size = (uint32_t)pow2_above(POLL_MAX + workers * UINT64_C(8) + 64);
	s->event = calloc(s->event_size, sizeof(*s->event));
	s->requests = mst_spsc_new(messages, sizeof(struct mst_request));
	s->notices = mst_spsc_new(messages, sizeof(struct mst_notice));
	return s->event != NULL && s->requests != NULL && s->notices != NULL ? 0 : -ENOMEM;
}

static void push_event(void *ctx, const struct mst_ledger_event *ev)
{
	struct mst_server *s = ctx;

	MST_ASSERT(s->event_count < s->event_size);
	s->event[(s->event_head + s->event_count++) % s->event_size] = *ev;
}

static void note(struct mst_server *s, const struct mst_notice *notice)
{
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

/* From the thread of another shard. */
static void shard_worked(void *ctx)
{
	const struct mst_server *s = ctx;

	s->net->ops->wake(s->net);
}

static int open_data_path(struct mst_server *s)
{
	struct mst_aggregator_up up = {
		.ctx = s, .event = push_event, .over = session_over, .worked = shard_worked
	};

	s->cfg.net.published_bytes = published_bytes(&s->cfg);
	s->cfg.net.links_max = s->cfg.ledger.workers;
	int rc = s->cfg.transport->net_open(&s->cfg.net, &s->net);
	if (rc != 0)
		return rc;
	s->cfg.aggregator.published = s->net->published;
	s->cfg.aggregator.spin = s->cfg.net;
	return mst_aggregator_new(&s->cfg.aggregator, &up, &s->aggregator);
}

int mst_server_new(const struct mst_server_cfg *cfg, struct mst_server **out)
{
	struct mst_server *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->cfg = *cfg;
	int rc = mst_ledger_new(&cfg->ledger, &s->ledger);
	if (rc == 0)
		rc = mst_tally_new(cfg->ledger.workers, &s->tally);
	if (rc == 0)
		rc = alloc_rings(s);
	if (rc == 0)
		rc = open_data_path(s);
	if (rc != 0) {
		mst_server_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void mst_server_hang_up(struct mst_server *s)
{
	mst_aggregator_hang_up(s->aggregator);
}

void mst_server_free(struct mst_server *s)
{
	if (s == NULL)
		return;
	mst_aggregator_free(s->aggregator);
	if (s->net != NULL)
		s->net->ops->net_close(s->net);
	mst_spsc_free(s->requests);
	mst_spsc_free(s->notices);
	mst_tally_free(s->tally);
	mst_ledger_free(s->ledger);
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

bool mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	if (!mst_spsc_push(s->requests, request))
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

/* Decisions to the control side. */

static void note_join(struct mst_server *s, const struct mst_decision *d)
{
	struct mst_notice notice = { .kind = MST_NOTE_REFUSED, .who = d->who };

	notice.join.cookie = d->join.cookie;
	notice.join.error = d->join.error;
	if (d->kind == MST_DO_ADMIT) {
		struct mst_member_view view;
		mst_ledger_member(s->ledger, d->who.rank, &view);
		notice.kind = MST_NOTE_ADMITTED;
		notice.join.fate_count = view.fate_count;
		for (uint32_t i = 0; i < view.fate_count; i++)
			notice.join.fate[i] = view.fate[i];
	}
	note(s, &notice);
}

static void note_decision(struct mst_server *s, const struct mst_decision *d)
{
	struct mst_notice notice = { .who = d->who };

	switch (d->kind) {
	case MST_DO_ADMIT:
	case MST_DO_REFUSE:
		note_join(s, d);
		return;
	case MST_DO_SEND_STATE:
		notice.kind = MST_NOTE_SEND_STATE;
		break;
	case MST_DO_START:
		notice.kind = MST_NOTE_STARTED;
		break;
	case MST_DO_EVICT:
		notice.kind = MST_NOTE_EVICTED;
		notice.evict = d->evict;
		break;
	case MST_DO_FINISH:
		notice.kind = MST_NOTE_FINISHED;
		notice.finish.why = d->finish.why;
		notice.finish.version = d->finish.version;
		break;
	default:
		return;
	}
	note(s, &notice);
}

static const struct mst_record *record_for(const struct mst_server *s, const struct mst_decision *d)
{
	if (d->kind == MST_DO_COMMIT)
		return mst_ledger_record(s->ledger, d->commit.buffer);
	if (d->kind == MST_DO_RELEASE)
		return mst_ledger_record(s->ledger, d->answer.buffer);
	return NULL;
}

/* Return: was there anything? */
static bool execute_all(struct mst_server *s)
{
	struct mst_decision d;
	bool any = false;

	while (mst_ledger_next(s->ledger, &d)) {
		const struct mst_record *record = record_for(s, &d);
		mst_aggregator_execute(s->aggregator, &d, record, mst_ledger_rule(s->ledger));
		mst_tally_decided(s->tally, &d, record, s->now_ns);
		note_decision(s, &d);
		any = true;
	}
	return any;
}

static void handle(struct mst_server *s, const struct mst_ledger_event *ev)
{
	mst_ledger_handle(s->ledger, ev, s->now_ns);
	execute_all(s);
}

static void handle_queued(struct mst_server *s)
{
	while (s->event_count > 0) {
		struct mst_ledger_event ev = s->event[s->event_head];
		s->event_head = (s->event_head + 1) % s->event_size;
		s->event_count--;
		handle(s, &ev);
	}
}

/* Requests of the control side. */

/* The ledger may have ended this session while its link came up. */
static void link_session(struct mst_server *s, struct mst_session *session)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LINKED, .who = session->who, .shard = 0 };
	struct mst_member_view view;

	mst_ledger_member(s->ledger, session->who.rank, &view);
	bool present = view.live && view.incarnation == session->who.incarnation;
	int rc = present ? s->net->ops->attach(s->net, session->link) : -ENOTCONN;
	if (rc != 0) {
		session->over = session->said_over = true;
		session_over(s, session);
		ev.kind = MST_EV_LOST;
		ev.error = rc;
	} else {
		mst_aggregator_admit(s->aggregator, session);
	}
	handle(s, &ev);
}

static void fill_snapshot(struct mst_server *s, struct mst_snapshot *snapshot)
{
	struct mst_status *status = &snapshot->status;

	status->live = 0;
	for (uint32_t rank = 0; rank < s->cfg.ledger.workers; rank++) {
		struct mst_member_view view;
		mst_ledger_member(s->ledger, rank, &view);
		snapshot->rank[rank].awaited = view.awaited;
		mst_tally_rank(s->tally, rank, s->now_ns, &snapshot->rank[rank]);
		status->live += view.started;
	}
	mst_tally_job(s->tally, s->now_ns, status);
	note(s, &(struct mst_notice){ .kind = MST_NOTE_SNAPSHOT });
}

/* Return: how many there were; POLL_MAX: perhaps there are more. */
static int handle_requests(struct mst_server *s)
{
	struct mst_request request;
	int count = 0;

	while (count < POLL_MAX && mst_spsc_pop(s->requests, &request)) {
		count++;
		if (request.kind == MST_REQ_EVENT)
			handle(s, &request.event);
		else if (request.kind == MST_REQ_LINKED)
			link_session(s, request.session);
		else
			fill_snapshot(s, request.snapshot);
		handle_queued(s);
	}
	return count;
}

/* Return: how many there were; POLL_MAX: perhaps there are more. */
static int handle_arrivals(struct mst_server *s)
{
	struct mst_net_event ev[POLL_MAX];
	int count = s->net->ops->poll(s->net, ev, POLL_MAX);

	for (int i = 0; i < count; i++)
		mst_aggregator_arrived(s->aggregator, &ev[i]);
	handle_queued(s);
	return count;
}

bool mst_server_step(struct mst_server *s, uint64_t now_ns)
{
	s->now_ns = now_ns;
	int requests = handle_requests(s);
	int arrivals = handle_arrivals(s);
	bool busy = mst_aggregator_work(s->aggregator) || requests > 0 || arrivals > 0;
	handle_queued(s);
	/* What has come in is judged before what has not come in time. */
	if (requests < POLL_MAX && arrivals < POLL_MAX &&
	    now_ns >= mst_ledger_deadline(s->ledger)) {
		mst_ledger_tick(s->ledger, now_ns);
		busy |= execute_all(s);
		handle_queued(s);
	}
	mst_aggregator_deliver(s->aggregator);
	busy |= s->event_count > 0; /* a link that could not take what was due */
	if (s->noted) {
		s->noted = false;
		s->cfg.notify(s->cfg.notify_ctx);
	}
	return busy;
}

void mst_server_wait(struct mst_server *s, uint64_t now_ns)
{
	uint64_t deadline = mst_ledger_deadline(s->ledger);
	uint64_t timeout = MST_SECOND;

	if (deadline <= now_ns)
		return;
	if (deadline - now_ns < timeout)
		timeout = deadline - now_ns;
	s->net->ops->wait(s->net, timeout);
}
