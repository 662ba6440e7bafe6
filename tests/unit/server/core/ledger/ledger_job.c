/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/ledger/ledger_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/reason.h"
#include "tests/unit/common/optim/optim_case.h"

struct mst_policy job_policy_of(const char *policy)
{
	struct mst_policy out = { .rule = { .divide = true,
					    .patience_ns = JOB_PATIENCE_NS,
					    .on_loss = MST_LOSS_SHRINK,
					    .min_workers = 1 } };
	struct mst_reason why;

	if (mst_policy_parse(policy, &out, &why) != 0)
		abort();
	return out;
}

struct mst_rule job_rule(const char *policy)
{
	return job_policy_of(policy).rule;
}

struct mst_ledger_cfg job_cfg(const char *policy, uint32_t workers)
{
	return (struct mst_ledger_cfg){
		.workers = workers,
		.shards = 1,
		.slots = 2,
		.buffers = 4,
		.owner = MUSTER_SERVERS_OWN,
		.rule = job_rule(policy),
		.controller = job_policy_of(policy).controller,
		.optimizer = optim_case_sgd(0.1, 0.9),
		.lease_ns = JOB_LEASE_NS,
		.join_until_ns = 60 * UINT64_C(1000000000),
	};
}

void job_open(struct ledger_job *j, const struct mst_ledger_cfg *cfg)
{
	memset(j, 0, sizeof(*j));
	j->cfg = *cfg;
	j->now_ns = 1000;
	if (cfg->workers > JOB_RANKS || mst_ledger_new(cfg, &j->ledger) != 0)
		abort();
	mst_ledger_tick(j->ledger, j->now_ns);
}

void job_close(struct ledger_job *j)
{
	mst_ledger_free(j->ledger);
}

void job_forget(struct ledger_job *j)
{
	j->seen_count = 0;
}

static void note(struct ledger_job *j, const struct mst_decision *d)
{
	struct job_worker *w = &j->worker[d->who.rank];

	if (j->seen_count == JOB_SEEN)
		abort();
	j->seen[j->seen_count++] = *d;
	if (d->kind == MST_DO_ADMIT) {
		*w = (struct job_worker){ .who = d->who, .have = MST_VERSION_NONE };
		for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++)
			w->epoch[slot] = 1;
	} else if (d->kind == MST_DO_REGRANT) {
		w->epoch[d->grant.slot] = d->grant.epoch;
	} else if (d->kind == MST_DO_VERDICT) {
		w->heard = d->verdict.seq;
	} else if (d->kind == MST_DO_RELEASE) {
		w->have = d->answer.version;
	}
}

static void drain(struct ledger_job *j)
{
	struct mst_decision d;
	bool settles = false;

	while (mst_ledger_next(j->ledger, &d)) {
		note(j, &d);
		settles |= d.kind == MST_DO_SETTLE;
	}
	for (uint32_t shard = 0; settles && !j->unsettled && shard < j->cfg.shards; shard++)
		job_settled(j, shard);
}

void job_settled(struct ledger_job *j, uint32_t shard)
{
	struct mst_ledger_event ev = { .kind = MST_EV_SETTLED, .shard = shard };

	job_event(j, &ev);
}

void job_spoilt(struct ledger_job *j, uint64_t version)
{
	struct mst_ledger_event ev = { .kind = MST_EV_SPOILT, .spoilt.version = version };

	job_event(j, &ev);
}

void job_event(struct ledger_job *j, const struct mst_ledger_event *ev)
{
	mst_ledger_handle(j->ledger, ev, j->now_ns);
	drain(j);
}

static struct mst_ledger_event event(const struct ledger_job *j, uint32_t rank,
				     enum mst_ledger_event_kind kind)
{
	struct mst_ledger_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.kind = kind;
	ev.who = j->worker[rank].who;
	return ev;
}

void job_tell(struct ledger_job *j, uint32_t rank, enum mst_ledger_event_kind kind)
{
	struct mst_ledger_event ev = event(j, rank, kind);

	job_event(j, &ev);
}

void job_join(struct ledger_job *j, int32_t rank)
{
	struct mst_ledger_event ev = event(j, 0, MST_EV_JOIN);

	ev.join.rank = rank;
	job_event(j, &ev);
}

void job_link(struct ledger_job *j, uint32_t rank, uint32_t shard)
{
	struct mst_ledger_event ev = event(j, rank, MST_EV_LINKED);

	ev.shard = shard;
	job_event(j, &ev);
}

void job_start(struct ledger_job *j, uint32_t rank, bool offers)
{
	struct mst_ledger_event ev = event(j, rank, MST_EV_START);

	ev.offers = offers;
	j->worker[rank].asks = 1;
	job_event(j, &ev);
}

void job_link_far(struct ledger_job *j, uint32_t rank, uint32_t shard)
{
	struct mst_ledger_event ev = event(j, rank, MST_EV_LINKED);

	ev.shard = shard;
	ev.far = true;
	job_event(j, &ev);
}

void job_enter_far(struct ledger_job *j, uint32_t rank)
{
	job_join(j, (int32_t)rank);
	job_link_far(j, rank, MST_SHARD_LEAD);
	job_start(j, rank, false);
}

void job_enter(struct ledger_job *j, uint32_t rank)
{
	job_join(j, (int32_t)rank);
	for (uint32_t shard = 0; shard < j->cfg.shards; shard++)
		job_link(j, rank, shard);
	job_start(j, rank, rank == 0 && j->cfg.owner == MUSTER_SERVERS_OWN);
}

void job_born(struct ledger_job *j, const struct mst_ledger_cfg *cfg)
{
	job_open(j, cfg);
	for (uint32_t rank = 0; rank < cfg->workers; rank++)
		job_enter(j, rank);
	if (cfg->owner == MUSTER_SERVERS_OWN)
		job_tell(j, 0, MST_EV_STATE);
	for (uint32_t rank = 0; rank < cfg->workers; rank++)
		job_answered(j, rank);
	job_forget(j);
}

struct mst_lane_header job_header(struct ledger_job *j, uint32_t rank)
{
	struct job_worker *w = &j->worker[rank];

	w->seq++;
	return (struct mst_lane_header){
		.seq = w->seq,
		.unheard = (uint16_t)(w->seq - 1 - w->heard),
		.epoch = w->epoch[0],
		.tag = w->have,
		.weight = 1,
		.loss = 1,
		.ask = { .number = ++w->asks, .have = w->have },
		.flags = MST_HEADER_FULL | MST_HEADER_LOSS | MST_HEADER_ASK,
	};
}

void job_full(struct ledger_job *j, uint32_t rank, uint32_t shard, const struct mst_lane_header *h)
{
	struct mst_ledger_event ev = event(j, rank, MST_EV_FULL);

	ev.full.shard = shard;
	ev.full.header = *h;
	job_event(j, &ev);
}

void job_full_all(struct ledger_job *j, uint32_t rank, const struct mst_lane_header *h)
{
	for (uint32_t shard = 0; shard < j->cfg.shards; shard++)
		job_full(j, rank, shard, h);
}

void job_push(struct ledger_job *j, uint32_t rank)
{
	struct mst_lane_header h = job_header(j, rank);

	job_full_all(j, rank, &h);
}

void job_push_loss(struct ledger_job *j, uint32_t rank, double loss)
{
	struct mst_lane_header h = job_header(j, rank);

	h.loss = loss;
	if (isnan(loss))
		h.flags &= ~MST_HEADER_LOSS;
	job_full_all(j, rank, &h);
}

void job_pass(struct ledger_job *j, uint32_t rank)
{
	struct mst_lane_header h = job_header(j, rank);

	h.flags |= MST_HEADER_PASS;
	h.weight = 0;
	job_full_all(j, rank, &h);
}

void job_ask(struct ledger_job *j, uint32_t rank)
{
	struct mst_ledger_event ev = event(j, rank, MST_EV_ASK);

	ev.ask.number = ++j->worker[rank].asks;
	ev.ask.have = j->worker[rank].have;
	job_event(j, &ev);
}

void job_answered(struct ledger_job *j, uint32_t rank)
{
	for (uint32_t shard = 0; shard < j->cfg.shards; shard++) {
		struct mst_ledger_event ev = event(j, rank, MST_EV_ANSWERED);
		ev.answered.shard = shard;
		ev.answered.number = j->worker[rank].asks;
		job_event(j, &ev);
	}
}

void job_leave(struct ledger_job *j, uint32_t rank, uint64_t seq)
{
	struct mst_ledger_event ev = event(j, rank, MST_EV_LEAVE);

	ev.seq = seq;
	job_event(j, &ev);
}

void job_lose(struct ledger_job *j, uint32_t rank, int error)
{
	struct mst_ledger_event ev = event(j, rank, MST_EV_LOST);

	ev.error = error;
	job_event(j, &ev);
}

void job_policy(struct ledger_job *j, const struct mst_rule *rule)
{
	struct mst_ledger_event ev = event(j, 0, MST_EV_POLICY);

	ev.rule = *rule;
	job_event(j, &ev);
}

void job_adapt(struct ledger_job *j, const char *policy)
{
	struct mst_policy to = job_policy_of(policy);
	struct mst_ledger_event ev = event(j, 0, MST_EV_POLICY);

	ev.rule = to.rule;
	ev.controller = &to.controller;
	job_event(j, &ev);
}

void job_heard(struct ledger_job *j, uint64_t heard_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_HEARD, .heard_ns = heard_ns };

	job_event(j, &ev);
}

void job_tick(struct ledger_job *j)
{
	mst_ledger_tick(j->ledger, j->now_ns);
	drain(j);
}

void job_wait(struct ledger_job *j, uint64_t ns, int silent)
{
	uint64_t until = j->now_ns + ns;

	while (j->now_ns < until) {
		uint64_t left = until - j->now_ns;
		j->now_ns += left < j->cfg.lease_ns / 8 ? left : j->cfg.lease_ns / 8;
		for (uint32_t rank = 0; rank < j->cfg.workers; rank++) {
			if ((int)rank != silent)
				job_tell(j, rank, MST_EV_HEARTBEAT);
		}
		job_heard(j, j->now_ns);
		job_tick(j);
	}
}

static bool is_about(const struct mst_decision *d, enum mst_decision_kind kind, int rank)
{
	return d->kind == kind && (rank < 0 || d->who.rank == (uint32_t)rank);
}

size_t job_count(const struct ledger_job *j, enum mst_decision_kind kind, int rank)
{
	size_t count = 0;

	for (size_t i = 0; i < j->seen_count; i++)
		count += is_about(&j->seen[i], kind, rank);
	return count;
}

const struct mst_decision *job_last(const struct ledger_job *j, enum mst_decision_kind kind,
				    int rank)
{
	for (size_t i = j->seen_count; i > 0; i--) {
		if (is_about(&j->seen[i - 1], kind, rank))
			return &j->seen[i - 1];
	}
	return NULL;
}

bool job_evicted(const struct ledger_job *j, uint32_t rank, enum mst_evict_why why)
{
	const struct mst_decision *d = job_last(j, MST_DO_EVICT, (int)rank);

	return d != NULL && d->evict == why;
}

bool job_finished(const struct ledger_job *j, enum mst_finish_why why)
{
	const struct mst_decision *d = job_last(j, MST_DO_FINISH, -1);

	return d != NULL && d->finish.why == why && job_count(j, MST_DO_FINISH, -1) == 1;
}

enum muster_verdict job_verdict(const struct ledger_job *j, uint32_t rank)
{
	const struct mst_decision *d = job_last(j, MST_DO_VERDICT, (int)rank);

	return d == NULL ? MUSTER_NONE : d->verdict.verdict;
}

uint64_t job_version(const struct ledger_job *j)
{
	return mst_ledger_version(j->ledger);
}

struct mst_member_view job_member(const struct ledger_job *j, uint32_t rank)
{
	struct mst_member_view view;

	mst_ledger_member(j->ledger, rank, &view);
	return view;
}
