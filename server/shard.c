/* SPDX-License-Identifier: MIT */
/* The arithmetic of jobs, on one range of the vector. */
#include "server/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/gate.h"
#include "common/kernels/commit.h"
#include "common/kernels/sum.h"
#include "common/transport/spin.h"
#include "server/aggregator_state.h"

struct mst_shard {
	const struct mst_aggregator *of;
	uint32_t index;
	struct mst_span range;
	struct mst_leaf *leaf; /* of the commit or group at work */
	struct mst_commit commit;
	/* Written by its thread alone. */
	_Atomic uint64_t done;   /* jobs that move data, so far */
	_Atomic uint64_t cursor; /* elements of the one at work */
	struct mst_gate gate;
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

uint64_t mst_shard_bytes(uint32_t entries_max)
{
	return sizeof(struct mst_shard) + (uint64_t)entries_max * sizeof(struct mst_leaf);
}

int mst_shard_new(const struct mst_aggregator *a, uint32_t index, struct mst_shard **out)
{
	struct mst_shard *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->of = a;
	s->index = index;
	s->range = (struct mst_span){ border(&a->cfg, index), border(&a->cfg, index + 1) };
	s->leaf = calloc(a->cfg.entries_max, sizeof(*s->leaf));
	if (s->leaf == NULL) {
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
	free(s);
}

struct mst_span mst_shard_range(const struct mst_shard *s)
{
	return s->range;
}

/* ---- sums ---- */

static struct mst_leaf leaf_of_fold(const struct mst_fold *fold)
{
	return (struct mst_leaf){ .rank = fold->rank, .partial = true, .data = fold->sum };
}

static struct mst_leaf leaf_of_slot(const struct mst_aggregator *a, const struct mst_slot *slot)
{
	return (struct mst_leaf){ .rank = slot->session->who.rank,
				  .coefficient = slot->coefficient,
				  .data = mst_slot_gradient(a, slot) };
}

/* The leaves of the tree: both chains merged by rank; a rank is in one of them only. */
static struct mst_tree gather(const struct mst_shard *s, const struct mst_slot *slot,
			      const struct mst_fold *fold)
{
	const struct mst_aggregator_cfg *cfg = &s->of->cfg;
	size_t count = 0;

	while (slot != NULL || fold != NULL) {
		MST_ASSERT(count < cfg->entries_max);
		if (slot == NULL || (fold != NULL && fold->rank < slot->session->who.rank)) {
			s->leaf[count++] = leaf_of_fold(fold);
			fold = fold->next;
		} else {
			s->leaf[count++] = leaf_of_slot(s->of, slot);
			slot = slot->next;
		}
	}
	return (struct mst_tree){
		.type = cfg->type, .group = cfg->group, .leaf = s->leaf, .leaf_count = count
	};
}

/* Larger than this, what is written has left the caches before anybody reads it. */
#define STREAM_BYTES (UINT64_C(32) << 20)

static bool is_streamed(const struct mst_aggregator_cfg *cfg, enum muster_type type)
{
	return cfg->elems * mst_type_bytes(type) >= STREAM_BYTES;
}

static void group_begin(struct mst_shard *s, const struct mst_job *job)
{
	s->commit = (struct mst_commit){ .tree = gather(s, job->group.slots, NULL),
					 .divisor = 1,
					 .result_type = MUSTER_F32,
					 .out = job->group.into->sum,
					 .streams = is_streamed(&s->of->cfg, MUSTER_F32) };
}

static enum mst_update update_of(const struct mst_aggregator_cfg *cfg)
{
	if (cfg->owner == MUSTER_WORKERS_OWN)
		return MST_UPDATE_NONE;
	return cfg->optimizer.kind == MST_OPTIMIZER_ADD ? MST_UPDATE_ADD : MST_UPDATE_SGD;
}

static void commit_begin(struct mst_shard *s, const struct mst_job *job)
{
	const struct mst_aggregator *a = s->of;
	void *out = mst_version_buffer(a, job->commit.buffer);

	s->commit = (struct mst_commit){
		.tree = gather(s, job->commit.slots, job->commit.folds),
		.divisor = job->commit.divisor,
		.result_type = a->cfg.result_type,
		.out = out,
		.streams = is_streamed(&a->cfg, a->cfg.result_type),
		.update = update_of(&a->cfg),
		.theta = a->theta != NULL ? a->theta : job->commit.before,
		.next = a->theta != NULL ? a->theta : out,
		.momentum = a->momentum,
		.mu = (float)a->cfg.optimizer.momentum,
		.rate = job->commit.rate,
	};
}

static void fold_chunk(const struct mst_shard *s, const struct mst_job *job, uint64_t first,
		       uint64_t count)
{
	const struct mst_aggregator *a = s->of;
	const char *gradient = mst_slot_gradient(a, job->fold.slot);
	const void *data = gradient + first * mst_type_bytes(a->cfg.type);
	float *sum = job->fold.into->sum + first;

	if (job->fold.starts)
		mst_sum_first(sum, data, a->cfg.type, job->fold.slot->coefficient, count);
	else
		mst_sum_add(sum, data, a->cfg.type, job->fold.slot->coefficient, count);
}

/* Straight to where the worker reads it: what announces it is put when all shards are done. */
static void answer_chunk(const struct mst_shard *s, const struct mst_job *job, uint64_t first,
			 uint64_t count)
{
	const struct mst_aggregator *a = s->of;
	size_t size = mst_type_bytes(a->cfg.result_type);
	const char *from = mst_version_buffer(a, job->answer.answer.buffer);
	char *to = (char *)job->answer.session->link->window + a->cfg.layout.down_result;

	memcpy(to + first * size, from + first * size, count * size);
}

static void job_begin(struct mst_shard *s, const struct mst_job *job)
{
	if (job->kind == MST_JOB_GROUP)
		group_begin(s, job);
	else if (job->kind == MST_JOB_COMMIT)
		commit_begin(s, job);
}

static void job_chunk(struct mst_shard *s, const struct mst_job *job, uint64_t first,
		      uint64_t count)
{
	switch (job->kind) {
	case MST_JOB_FOLD:
		fold_chunk(s, job, first, count);
		break;
	case MST_JOB_GROUP:
	case MST_JOB_COMMIT:
		mst_commit_range(&s->commit, first, count);
		break;
	case MST_JOB_ANSWER:
		answer_chunk(s, job, first, count);
		break;
	}
}

/* ---- progress ---- */

static const struct mst_job *job_at_hand(const struct mst_shard *s)
{
	const struct mst_aggregator *a = s->of;
	uint64_t done = atomic_load_explicit(&s->done, memory_order_relaxed);

	/* Acquire: pairs with mst_job_add(); what it wrote of the job is visible. */
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

/* Who finishes last tells the aggregator's thread, which may be asleep. In the one order of these
 * stores and loads, whose store is last finds all the others'. */
static void job_end(struct mst_shard *s)
{
	const struct mst_aggregator *a = s->of;
	uint64_t done = atomic_load_explicit(&s->done, memory_order_relaxed) + 1;

	atomic_store_explicit(&s->cursor, 0, memory_order_relaxed);
	atomic_store_explicit(&s->done, done, memory_order_seq_cst);
	if (s->index > 0 && is_last(s, done))
		a->up.worked(a->up.ctx);
}

bool mst_shard_step(struct mst_shard *s)
{
	const struct mst_job *job = job_at_hand(s);
	uint64_t cursor = atomic_load_explicit(&s->cursor, memory_order_relaxed);
	uint64_t chunk = s->of->cfg.chunk_elems;

	if (job == NULL)
		return false;
	if (cursor == 0)
		job_begin(s, job);
	uint64_t left = s->range.end - s->range.begin - cursor;
	uint64_t count = left < chunk ? left : chunk;
	job_chunk(s, job, s->range.begin + cursor, count);
	if (count == left)
		job_end(s);
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
	/* A cursor of the job after it comes with a count that says so. */
	done = atomic_load_explicit(&s->done, memory_order_acquire);
	return done > work ? s->range.end : s->range.begin + cursor;
}

/* In the one order of is_last(), for the first shard's thread looks here before it sleeps: either
 * it finds the last of the others, or that one finds it. */
bool mst_shard_is_done(const struct mst_shard *s, uint64_t work)
{
	return atomic_load_explicit(&s->done, memory_order_seq_cst) > work;
}

/* ---- waiting ---- */

static bool stirs(void *shard)
{
	const struct mst_shard *s = shard;

	return job_at_hand(s) != NULL || atomic_load_explicit(&s->stopped, memory_order_relaxed);
}

void mst_shard_wait(struct mst_shard *s)
{
	if (mst_spin(&s->spin, &s->of->cfg.spin, mst_now_ns() + MST_SECOND, stirs, s))
		return;
	mst_gate_shut(&s->gate);
	if (stirs(s))
		mst_gate_leave(&s->gate);
	else
		mst_gate_wait(&s->gate, MST_SECOND);
}

void mst_shard_wake(struct mst_shard *s)
{
	mst_gate_open(&s->gate);
}

void mst_shard_stop(struct mst_shard *s)
{
	atomic_store_explicit(&s->stopped, true, memory_order_relaxed);
	mst_gate_open(&s->gate);
}
