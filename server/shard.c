/* SPDX-License-Identifier: MIT */
/* Slots, arrivals, and the decisions that take effect at once. Invariants: a slot is read only
 * while FULL, and granted anew only when the ledger permits it and its last read is done. */
#include "server/shard.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"
#include "common/base/log.h"
#include "common/kernels/sum.h"
#include "server/shard_state.h"

#define PAGE UINT64_C(4096)

uint64_t mst_shard_stride(uint64_t elems, enum muster_type result_type)
{
	return (elems * mst_type_bytes(result_type) + PAGE - 1) / PAGE * PAGE;
}

static uint64_t queue_size(const struct mst_shard_cfg *cfg)
{
	/* Each slot is folded or summed once and committed at most once, each session answered
	 * once. */
	return cfg->buffers + (uint64_t)cfg->sessions_max * (1 + 2 * cfg->slots) + 16;
}

static bool wants_theta(const struct mst_shard_cfg *cfg)
{
	return cfg->owner == MUSTER_SERVERS_OWN && cfg->result_type != MUSTER_F32;
}

static bool wants_momentum(const struct mst_shard_cfg *cfg)
{
	return cfg->owner == MUSTER_SERVERS_OWN && cfg->optimizer.kind == MST_OPTIMIZER_SGD &&
	       cfg->optimizer.momentum != 0;
}

uint64_t mst_shard_bytes(const struct mst_shard_cfg *cfg)
{
	uint64_t vectors = cfg->folds + wants_theta(cfg) + wants_momentum(cfg);

	return vectors * cfg->elems * sizeof(float) + 3 * cfg->chunk_elems * sizeof(float) +
	       (uint64_t)cfg->entries_max * sizeof(struct mst_leaf) +
	       queue_size(cfg) * sizeof(struct mst_job);
}

static int alloc_folds(struct mst_shard *s)
{
	s->fold = calloc(s->cfg.folds > 0 ? s->cfg.folds : 1, sizeof(*s->fold));
	if (s->fold == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->cfg.folds; i++) {
		s->fold[i].sum = calloc(s->cfg.elems, sizeof(float));
		if (s->fold[i].sum == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int alloc_vectors(struct mst_shard *s)
{
	if (wants_theta(&s->cfg)) {
		s->theta = calloc(s->cfg.elems, sizeof(float));
		if (s->theta == NULL)
			return -ENOMEM;
	}
	if (wants_momentum(&s->cfg)) {
		s->momentum = calloc(s->cfg.elems, sizeof(float));
		if (s->momentum == NULL)
			return -ENOMEM;
	}
	s->letter = calloc(1, s->cfg.layout.down_result - s->cfg.layout.down_answer);
	s->total = calloc(s->cfg.chunk_elems, sizeof(float));
	s->scratch = calloc(2 * s->cfg.chunk_elems, sizeof(float));
	return s->total != NULL && s->scratch != NULL && s->letter != NULL ? 0 : -ENOMEM;
}

static int alloc_tables(struct mst_shard *s)
{
	s->queue_size = (uint32_t)queue_size(&s->cfg);
	s->queue = calloc(s->queue_size, sizeof(*s->queue));
	s->session = calloc(s->cfg.workers, sizeof(struct mst_session *));
	s->rank = calloc(s->cfg.workers, sizeof(*s->rank));
	s->leaf = calloc(s->cfg.entries_max, sizeof(*s->leaf));
	s->due = calloc(mst_bitset_words(s->cfg.workers), sizeof(*s->due));
	if (s->queue == NULL || s->session == NULL || s->rank == NULL || s->leaf == NULL ||
	    s->due == NULL)
		return -ENOMEM;
	return 0;
}

int mst_shard_new(const struct mst_shard_cfg *cfg, const struct mst_shard_up *up,
		  struct mst_shard **out)
{
	struct mst_shard *s = calloc(1, sizeof(*s));

	MST_ASSERT(cfg->chunk_elems > 0 && cfg->group > 0 && cfg->elems > 0);
	if (s == NULL)
		return -ENOMEM;
	s->cfg = *cfg;
	s->up = *up;
	s->newest_buffer = MST_BUFFER_NONE;
	if (alloc_tables(s) != 0 || alloc_folds(s) != 0 || alloc_vectors(s) != 0) {
		mst_shard_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void mst_shard_free(struct mst_shard *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; s->fold != NULL && i < s->cfg.folds; i++)
		free(s->fold[i].sum);
	free(s->fold);
	free(s->queue);
	free(s->session);
	free(s->leaf);
	free(s->rank);
	free(s->theta);
	free(s->momentum);
	free(s->total);
	free(s->scratch);
	free(s->due);
	free(s->letter);
	free(s);
}

void *mst_shard_buffer(const struct mst_shard *s, uint32_t buffer)
{
	return (char *)s->cfg.published +
	       buffer * mst_shard_stride(s->cfg.elems, s->cfg.result_type);
}

const void *mst_shard_gradient(const struct mst_shard *s, const struct mst_slot *slot)
{
	return (const char *)slot->session->link->landing + s->cfg.layout.up_gradient[slot->index];
}

static void report(struct mst_shard *s, const struct mst_session *session,
		   struct mst_ledger_event *ev)
{
	ev->who = session->who;
	s->up.event(s->up.ctx, ev);
}

void mst_shard_lose(struct mst_shard *s, struct mst_session *session, int error)
{
	if (session->lost)
		return;
	session->lost = true;
	struct mst_ledger_event ev = { .kind = MST_EV_LOST, .error = error };

	report(s, session, &ev);
}

/* Slots. */

static void grant_if_read(struct mst_shard *s, struct mst_slot *slot)
{
	if (slot->next_epoch == 0 || slot->read)
		return;
	slot->state = MST_SLOT_GRANTED;
	slot->epoch = slot->next_epoch;
	slot->next_epoch = 0;
	slot->grant = (struct mst_lane_grant){ .epoch = slot->epoch };
	mst_shard_post_grant(s, slot);
}

static void tell_if_over(struct mst_shard *s, struct mst_session *session)
{
	if (!session->over || session->busy > 0 || session->said_over)
		return;
	session->said_over = true;
	s->up.over(s->up.ctx, session);
}

void mst_shard_unbusy(struct mst_shard *s, struct mst_session *session)
{
	MST_ASSERT(session->busy > 0);
	session->busy--;
	tell_if_over(s, session);
}

void mst_shard_read_done(struct mst_shard *s, struct mst_slot *slot)
{
	MST_ASSERT(slot->read);
	slot->read = false;
	slot->next = NULL;
	grant_if_read(s, slot);
	mst_shard_unbusy(s, slot->session);
}

static void tell_session(struct mst_shard *s, struct mst_session *session,
			 const struct mst_lane_session *word)
{
	mst_shard_put_due(s, session);
	mst_shard_put(s, session,
		      &(struct mst_put){ .offset = s->cfg.layout.down_session[MST_SESSION_OF_JOB],
					 .src = word,
					 .bytes = sizeof(*word),
					 .notify = true,
					 .imm = mst_imm(MST_IMM_SESSION, MST_SESSION_OF_JOB, 0) });
}

void mst_shard_admit(struct mst_shard *s, struct mst_session *session)
{
	MST_ASSERT(session->who.rank < s->cfg.workers && s->session[session->who.rank] == NULL);
	for (uint32_t i = 0; i < s->cfg.slots; i++)
		session->slot[i] = (struct mst_slot){
			.session = session, .index = i, .state = MST_SLOT_GRANTED, .epoch = 1
		};
	session->link->user = session;
	s->session[session->who.rank] = session;
	if (s->finished.state != MST_SESSION_RUNNING)
		tell_session(s, session, &s->finished);
}

/* Arrivals. What the worker wrote is copied once; only the copy is looked at. */

/* Does the immediate name a grant that is out? */
static bool is_granted(const struct mst_shard *s, const struct mst_session *session, uint32_t imm)
{
	uint32_t index = mst_imm_slot(imm);

	return index < s->cfg.slots && session->slot[index].state == MST_SLOT_GRANTED &&
	       mst_imm_epoch(imm) == (session->slot[index].epoch & MST_IMM_EPOCH_MASK);
}

static int read_header(struct mst_shard *s, struct mst_session *session, uint32_t imm)
{
	uint32_t index = mst_imm_slot(imm);
	struct mst_ledger_event ev = { .kind = MST_EV_FULL, .full.shard = s->cfg.index };

	if (!is_granted(s, session, imm))
		return -EPROTO;
	struct mst_slot *slot = &session->slot[index];
	memcpy(&ev.full.header,
	       (const char *)session->link->landing + s->cfg.layout.up_header[index],
	       sizeof(ev.full.header));
	if (ev.full.header.slot != index || ev.full.header.epoch != slot->epoch)
		return -EPROTO;
	if ((ev.full.header.flags & MST_HEADER_ASK) && session->answering)
		return -EPROTO;
	slot->state = MST_SLOT_FULL;
	report(s, session, &ev);
	return 0;
}

static int read_abandon(struct mst_shard *s, struct mst_session *session, uint32_t imm)
{
	uint32_t index = mst_imm_slot(imm);
	struct mst_ledger_event ev = { .kind = MST_EV_ABANDONED };

	if (!is_granted(s, session, imm))
		return -EPROTO;
	ev.abandoned.shard = s->cfg.index;
	ev.abandoned.slot = index;
	ev.abandoned.epoch = session->slot[index].epoch;
	report(s, session, &ev);
	return 0;
}

static int read_ask(struct mst_shard *s, struct mst_session *session)
{
	struct mst_ledger_event ev = { .kind = MST_EV_ASK };

	if (session->answering)
		return -EPROTO;
	memcpy(&ev.ask, (const char *)session->link->landing + s->cfg.layout.up_ask,
	       sizeof(ev.ask));
	report(s, session, &ev);
	return 0;
}

static int read_arrival(struct mst_shard *s, struct mst_session *session, uint32_t imm)
{
	switch (mst_imm_kind(imm)) {
	case MST_IMM_HEADER:
		return read_header(s, session, imm);
	case MST_IMM_ABANDON:
		return read_abandon(s, session, imm);
	case MST_IMM_ASK:
		return read_ask(s, session);
	default:
		return -EPROTO;
	}
}

void mst_shard_arrived(struct mst_shard *s, const struct mst_net_event *ev)
{
	struct mst_session *session = ev->link->user;
	int error = 0;

	if (session->over)
		return;
	switch (ev->kind) {
	case MST_ARRIVED:
		error = read_arrival(s, session, ev->imm);
		break;
	case MST_SENT:
		mst_shard_sent(s, session, ev->cookie);
		break;
	case MST_LOST:
		error = ev->error; /* why, the link tells the control side */
		break;
	}
	if (error != 0)
		mst_shard_lose(s, session, error);
}

/* Decisions. */

/* The session a decision names; NULL if its links were never up here, or are another's by now. */
static struct mst_session *session_of(struct mst_shard *s, struct mst_identity who)
{
	struct mst_session *session = s->session[who.rank];

	return session != NULL && session->who.incarnation == who.incarnation ? session : NULL;
}

static struct mst_fold *fold_take(struct mst_shard *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->cfg.folds; i++) {
		if (s->fold[i].taken)
			continue;
		s->fold[i].taken = true;
		s->fold[i].rank = rank;
		s->fold[i].next = NULL;
		return &s->fold[i];
	}
	return NULL;
}

static void fold_add(struct mst_shard *s, struct mst_slot *slot, struct mst_fold *into, bool starts)
{
	struct mst_job *job = mst_job_add(s, MST_JOB_FOLD);

	job->fold.slot = slot;
	job->fold.into = into;
	job->fold.starts = starts;
}

/* From a rank's second contribution on, its sum is kept in a buffer, beginning with the first, and
 * its slots come free. While no buffer is free the slots stay full, and are folded when a commit
 * gives one back, or summed by their own: in the same order, to the same bits. */
void mst_shard_fold(struct mst_shard *s, uint32_t rank)
{
	struct mst_rank_open *open = &s->rank[rank];
	struct mst_slot *next;

	if (open->first == open->last)
		return;
	open->fold = fold_take(s, rank);
	if (open->fold == NULL)
		return;
	for (struct mst_slot *slot = open->first; slot != NULL; slot = next) {
		next = slot->next;
		fold_add(s, slot, open->fold, slot == open->first);
	}
	open->first = open->last = NULL;
}

static void add_to_step(struct mst_shard *s, struct mst_slot *slot)
{
	struct mst_rank_open *open = &s->rank[slot->session->who.rank];

	if (open->fold != NULL) {
		fold_add(s, slot, open->fold, false);
		return;
	}
	if (open->first == NULL)
		open->first = slot;
	else
		open->last->next = slot;
	open->last = slot;
	mst_shard_fold(s, slot->session->who.rank);
}

static void count(struct mst_shard *s, struct mst_session *session, const struct mst_decision *d)
{
	struct mst_slot *slot = &session->slot[d->count.slot];

	MST_ASSERT(slot->state == MST_SLOT_FULL && !slot->read);
	slot->read = true;
	slot->coefficient = d->count.coefficient;
	slot->next = NULL;
	session->busy++;
	add_to_step(s, slot);
}

static void tell_verdict(struct mst_shard *s, struct mst_session *session,
			 const struct mst_decision *d)
{
	struct mst_slot *slot = &session->slot[d->verdict.slot];

	slot->verdict = (struct mst_lane_verdict){
		.ticket = d->verdict.seq,
		.counted_in = d->verdict.counted_in,
		.verdict = d->verdict.verdict,
	};
	mst_shard_post_verdict(s, slot);
}

/* The word is written before anything the session reads can change: a worker that looks there after
 * using a result knows whether it was sound. */
static void evict(struct mst_shard *s, struct mst_session *session, enum mst_evict_why why)
{
	int error = why == MST_EVICT_LEFT ? -ENOTCONN : mst_evict_error(why);
	struct mst_lane_session word = { .state = MST_SESSION_ENDED, .error = error };

	if (s->finished.state == MST_SESSION_ENDED)
		word = s->finished; /* the job has failed: that is the reason */

	mst_shard_put_due(s, session);
	(void)session->link->ops->put(
		session->link,
		&(struct mst_put){ .offset = s->cfg.layout.down_session[MST_SESSION_OF_WORKER],
				   .src = &word,
				   .bytes = sizeof(word),
				   .notify = true,
				   .imm = mst_imm(MST_IMM_SESSION, MST_SESSION_OF_WORKER, 0) });
	session->over = true;
	session->link->ops->detach(session->link);
	mst_shard_forget_sends(session);
	s->session[session->who.rank] = NULL;
	tell_if_over(s, session);
}

/* No commit will read what is counted in it; its sessions must not wait for one. */
static void drop_open_step(struct mst_shard *s)
{
	struct mst_slot *next;

	for (uint32_t rank = 0; rank < s->cfg.workers; rank++) {
		for (struct mst_slot *slot = s->rank[rank].first; slot != NULL; slot = next) {
			next = slot->next;
			mst_shard_read_done(s, slot);
		}
		s->rank[rank].first = s->rank[rank].last = NULL;
	}
}

static void finish(struct mst_shard *s, const struct mst_decision *d)
{
	bool failed = mst_finish_failed(d->finish.why);

	s->finished.state = failed ? MST_SESSION_ENDED : MST_SESSION_FINISHED;
	s->finished.error = mst_finish_error(d->finish.why);
	s->finished.version = d->finish.version;
	for (uint32_t rank = 0; rank < s->cfg.workers; rank++) {
		if (s->session[rank] != NULL)
			tell_session(s, s->session[rank], &s->finished);
	}
	drop_open_step(s);
}

void mst_shard_hang_up(struct mst_shard *s)
{
	for (uint32_t rank = 0; rank < s->cfg.workers; rank++) {
		if (s->session[rank] != NULL)
			evict(s, s->session[rank], MST_EVICT_LEFT);
	}
}

static void answer(struct mst_shard *s, struct mst_session *session, const struct mst_decision *d,
		   const struct mst_record *record, const struct mst_rule *rule)
{
	struct mst_job *job = mst_job_add(s, MST_JOB_ANSWER);

	session->busy++;
	session->answering = true;
	job->answer.session = session;
	job->answer.record = record;
	job->answer.window = rule->window;
	job->answer.preempt = rule->preempt;
	job->answer.answer = (struct mst_lane_answer){ .number = d->answer.number,
						       .version = d->answer.version,
						       .newest = d->answer.newest,
						       .where = d->answer.where,
						       .buffer = d->answer.buffer };
}

static void execute_for(struct mst_shard *s, struct mst_session *session,
			const struct mst_decision *d, const struct mst_record *record,
			const struct mst_rule *rule)
{
	switch (d->kind) {
	case MST_DO_COUNT:
		count(s, session, d);
		break;
	case MST_DO_VERDICT:
		tell_verdict(s, session, d);
		break;
	case MST_DO_REGRANT:
		session->slot[d->grant.slot].next_epoch = d->grant.epoch;
		grant_if_read(s, &session->slot[d->grant.slot]);
		break;
	case MST_DO_RELEASE:
		answer(s, session, d, record, rule);
		break;
	case MST_DO_ADVISE:
		mst_shard_advise(s, session, d->version);
		break;
	case MST_DO_EVICT:
		evict(s, session, d->evict);
		break;
	default:
		break;
	}
}

void mst_shard_execute(struct mst_shard *s, const struct mst_decision *d,
		       const struct mst_record *record, const struct mst_rule *rule)
{
	switch (d->kind) {
	case MST_DO_START:
		s->newest_buffer = d->commit.buffer;
		if (s->theta != NULL)
			mst_sum_load(s->theta, mst_shard_buffer(s, d->commit.buffer),
				     s->cfg.result_type, s->cfg.elems);
		break;
	case MST_DO_COMMIT:
		mst_job_commit(s, d, record);
		break;
	case MST_DO_FINISH:
		finish(s, d);
		break;
	default: {
		struct mst_session *session = session_of(s, d->who);
		if (session != NULL)
			execute_for(s, session, d, record, rule);
	}
	}
}
