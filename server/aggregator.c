/* SPDX-License-Identifier: MIT */
/* Slots, arrivals, and the decisions that take effect at once. Invariants: a slot is read only
 * while FULL, and granted anew only when the ledger permits it and its last read is done. */
#include "server/aggregator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"
#include "common/base/log.h"
#include "common/kernels/sum.h"
#include "server/aggregator_state.h"
#include "server/core/rule.h"

#define PAGE UINT64_C(4096)

uint64_t mst_version_stride(uint64_t elems, enum muster_type result_type)
{
	return (elems * mst_type_bytes(result_type) + PAGE - 1) / PAGE * PAGE;
}

static uint64_t queue_size(const struct mst_aggregator_cfg *cfg)
{
	/* Each slot is folded or summed once and committed at most once, each session answered
	 * once. */
	return cfg->buffers + (uint64_t)cfg->sessions_max * (1 + 2 * cfg->slots) + 16;
}

static bool wants_theta(const struct mst_aggregator_cfg *cfg)
{
	return cfg->owner == MUSTER_SERVERS_OWN && cfg->result_type != MUSTER_F32;
}

static bool wants_momentum(const struct mst_aggregator_cfg *cfg)
{
	return cfg->owner == MUSTER_SERVERS_OWN && cfg->optimizer.kind == MST_OPTIMIZER_SGD &&
	       cfg->optimizer.momentum != 0;
}

uint64_t mst_aggregator_bytes(const struct mst_aggregator_cfg *cfg)
{
	uint64_t vectors = cfg->folds + wants_theta(cfg) + wants_momentum(cfg);

	return vectors * cfg->elems * sizeof(float) +
	       cfg->shards * mst_shard_bytes(cfg->entries_max) +
	       queue_size(cfg) * (sizeof(struct mst_job) + sizeof(struct mst_job *));
}

static int alloc_folds(struct mst_aggregator *a)
{
	a->fold = calloc(a->cfg.folds > 0 ? a->cfg.folds : 1, sizeof(*a->fold));
	if (a->fold == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->cfg.folds; i++) {
		a->fold[i].sum = calloc(a->cfg.elems, sizeof(float));
		if (a->fold[i].sum == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int alloc_vectors(struct mst_aggregator *a)
{
	if (wants_theta(&a->cfg)) {
		a->theta = calloc(a->cfg.elems, sizeof(float));
		if (a->theta == NULL)
			return -ENOMEM;
	}
	if (wants_momentum(&a->cfg)) {
		a->momentum = calloc(a->cfg.elems, sizeof(float));
		if (a->momentum == NULL)
			return -ENOMEM;
	}
	a->letter = calloc(1, mst_aggregator_letter_bytes(a));
	return a->letter != NULL ? 0 : -ENOMEM;
}

static int alloc_tables(struct mst_aggregator *a)
{
	a->queue_size = (uint32_t)queue_size(&a->cfg);
	a->queue = calloc(a->queue_size, sizeof(*a->queue));
	a->session = calloc(a->cfg.workers, sizeof(struct mst_session *));
	a->rank = calloc(a->cfg.workers, sizeof(*a->rank));
	a->work = calloc(a->queue_size, sizeof(*a->work));
	a->ripe = calloc(mst_bitset_words(a->cfg.workers), sizeof(*a->ripe));
	a->due = calloc(mst_bitset_words(a->cfg.workers), sizeof(*a->due));
	if (a->queue == NULL || a->session == NULL || a->rank == NULL || a->work == NULL ||
	    a->ripe == NULL || a->due == NULL)
		return -ENOMEM;
	return 0;
}

static int make_shards(struct mst_aggregator *a)
{
	int rc = 0;

	for (uint32_t i = 0; i < a->cfg.shards && rc == 0; i++)
		rc = mst_shard_new(a, i, &a->shard[i]);
	return rc;
}

int mst_aggregator_new(const struct mst_aggregator_cfg *cfg, const struct mst_aggregator_up *up,
		       struct mst_aggregator **out)
{
	struct mst_aggregator *a = calloc(1, sizeof(*a));

	MST_ASSERT(cfg->chunk_elems > 0 && cfg->group > 0 && cfg->elems > 0);
	MST_ASSERT(cfg->shards > 0 && cfg->shards <= MST_SHARDS_MAX);
	if (a == NULL)
		return -ENOMEM;
	a->cfg = *cfg;
	a->up = *up;
	a->newest_buffer = MST_BUFFER_NONE;
	if (alloc_tables(a) != 0 || alloc_folds(a) != 0 || alloc_vectors(a) != 0 ||
	    make_shards(a) != 0) {
		mst_aggregator_free(a);
		return -ENOMEM;
	}
	*out = a;
	return 0;
}

void mst_aggregator_free(struct mst_aggregator *a)
{
	if (a == NULL)
		return;
	for (uint32_t i = 0; a->fold != NULL && i < a->cfg.folds; i++)
		free(a->fold[i].sum);
	for (uint32_t i = 0; i < MST_SHARDS_MAX; i++)
		mst_shard_free(a->shard[i]);
	free(a->fold);
	free(a->queue);
	free(a->session);
	free(a->work);
	free(a->ripe);
	free(a->rank);
	free(a->theta);
	free(a->momentum);
	free(a->due);
	free(a->letter);
	free(a);
}

const void *mst_slot_gradient(const struct mst_aggregator *a, const struct mst_slot *slot)
{
	size_t at = mst_lane_gradient(&a->cfg.layout, slot->index, slot->session->who.rank);

	return (const char *)slot->session->link->landing + at;
}

static void report(struct mst_aggregator *a, const struct mst_session *session,
		   struct mst_ledger_event *ev)
{
	ev->who = session->who;
	a->up.event(a->up.ctx, ev);
}

void mst_aggregator_lose(struct mst_aggregator *a, struct mst_session *session, int error)
{
	if (session->lost)
		return;
	session->lost = true;
	struct mst_ledger_event ev = { .kind = MST_EV_LOST, .error = error };

	report(a, session, &ev);
}

/* Slots. */

static void grant_if_read(struct mst_aggregator *a, struct mst_slot *slot)
{
	if (slot->next_epoch == 0 || slot->read)
		return;
	slot->state = MST_SLOT_GRANTED;
	slot->epoch = slot->next_epoch;
	slot->next_epoch = 0;
	slot->grant = (struct mst_lane_grant){ .epoch = slot->epoch };
	mst_aggregator_post_grant(a, slot);
}

static void tell_if_over(struct mst_aggregator *a, struct mst_session *session)
{
	if (!session->over || session->busy > 0 || session->said_over)
		return;
	session->said_over = true;
	a->up.over(a->up.ctx, session);
}

void mst_aggregator_unbusy(struct mst_aggregator *a, struct mst_session *session)
{
	MST_ASSERT(session->busy > 0);
	session->busy--;
	tell_if_over(a, session);
}

void mst_aggregator_read_done(struct mst_aggregator *a, struct mst_slot *slot)
{
	MST_ASSERT(slot->read);
	slot->read = false;
	slot->next = NULL;
	grant_if_read(a, slot);
	mst_aggregator_unbusy(a, slot->session);
}

static void tell_session(struct mst_aggregator *a, struct mst_session *session,
			 const struct mst_lane_session *word)
{
	mst_aggregator_put_due(a, session);
	mst_aggregator_put(
		a, session,
		&(struct mst_put){ .offset = a->cfg.layout.down_session[MST_SESSION_OF_JOB],
				   .src = word,
				   .bytes = sizeof(*word),
				   .notify = true,
				   .imm = mst_imm(MST_IMM_SESSION, MST_SESSION_OF_JOB, 0) });
}

void mst_aggregator_admit(struct mst_aggregator *a, struct mst_session *session)
{
	MST_ASSERT(session->who.rank < a->cfg.workers && a->session[session->who.rank] == NULL);
	for (uint32_t i = 0; i < a->cfg.slots; i++)
		session->slot[i] = (struct mst_slot){
			.session = session, .index = i, .state = MST_SLOT_GRANTED, .epoch = 1
		};
	session->link->user = session;
	a->session[session->who.rank] = session;
	if (a->finished.state != MST_SESSION_RUNNING && !a->cfg.member)
		tell_session(a, session, &a->finished);
}

/* Arrivals. What the worker wrote is copied once; only the copy is looked at. */

/* Does the immediate name a grant that is out? */
static bool is_granted(const struct mst_aggregator *a, const struct mst_session *session,
		       uint32_t imm)
{
	uint32_t index = mst_imm_slot(imm);

	return index < a->cfg.slots && session->slot[index].state == MST_SLOT_GRANTED &&
	       mst_imm_epoch(imm) == (session->slot[index].epoch & MST_IMM_EPOCH_MASK);
}

/* An ask has come. What is reported waits where the ledger is held up, so nobody may report more
 * than what is owed an answer. */
static bool asks_once(struct mst_session *session)
{
	if (session->asked || session->answering)
		return false;
	session->asked = true;
	return true;
}

static int read_header(struct mst_aggregator *a, struct mst_session *session, uint32_t imm)
{
	uint32_t index = mst_imm_slot(imm);
	struct mst_ledger_event ev = { .kind = MST_EV_FULL, .full.shard = a->cfg.index };

	if (!is_granted(a, session, imm))
		return -EPROTO;
	struct mst_slot *slot = &session->slot[index];
	memcpy(&ev.full.header,
	       (const char *)session->link->landing + a->cfg.layout.up_header[index],
	       sizeof(ev.full.header));
	if (ev.full.header.slot != index || ev.full.header.epoch != slot->epoch)
		return -EPROTO;
	if ((ev.full.header.flags & MST_HEADER_ASK) && !asks_once(session))
		return -EPROTO;
	slot->state = MST_SLOT_FULL;
	report(a, session, &ev);
	return 0;
}

static int read_abandon(struct mst_aggregator *a, struct mst_session *session, uint32_t imm)
{
	uint32_t index = mst_imm_slot(imm);
	struct mst_ledger_event ev = { .kind = MST_EV_ABANDONED };

	if (!is_granted(a, session, imm))
		return -EPROTO;
	ev.abandoned.shard = a->cfg.index;
	ev.abandoned.slot = index;
	ev.abandoned.epoch = session->slot[index].epoch;
	session->slot[index].state = MST_SLOT_FULL;
	report(a, session, &ev);
	return 0;
}

static int read_ask(struct mst_aggregator *a, struct mst_session *session)
{
	struct mst_ledger_event ev = { .kind = MST_EV_ASK };

	if (a->cfg.member || !asks_once(session))
		return -EPROTO;
	memcpy(&ev.ask, (const char *)session->link->landing + a->cfg.layout.up_ask,
	       sizeof(ev.ask));
	report(a, session, &ev);
	return 0;
}

static int read_arrival(struct mst_aggregator *a, struct mst_session *session, uint32_t imm)
{
	switch (mst_imm_kind(imm)) {
	case MST_IMM_HEADER:
		return read_header(a, session, imm);
	case MST_IMM_ABANDON:
		return read_abandon(a, session, imm);
	case MST_IMM_ASK:
		return read_ask(a, session);
	default:
		return -EPROTO;
	}
}

void mst_aggregator_arrived(struct mst_aggregator *a, const struct mst_net_event *ev)
{
	struct mst_session *session = ev->link->user;
	int error = 0;

	if (session->over)
		return;
	switch (ev->kind) {
	case MST_ARRIVED:
		error = read_arrival(a, session, ev->imm);
		break;
	case MST_SENT:
		mst_aggregator_sent(a, session, ev->cookie);
		break;
	case MST_LOST:
		error = ev->error; /* why, the link tells the control side */
		break;
	}
	if (error != 0)
		mst_aggregator_lose(a, session, error);
}

/* Decisions. */

/* The session a decision names; NULL if its links were never up here, or are another's by now. */
static struct mst_session *session_of(struct mst_aggregator *a, struct mst_identity who)
{
	struct mst_session *session = a->session[who.rank];

	return session != NULL && session->who.incarnation == who.incarnation ? session : NULL;
}

struct mst_fold *mst_aggregator_take_fold(struct mst_aggregator *a, uint32_t rank)
{
	for (uint32_t i = 0; i < a->cfg.folds; i++) {
		if (a->fold[i].taken)
			continue;
		a->fold[i].taken = true;
		a->fold[i].rank = rank;
		a->fold[i].next = NULL;
		return &a->fold[i];
	}
	return NULL;
}

static void fold_add(struct mst_aggregator *a, struct mst_slot *slot, struct mst_fold *into,
		     bool starts)
{
	mst_job_add(a, &(struct mst_job){ .kind = MST_JOB_FOLD,
					  .moves = true,
					  .fold = { slot, into, starts } });
}

/* From a rank's second contribution on, its sum is kept in a buffer, beginning with the first, and
 * its slots come free. While no buffer is free the slots stay full, and are folded when a commit
 * gives one back, or summed by their own: in the same order, to the same bits. */
void mst_aggregator_fold(struct mst_aggregator *a, uint32_t rank)
{
	struct mst_rank_open *open = &a->rank[rank];
	struct mst_slot *next;

	if (open->first == open->last)
		return;
	open->fold = mst_aggregator_take_fold(a, rank);
	if (open->fold == NULL)
		return;
	for (struct mst_slot *slot = open->first; slot != NULL; slot = next) {
		next = slot->next;
		fold_add(a, slot, open->fold, slot == open->first);
	}
	open->first = open->last = NULL;
}

static void add_to_step(struct mst_aggregator *a, struct mst_slot *slot)
{
	struct mst_rank_open *open = &a->rank[slot->session->who.rank];

	if (open->fold != NULL) {
		fold_add(a, slot, open->fold, false);
		return;
	}
	if (open->first == NULL)
		open->first = slot;
	else
		open->last->next = slot;
	open->last = slot;
	mst_aggregator_fold(a, slot->session->who.rank);
}

static void count(struct mst_aggregator *a, struct mst_session *session,
		  const struct mst_decision *d)
{
	struct mst_slot *slot = &session->slot[d->count.slot];

	MST_ASSERT(slot->state == MST_SLOT_FULL && !slot->read);
	slot->read = true;
	slot->coefficient = d->count.coefficient;
	slot->next = NULL;
	session->busy++;
	a->open_entries++;
	add_to_step(a, slot);
}

static void tell_verdict(struct mst_aggregator *a, struct mst_session *session,
			 const struct mst_decision *d)
{
	struct mst_slot *slot = &session->slot[d->verdict.slot];

	slot->verdict = (struct mst_lane_verdict){
		.ticket = d->verdict.seq,
		.counted_in = d->verdict.counted_in,
		.verdict = d->verdict.verdict,
	};
	mst_aggregator_post_verdict(a, slot);
}

/* The word is written before anything the session reads can change: a worker that looks there after
 * using a result knows whether it was sound. */
static void evict(struct mst_aggregator *a, struct mst_session *session, enum mst_evict_why why)
{
	int error = why == MST_EVICT_LEFT ? -ENOTCONN : mst_evict_error(why);
	struct mst_lane_session word = { .state = MST_SESSION_ENDED, .error = error };

	if (a->finished.state == MST_SESSION_ENDED)
		word = a->finished; /* the job has failed: that is the reason */

	mst_aggregator_put_due(a, session);
	(void)session->link->ops->put(
		session->link,
		&(struct mst_put){ .offset = a->cfg.layout.down_session[MST_SESSION_OF_WORKER],
				   .src = &word,
				   .bytes = sizeof(word),
				   .notify = true,
				   .imm = mst_imm(MST_IMM_SESSION, MST_SESSION_OF_WORKER, 0) });
	session->over = true;
	session->link->ops->detach(session->link);
	mst_aggregator_forget_sends(session);
	a->session[session->who.rank] = NULL;
	tell_if_over(a, session);
}

/* No commit will read what is counted in it; its sessions must not wait for one. */
static void drop_open_step(struct mst_aggregator *a)
{
	struct mst_slot *next;

	for (uint32_t rank = 0; rank < a->cfg.workers; rank++) {
		for (struct mst_slot *slot = a->rank[rank].first; slot != NULL; slot = next) {
			next = slot->next;
			mst_aggregator_read_done(a, slot);
		}
		a->rank[rank].first = a->rank[rank].last = NULL;
	}
	a->open_entries = 0;
	mst_job_forget_ripe(a);
}

static void finish(struct mst_aggregator *a, const struct mst_decision *d)
{
	bool failed = mst_finish_failed(d->finish.why);

	a->finished.state = failed ? MST_SESSION_ENDED : MST_SESSION_FINISHED;
	a->finished.error = mst_finish_error(d->finish.why);
	a->finished.version = d->finish.version;
	for (uint32_t rank = 0; rank < a->cfg.workers; rank++) {
		if (a->session[rank] != NULL && !a->cfg.member)
			tell_session(a, a->session[rank], &a->finished);
	}
	drop_open_step(a);
}

void mst_aggregator_hang_up(struct mst_aggregator *a)
{
	for (uint32_t rank = 0; rank < a->cfg.workers; rank++) {
		if (a->session[rank] != NULL)
			evict(a, a->session[rank], MST_EVICT_LEFT);
	}
}

static void answer(struct mst_aggregator *a, struct mst_session *session,
		   const struct mst_decision *d, const struct mst_record *record,
		   const struct mst_rule *rule)
{
	struct mst_job job = { .kind = MST_JOB_ANSWER };

	/* It has asked on before it had that answer, in a header that waited for another's turn. */
	if (session->answering) {
		mst_aggregator_lose(a, session, -EPROTO);
		return;
	}
	session->busy++;
	session->asked = false;
	session->answering = true;
	for (uint32_t i = 0; i < a->cfg.shards; i++)
		session->sent[i] = mst_shard_range(a->shard[i]).begin;
	job.moves = d->answer.where == MST_WHERE_COPIED && session->link->ops->maps;
	job.answer.session = session;
	job.answer.record = record;
	job.answer.window = rule->window;
	job.answer.preempt = rule->preempt;
	job.answer.answer = (struct mst_lane_answer){ .number = d->answer.number,
						      .version = d->answer.version,
						      .newest = d->answer.newest,
						      .where = d->answer.where,
						      .buffer = d->answer.buffer };
	mst_job_add(a, &job);
}

static void execute_for(struct mst_aggregator *a, struct mst_session *session,
			const struct mst_decision *d, const struct mst_record *record,
			const struct mst_rule *rule)
{
	switch (d->kind) {
	case MST_DO_COUNT:
		count(a, session, d);
		if (!mst_rule_repeats(rule))
			mst_job_ripen(a, d->who.rank);
		break;
	case MST_DO_VERDICT:
		tell_verdict(a, session, d);
		break;
	case MST_DO_REGRANT:
		session->slot[d->grant.slot].next_epoch = d->grant.epoch;
		grant_if_read(a, &session->slot[d->grant.slot]);
		break;
	case MST_DO_RELEASE:
		answer(a, session, d, record, rule);
		break;
	case MST_DO_ADVISE:
		mst_aggregator_advise(a, session, d->version);
		break;
	case MST_DO_EVICT:
		evict(a, session, d->evict);
		break;
	default:
		break;
	}
}

void mst_aggregator_execute(struct mst_aggregator *a, const struct mst_decision *d,
			    const struct mst_record *record, const struct mst_rule *rule)
{
	switch (d->kind) {
	case MST_DO_START:
		a->newest_buffer = d->commit.buffer;
		if (a->theta != NULL)
			mst_sum_load(a->theta, mst_version_buffer(a, d->commit.buffer),
				     a->cfg.result_type, a->cfg.elems);
		break;
	case MST_DO_COMMIT:
		mst_job_commit(a, d, record);
		break;
	case MST_DO_FINISH:
		finish(a, d);
		break;
	default: {
		struct mst_session *session = session_of(a, d->who);
		if (session != NULL)
			execute_for(a, session, d, record, rule);
	}
	}
}

struct mst_session *mst_aggregator_session(const struct mst_aggregator *a, uint32_t rank)
{
	return a->session[rank];
}

struct mst_shard *mst_aggregator_shard(struct mst_aggregator *a, uint32_t index)
{
	MST_ASSERT(index < a->cfg.shards);
	return a->shard[index];
}
