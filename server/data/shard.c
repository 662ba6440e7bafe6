/* SPDX-License-Identifier: MIT */
/* The arithmetic of tasks, on one range of the vector. */
#include "server/data/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/crc32c.h"
#include "common/base/eventcount.h"
#include "common/kernels/commit.h"
#include "common/kernels/finite.h"
#include "common/kernels/isa.h"
#include "common/kernels/select.h"
#include "common/kernels/sum.h"
#include "common/transport/spin.h"
#include "server/data/aggregator_state.h"
#include "server/data/distance.h"
#include "server/data/norms.h"

struct mst_shard {
	const struct mst_aggregator *of;
	uint32_t index;
	struct mst_span range;
	struct mst_leaf *leaf; /* of the commit or group at work */
	struct mst_commit commit;
	bool finite;      /* what it has put out so far of the commit or group at work */
	uint64_t kept[2]; /* by side: mst_shard_kept() */
	struct mst_examined *examined; /* likewise; NULL: contributions are not examined */
	uint32_t sum;                  /* EXAMINE: of the data so far */
	/* REDUCE, EXAMINE: the squares up to that element. */
	struct mst_exact_sum squares;
	uint64_t squared;
	struct mst_norms_pass *norms;       /* REDUCE with norms of tensors; NULL: without */
	struct mst_distance_pass *distance; /* REDUCE with a distance; NULL: without */
	uint64_t copied;                    /* bytes of results, to workers */
	bool *spoilt; /* of tasks that are done, by number modulo the queue's size: it was not */
	/* Written by its thread alone. */
	_Atomic uint64_t done;   /* tasks that move data, so far */
	_Atomic uint64_t cursor; /* elements of the one at work */
	struct mst_eventcount eventcount;
	_Atomic bool stopped; /* it waits no more */
	struct mst_spin spin;
};

static uint64_t border(const struct mst_aggregator_cfg *cfg, uint32_t index)
{
	uint64_t units = cfg->elems / MST_SHARD_ELEMS_MIN;

	if (index == cfg->shards)
		return cfg->elems;
	return units * index / cfg->shards * MST_SHARD_ELEMS_MIN;
}

uint64_t mst_shard_bytes(uint32_t entries_max, uint64_t tasks_max, bool examines)
{
	return sizeof(struct mst_shard) + (uint64_t)entries_max * sizeof(struct mst_leaf) +
	       tasks_max * (sizeof(bool) + (examines ? sizeof(struct mst_examined) : 0));
}

int mst_shard_new(const struct mst_aggregator *a, uint32_t index, struct mst_shard **out)
{
	struct mst_shard *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->of = a;
	s->index = index;
	s->range = (struct mst_span){ border(&a->cfg, index), border(&a->cfg, index + 1) };
	s->kept[0] = s->kept[1] = MST_VERSION_NONE;
	s->leaf = calloc(a->cfg.entries_max, sizeof(*s->leaf));
	s->spoilt = calloc(a->queue_size, sizeof(*s->spoilt));
	if (mst_aggregator_examines(&a->cfg))
		s->examined = calloc(a->queue_size, sizeof(*s->examined));
	int rc = mst_norms_new(a, s->range, &s->norms);
	if (rc == 0)
		rc = mst_distance_new(&a->cfg, s->range, &s->distance);
	if (rc != 0 || (mst_aggregator_examines(&a->cfg) && s->examined == NULL) ||
	    s->leaf == NULL || s->spoilt == NULL) {
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
	free(s->leaf);
	free(s->spoilt);
	free(s->examined);
	mst_norms_free(s->norms);
	mst_distance_free(s->distance);
	free(s);
}

struct mst_span mst_shard_range(const struct mst_shard *s)
{
	return s->range;
}

/* ---- sums ---- */

const void *mst_slot_gradient(const struct mst_aggregator *a, const struct mst_slot *slot)
{
	size_t at = mst_lane_gradient(&a->cfg.layout, slot->index, slot->session->who.rank);

	return (const char *)slot->session->link->inbound + at;
}

static struct mst_leaf leaf_of_partial(const struct mst_partial *partial)
{
	return (struct mst_leaf){ .rank = partial->rank, .partial = true, .data = partial->sum };
}

static struct mst_leaf leaf_of_slot(const struct mst_aggregator *a, const struct mst_slot *slot)
{
	return (struct mst_leaf){ .rank = slot->session->who.rank,
				  .coefficient = slot->coefficient,
				  .data = mst_slot_gradient(a, slot) };
}

/* The leaves of the tree: both chains merged by rank; a rank is in one of them only. */
static struct mst_tree gather(const struct mst_shard *s, const struct mst_slot *slot,
			      const struct mst_partial *partial)
{
	const struct mst_aggregator_cfg *cfg = &s->of->cfg;
	size_t count = 0;

	while (slot != NULL || partial != NULL) {
		MST_ASSERT(count < cfg->entries_max);
		if (slot == NULL || (partial != NULL && partial->rank < slot->session->who.rank)) {
			s->leaf[count++] = leaf_of_partial(partial);
			partial = partial->next;
		} else {
			s->leaf[count++] = leaf_of_slot(s->of, slot);
			slot = slot->next;
		}
	}
	return (struct mst_tree){
		.type = cfg->type, .group = cfg->group, .leaf = s->leaf, .leaf_count = count
	};
}

/* Nobody reads a part of a result before the whole has been written. */
static bool is_streamed(const struct mst_aggregator_cfg *cfg, enum muster_type type)
{
	return mst_kernels_streams(cfg->elems * mst_type_bytes(type));
}

static void group_begin(struct mst_shard *s, const struct mst_task *task)
{
	s->commit = (struct mst_commit){ .tree = gather(s, task->group.slots, NULL),
					 .divisor = 1,
					 .result_type = MUSTER_F32,
					 .out = task->group.into->sum,
					 .streams = is_streamed(&s->of->cfg, MUSTER_F32) };
}

/* Begins a commit whose mean is a step of the parameters. */
static void apply_begin(const struct mst_aggregator *a, const struct mst_task *task,
			struct mst_commit *commit)
{
	const struct mst_kept_vectors *from = &a->kept[task->commit.from];
	const struct mst_kept_vectors *to = &a->kept[task->commit.to];

	commit->apply = a->cfg.optimizer.row->apply;
	commit->theta = from->theta != NULL ? from->theta : task->commit.before;
	commit->next = to->theta != NULL ? to->theta : commit->out;
	memcpy(commit->state, to->state, sizeof(commit->state));
	for (unsigned i = 0; i < MST_STATES_MAX && from != to; i++)
		commit->before[i] = from->state[i];
	commit->average = a->average[task->commit.average_to];
	commit->average_before = a->average[task->commit.average_from];
	commit->average_rest = task->commit.average;
	commit->scale = a->scale;
	commit->scales = a->scales;
	commit->decay = a->cfg.optimizer.row->decay;
	mst_optimizer_figures(&a->cfg.optimizer, &commit->figures);
	memcpy(commit->figures.scalar, task->commit.scalar, sizeof(commit->figures.scalar));
}

static void squares_begin(struct mst_shard *s)
{
	s->squares = (struct mst_exact_sum){ { 0 } };
	s->squared = s->range.begin;
}

static void reduce_begin(struct mst_shard *s, const struct mst_task *task)
{
	if (s->distance != NULL)
		mst_distance_begin(s->distance, task->commit.before, task->commit.read);
	if (s->of->mean == NULL)
		return;
	s->commit = (struct mst_commit){
		.tree = gather(s, task->commit.slots, task->commit.partials),
		.divisor = task->commit.divisor,
		.result_type = MUSTER_F32,
		.out = s->of->mean,
	};
	squares_begin(s);
	if (s->norms != NULL)
		mst_norms_begin(s->norms, task);
}

/* The sum of squares of at most a block. */
static double squares_of(enum muster_type type, const void *data, size_t count)
{
	float wide[MST_SHARD_ELEMS_MIN];

	if (type == MUSTER_F32)
		return mst_isa()->squares(data, count);
	mst_sum_load(wide, data, type, count);
	return mst_isa()->squares(wide, count);
}

/* Blocks are counted from the beginning of the whole vector, and lie in one shard each. The sum of
 * the squares of a block is rounded, and these sums are added up without rounding. So the norm has
 * the same bits, however the vector is divided among shards and servers. @vector: what begins where
 * this server's part does. */
static void squares_go_on(struct mst_shard *s, enum muster_type type, const char *vector,
			  uint64_t reached)
{
	const struct mst_aggregator *a = s->of;

	while (s->squared < reached) {
		uint64_t at = a->cfg.first + s->squared;
		uint64_t end = s->squared + MST_SHARD_ELEMS_MIN - at % MST_SHARD_ELEMS_MIN;
		if (end > s->range.end)
			end = s->range.end;
		if (end > reached)
			return;
		mst_exact_add(&s->squares,
			      squares_of(type, vector + s->squared * mst_type_bytes(type),
					 (size_t)(end - s->squared)));
		s->squared = end;
	}
}

static void reduce_chunk(struct mst_shard *s, uint64_t first, uint64_t count)
{
	uint64_t reached = first + count;

	if (s->distance != NULL)
		mst_distance_go_on(s->distance, reached);
	if (s->of->mean == NULL)
		return;
	s->finite &= mst_commit_range(&s->commit, first, count);
	if (s->norms != NULL)
		mst_norms_go_on(s->norms, reached);
	else
		squares_go_on(s, MUSTER_F32, (const char *)s->of->mean, reached);
}

static void examine_chunk(struct mst_shard *s, const struct mst_task *task, uint64_t first,
			  uint64_t count)
{
	const struct mst_aggregator *a = s->of;
	const struct mst_session *session = task->report.session;
	const struct mst_slot *slot = &session->slot[task->report.event.full.header.slot];
	const char *gradient = mst_slot_gradient(a, slot);
	size_t size = mst_type_bytes(a->cfg.type);

	if (a->cfg.checks)
		s->sum = mst_crc32c_linear(s->sum, gradient + first * size, count * size);
	if (a->cfg.measures)
		squares_go_on(s, a->cfg.type, gradient, first + count);
}

const struct mst_examined *mst_shard_examined(const struct mst_shard *s, uint64_t work)
{
	MST_ASSERT(mst_shard_is_done(s, work));
	return &s->examined[work % s->of->queue_size];
}

const struct mst_exact_sum *mst_shard_squares(const struct mst_shard *s)
{
	return &s->squares;
}

const struct mst_exact_sum *mst_shard_distance(const struct mst_shard *s)
{
	return mst_distance_square(s->distance);
}

const struct mst_edges *mst_shard_edges(const struct mst_shard *s)
{
	return mst_norms_edges(s->norms);
}

uint64_t mst_shard_kept(const struct mst_shard *s, unsigned side)
{
	return s->kept[side];
}

void mst_shard_start(struct mst_shard *s, uint64_t version)
{
	s->kept[0] = version;
}

uint64_t mst_shard_copied(const struct mst_shard *s)
{
	return s->copied;
}

/* One leaf, whose coefficient is the factor. */
static struct mst_tree tree_of_mean(const struct mst_shard *s, const struct mst_task *task)
{
	s->leaf[0] = (struct mst_leaf){ .coefficient = task->commit.factor, .data = s->of->mean };
	return (struct mst_tree){
		.type = MUSTER_F32, .group = 1, .leaf = s->leaf, .leaf_count = 1
	};
}

static void commit_begin(struct mst_shard *s, const struct mst_task *task)
{
	const struct mst_aggregator *a = s->of;
	bool reduced = a->mean != NULL;

	mst_version_mark(a, task->commit.buffer, task->commit.version);
	s->kept[task->commit.to] = MST_VERSION_NONE;
	s->commit = (struct mst_commit){
		.tree = reduced ? tree_of_mean(s, task)
				: gather(s, task->commit.slots, task->commit.partials),
		.divisor = reduced ? 1 : task->commit.divisor,
		.result_type = a->cfg.result_type,
		.out = mst_version_buffer(a, task->commit.buffer),
		.streams = is_streamed(&a->cfg, a->cfg.result_type),
	};
	if (a->cfg.optimizer.row != NULL)
		apply_begin(a, task, &s->commit);
}

static void partial_chunk(const struct mst_shard *s, const struct mst_task *task, uint64_t first,
			  uint64_t count)
{
	const struct mst_aggregator *a = s->of;
	const char *gradient = mst_slot_gradient(a, task->partial.slot);
	const void *data = gradient + first * mst_type_bytes(a->cfg.type);
	float *sum = task->partial.into->sum + first;

	if (task->partial.starts)
		mst_sum_first(sum, data, a->cfg.type, task->partial.slot->coefficient, count);
	else
		mst_sum_add(sum, data, a->cfg.type, task->partial.slot->coefficient, count);
}

/* Each shard marks: nobody knows which of them comes first. */
static void answer_begin(const struct mst_shard *s, const struct mst_task *task)
{
	const struct mst_aggregator *a = s->of;
	char *lane = task->answer.session->link->remote_mapping;

	if (a->cfg.marks)
		mst_mark(lane + a->cfg.layout.down_mark, task->answer.answer.version);
}

/* Straight to where the worker reads it: what announces it is put when all shards are done. */
static void answer_chunk(struct mst_shard *s, const struct mst_task *task, uint64_t first,
			 uint64_t count)
{
	const struct mst_aggregator *a = s->of;
	size_t size = mst_type_bytes(a->cfg.result_type);
	const char *from = mst_version_buffer(a, task->answer.answer.buffer);
	char *to = (char *)task->answer.session->link->remote_mapping + a->cfg.layout.down_result;

	(void)mst_copy_finite(to + first * size, from + first * size, a->cfg.result_type, count,
			      is_streamed(&a->cfg, a->cfg.result_type));
	s->copied += count * size;
}

static void examine_begin(struct mst_shard *s)
{
	s->sum = 0;
	squares_begin(s);
}

/* Does the task read what the commit of the version before has written, and nothing else? */
static bool follows(const struct mst_shard *s, const struct mst_task *task)
{
	bool steps = task->kind == MST_TASK_REDUCE || task->kind == MST_TASK_COMMIT;

	return !steps || s->kept[task->commit.from] == task->commit.version - 1;
}

static void task_begin(struct mst_shard *s, const struct mst_task *task)
{
	MST_ASSERT(follows(s, task));
	s->finite = true;
	if (task->kind == MST_TASK_GROUP)
		group_begin(s, task);
	else if (task->kind == MST_TASK_REDUCE)
		reduce_begin(s, task);
	else if (task->kind == MST_TASK_COMMIT)
		commit_begin(s, task);
	else if (task->kind == MST_TASK_EXAMINE)
		examine_begin(s);
	else if (task->kind == MST_TASK_ANSWER)
		answer_begin(s, task);
}

static void task_chunk(struct mst_shard *s, const struct mst_task *task, uint64_t first,
		       uint64_t count)
{
	switch (task->kind) {
	case MST_TASK_EXAMINE:
		examine_chunk(s, task, first, count);
		break;
	case MST_TASK_PARTIAL:
		partial_chunk(s, task, first, count);
		break;
	case MST_TASK_REDUCE:
		reduce_chunk(s, first, count);
		break;
	case MST_TASK_GROUP:
	case MST_TASK_COMMIT:
		s->finite &= mst_commit_range(&s->commit, first, count);
		break;
	case MST_TASK_ANSWER:
		answer_chunk(s, task, first, count);
		break;
	case MST_TASK_REPORT:
	case MST_TASK_SETTLE:
	case MST_TASK_SAVE:
	case MST_TASK_LEND:
		break; /* the aggregator's own */
	}
}

/* ---- progress ---- */

static const struct mst_task *task_at_hand(const struct mst_shard *s)
{
	const struct mst_aggregator *a = s->of;
	uint64_t done = atomic_load_explicit(&s->done, memory_order_relaxed);

	/* Acquire: pairs with the release in mst_task_add(), so that all of the task is visible. */
	if (done == atomic_load_explicit(&a->work_posted, memory_order_acquire))
		return NULL;
	return a->work[done % a->queue_size];
}

static bool is_last(const struct mst_shard *s, uint64_t done)
{
	const struct mst_aggregator *a = s->of;

	for (uint32_t i = 0; i < a->cfg.shards; i++)
		if (atomic_load_explicit(&a->shard[i]->done, memory_order_seq_cst) < done)
			return false;
	return true;
}

/* The shard that finishes last wakes the aggregator's thread, which may be asleep. All these stores
 * and loads have one order (seq_cst), so the shard whose store is the last sees all other
 * stores. */
static void task_end(struct mst_shard *s, const struct mst_task *task)
{
	const struct mst_aggregator *a = s->of;
	uint64_t done = atomic_load_explicit(&s->done, memory_order_relaxed) + 1;

	/* Visible with the count: */
	s->spoilt[(done - 1) % a->queue_size] = !s->finite;
	if (task->kind == MST_TASK_COMMIT)
		s->kept[task->commit.to] = task->commit.version;
	if (s->examined != NULL)
		s->examined[(done - 1) % a->queue_size] = (struct mst_examined){ s->squares,
										 s->sum };
	atomic_store_explicit(&s->cursor, 0, memory_order_relaxed);
	atomic_store_explicit(&s->done, done, memory_order_seq_cst);
	if (s->index > 0 && is_last(s, done))
		a->up.worked(a->up.ctx);
}

bool mst_shard_step(struct mst_shard *s)
{
	const struct mst_task *task = task_at_hand(s);
	uint64_t cursor = atomic_load_explicit(&s->cursor, memory_order_relaxed);
	uint64_t chunk = s->of->cfg.chunk_elems;

	if (task == NULL)
		return false;
	if (cursor == 0)
		task_begin(s, task);
	uint64_t left = s->range.end - s->range.begin - cursor;
	uint64_t count = left < chunk ? left : chunk;
	task_chunk(s, task, s->range.begin + cursor, count);
	if (count == left)
		task_end(s, task);
	else /* Release: what is written so far is visible to who reads how far it goes. */
		atomic_store_explicit(&s->cursor, cursor + count, memory_order_release);
	return true;
}

uint64_t mst_shard_reached(const struct mst_shard *s, uint64_t work)
{
	uint64_t done = atomic_load_explicit(&s->done, memory_order_acquire);

	if (done != work)
		return done > work ? s->range.end : s->range.begin;
	uint64_t cursor = atomic_load_explicit(&s->cursor, memory_order_acquire);
	/* A cursor of the task after it comes with a count that says so. */
	done = atomic_load_explicit(&s->done, memory_order_acquire);
	return done > work ? s->range.end : s->range.begin + cursor;
}

/* In the one order of is_last(), for the first shard's thread looks here before it sleeps: either
 * it finds the last of the others, or that one finds it. */
bool mst_shard_is_done(const struct mst_shard *s, uint64_t work)
{
	return atomic_load_explicit(&s->done, memory_order_seq_cst) > work;
}

bool mst_shard_spoilt(const struct mst_shard *s, uint64_t work)
{
	MST_ASSERT(mst_shard_is_done(s, work));
	return s->spoilt[work % s->of->queue_size];
}

/* ---- waiting ---- */

static bool has_work(void *shard)
{
	const struct mst_shard *s = shard;

	return task_at_hand(s) != NULL || atomic_load_explicit(&s->stopped, memory_order_relaxed);
}

void mst_shard_wait(struct mst_shard *s)
{
	if (mst_spin(&s->spin, &s->of->cfg.spin, mst_now_ns() + MST_SECOND, has_work, s))
		return;
	mst_eventcount_shut(&s->eventcount);
	if (has_work(s))
		mst_eventcount_leave(&s->eventcount);
	else
		mst_eventcount_wait(&s->eventcount, MST_SECOND);
}

void mst_shard_wake(struct mst_shard *s)
{
	mst_eventcount_open(&s->eventcount);
}

void mst_shard_stop(struct mst_shard *s)
{
	atomic_store_explicit(&s->stopped, true, memory_order_relaxed);
	mst_eventcount_open(&s->eventcount);
}
