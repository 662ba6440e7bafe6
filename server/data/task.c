/* SPDX-License-Identifier: MIT */
/*
 * The aggregator's queue of work: partial sums, groups, commits, answers, in order. In order means
 * that a commit may start from the version before it, and an answer send the version before it,
 * without asking whether they are there. What moves data the shards do, each on its range; a task
 * is over when all of them are done with it and every task before it is over.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/crc32c.h"
#include "common/kernels/sum.h"
#include "server/data/aggregator_state.h"
#include "server/data/norms.h"
#include "server/data/open_step.h"

static void post(struct mst_aggregator *a, struct mst_task *task)
{
	task->work = a->work_count;
	a->work[a->work_count++ % a->queue_size] = task;
	/* Release: pairs with the shards' look; they see the whole task. */
	atomic_store_explicit(&a->work_posted, a->work_count, memory_order_release);
	for (uint32_t i = 1; i < a->cfg.shards; i++)
		mst_shard_wake(a->shard[i]);
}

static bool waits(const struct mst_task *task)
{
	return task->kind == MST_TASK_COMMIT && task->commit.waits;
}

/* All up to the first that waits: the shards get them in order. */
static void begin_tasks(struct mst_aggregator *a)
{
	for (; a->queue_begun < a->queue_count; a->queue_begun++) {
		struct mst_task *task = &a->queue[(a->queue_head + a->queue_begun) % a->queue_size];
		if (waits(task))
			return;
		if (task->moves)
			post(a, task);
	}
}

void mst_task_add(struct mst_aggregator *a, const struct mst_task *task)
{
	MST_ASSERT(a->queue_count < a->queue_size);
	struct mst_task *added = &a->queue[(a->queue_head + a->queue_count++) % a->queue_size];

	*added = *task;
	begin_tasks(a);
}

/* The commit waits for what its REDUCE finds. Where there is a mean REDUCE has used the summands,
 * else the commit uses them. */
static void add_reduce(struct mst_aggregator *a, struct mst_task *commit)
{
	struct mst_task reduce = *commit;
	struct mst_task *without = a->mean != NULL ? commit : &reduce;

	reduce.kind = MST_TASK_REDUCE;
	without->commit.slots = NULL;
	without->commit.partials = NULL;
	commit->commit.waits = true;
	mst_task_add(a, &reduce);
}

/* Where the next commit writes the average: where it is, unless somebody reads it there. */
static uint8_t place_of_average(const struct mst_aggregator *a)
{
	bool read = a->average_now == a->average_lent || a->average_now == a->average_saved;
	uint8_t place = 0;

	if (!read)
		return a->average_now;
	while (place == a->average_lent || place == a->average_saved)
		place++;
	return place;
}

/* Which side the commit of @version starts from, and which it writes to. Nobody writes where a
 * version is saved. */
static void choose_sides(struct mst_aggregator *a, struct mst_task *task)
{
	uint64_t version = task->commit.version;

	MST_ASSERT(version == a->newest + 1 && a->kept[a->side].version == a->newest);
	a->newest = version;
	task->commit.from = a->side;
	a->side ^= a->forks;
	a->forks = false;
	MST_ASSERT(!a->saving || a->side != a->saved_side);
	task->commit.to = a->side;
	a->kept[a->side].version = version;
	task->commit.average_from = a->average_now;
	a->average_now = place_of_average(a);
	task->commit.average_to = a->average_now;
}

/* The open step becomes a task, and the next step is open. */
void mst_task_commit(struct mst_aggregator *a, const struct mst_decision *d,
		     const struct mst_record *r)
{
	struct mst_task task = { .kind = MST_TASK_COMMIT, .moves = true };

	mst_open_step_take(a, &task.commit.slots, &task.commit.partials);
	task.commit.version = d->commit.version;
	task.commit.buffer = d->commit.buffer;
	task.commit.divisor = r->divisor;
	memcpy(task.commit.scalar, r->scalar, sizeof(task.commit.scalar));
	task.commit.average = r->average;
	task.commit.before = a->newest_buffer == MST_BUFFER_NONE
				     ? NULL
				     : mst_version_buffer(a, a->newest_buffer);
	a->newest_buffer = d->commit.buffer;
	choose_sides(a, &task);
	if (a->cfg.distances)
		task.commit.read = mst_version_buffer(a, d->commit.read);
	if (a->mean != NULL || a->cfg.distances)
		add_reduce(a, &task);
	mst_task_add(a, &task);
}

static bool is_finite(const struct mst_aggregator *a, const struct mst_task *task)
{
	for (uint32_t i = 0; i < a->cfg.shards; i++)
		if (mst_shard_spoilt(a->shard[i], task->work))
			return false;
	return true;
}

/* From here on nobody is answered with it: the ledger ends the job. */
static void commit_spoilt(struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_ledger_event ev = { .kind = MST_EV_SPOILT };

	a->spoilt = true;
	ev.spoilt = mst_spoil_of_commit(a, task);
	a->up.event(a->up.ctx, &ev);
}

static void commit_end(struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_slot *next;

	if (a->cfg.guards && !a->spoilt && !is_finite(a, task))
		commit_spoilt(a, task);
	for (struct mst_slot *slot = task->commit.slots; slot != NULL; slot = next) {
		next = slot->next;
		mst_aggregator_read_done(a, slot);
	}
	mst_open_step_give_back(a, task->commit.partials);
}

/* ---- the reduce phase ---- */

bool mst_task_waits(const struct mst_aggregator *a, uint64_t version)
{
	const struct mst_task *head = &a->queue[a->queue_head];

	return a->queue_count > 0 && waits(head) && head->commit.version == version;
}

void mst_task_apply(struct mst_aggregator *a, const struct mst_decision *d)
{
	struct mst_task *head = &a->queue[a->queue_head];

	MST_ASSERT(mst_task_waits(a, d->apply.version));
	head->commit.factor = d->apply.factor;
	if (a->cfg.distances)
		memcpy(head->commit.scalar, d->apply.scalar, sizeof(head->commit.scalar));
	head->commit.waits = false;
	mst_norms_take(a, d->apply.trust);
	begin_tasks(a);
}

void mst_task_apply_none(struct mst_aggregator *a)
{
	for (uint32_t i = 0; i < a->queue_count; i++) {
		struct mst_task *task = &a->queue[(a->queue_head + i) % a->queue_size];
		if (!waits(task))
			continue;
		a->spoilt = true;
		task->commit.factor = 1;
		task->commit.waits = false;
	}
	begin_tasks(a);
}

static void report_sum(struct mst_aggregator *a, uint64_t version, uint32_t sum,
		       const struct mst_exact_sum *(*of)(const struct mst_shard *s))
{
	struct mst_ledger_event ev = { .kind = MST_EV_REDUCED };

	ev.reduced.shard = a->cfg.index;
	ev.reduced.version = version;
	ev.reduced.sum = sum;
	for (uint32_t i = 0; i < a->cfg.shards; i++)
		mst_exact_join(&ev.reduced.squares, of(a->shard[i]));
	a->up.event(a->up.ctx, &ev);
}

/* The summands are not needed any more, where there is a mean; it is, until the leader has the sums
 * of all servers. */
static void reduce_end(struct mst_aggregator *a, const struct mst_task *task)
{
	uint64_t version = task->commit.version;
	uint32_t sums = 0;

	commit_end(a, task);
	if (mst_optimizer_trusts(&a->cfg.optimizer)) {
		mst_norms_report(a, version);
		sums = MST_EDGE_SUMS;
	} else if (a->mean != NULL) {
		report_sum(a, version, sums++, mst_shard_squares);
	}
	if (a->cfg.distances)
		report_sum(a, version, sums, mst_shard_distance);
}

/* ---- groups ---- */

static void group_end(struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_slot *next;

	if (a->cfg.guards && !is_finite(a, task))
		mst_spoil_of_group(a, task);
	for (struct mst_slot *slot = task->group.slots; slot != NULL; slot = next) {
		next = slot->next;
		mst_aggregator_read_done(a, slot);
	}
}

/* ---- answers ---- */

/* Return: its bytes. */
static size_t record_encode(const struct mst_task *task, struct mst_lane_record *out)
{
	const struct mst_record *r = task->answer.record;
	const struct mst_pace *pace = &task->answer.pace;
	bool nothing = r->share_count == 0; /* nobody has made the first version */

	*out = (struct mst_lane_record){
		.version = task->answer.answer.version,
		.samples = r->total,
		.lr_scale = 1.0,
		.alpha = pace->alpha,
		.local_steps = pace->local_steps,
		.push_every = pace->push_every,
		.fetch_every = pace->fetch_every,
		.window = task->answer.window,
		.flags = task->answer.until_asked ? MST_RECORD_UNTIL_ASKED : 0,
		.size = MST_RECORD_SIZE,
		.by_micro = task->answer.by_micro,
	};
	if (nothing)
		return sizeof(*out);
	out->weight = r->samples;
	out->workers = r->workers;
	out->lr_scale = r->lr_scale;
	out->share_count = r->share_count;
	memcpy(out->share, r->share, r->share_count * sizeof(*r->share));
	return sizeof(*out) + r->share_count * sizeof(*r->share);
}

/* Over a transport that does not map, a copy is put from where it is published, and the queue goes
 * on while it travels: a slow worker holds up itself. */
static bool answer_sends(const struct mst_task *task)
{
	const struct mst_session *session = task->answer.session;

	return task->answer.answer.where == MST_WHERE_COPIED && !session->over &&
	       !session->link->ops->maps;
}

/* Worth a put of its own? A link has room for MST_PARTS_MAX of them, whatever its peer does. */
static bool is_part(const struct mst_aggregator *a, uint64_t elems)
{
	uint64_t early = MST_PARTS_MAX - a->cfg.shards; /* each shard may leave a rest */

	return elems >= a->cfg.chunk_elems && elems >= a->cfg.elems / early;
}

static void pass_on_to(struct mst_aggregator *a, const struct mst_task *answer,
		       const uint64_t *reached)
{
	struct mst_session *session = answer->answer.session;

	for (uint32_t i = 0; i < a->cfg.shards; i++) {
		struct mst_result_part part = { .span = { session->sent[i], reached[i] } };
		if (part.span.end <= part.span.begin ||
		    !is_part(a, part.span.end - part.span.begin))
			continue;
		session->sent[i] = part.span.end;
		mst_aggregator_send_result(a, session, &answer->answer.answer, &part);
	}
}

static bool is_done(const struct mst_aggregator *a, const struct mst_task *task)
{
	for (uint32_t i = 0; task->moves && i < a->cfg.shards; i++)
		if (!mst_shard_is_done(a->shard[i], task->work))
			return false;
	return true;
}

/* How far all shards are with it. Return: is there something left to do? */
static bool is_at_work(const struct mst_aggregator *a, const struct mst_task *task,
		       uint64_t *reached)
{
	bool rest = false;

	for (uint32_t i = 0; i < a->cfg.shards; i++) {
		reached[i] = mst_shard_reached(a->shard[i], task->work);
		rest |= reached[i] < mst_shard_range(a->shard[i]).end;
	}
	return rest;
}

/* What a commit has summed need not wait for the rest of it: it travels to those whose answers
 * follow. The last part goes with the answer. *(Else: it is reported sent, the buffer is let go of,
 * and its record is another version's before the answer has brought it.)* So the shards are looked
 * at once, and nothing is passed on of a commit that is done by then: they go on meanwhile. */
static void commit_pass_on(struct mst_aggregator *a)
{
	const struct mst_task *commit = &a->queue[a->queue_head];
	uint64_t reached[MST_SHARDS_MAX];

	if (commit->kind != MST_TASK_COMMIT || waits(commit) || a->queue_count == 1 || a->spoilt ||
	    !is_at_work(a, commit, reached))
		return;
	for (uint32_t i = 1; i < a->queue_count; i++) {
		const struct mst_task *task = &a->queue[(a->queue_head + i) % a->queue_size];
		if (task->kind == MST_TASK_COMMIT)
			break; /* the answers after that one are of its version, or of a later */
		if (task->kind == MST_TASK_ANSWER && answer_sends(task) &&
		    task->answer.answer.buffer == commit->commit.buffer)
			pass_on_to(a, task, reached);
	}
}

/* What is not sent yet, in as few parts as it goes. */
static void answer_send_rest(struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_session *session = task->answer.session;
	struct mst_result_part part = { .span = { 0, 0 } };

	for (uint32_t i = 0; i < a->cfg.shards; i++) {
		struct mst_span rest = { session->sent[i], mst_shard_range(a->shard[i]).end };
		if (rest.begin == rest.end)
			continue;
		if (part.span.begin < part.span.end && part.span.end < rest.begin) {
			mst_aggregator_send_result(a, session, &task->answer.answer, &part);
			part.span.begin = rest.begin;
		} else if (part.span.begin == part.span.end) {
			part.span.begin = rest.begin;
		}
		part.span.end = rest.end;
	}
	MST_ASSERT(part.span.begin < part.span.end);
	part.last = true;
	mst_aggregator_send_result(a, session, &task->answer.answer, &part);
}

/* A worker that keeps its version has that version's record, too, which the store may have dropped.
 * One that has come back with it has the record of another server, and needs the rule of the step
 * that the version opens here. */
static bool has_record(const struct mst_lane_answer *answer)
{
	return answer->where == MST_WHERE_KEEP && answer->number > 1;
}

/* Puts result, record and answer, in this order: the arrival of the answer announces them all. */
static void answer_put(struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_session *session = task->answer.session;
	const struct mst_lane_answer *answer = &task->answer.answer;
	size_t record_bytes = 0;

	if (answer_sends(task))
		answer_send_rest(a, task);
	if (!has_record(answer) && !a->cfg.follower)
		record_bytes = record_encode(task, mst_aggregator_response_record(a));
	mst_aggregator_put_answer(a, session, answer, record_bytes);
	if (task->moves && !session->over)
		mst_aggregator_answered(a, session, answer->number);
}

static void answer_end(struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_session *session = task->answer.session;

	if (!a->spoilt)
		answer_put(a, task);
	/* From here on the worker can have it and ask again, before its bytes are reported sent. */
	session->answering = false;
	mst_aggregator_unbusy(a, session);
}

/* ---- saving ---- */

/* A vector that is kept in 16 bits and in f32 is saved in f32. */
void mst_task_save(struct mst_aggregator *a, const struct mst_decision *d)
{
	struct mst_task task = { .kind = MST_TASK_SAVE, .save.version = d->commit.version };
	const struct mst_kept_vectors *kept = &a->kept[a->side];

	MST_ASSERT(a->cfg.saves && !a->saving && a->newest_buffer == d->commit.buffer);
	MST_ASSERT(a->newest == d->commit.version && kept->version == d->commit.version);
	a->saving = a->forks = true;
	a->saved_side = a->side;
	if (a->cfg.owner == MUSTER_SERVERS_OWN) {
		task.save.result = mst_version_buffer(a, d->commit.buffer);
		task.save.theta = kept->theta;
		for (unsigned i = 0; i < MST_STATES_MAX; i++)
			task.save.state[i] = kept->state[i];
		task.save.average = a->average[a->average_now];
		a->average_saved = a->average_now;
	}
	mst_task_add(a, &task);
}

/* Has every shard made the vectors of that version, and has no commit written to them since? */
static bool holds_saved(const struct mst_aggregator *a, uint64_t version)
{
	for (uint32_t i = 0; i < a->cfg.shards; i++)
		if (mst_shard_kept(a->shard[i], a->saved_side) != version)
			return false;
	return a->kept[a->saved_side].version == version;
}

static void save_end(struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_saving what = task->save;

	MST_ASSERT(a->saving && holds_saved(a, task->save.version));
	if (a->spoilt)
		what = (struct mst_saving){ .version = task->save.version, .spoilt = true };
	a->up.save(a->up.ctx, &what);
}

void mst_aggregator_saved(struct mst_aggregator *a, uint64_t version)
{
	MST_ASSERT(a->saving && holds_saved(a, version));
	a->saving = false;
	a->average_saved = MST_AVERAGES_MAX;
}

/* ---- lending ---- */

void mst_task_lend(struct mst_aggregator *a, const struct mst_decision *d)
{
	struct mst_task task = { .kind = MST_TASK_LEND, .lend.version = d->commit.version };

	MST_ASSERT(a->cfg.averages && a->average_lent == MST_AVERAGES_MAX);
	a->average_lent = a->average_now;
	task.lend.average = a->average[a->average_now];
	mst_task_add(a, &task);
}

static void lend_end(struct mst_aggregator *a, const struct mst_task *task)
{
	a->up.lend(a->up.ctx, task->lend.version, a->spoilt ? NULL : task->lend.average);
}

void mst_aggregator_returned(struct mst_aggregator *a)
{
	a->average_lent = MST_AVERAGES_MAX;
}

/* ---- the queue ---- */

/* What is spoilt has been reported before, and says more. */
static void settle_end(struct mst_aggregator *a)
{
	struct mst_ledger_event ev = { .kind = MST_EV_SETTLED, .shard = a->cfg.index };

	if (!a->spoilt)
		a->up.event(a->up.ctx, &ev);
}

/* ---- what arrives ---- */

static void examine_end(struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_ledger_event ev = task->report.event;
	struct mst_lane_header *h = &ev.full.header;
	struct mst_exact_sum squares = { { 0 } };
	uint32_t sum = 0;

	for (uint32_t i = 0; i < a->cfg.shards; i++) {
		const struct mst_examined *part = mst_shard_examined(a->shard[i], task->work);
		uint64_t behind = a->cfg.elems - mst_shard_range(a->shard[i]).end;
		mst_exact_join(&squares, &part->squares);
		sum ^= mst_crc32c_place(part->sum, behind * mst_type_bytes(a->cfg.type));
	}
	ev.full.squares = a->cfg.measures ? mst_exact_value(&squares) : 0;
	ev.full.damaged = a->cfg.checks && (!(h->flags & MST_HEADER_CHECKED) || h->sum != sum);
	mst_aggregator_report(a, task->report.session, &ev);
}

static void report_end(struct mst_aggregator *a, const struct mst_task *task)
{
	struct mst_ledger_event ev = task->report.event;

	mst_aggregator_report(a, task->report.session, &ev);
}

static void task_end(struct mst_aggregator *a, const struct mst_task *task)
{
	switch (task->kind) {
	case MST_TASK_EXAMINE:
		examine_end(a, task);
		break;
	case MST_TASK_REPORT:
		report_end(a, task);
		break;
	case MST_TASK_PARTIAL:
		mst_aggregator_read_done(a, task->partial.slot);
		break;
	case MST_TASK_GROUP:
		group_end(a, task);
		break;
	case MST_TASK_REDUCE:
		reduce_end(a, task);
		break;
	case MST_TASK_COMMIT:
		commit_end(a, task);
		break;
	case MST_TASK_ANSWER:
		answer_end(a, task);
		break;
	case MST_TASK_SETTLE:
		settle_end(a);
		break;
	case MST_TASK_SAVE:
		save_end(a, task);
		break;
	case MST_TASK_LEND:
		lend_end(a, task);
		break;
	}
}

/* Return: was there any? */
static bool end_tasks(struct mst_aggregator *a)
{
	bool any = false;

	while (a->queue_begun > 0 && is_done(a, &a->queue[a->queue_head])) {
		struct mst_task done = a->queue[a->queue_head];
		a->queue_head = (a->queue_head + 1) % a->queue_size;
		a->queue_count--;
		a->queue_begun--;
		task_end(a, &done);
		any = true;
	}
	return any;
}

bool mst_aggregator_work(struct mst_aggregator *a)
{
	if (a->queue_count == 0 && !mst_open_step_sum_groups(a))
		return false;
	bool worked = mst_shard_step(a->shard[0]);
	commit_pass_on(a);
	return end_tasks(a) || worked;
}
