/* SPDX-License-Identifier: MIT */
/*
 * The shard's queue of work on its range: folds, commits, answers, worked off in order and one
 * chunk at a time. In order means that a commit may start from the version before it, and an
 * answer send the version before it, without asking whether they are there.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/kernels/sum.h"
#include "common/kernels/update.h"
#include "server/shard_state.h"

struct mst_job *mst_job_add(struct mst_shard *s, enum mst_job_kind kind)
{
	MST_ASSERT(s->queue_count < s->queue_size);
	struct mst_job *job = &s->queue[(s->queue_head + s->queue_count++) % s->queue_size];
	*job = (struct mst_job){ .kind = kind };
	return job;
}

/* The open step becomes a job: its summands chained by rank, and the next step is open. */
void mst_job_commit(struct mst_shard *s, const struct mst_decision *d, const struct mst_record *r)
{
	struct mst_job *job = mst_job_add(s, MST_JOB_COMMIT);
	struct mst_slot **slots = &job->commit.slots;
	struct mst_fold **folds = &job->commit.folds;

	for (uint32_t rank = 0; rank < s->cfg.workers; rank++) {
		struct mst_rank_open *open = &s->rank[rank];
		if (open->fold != NULL) {
			*folds = open->fold;
			folds = &open->fold->next;
		} else if (open->first != NULL) {
			*slots = open->first;
			slots = &open->last->next;
		}
		*open = (struct mst_rank_open){ 0 };
	}
	job->commit.buffer = d->commit.buffer;
	job->commit.divisor = r->divisor;
	job->commit.rate = r->rate;
	job->commit.before = s->newest_buffer == MST_BUFFER_NONE
				     ? NULL
				     : mst_shard_buffer(s, s->newest_buffer);
	s->newest_buffer = d->commit.buffer;
}

/* Folds. */

static void fold_chunk(struct mst_shard *s, const struct mst_job *job, uint64_t count)
{
	const struct mst_slot *slot = job->fold.slot;
	const char *gradient = mst_shard_gradient(s, slot);
	const void *data = gradient + job->cursor * mst_type_bytes(s->cfg.type);
	float *sum = job->fold.into->sum + job->cursor;

	if (job->fold.starts)
		mst_sum_first(sum, data, s->cfg.type, slot->coefficient, count);
	else
		mst_sum_add(sum, data, s->cfg.type, slot->coefficient, count);
}

/* Commits. */

static void leaf_of_fold(struct mst_shard *s, const struct mst_fold *fold)
{
	s->leaf[s->leaf_count++] = (struct mst_leaf){ .rank = fold->rank,
						      .partial = true,
						      .data = fold->sum };
}

static void leaf_of_slot(struct mst_shard *s, const struct mst_slot *slot)
{
	s->leaf[s->leaf_count++] = (struct mst_leaf){ .rank = slot->session->who.rank,
						      .coefficient = slot->coefficient,
						      .data = mst_shard_gradient(s, slot) };
}

/* The leaves of the tree: both chains merged by rank; a rank is in one of them only. */
static void leaves_gather(struct mst_shard *s, const struct mst_job *job)
{
	const struct mst_slot *slot = job->commit.slots;
	const struct mst_fold *fold = job->commit.folds;

	s->leaf_count = 0;
	while (slot != NULL || fold != NULL) {
		MST_ASSERT(s->leaf_count < s->cfg.entries_max);
		if (slot == NULL || (fold != NULL && fold->rank < slot->session->who.rank)) {
			leaf_of_fold(s, fold);
			fold = fold->next;
		} else {
			leaf_of_slot(s, slot);
			slot = slot->next;
		}
	}
}

/* total is the mean gradient, or the sum of deltas; out gets the new parameters. */
static void update_chunk(struct mst_shard *s, const struct mst_job *job, float *out, uint64_t count)
{
	uint64_t first = job->cursor;
	const float *theta = s->theta != NULL ? s->theta + first
					      : (const float *)job->commit.before + first;
	float *momentum = s->momentum != NULL ? s->momentum + first : NULL;

	if (s->cfg.optimizer.kind == MST_OPTIMIZER_ADD)
		mst_update_add(out, theta, s->total, count);
	else
		mst_update_sgd(out, theta, s->total, momentum, (float)s->cfg.optimizer.momentum,
			       job->commit.rate, count);
}

static void commit_chunk(struct mst_shard *s, const struct mst_job *job, uint64_t count)
{
	struct mst_tree tree = { .type = s->cfg.type,
				 .group = s->cfg.group,
				 .leaf = s->leaf,
				 .leaf_count = s->leaf_count };
	char *buffer = mst_shard_buffer(s, job->commit.buffer);
	void *out = buffer + job->cursor * mst_type_bytes(s->cfg.result_type);
	const float *result = s->total;

	mst_tree_sum(&tree, job->cursor, count, s->total, s->scratch);
	mst_sum_divide(s->total, job->commit.divisor, count);
	if (s->cfg.owner == MUSTER_SERVERS_OWN) {
		float *next = s->theta != NULL ? s->theta + job->cursor : out;
		update_chunk(s, job, next, count);
		result = next;
	}
	mst_sum_store(out, s->cfg.result_type, result, count);
}

static void commit_end(struct mst_shard *s, const struct mst_job *job)
{
	struct mst_slot *next;

	for (struct mst_slot *slot = job->commit.slots; slot != NULL; slot = next) {
		next = slot->next;
		mst_shard_read_done(s, slot);
	}
	for (struct mst_fold *fold = job->commit.folds; fold != NULL; fold = fold->next)
		fold->taken = false;
	for (uint32_t rank = 0; job->commit.folds != NULL && rank < s->cfg.workers; rank++)
		mst_shard_fold(s, rank);
}

/* Answers. */

/* Return: its bytes. */
static size_t record_encode(const struct mst_job *job, struct mst_lane_record *out)
{
	const struct mst_record *r = job->answer.record;
	bool nothing = job->answer.answer.version == 0;

	*out = (struct mst_lane_record){ .version = job->answer.answer.version,
					 .lr_scale = 1.0,
					 .divisor = 1.0f,
					 .window = job->answer.window,
					 .preempt = job->answer.preempt };
	if (nothing)
		return sizeof(*out);
	out->weight = r->samples;
	out->lr_scale = r->lr_scale;
	out->divisor = r->divisor;
	out->rate = r->rate;
	out->share_count = r->share_count;
	memcpy(out->share, r->share, r->share_count * sizeof(*r->share));
	return sizeof(*out) + r->share_count * sizeof(*r->share);
}

/* Are this answer's bytes for the shard to copy, chunk by chunk? */
static bool answer_copies(const struct mst_job *job)
{
	const struct mst_session *session = job->answer.session;

	return job->answer.answer.where == MST_WHERE_COPIED && !session->over &&
	       session->link->ops->maps;
}

/* Or are they sent? Over a transport that does not map they are put from where they are published,
 * and the queue goes on while they travel: a slow worker holds up itself. */
static bool answer_sends(const struct mst_job *job)
{
	const struct mst_session *session = job->answer.session;

	return job->answer.answer.where == MST_WHERE_COPIED && !session->over &&
	       !session->link->ops->maps;
}

/* Sends the result as far as element @end. */
static void answer_send(struct mst_shard *s, struct mst_job *job, uint64_t end)
{
	struct mst_span range = { job->cursor, end };

	if (range.begin < range.end)
		mst_shard_send_result(s, job->answer.session, &job->answer.answer, &range);
	job->cursor = end;
}

/* A link has room for so many at a time, whatever its peer does. */
static bool is_part(const struct mst_shard *s, uint64_t elems)
{
	return elems >= s->cfg.chunk_elems && elems >= s->cfg.elems / MST_PARTS_MAX;
}

/* What a commit has summed need not wait for the rest of it: it travels to those whose answers
 * follow. The last part goes with the answer. *(Else: it is reported sent, the buffer is let go of,
 * and its record is another version's before the answer has brought it.)* */
static void commit_pass_on(struct mst_shard *s, const struct mst_job *commit)
{
	if (commit->cursor == s->cfg.elems)
		return;
	for (uint32_t i = 1; i < s->queue_count; i++) {
		struct mst_job *job = &s->queue[(s->queue_head + i) % s->queue_size];
		if (job->kind == MST_JOB_COMMIT)
			break; /* the answers behind that one are of its version, or of a later */
		if (job->kind == MST_JOB_ANSWER && answer_sends(job) &&
		    job->answer.answer.buffer == commit->commit.buffer &&
		    is_part(s, commit->cursor - job->cursor))
			answer_send(s, job, commit->cursor);
	}
}

/* Result, record, answer: one arrival announces them all. A worker that keeps what it had has its
 * record too, and the store may have forgotten it by now. */
static void answer_end(struct mst_shard *s, struct mst_job *job)
{
	struct mst_session *session = job->answer.session;
	const struct mst_lane_answer *answer = &job->answer.answer;
	size_t record_bytes = 0;

	if (answer_sends(job))
		answer_send(s, job, s->cfg.elems);
	if (answer->where != MST_WHERE_KEEP)
		record_bytes = record_encode(job, mst_shard_letter_record(s));
	mst_shard_put_answer(s, session, answer, record_bytes);
	if (answer_copies(job))
		mst_shard_answered(s, session, answer->number);
	/* From here on the worker can have it and ask again, before its bytes are reported sent. */
	session->answering = false;
	mst_shard_unbusy(s, session);
}

static void answer_chunk(struct mst_shard *s, const struct mst_job *job, uint64_t count)
{
	size_t size = mst_type_bytes(s->cfg.result_type);
	const char *buffer = mst_shard_buffer(s, job->answer.answer.buffer);

	mst_shard_put(s, job->answer.session,
		      &(struct mst_put){ .offset = s->cfg.layout.down_result + job->cursor * size,
					 .src = buffer + job->cursor * size,
					 .bytes = count * size });
}

/* The queue. */

/* Does this job move data at all? */
static uint64_t job_elems(const struct mst_shard *s, const struct mst_job *job)
{
	return job->kind != MST_JOB_ANSWER || answer_copies(job) ? s->cfg.elems : 0;
}

static void job_chunk(struct mst_shard *s, struct mst_job *job, uint64_t count)
{
	switch (job->kind) {
	case MST_JOB_FOLD:
		fold_chunk(s, job, count);
		break;
	case MST_JOB_COMMIT:
		if (job->cursor == 0)
			leaves_gather(s, job);
		commit_chunk(s, job, count);
		break;
	case MST_JOB_ANSWER:
		answer_chunk(s, job, count);
		break;
	}
	job->cursor += count;
	if (job->kind == MST_JOB_COMMIT)
		commit_pass_on(s, job);
}

static void job_end(struct mst_shard *s, struct mst_job *job)
{
	switch (job->kind) {
	case MST_JOB_FOLD:
		mst_shard_read_done(s, job->fold.slot);
		break;
	case MST_JOB_COMMIT:
		commit_end(s, job);
		break;
	case MST_JOB_ANSWER:
		answer_end(s, job);
		break;
	}
}

bool mst_shard_work(struct mst_shard *s)
{
	if (s->queue_count == 0)
		return false;
	struct mst_job *job = &s->queue[s->queue_head];
	uint64_t left = job_elems(s, job);
	left = left > job->cursor ? left - job->cursor : 0;
	if (left > 0)
		job_chunk(s, job, left < s->cfg.chunk_elems ? left : s->cfg.chunk_elems);
	if (left <= s->cfg.chunk_elems) {
		struct mst_job done = *job;
		s->queue_head = (s->queue_head + 1) % s->queue_size;
		s->queue_count--;
		job_end(s, &done);
	}
	return true;
}
