/* SPDX-License-Identifier: MIT */
/* Slots, arrivals, and the decisions that take effect at once. Invariants: a slot is read only
 * while FULL, and granted anew only when the ledger permits it and its last read is done. */
#include "server/data/aggregator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/kernels/sum.h"
#include "server/core/policy/rule.h"
#include "server/data/aggregator_state.h"
#include "server/data/distance.h"
#include "server/data/norms.h"
#include "server/data/open_step.h"

#define PAGE UINT64_C(4096)

uint64_t mst_version_stride(uint64_t elems, enum muster_type result_type)
{
	return (elems * mst_type_bytes(result_type) + PAGE - 1) / PAGE * PAGE;
}

uint64_t mst_aggregator_published(const struct mst_aggregator_cfg *cfg)
{
	return cfg->buffers * mst_version_stride(cfg->elems, cfg->result_type) +
	       (cfg->marks ? mst_lane_marks_bytes(cfg->buffers) : 0);
}

static uint64_t queue_size(const struct mst_aggregator_cfg *cfg)
{
	/* Each slot is added to a sum once and committed at most once, which may take a second
	 * task for the reduce phase, and each session is answered once. */
	uint32_t of_slot = mst_optimizer_reduces(&cfg->optimizer) || cfg->distances ? 3 : 2;

	/* And each is read when it arrives, as what its session says besides is in turn: an ask,
	 * and that its link is gone. */
	uint32_t of_session = mst_aggregator_examines(cfg) ? 2 + cfg->slots : 0;

	return cfg->buffers +
	       (uint64_t)cfg->sessions_max * (1 + of_slot * cfg->slots + of_session) + 16;
}

static bool wants_theta(const struct mst_aggregator_cfg *cfg)
{
	return cfg->owner == MUSTER_SERVERS_OWN && cfg->result_type != MUSTER_F32;
}

/* Places of the average. */
static uint32_t averages(const struct mst_aggregator_cfg *cfg)
{
	return cfg->averages ? 2u + cfg->saves : 0;
}

uint64_t mst_aggregator_bytes(const struct mst_aggregator_cfg *cfg)
{
	uint64_t kept = wants_theta(cfg) + mst_optimizer_states(&cfg->optimizer);
	uint64_t vectors = kept * (1u + cfg->saves) + averages(cfg) +
			   mst_optimizer_reduces(&cfg->optimizer);
	uint64_t task = sizeof(struct mst_task) + sizeof(struct mst_task *);

	return sizeof(struct mst_aggregator) + vectors * cfg->elems * sizeof(float) +
	       mst_open_step_bytes(cfg) + cfg->workers * sizeof(struct mst_session *) +
	       mst_ranks_bytes(cfg->workers) +
	       cfg->shards * mst_shard_bytes(cfg->entries_max, queue_size(cfg),
					     mst_aggregator_examines(cfg)) +
	       queue_size(cfg) * task + mst_aggregator_response_bytes(&cfg->layout) +
	       mst_scales_max(cfg) * sizeof(struct mst_scale) +
	       cfg->shards * (mst_norms_bytes(&cfg->optimizer) + mst_distance_bytes(cfg));
}

static bool alloc_vector(const struct mst_aggregator *a, float **out)
{
	*out = calloc(a->cfg.elems, sizeof(float));
	return *out != NULL;
}

static int alloc_kept(const struct mst_aggregator *a, struct mst_kept_vectors *kept)
{
	if (wants_theta(&a->cfg) && !alloc_vector(a, &kept->theta))
		return -ENOMEM;
	for (unsigned i = 0; i < MST_STATES_MAX; i++)
		if (mst_optimizer_keeps(&a->cfg.optimizer, i) && !alloc_vector(a, &kept->state[i]))
			return -ENOMEM;
	return 0;
}

static void free_kept(struct mst_kept_vectors *kept)
{
	free(kept->theta);
	for (unsigned i = 0; i < MST_STATES_MAX; i++)
		free(kept->state[i]);
}

static int alloc_vectors(struct mst_aggregator *a)
{
	a->response = calloc(1, mst_aggregator_response_bytes(&a->cfg.layout));
	if (a->response == NULL || alloc_kept(a, &a->kept[0]) != 0)
		return -ENOMEM;
	if (a->cfg.saves && alloc_kept(a, &a->kept[1]) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < averages(&a->cfg); i++)
		if (!alloc_vector(a, &a->average[i]))
			return -ENOMEM;
	if (mst_optimizer_reduces(&a->cfg.optimizer) && !alloc_vector(a, &a->mean))
		return -ENOMEM;
	if (mst_scales_max(&a->cfg) > 0)
		a->scale = calloc(mst_scales_max(&a->cfg), sizeof(*a->scale));
	if (mst_scales_max(&a->cfg) > 0 && a->scale == NULL)
		return -ENOMEM;
	mst_scales_init(a);
	return 0;
}

static int alloc_tables(struct mst_aggregator *a)
{
	a->queue_size = (uint32_t)queue_size(&a->cfg);
	a->queue = calloc(a->queue_size, sizeof(*a->queue));
	a->session = calloc(a->cfg.workers, sizeof(struct mst_session *));
	a->work = calloc(a->queue_size, sizeof(*a->work));
	if (a->queue == NULL || a->session == NULL || a->work == NULL)
		return -ENOMEM;
	return mst_ranks_init(&a->due, a->cfg.workers);
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
	MST_ASSERT(cfg->owner == MUSTER_SERVERS_OWN ||
		   (cfg->optimizer.row == NULL && !cfg->averages));
	if (a == NULL)
		return -ENOMEM;
	a->cfg = *cfg;
	a->up = *up;
	a->newest_buffer = MST_BUFFER_NONE;
	a->newest = a->kept[0].version = a->kept[1].version = MST_VERSION_NONE;
	a->average_lent = a->average_saved = MST_AVERAGES_MAX;
	if (alloc_tables(a) != 0 || mst_open_step_init(a) != 0 || alloc_vectors(a) != 0 ||
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
	for (uint32_t i = 0; i < MST_SHARDS_MAX; i++)
		mst_shard_free(a->shard[i]);
	mst_open_step_fini(a);
	free(a->queue);
	free(a->session);
	free(a->work);
	mst_ranks_fini(&a->due);
	free_kept(&a->kept[0]);
	free_kept(&a->kept[1]);
	for (uint32_t i = 0; i < MST_AVERAGES_MAX; i++)
		free(a->average[i]);
	free(a->mean);
	free(a->scale);
	free(a->response);
	free(a);
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

/* Where contributions are read before they are reported, what a session says comes in its order all
 * the same: an ask is not reported before the contributions that it was sent after. */
static void report_in_turn(struct mst_aggregator *a, struct mst_session *session,
			   struct mst_ledger_event *ev)
{
	bool has_data = ev->kind == MST_EV_FULL &&
			!(ev->full.header.flags & (MST_HEADER_EMPTY | MST_HEADER_PASS));
	struct mst_task task = { .kind = has_data ? MST_TASK_EXAMINE : MST_TASK_REPORT,
				 .moves = has_data };

	if (!mst_aggregator_examines(&a->cfg)) {
		report(a, session, ev);
		return;
	}
	task.report.session = session;
	task.report.event = *ev;
	session->busy++;
	a->reports.arrived++;
	mst_task_add(a, &task);
}

struct mst_reports mst_aggregator_reports(const struct mst_aggregator *a)
{
	return a->reports;
}

void mst_aggregator_report(struct mst_aggregator *a, struct mst_session *session,
			   struct mst_ledger_event *ev)
{
	if (!session->over)
		report(a, session, ev);
	a->reports.reported++;
	mst_aggregator_unbusy(a, session);
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
	if (a->finished.state != MST_SESSION_RUNNING && !a->cfg.follower)
		tell_session(a, session, &a->finished);
}

/* Arrivals. What the worker wrote is copied once; only the copy is looked at. */

int mst_aggregator_refuse(struct mst_session *session, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (!session->lost)
		mst_reason_vset(&session->why, fmt, args);
	va_end(args);
	return -EPROTO;
}

/* Does the immediate name a grant that is out? */
static int check_grant(const struct mst_aggregator *a, struct mst_session *session, uint32_t imm)
{
	uint32_t index = mst_imm_slot(imm);

	if (index >= a->cfg.slots)
		return mst_aggregator_refuse(session, "it names slot %" PRIu32 " of %" PRIu32,
					     index, a->cfg.slots);
	const struct mst_slot *slot = &session->slot[index];
	if (slot->state != MST_SLOT_GRANTED)
		return mst_aggregator_refuse(
			session, "it uses slot %" PRIu32 " again, which it was not granted since",
			index);
	if (mst_imm_epoch(imm) != (slot->epoch & MST_IMM_EPOCH_MASK))
		return mst_aggregator_refuse(session,
					     "it uses grant %" PRIu32 " of slot %" PRIu32
					     ", and grant %" PRIu64 " is out",
					     mst_imm_epoch(imm), index,
					     slot->epoch & MST_IMM_EPOCH_MASK);
	return 0;
}

/* An ask has come. What is reported waits where the ledger is held up, so nobody may report more
 * than what is owed an answer. */
static int ask_once(struct mst_session *session)
{
	if (session->asked || session->answering)
		return mst_aggregator_refuse(session, "it asks again before it has its answer");
	session->asked = true;
	return 0;
}

/* @trimmed: what mst_lane_header_trim() has said of @h. */
static int check_header(struct mst_session *session, const struct mst_slot *slot,
			const struct mst_lane_header *h, bool trimmed)
{
	if (!trimmed)
		return mst_aggregator_refuse(session, "its header of %u bytes is shorter than %u",
					     (unsigned)h->size, MST_HEADER_SIZE_MIN);
	if (h->slot != slot->index)
		return mst_aggregator_refuse(session,
					     "its header in slot %" PRIu32 " names slot %u",
					     slot->index, (unsigned)h->slot);
	if (h->epoch != slot->epoch)
		return mst_aggregator_refuse(session,
					     "its header uses grant %" PRIu64 " of slot %" PRIu32
					     ", and grant %" PRIu64 " is out",
					     h->epoch, slot->index, slot->epoch);
	return 0;
}

static int read_header(struct mst_aggregator *a, struct mst_session *session, uint32_t imm)
{
	uint32_t index = mst_imm_slot(imm);
	struct mst_ledger_event ev = { .kind = MST_EV_FULL, .full.shard = a->cfg.index };

	int rc = check_grant(a, session, imm);
	if (rc != 0)
		return rc;
	struct mst_slot *slot = &session->slot[index];
	memcpy(&ev.full.header,
	       (const char *)session->link->inbound + a->cfg.layout.up_header[index],
	       sizeof(ev.full.header));
	bool trimmed = mst_lane_header_trim(&ev.full.header);
	rc = check_header(session, slot, &ev.full.header, trimmed);
	if (rc == 0 && (ev.full.header.flags & MST_HEADER_ASK))
		rc = ask_once(session);
	if (rc != 0)
		return rc;
	slot->state = MST_SLOT_FULL;
	report_in_turn(a, session, &ev);
	return 0;
}

static int read_abandon(struct mst_aggregator *a, struct mst_session *session, uint32_t imm)
{
	uint32_t index = mst_imm_slot(imm);
	struct mst_ledger_event ev = { .kind = MST_EV_ABANDONED };

	int rc = check_grant(a, session, imm);
	if (rc != 0)
		return rc;
	ev.abandoned.shard = a->cfg.index;
	ev.abandoned.slot = index;
	ev.abandoned.epoch = session->slot[index].epoch;
	session->slot[index].state = MST_SLOT_FULL;
	report_in_turn(a, session, &ev);
	return 0;
}

static int read_ask(struct mst_aggregator *a, struct mst_session *session)
{
	struct mst_ledger_event ev = { .kind = MST_EV_ASK };
	struct mst_lane_lone_ask lone;

	if (a->cfg.follower)
		return mst_aggregator_refuse(session, "it asks a server that is not the leader");
	int rc = ask_once(session);
	if (rc != 0)
		return rc;
	memcpy(&lone, (const char *)session->link->inbound + a->cfg.layout.up_ask, sizeof(lone));
	ev.ask = lone.ask;
	ev.given_up = lone.given_up;
	report_in_turn(a, session, &ev);
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
		return mst_aggregator_refuse(session,
					     "it notifies of something of kind %u, which is not a "
					     "worker's",
					     (unsigned)mst_imm_kind(imm));
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
	if (ev->kind == MST_LOST)
		report_in_turn(a, session,
			       &(struct mst_ledger_event){
				       .kind = MST_EV_UNLINKED,
				       .shard = a->cfg.index,
			       });
}

/* Decisions. */

/* The session a decision names; NULL if its links were never up here, or are another's by now. */
static struct mst_session *session_of(struct mst_aggregator *a, struct mst_identity who)
{
	struct mst_session *session = a->session[who.rank];

	return session != NULL && session->who.incarnation == who.incarnation ? session : NULL;
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
	mst_open_step_add(a, slot);
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
static void end_session(struct mst_aggregator *a, struct mst_session *session, int error)
{
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

static void evict(struct mst_aggregator *a, struct mst_session *session, enum mst_evict_why why)
{
	end_session(a, session,
		    why == MST_EVICT_LEFT ? -ENOTCONN : mst_evict_word(why, a->cfg.goes_on));
}

static void finish(struct mst_aggregator *a, const struct mst_decision *d)
{
	bool failed = mst_finish_failed(d->finish.why);

	a->finished.state = failed ? MST_SESSION_ENDED : MST_SESSION_FINISHED;
	a->finished.error = mst_finish_word(d->finish.why, a->cfg.goes_on);
	a->finished.version = d->finish.version;
	for (uint32_t rank = 0; rank < a->cfg.workers; rank++) {
		if (a->session[rank] != NULL && !a->cfg.follower)
			tell_session(a, a->session[rank], &a->finished);
	}
	mst_task_apply_none(a);
	mst_open_step_drop(a);
}

void mst_aggregator_hang_up(struct mst_aggregator *a, int error)
{
	for (uint32_t rank = 0; rank < a->cfg.workers; rank++) {
		if (a->session[rank] != NULL)
			end_session(a, a->session[rank], error);
	}
}

static void answer(struct mst_aggregator *a, struct mst_session *session,
		   const struct mst_decision *d, const struct mst_record *record)
{
	struct mst_task task = { .kind = MST_TASK_ANSWER };

	/* The worker has asked again before it had that answer, in a header that waited for its
	 * turn. */
	if (session->answering) {
		mst_aggregator_lose(
			a, session,
			mst_aggregator_refuse(session, "it asks again before it has its answer"));
		return;
	}
	session->busy++;
	session->asked = false;
	session->answering = true;
	for (uint32_t i = 0; i < a->cfg.shards; i++)
		session->sent[i] = mst_shard_range(a->shard[i]).begin;
	task.moves = d->answer.where == MST_WHERE_COPIED && session->link->ops->maps;
	task.answer.session = session;
	task.answer.record = record;
	task.answer.pace = record->pace;
	task.answer.window = record->window;
	task.answer.until_asked = record->until_asked;
	task.answer.by_micro = record->by_micro;
	task.answer.answer = (struct mst_lane_answer){ .number = d->answer.number,
						       .version = d->answer.version,
						       .newest = d->answer.newest,
						       .where = d->answer.where,
						       .buffer = d->answer.buffer };
	mst_task_add(a, &task);
}

static void execute_for(struct mst_aggregator *a, struct mst_session *session,
			const struct mst_decision *d, const struct mst_record *record)
{
	switch (d->kind) {
	case MST_DO_COUNT:
		count(a, session, d);
		if (!d->count.repeats)
			mst_open_step_note_ready(a, d->who.rank);
		break;
	case MST_DO_VERDICT:
		tell_verdict(a, session, d);
		break;
	case MST_DO_REGRANT:
		session->slot[d->grant.slot].next_epoch = d->grant.epoch;
		grant_if_read(a, &session->slot[d->grant.slot]);
		break;
	case MST_DO_RELEASE:
		answer(a, session, d, record);
		break;
	case MST_DO_ADVISE:
		mst_aggregator_advise(a, session,
				      mst_hint_word(d->advice.version, d->advice.hand_in));
		break;
	case MST_DO_EVICT:
		evict(a, session, d->evict);
		break;
	default:
		break;
	}
}

/* The start state has come as a result: the parameters begin with it, and so does their average. */
static void start(struct mst_aggregator *a, const struct mst_decision *d)
{
	const void *state = mst_version_buffer(a, d->commit.buffer);

	mst_version_mark(a, d->commit.buffer, d->commit.version);
	a->newest_buffer = d->commit.buffer;
	a->newest = a->kept[0].version = d->commit.version;
	for (uint32_t i = 0; i < a->cfg.shards; i++)
		mst_shard_start(a->shard[i], d->commit.version);
	if (a->kept[0].theta != NULL && !a->resumes)
		mst_sum_load(a->kept[0].theta, state, a->cfg.result_type, a->cfg.elems);
	if (a->average[0] != NULL && !a->resumes)
		mst_sum_load(a->average[0], state, a->cfg.result_type, a->cfg.elems);
}

void mst_aggregator_resume(struct mst_aggregator *a, struct mst_resumed *out)
{
	MST_ASSERT(a->newest_buffer == MST_BUFFER_NONE);
	a->resumes = true;
	out->result = a->cfg.published; /* buffer 0 has the first version */
	out->theta = a->kept[0].theta;
	memcpy(out->state, a->kept[0].state, sizeof(out->state));
	out->average = a->average[0];
}

void mst_aggregator_execute(struct mst_aggregator *a, const struct mst_decision *d,
			    const struct mst_record *record)
{
	switch (d->kind) {
	case MST_DO_START:
		start(a, d);
		break;
	case MST_DO_SAVE:
		mst_task_save(a, d);
		break;
	case MST_DO_LEND:
		mst_task_lend(a, d);
		break;
	case MST_DO_COMMIT:
		mst_task_commit(a, d, record);
		break;
	case MST_DO_APPLY:
		mst_task_apply(a, d);
		break;
	case MST_DO_SETTLE:
		a->settles = true;
		mst_task_add(a, &(struct mst_task){ .kind = MST_TASK_SETTLE });
		break;
	case MST_DO_FINISH:
		finish(a, d);
		break;
	default: {
		struct mst_session *session = session_of(a, d->who);
		if (session != NULL)
			execute_for(a, session, d, record);
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
