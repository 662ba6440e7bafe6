/* SPDX-License-Identifier: MIT */
/*
 * The ledger's public functions. They allocate all its memory once, pass each event to the phase
 * that handles it, and give out the decisions.
 */
#include "server/core/ledger/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"
#include "server/core/ledger/phases/answers.h"
#include "server/core/ledger/phases/finish.h"
#include "server/core/ledger/phases/judge.h"
#include "server/core/ledger/phases/lend.h"
#include "server/core/ledger/phases/opening.h"
#include "server/core/ledger/phases/reduce.h"
#include "server/core/ledger/phases/save.h"
#include "server/core/ledger/phases/sessions.h"
#include "server/core/ledger/phases/start.h"
#include "server/core/ledger/phases/timers.h"
#include "server/core/ledger/phases/transfer.h"
#include "server/core/ledger/settle.h"
#include "server/core/ledger/state/asks.h"
#include "server/core/ledger/state/life.h"
#include "server/core/ledger/state/state.h"
#include "server/core/ledger/state/strides.h"

/* The most decisions that one event can cause: every session ends with all its slots cancelled, a
 * commit advises and answers every worker and may have it rest, and some decisions that come once.
 * Contributions are judged one by one, each with an empty queue. */
static uint32_t decisions_max(const struct mst_ledger_cfg *cfg)
{
	return cfg->workers * (cfg->slots + 16) + 64;
}

/* The first version of a generation may have been made by more ranks than there are now. */
static uint32_t record_ranks_of(const struct mst_ledger_cfg *cfg)
{
	return cfg->record_ranks > cfg->workers ? cfg->record_ranks : cfg->workers;
}

/* A set has the quorum or every rank once, and more if the policy changes while a step is open. */
uint32_t mst_ledger_entries(const struct mst_ledger_cfg *cfg)
{
	uint32_t quorum = cfg->rule.quorum > 0 ? (uint32_t)cfg->rule.quorum : 0;
	uint32_t micro = cfg->rule.by_micro ? mst_rule_planned(&cfg->rule, cfg->workers) : 0;
	uint32_t most = quorum > micro ? quorum : micro;

	return (most > cfg->workers ? most : cfg->workers) + cfg->workers * cfg->slots;
}

static bool figures_ok(const struct mst_ledger_cfg *cfg)
{
	return cfg->workers >= 1 && cfg->workers <= MST_LEDGER_WORKERS_MAX && cfg->shards >= 1 &&
	       cfg->shards <= MST_LEDGER_SHARDS_MAX && cfg->slots >= 1 &&
	       cfg->slots <= MST_SLOTS_MAX && cfg->buffers >= 3 && cfg->lease_ns > 0 &&
	       isfinite(cfg->norm_limit) && cfg->norm_limit >= 0 &&
	       (cfg->owner == MUSTER_WORKERS_OWN) == (cfg->history > 0) &&
	       (cfg->owner == MUSTER_WORKERS_OWN || cfg->catch_up == 0) &&
	       (cfg->owner == MUSTER_SERVERS_OWN || cfg->optimizer.row == NULL);
}

static int alloc_members(struct mst_ledger *l)
{
	l->member = aligned_alloc(MST_MEMBER_LINE, l->cfg.workers * sizeof(*l->member));
	l->verdicts = calloc(l->cfg.workers, sizeof(*l->verdicts));
	l->stride = calloc(l->cfg.workers, sizeof(*l->stride));
	if (l->member == NULL || l->verdicts == NULL || l->stride == NULL ||
	    mst_counts_init(&l->counts, l->cfg.workers) != 0 ||
	    mst_waits_init(&l->waits, l->cfg.workers) != 0 ||
	    mst_ranks_init(&l->expired, l->cfg.workers) != 0 ||
	    mst_outliers_init(&l->outliers, l->cfg.norm_limit, l->cfg.workers) != 0 ||
	    mst_ranks_init(&l->found, l->cfg.workers) != 0 ||
	    mst_stragglers_init(&l->judge, l->cfg.workers) != 0)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < l->cfg.workers; rank++) {
		mst_member_init(&l->member[rank], rank, &l->verdicts[rank]);
		mst_changed(l, &l->member[rank]);
	}
	return 0;
}

static int alloc_records(struct mst_ledger *l)
{
	uint32_t buffers = mst_ledger_buffers(&l->cfg);

	l->buffer = calloc(buffers, sizeof(*l->buffer));
	l->record = calloc(buffers, sizeof(*l->record));
	l->entry = calloc((size_t)l->entry_max * (buffers + 1), sizeof(*l->entry));
	uint32_t ranks = record_ranks_of(&l->cfg);
	l->share = calloc((size_t)ranks * buffers, sizeof(*l->share));
	if (l->buffer == NULL || l->record == NULL || l->entry == NULL || l->share == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < buffers; i++) {
		l->record[i].entry = l->entry + (size_t)l->entry_max * (i + 1);
		l->record[i].share = l->share + (size_t)ranks * i;
	}
	mst_store_init(&l->store, l->buffer, buffers, l->cfg.history > 0 ? l->cfg.history : 1);
	mst_store_set_extra(&l->store, l->cfg.catch_up);
	if (l->cfg.saves.wanted)
		mst_store_reserve(&l->store);
	if (l->cfg.kept != NULL)
		mst_store_begin_with(&l->store, l->cfg.kept->version);
	l->save.version = MST_VERSION_NONE;
	l->lending.version = MST_VERSION_NONE;
	l->compared = MST_BUFFER_NONE;
	return 0;
}

uint64_t mst_ledger_bytes(const struct mst_ledger_cfg *cfg)
{
	uint64_t buffers = mst_ledger_buffers(cfg), entries = mst_ledger_entries(cfg);
	uint64_t member = sizeof(struct mst_member) + sizeof(struct mst_verdicts) +
			  sizeof(struct mst_stride);
	uint64_t kept = mst_stragglers_bytes(cfg->workers) + mst_counts_bytes(cfg->workers) +
			mst_waits_bytes(cfg->workers) + 2 * mst_ranks_bytes(cfg->workers) +
			mst_outliers_bytes(cfg->norm_limit, cfg->workers);
	uint64_t record = sizeof(struct mst_store_buffer) + sizeof(struct mst_record) +
			  entries * sizeof(struct mst_entry) +
			  record_ranks_of(cfg) * sizeof(struct mst_lane_share);

	return sizeof(struct mst_ledger) + cfg->workers * member + kept + buffers * record +
	       entries * sizeof(struct mst_entry) +
	       decisions_max(cfg) * sizeof(struct mst_decision);
}

int mst_ledger_new(const struct mst_ledger_cfg *cfg, struct mst_ledger **out)
{
	if (!figures_ok(cfg))
		return -EINVAL;
	struct mst_ledger *l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->cfg = *cfg;
	l->rule = cfg->rule;
	l->controller = cfg->controller;
	l->goal = (struct mst_goal){ cfg->commits_max, MST_RANK_NONE };
	l->join_until = cfg->join_until_ns;
	l->generation.next = 1;
	l->gathering = (struct mst_gathering){ .look_ns = MST_NEVER, .return_until = MST_NEVER };
	l->entry_max = mst_ledger_entries(cfg);
	l->queue_size = decisions_max(cfg);
	l->queue = calloc(l->queue_size, sizeof(*l->queue));
	if (l->queue == NULL || alloc_members(l) != 0 || alloc_records(l) != 0) {
		mst_ledger_free(l);
		return -ENOMEM;
	}
	l->counts.by_micro = cfg->rule.by_micro;
	l->counts.in_order = cfg->owner == MUSTER_WORKERS_OWN;
	mst_save_resume(l);
	l->cfg.kept = NULL;
	*out = l;
	return 0;
}

void mst_ledger_free(struct mst_ledger *l)
{
	if (l == NULL)
		return;
	free(l->queue);
	mst_counts_fini(&l->counts);
	mst_waits_fini(&l->waits);
	mst_ranks_fini(&l->expired);
	mst_outliers_fini(&l->outliers);
	mst_ranks_fini(&l->found);
	mst_stragglers_fini(&l->judge);
	free(l->member);
	free(l->verdicts);
	free(l->stride);
	free(l->buffer);
	free(l->record);
	free(l->entry);
	free(l->share);
	free(l);
}

/* The next contribution is judged only when all decisions on the one before have been taken. So a
 * record is read before a later commit can name its buffer again. */
bool mst_ledger_next(struct mst_ledger *l, struct mst_decision *out)
{
	while (l->queue_count == 0) {
		if (!mst_judge_next(l))
			return false;
		mst_settle(l);
	}
	*out = l->queue[l->queue_head];
	l->queue_head = (l->queue_head + 1) % l->queue_size;
	if (--l->queue_count == 0)
		l->queue_head = 0; /* begin at 0 again, so that the same few cache lines are used */
	return true;
}

/* A worker that has sent leave closes its connections next. If the session ended there, a header
 * that some shard has still to report would be overtaken, and work that was pushed would be
 * cancelled. What ends the session is that header, or MST_EV_UNLINKED, after which it cannot come.
 * A link that lives and brings nothing is waited for like that of any worker: until patience with
 * a missing gradient is over, or, if heartbeats cease, the lease. */
static void lost(struct mst_ledger *l, struct mst_member *m, int error)
{
	if (error == -EPROTO)
		mst_life_lose(l, m, MST_EVICT_INVALID);
	else if (m->state != MST_MEMBER_LEAVING)
		mst_life_lose(l, m, MST_EVICT_LOST);
}

/* Events of the control plane. */
static void handle_life(struct mst_ledger *l, struct mst_member *m,
			const struct mst_ledger_event *ev)
{
	switch (ev->kind) {
	case MST_EV_LINKED:
		mst_life_linked(l, m, ev);
		break;
	case MST_EV_START:
		mst_life_start(l, m, ev);
		break;
	case MST_EV_STATE:
		mst_start_state(l, m, &ev->brought);
		break;
	case MST_EV_HEARTBEAT:
		m->lease_until = l->now_ns + l->cfg.lease_ns;
		mst_changed(l, m);
		break;
	case MST_EV_LEAVE:
		mst_life_leave(l, m, ev->seq);
		break;
	case MST_EV_REST:
		mst_life_rest(l, m, ev->rests);
		break;
	case MST_EV_GIVEN:
		mst_transfer_given(l, m, ev->given.number, ev->given.version);
		break;
	case MST_EV_TAKEN:
		mst_transfer_taken(l, m, ev->given.number);
		break;
	case MST_EV_STRAYS:
		m->strays = m->state == MST_MEMBER_STARTED && m->comes_back;
		break;
	case MST_EV_METRIC:
		mst_controller_reported(&l->controller, &ev->metric);
		break;
	case MST_EV_LOST:
		lost(l, m, ev->error);
		break;
	case MST_EV_UNLINKED:
		mst_life_unlinked(l, m, ev->shard);
		break;
	case MST_EV_EVICT:
		mst_life_evict(l, m);
		break;
	case MST_EV_FINISH:
		if (l->phase == MST_PHASE_RUNNING)
			mst_life_end(l, MST_FINISH_ASKED);
		break;
	case MST_EV_GOAL:
		mst_life_goal(l, m, ev->goal);
		break;
	default:
		MST_ASSERT(false); /* mst_ledger_handle() has handled all other kinds */
	}
}

/* Events of the data path. */
static void handle_data(struct mst_ledger *l, struct mst_member *m,
			const struct mst_ledger_event *ev)
{
	switch (ev->kind) {
	case MST_EV_FULL:
		mst_judge_full(l, m, ev);
		break;
	case MST_EV_ABANDONED:
		mst_judge_abandoned(l, m, ev->abandoned.shard, ev->abandoned.slot,
				    ev->abandoned.epoch);
		break;
	case MST_EV_ASK:
		mst_stride_gave_up(l, m, ev->given_up);
		if (!mst_ask_take(l, m, &ev->ask, m->told))
			mst_life_lose(l, m, MST_EVICT_INVALID);
		break;
	case MST_EV_ANSWERED:
		mst_ask_answered(l, m, ev->answered.shard, ev->answered.number);
		break;
	default:
		handle_life(l, m, ev);
	}
}

void mst_ledger_handle(struct mst_ledger *l, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	MST_ASSERT(l->queue_count == 0); /* decisions_max() is for one event */
	mst_timers_look(l, now_ns);
	if (ev->kind == MST_EV_JOIN) {
		mst_life_join(l, ev);
	} else if (ev->kind == MST_EV_HEARD) {
		mst_timers_heard(l, ev->heard_ns, now_ns);
		return; /* the next tick decides what follows */
	} else if (ev->kind == MST_EV_POLICY) {
		mst_step_policy(l, &ev->rule, ev->controller);
	} else if (ev->kind == MST_EV_SERVER) {
		mst_life_fail(l, MST_FINISH_SERVER);
		mst_save_server_lost(l, ev->shard);
	} else if (ev->kind == MST_EV_END) {
		if (l->phase == MST_PHASE_RUNNING)
			mst_life_end_whole(l);
	} else if (ev->kind == MST_EV_SPOILT) {
		mst_life_fail(l, MST_FINISH_SPOILT);
	} else if (ev->kind == MST_EV_REDUCED) {
		mst_reduce_reported(l, ev);
	} else if (ev->kind == MST_EV_STOP) {
		mst_life_stop(l, ev->for_good);
	} else if (ev->kind == MST_EV_SAVED) {
		mst_save_reported(l, ev);
	} else if (ev->kind == MST_EV_LEND) {
		mst_lend_asked(l);
	} else if (ev->kind == MST_EV_RETURNED) {
		mst_lend_returned(l, ev);
	} else if (ev->kind == MST_EV_SETTLED) {
		mst_life_settled(l, ev->shard);
	} else {
		if (ev->who.rank >= l->cfg.workers ||
		    !mst_member_is(&l->member[ev->who.rank], ev->who.incarnation))
			return;
		handle_data(l, &l->member[ev->who.rank], ev);
	}
	mst_settle(l);
}

void mst_ledger_tick(struct mst_ledger *l, uint64_t now_ns)
{
	mst_timers_look(l, now_ns);
	mst_timers_tick(l);
	mst_settle(l);
}

void mst_ledger_lag(struct mst_ledger *l, uint64_t lag_ns)
{
	l->lag_ns = lag_ns;
}

void mst_ledger_gather(struct mst_ledger *l, uint64_t until_ns)
{
	l->join_until = until_ns; /* which counts until the start only */
}

uint64_t mst_ledger_deadline(const struct mst_ledger *l)
{
	return mst_timers_deadline(l, mst_transfer_deadline(l));
}

const struct mst_record *mst_ledger_record(const struct mst_ledger *l, uint32_t buffer)
{
	MST_ASSERT(buffer < l->store.count);
	return &l->record[buffer];
}

const struct mst_record *mst_ledger_record_of(const struct mst_ledger *l, uint64_t version)
{
	return mst_record_of(l, version);
}

uint32_t mst_ledger_buffers(const struct mst_ledger_cfg *cfg)
{
	/* what each worker was given last, and what the contribution of one that is lost was
	 * computed on */
	uint32_t compared = cfg->distance > 0 ? cfg->workers + 1 : 0;
	uint32_t kept = cfg->history + cfg->catch_up;

	/* one is held while it is saved */
	return cfg->buffers + kept + cfg->saves.wanted + compared;
}

uint64_t mst_ledger_version(const struct mst_ledger *l)
{
	return mst_store_version(&l->store);
}

bool mst_ledger_started(const struct mst_ledger *l)
{
	return l->store.newest != MST_VERSION_NONE;
}

const struct mst_rule *mst_ledger_rule(const struct mst_ledger *l)
{
	return &l->rule;
}

const struct mst_controller *mst_ledger_controller(const struct mst_ledger *l)
{
	return &l->controller;
}

struct mst_generation_view mst_ledger_generation(const struct mst_ledger *l)
{
	return (struct mst_generation_view){ .number = l->generation.number,
					     .began = l->generation.began,
					     .newest = l->generation.newest };
}

void mst_ledger_member(const struct mst_ledger *l, uint32_t rank, struct mst_member_view *out)
{
	MST_ASSERT(rank < l->cfg.workers);
	const struct mst_member *m = &l->member[rank];
	*out = (struct mst_member_view){
		.incarnation = m->incarnation,
		.live = m->state != MST_MEMBER_ABSENT,
		.rests = m->rests,
		.behind = m->behind != MST_UP_TO_DATE,
		.held = m->waits == MST_WAIT_LATE,
		.started = mst_member_takes_part(m),
		.awaited = mst_member_missing(m),
		.asks = m->asks,
		.clock = m->clock,
	};
}

struct mst_straggler mst_ledger_straggler(const struct mst_ledger *l, uint32_t rank,
					  uint64_t now_ns)
{
	struct mst_listening listening = l->listening;
	uint64_t ledger_ns = mst_listening_now(&listening, now_ns);

	MST_ASSERT(rank < l->cfg.workers);
	struct mst_straggler of = mst_stragglers_of(&l->judge, rank, ledger_ns);
	of.total_ns = mst_straggler_total(&of, ledger_ns);
	of.since_ns = of.now ? now_ns - (ledger_ns - of.since_ns) : 0;
	return of;
}

uint64_t mst_ledger_fast_ns(const struct mst_ledger *l)
{
	return mst_stragglers_fast_ns(&l->judge);
}

uint32_t mst_ledger_next_found(struct mst_ledger *l)
{
	uint32_t rank = mst_ranks_first(&l->found);

	if (rank != MST_RANK_NONE)
		mst_ranks_remove(&l->found, rank);
	return rank;
}

void mst_ledger_keep(const struct mst_ledger *l, struct mst_kept *out)
{
	mst_save_keep(l, out);
}

void mst_ledger_gathered(struct mst_ledger *l, struct mst_gathered *out)
{
	mst_start_gathered(l, out);
}

bool mst_ledger_lacks_outside(const struct mst_ledger *l, uint32_t rank)
{
	return rank >= l->cfg.workers && !mst_bitset_test(l->outside.ranks, rank);
}

double mst_ledger_samples(const struct mst_ledger *l)
{
	return l->samples_total;
}

double mst_ledger_norm_median(const struct mst_ledger *l)
{
	return mst_outliers_median(&l->outliers);
}

const struct mst_verdicts *mst_ledger_verdicts(const struct mst_ledger *l, uint32_t rank)
{
	MST_ASSERT(rank < l->cfg.workers);
	return &l->verdicts[rank];
}
