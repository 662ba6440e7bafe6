/* SPDX-License-Identifier: MIT */
#include "server/data/norms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/data/aggregator_state.h"

struct mst_norms_pass {
	const struct mst_aggregator *of;
	struct mst_span range;
	const float *theta; /* of the version before, and the states of that version */
	float *const *state;
	struct mst_figures figures;
	uint64_t done;           /* elements up to this one have been added up */
	uint32_t tensor;         /* the scale of the tensor that comes next */
	struct mst_squares open; /* of that tensor, so far */
	struct mst_edges edges;
	float direction[MST_SHARD_ELEMS_MIN]; /* of one block */
};

uint64_t mst_norms_bytes(const struct mst_optimizer *o)
{
	return mst_optimizer_trusts(o) ? sizeof(struct mst_norms_pass) : 0;
}

int mst_norms_new(const struct mst_aggregator *a, struct mst_span range,
		  struct mst_norms_pass **out)
{
	*out = NULL;
	if (!mst_optimizer_trusts(&a->cfg.optimizer))
		return 0;
	struct mst_norms_pass *p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	p->of = a;
	p->range = range;
	*out = p;
	return 0;
}

void mst_norms_free(struct mst_norms_pass *p)
{
	free(p);
}

const struct mst_edges *mst_norms_edges(const struct mst_norms_pass *p)
{
	return &p->edges;
}

/* ---- tensors ---- */

static uint32_t tensor_at(const struct mst_aggregator *a, uint64_t element)
{
	uint32_t low = 0, high = a->scales - 1; /* the tensor is in [low, high] */

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (a->scale[middle].end > element)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Does the tensor begin before that element, or end beyond it, perhaps at another server? */
static bool begins_before(const struct mst_aggregator *a, uint32_t tensor, uint64_t element)
{
	return tensor == 0 ? element > 0 || a->cut_left : a->scale[tensor - 1].end < element;
}

static bool ends_after(const struct mst_aggregator *a, uint32_t tensor, uint64_t element)
{
	return a->scale[tensor].end > element || (tensor + 1 == a->scales && a->cut_right);
}

static float decay_of(const struct mst_aggregator *a, uint32_t tensor)
{
	const struct mst_optimizer *o = &a->cfg.optimizer;

	return (float)o->parameter[o->row->decay] * a->scale[tensor].decay;
}

/* A tensor is read and written by the one shard that has all of it, or by the aggregator when all
 * shards are done. */
static void set_trust(const struct mst_aggregator *a, uint32_t tensor,
		      const struct mst_squares *squares)
{
	a->scale[tensor].trust = mst_optimizer_trust(&a->cfg.optimizer, squares,
						     decay_of(a, tensor));
}

/* ---- a shard's pass ---- */

void mst_norms_begin(struct mst_norms_pass *p, const struct mst_task *task)
{
	const struct mst_aggregator *a = p->of;

	const struct mst_kept_vectors *before = &a->kept[task->commit.from];

	p->theta = before->theta != NULL ? before->theta : task->commit.before;
	p->state = before->state;
	mst_optimizer_figures(&a->cfg.optimizer, &p->figures);
	memcpy(p->figures.scalar, task->commit.scalar, sizeof(p->figures.scalar));
	p->done = p->range.begin;
	p->tensor = tensor_at(a, p->range.begin);
	p->open = (struct mst_squares){ 0 };
	p->edges = (struct mst_edges){ 0 };
}

static void add_block(struct mst_norms_pass *p, uint64_t first, uint64_t count)
{
	const struct mst_aggregator *a = p->of;
	struct mst_figures figures = p->figures;
	struct mst_apply block = { .next = p->direction,
				   .theta = p->theta + first,
				   .mean = a->mean + first,
				   .figures = &figures,
				   .count = (size_t)count };

	figures.parameter[a->cfg.optimizer.row->decay] = decay_of(a, p->tensor);
	for (unsigned i = 0; i < MST_STATES_MAX; i++)
		block.state[i] = p->state[i] != NULL ? p->state[i] + first : NULL;
	mst_optimizer_add_block(&a->cfg.optimizer, &block, &p->open);
}

/* The tensor ends here, or the range does. */
static void end_tensor(struct mst_norms_pass *p)
{
	bool from_before = begins_before(p->of, p->tensor, p->range.begin);
	bool goes_on = ends_after(p->of, p->tensor, p->range.end);

	if (goes_on)
		p->edges.right = p->open;
	else if (from_before)
		p->edges.left = p->open;
	else
		set_trust(p->of, p->tensor, &p->open);
	p->edges.spans = from_before && goes_on;
	p->open = (struct mst_squares){ 0 };
	p->tensor++;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void mst_norms_go_on(struct mst_norms_pass *p, uint64_t reached)
{
	const struct mst_aggregator *a = p->of;

	while (p->done < reached) {
		uint64_t at = a->cfg.first + p->done;
		uint64_t block = p->done + MST_SHARD_ELEMS_MIN - at % MST_SHARD_ELEMS_MIN;
		uint64_t last = least(a->scale[p->tensor].end, p->range.end);
		uint64_t end = least(block, last);

		if (end > reached)
			return;
		add_block(p, p->done, end - p->done);
		p->done = end;
		if (end == last)
			end_tensor(p);
	}
}

/* ---- all shards together ---- */

/* What lies in shards of the tensor that ends in a shard is complete, but for what lies at the
 * server before. */
static void end_across(struct mst_aggregator *a, uint32_t tensor, const struct mst_squares *squares,
		       struct mst_edges *out)
{
	if (tensor == 0 && a->cut_left)
		out->left = *squares;
	else
		set_trust(a, tensor, squares);
}

/* Goes through the shards in order: a tensor that goes on from one to the next is carried along. */
static void join_shards(struct mst_aggregator *a, struct mst_edges *out)
{
	struct mst_squares carried = { 0 };

	*out = (struct mst_edges){ .spans = a->scales == 1 && a->cut_left && a->cut_right };
	for (uint32_t i = 0; i < a->cfg.shards; i++) {
		const struct mst_edges *edges = mst_shard_edges(a->shard[i]);
		uint64_t begin = mst_shard_range(a->shard[i]).begin;
		uint32_t tensor = tensor_at(a, begin);

		if (edges->spans) {
			mst_squares_join(&carried, &edges->right);
			continue;
		}
		mst_squares_join(&carried, &edges->left);
		if (begins_before(a, tensor, begin))
			end_across(a, tensor, &carried, out);
		carried = edges->right;
	}
	out->right = carried;
}

void mst_norms_report(struct mst_aggregator *a, uint64_t version)
{
	struct mst_ledger_event ev = { .kind = MST_EV_REDUCED };
	struct mst_edges edges;

	join_shards(a, &edges);
	ev.reduced.shard = a->cfg.index;
	ev.reduced.version = version;
	ev.reduced.spans = edges.spans;
	for (uint32_t sum = 0; sum < MST_EDGE_SUMS; sum++) {
		bool right = mst_edge_is_right(sum);

		ev.reduced.sum = sum;
		ev.reduced.decay = decay_of(a, right ? a->scales - 1 : 0);
		ev.reduced.squares = *mst_edge_of(right ? &edges.right : &edges.left, sum);
		a->up.event(a->up.ctx, &ev);
	}
}

void mst_norms_take(struct mst_aggregator *a, const float trust[MST_SERVERS_MAX - 1])
{
	if (!mst_optimizer_trusts(&a->cfg.optimizer))
		return;
	/* the part of the first server begins with the vector, and that of the last ends with it */
	MST_ASSERT(!a->cut_left || a->cfg.index > 0);
	MST_ASSERT(!a->cut_right || a->cfg.index < MST_SERVERS_MAX - 1);
	if (a->cut_left)
		a->scale[0].trust = trust[a->cfg.index - 1];
	if (a->cut_right)
		a->scale[a->scales - 1].trust = trust[a->cfg.index];
}
