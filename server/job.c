/* SPDX-License-Identifier: MIT */
/*
 * The aggregator's queue of work: folds, groups, commits, answers, in order. In order means that a
 * commit may start from the version before it, and an answer send the version before it, without
 * asking whether they are there. What moves data the shards do, each on its range; a job is over
 * when all of them are done with it and every job before it is over.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"
#include "common/kernels/sum.h"
#include "server/aggregator_state.h"

void mst_job_add(struct mst_aggregator *a, const struct mst_job *job)
{
	MST_ASSERT(a->queue_count < a->queue_size);
	struct mst_job *added = &a->queue[(a->queue_head + a->queue_count++) % a->queue_size];

	*added = *job;
	if (!added->moves)
		return;
	added->work = a->work_count;
	a->work[a->work_count++ % a->queue_size] = added;
	/* Release: pairs with the shards' look; they see the whole job. */
	atomic_store_explicit(&a->work_posted, a->work_count, memory_order_release);
	for (uint32_t i = 1; i < a->cfg.shards; i++)
		mst_shard_wake(a->shard[i]);
}

/* The open step becomes a job: its summands chained by rank, and the next step is open. */
void mst_job_commit(struct mst_aggregator *a, const struct mst_decision *d,
		    const struct mst_record *r)
{
	struct mst_job job = { .kind = MST_JOB_COMMIT, .moves = true };
	struct mst_slot **slots = &job.commit.slots;
	struct mst_fold **folds = &job.commit.folds;

	for (uint32_t rank = 0; rank < a->cfg.workers; rank++) {
		struct mst_rank_open *open = &a->rank[rank];
		if (open->fold != NULL) {
			*folds = open->fold;
			folds = &open->fold->next;
		} else if (open->first != NULL) {
			*slots = open->first;
			slots = &open->last->next;
		}
		*open = (struct mst_rank_open){ 0 };
	}
	mst_job_forget_ripe(a);
	job.commit.buffer = d->commit.buffer;
	job.commit.divisor = r->divisor;
	job.commit.rate = r->rate;
	job.commit.before = a->newest_buffer == MST_BUFFER_NONE
				    ? NULL
				    : mst_version_buffer(a, a->newest_buffer);
	a->newest_buffer = d->commit.buffer;
	a->open_entries = 0;
	mst_job_add(a, &job);
}

static void commit_end(struct mst_aggregator *a, const struct mst_job *job)
{
	struct mst_slot *next;

	for (struct mst_slot *slot = job->commit.slots; slot != NULL; slot = next) {
		next = slot->next;
		mst_aggregator_read_done(a, slot);
	}
	for (struct mst_fold *fold = job->commit.folds; fold != NULL; fold = fold->next)
		fold->taken = false;
	for (uint32_t rank = 0; job->commit.folds != NULL && rank < a->cfg.workers; rank++)
		mst_aggregator_fold(a, rank);
}

/* ---- groups ---- */

/*
 * A group of the tree that is complete while the step is open can be summed at once, if there is
 * nothing else to do: then the commit has one summand to read instead of G, and the time it takes
 * after its last contribution hardly grows with the number of workers. The sum is the one that the
 * commit would make, so the bits are the same.
 *
 * It costs writing and reading one more vector. So it waits until the shard is idle: what a commit
 * takes in the meantime it sums in one pass.
 */
#define GROUP_MIN 4u

static struct mst_span group_ranks(const struct mst_aggregator *a, uint64_t group)
{
	uint64_t end = (group + 1) * a->cfg.group;

	return (struct mst_span){ group * a->cfg.group,
				  end < a->cfg.workers ? end : a->cfg.workers };
}

/* Has each of its ranks one contribution in the open step, in its slot? */
static bool is_complete(const struct mst_aggregator *a, uint64_t group)
{
	struct mst_span ranks = group_ranks(a, group);

	for (uint64_t r = ranks.begin; r < ranks.end; r++)
		if (a->rank[r].first == NULL || a->rank[r].first != a->rank[r].last)
			return false;
	return true;
}

void mst_job_ripen(struct mst_aggregator *a, uint32_t rank)
{
	uint64_t group = rank / a->cfg.group;
	struct mst_span ranks = group_ranks(a, group);

	if (a->cfg.workers > a->cfg.group && ranks.end - ranks.begin >= GROUP_MIN &&
	    is_complete(a, group))
		mst_bitset_add(a->ripe, group);
}

void mst_job_forget_ripe(struct mst_aggregator *a)
{
	memset(a->ripe, 0, mst_bitset_words(a->cfg.workers) * sizeof(*a->ripe));
}

static void group_begin(struct mst_aggregator *a, uint64_t group, struct mst_fold *into)
{
	struct mst_span ranks = group_ranks(a, group);
	struct mst_job job = { .kind = MST_JOB_GROUP, .moves = true, .group.into = into };
	struct mst_slot **slots = &job.group.slots;

	for (uint64_t r = ranks.begin; r < ranks.end; r++) {
		*slots = a->rank[r].first;
		slots = &a->rank[r].first->next;
		a->rank[r] = (struct mst_rank_open){ 0 };
	}
	a->rank[ranks.begin].fold = into;
	mst_job_add(a, &job);
}

/* The shards are idle. Return: is there something to do now? */
static bool groups_begin(struct mst_aggregator *a)
{
	for (size_t word = 0; word < mst_bitset_words(a->cfg.workers); word++) {
		while (a->ripe[word] != 0) {
			uint64_t bit = (uint64_t)__builtin_ctzll(a->ripe[word]);
			uint64_t group = word * 64 + bit;
			if (!is_complete(a, group)) { /* its ranks may contribute again by now */
				a->ripe[word] &= a->ripe[word] - 1;
				continue;
			}
			struct mst_fold *into = mst_aggregator_take_fold(a, (uint32_t)group *
										    a->cfg.group);
			if (into == NULL)
				return a->queue_count > 0;
			a->ripe[word] &= a->ripe[word] - 1;
			group_begin(a, group, into);
		}
	}
	return a->queue_count > 0;
}

static void group_end(struct mst_aggregator *a, const struct mst_job *job)
{
	struct mst_slot *next;

	for (struct mst_slot *slot = job->group.slots; slot != NULL; slot = next) {
		next = slot->next;
		mst_aggregator_read_done(a, slot);
	}
}

/* ---- answers ---- */

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

/* Over a transport that does not map, a copy is put from where it is published, and the queue goes
 * on while it travels: a slow worker holds up itself. */
static bool answer_sends(const struct mst_job *job)
{
	const struct mst_session *session = job->answer.session;

	return job->answer.answer.where == MST_WHERE_COPIED && !session->over &&
	       !session->link->ops->maps;
}

/* Worth a put of its own? A link has room for so many at a time, whatever its peer does. */
static bool is_part(const struct mst_aggregator *a, uint64_t elems)
{
	uint64_t early = MST_PARTS_MAX - a->cfg.shards; /* each shard may leave a rest */

	return elems >= a->cfg.chunk_elems && elems >= a->cfg.elems / early;
}

static void pass_on_to(struct mst_aggregator *a, const struct mst_job *answer,
		       const uint64_t *reached)
{
	struct mst_session *session = answer->answer.session;

	for (uint32_t i = 0; i < a->cfg.shards; i++) {
		struct mst_part part = { .span = { session->sent[i], reached[i] } };
		if (part.span.end <= part.span.begin ||
		    !is_part(a, part.span.end - part.span.begin))
			continue;
		session->sent[i] = part.span.end;
		mst_aggregator_send_result(a, session, &answer->answer.answer, &part);
	}
}

static bool is_done(const struct mst_aggregator *a, const struct mst_job *job)
{
	for (uint32_t i = 0; job->moves && i < a->cfg.shards; i++)
		if (!mst_shard_is_done(a->shard[i], job->work))
			return false;
	return true;
}

/* How far all shards are with it. Return: is there something left to do? */
static bool is_at_work(const struct mst_aggregator *a, const struct mst_job *job, uint64_t *reached)
{
	bool rest = false;

	for (uint32_t i = 0; i < a->cfg.shards; i++) {
		reached[i] = mst_shard_reached(a->shard[i], job->work);
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
	const struct mst_job *commit = &a->queue[a->queue_head];
	uint64_t reached[MST_SHARDS_MAX];

	if (commit->kind != MST_JOB_COMMIT || a->queue_count == 1 ||
	    !is_at_work(a, commit, reached))
		return;
	for (uint32_t i = 1; i < a->queue_count; i++) {
		const struct mst_job *job = &a->queue[(a->queue_head + i) % a->queue_size];
		if (job->kind == MST_JOB_COMMIT)
			break; /* the answers behind that one are of its version, or of a later */
		if (job->kind == MST_JOB_ANSWER && answer_sends(job) &&
		    job->answer.answer.buffer == commit->commit.buffer)
			pass_on_to(a, job, reached);
	}
}

/* What is not sent yet, in as few parts as it goes. */
static void answer_send_rest(struct mst_aggregator *a, const struct mst_job *job)
{
	struct mst_session *session = job->answer.session;
	struct mst_part part = { .span = { 0, 0 } };

	for (uint32_t i = 0; i < a->cfg.shards; i++) {
		struct mst_span rest = { session->sent[i], mst_shard_range(a->shard[i]).end };
		if (rest.begin == rest.end)
			continue;
		if (part.span.begin < part.span.end && part.span.end < rest.begin) {
			mst_aggregator_send_result(a, session, &job->answer.answer, &part);
			part.span.begin = rest.begin;
		} else if (part.span.begin == part.span.end) {
			part.span.begin = rest.begin;
		}
		part.span.end = rest.end;
	}
	MST_ASSERT(part.span.begin < part.span.end);
	part.last = true;
	mst_aggregator_send_result(a, session, &job->answer.answer, &part);
}

/* Result, record, answer: one arrival announces them all. A worker that keeps what it had has its
 * record too, and the store may have forgotten it by now. */
static void answer_end(struct mst_aggregator *a, const struct mst_job *job)
{
	struct mst_session *session = job->answer.session;
	const struct mst_lane_answer *answer = &job->answer.answer;
	size_t record_bytes = 0;

	if (answer_sends(job))
		answer_send_rest(a, job);
	if (answer->where != MST_WHERE_KEEP && !a->cfg.member)
		record_bytes = record_encode(job, mst_aggregator_letter_record(a));
	mst_aggregator_put_answer(a, session, answer, record_bytes);
	if (job->moves && !session->over)
		mst_aggregator_answered(a, session, answer->number);
	/* From here on the worker can have it and ask again, before its bytes are reported sent. */
	session->answering = false;
	mst_aggregator_unbusy(a, session);
}

/* ---- the queue ---- */

static void job_end(struct mst_aggregator *a, const struct mst_job *job)
{
	switch (job->kind) {
	case MST_JOB_FOLD:
		mst_aggregator_read_done(a, job->fold.slot);
		break;
	case MST_JOB_GROUP:
		group_end(a, job);
		break;
	case MST_JOB_COMMIT:
		commit_end(a, job);
		break;
	case MST_JOB_ANSWER:
		answer_end(a, job);
		break;
	}
}

/* Return: was there any? */
static bool end_jobs(struct mst_aggregator *a)
{
	bool any = false;

	while (a->queue_count > 0 && is_done(a, &a->queue[a->queue_head])) {
		struct mst_job done = a->queue[a->queue_head];
		a->queue_head = (a->queue_head + 1) % a->queue_size;
		a->queue_count--;
		job_end(a, &done);
		any = true;
	}
	return any;
}

bool mst_aggregator_work(struct mst_aggregator *a)
{
	if (a->queue_count == 0 && !groups_begin(a))
		return false;
	bool worked = mst_shard_step(a->shard[0]);
	commit_pass_on(a);
	return end_jobs(a) || worked;
}
