/* SPDX-License-Identifier: MIT */
/*
 * A commit tile by tile: a tile's sums stay in the first cache from the first leaf to the
 * rounded result, so that memory is gone through once.
 */
#include "common/kernels/commit.h"

#include <stdint.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/kernels/plan.h"
#include "common/kernels/sum.h"

#define LINE_BYTES 64

/* What a tile needs, in the first cache. */
struct scratch {
	_Alignas(LINE_BYTES) float sum[MST_SUMS][MST_TILE_MAX];
	_Alignas(LINE_BYTES) float next[MST_TILE_MAX];
};

/* Prefetches what the optimiser reads, as far ahead as the sources of the sum are prefetched. */
static void ask_ahead(const struct mst_variant *how, const float *from, size_t count)
{
	uintptr_t ahead = (uintptr_t)from + how->ahead;

	for (size_t line = 0; line < count * sizeof(*from) && how->ahead > 0; line += LINE_BYTES)
		__builtin_prefetch((const void *)(ahead + line));
}

/* The scale of an element. */
static const struct mst_scale *scale_at(const struct mst_commit *c, size_t element)
{
	size_t low = 0, high = c->scales - 1; /* the scale is in [low, high] */

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->scale[middle].end > element)
			high = middle;
		else
			low = middle + 1;
	}
	return &c->scale[low];
}

/* The part of a tile from its element @from on. */
static struct mst_apply part_of(const struct mst_apply *tile, size_t from, size_t count)
{
	struct mst_apply part = { .next = tile->next + from,
				  .theta = tile->theta + from,
				  .mean = tile->mean + from,
				  .count = count };

	for (size_t i = 0; i < MST_STATES_MAX; i++)
		part.state[i] = tile->state[i] != NULL ? tile->state[i] + from : NULL;
	return part;
}

/* Applies the optimiser to a tile in pieces: all elements of a piece have the same scales. */
static void apply_scaled(const struct mst_commit *c, mst_apply_fn *kernel,
			 const struct mst_apply *tile, size_t first)
{
	const struct mst_scale *scale = scale_at(c, first);

	for (size_t done = 0; done < tile->count; scale++) {
		MST_ASSERT(scale < c->scale + c->scales && scale->end > first + done);
		size_t left = tile->count - done, most = scale->end - first - done;
		struct mst_apply piece = part_of(tile, done, left < most ? left : most);
		struct mst_figures figures = c->figures;

		figures.scalar[MST_SCALAR_RATE] *= scale->rate;
		figures.scalar[MST_SCALAR_RATE] *= scale->trust;
		figures.parameter[c->decay] *= scale->decay;
		piece.figures = &figures;
		kernel(&piece);
		done += piece.count;
	}
}

/* What is kept of a vector before a commit goes on in @to, where kernels work in place. */
static void carry(const struct mst_variant *how, float *to, const float *before, size_t count)
{
	ask_ahead(how, before, count);
	if (before != to)
		memcpy(to, before, count * sizeof(*to));
}

/* The parameters are still in the first cache. */
static void average(const struct mst_commit *c, const struct mst_sum_plan *plan,
		    const struct mst_apply *tile, size_t first)
{
	float *to = c->average + first;
	const float *before = c->average_before != NULL ? c->average_before + first : to;

	carry(plan->how, to, before, tile->count);
	plan->isa->blend(to, tile->next, c->average_rest, tile->count);
}

/* Return: what is to be rounded: the mean, or the parameters made of it. */
static const float *update(const struct mst_commit *c, const struct mst_sum_plan *plan,
			   struct scratch *scratch, size_t first, size_t count)
{
	struct mst_apply tile = { .next = scratch->next,
				  .mean = scratch->sum[MST_SUM_TOTAL],
				  .figures = &c->figures,
				  .count = count };

	if (c->apply == NULL)
		return tile.mean;
	tile.theta = c->theta + first;
	ask_ahead(plan->how, tile.theta, count);
	for (size_t i = 0; i < MST_STATES_MAX; i++) {
		if (c->state[i] == NULL)
			continue;
		tile.state[i] = c->state[i] + first;
		carry(plan->how, tile.state[i],
		      (c->before[i] != NULL ? c->before[i] : c->state[i]) + first, count);
	}
	if (c->scale != NULL)
		apply_scaled(c, c->apply[plan->isa->index], &tile, first);
	else
		c->apply[plan->isa->index](&tile);
	if (c->average != NULL)
		average(c, plan, &tile, first);
	if (c->next != c->out)
		memcpy(c->next + first, scratch->next, count * sizeof(*c->next));
	return scratch->next;
}

/* Return: whether the result is finite. Then so is what it was made of: rounding keeps infinity and
 * NaN, and a sum, a product or a difference with one of them in it is one of them. */
static bool commit_tile(const struct mst_commit *c, struct mst_sum_plan *plan,
			struct scratch *scratch, size_t first, size_t count)
{
	struct mst_tile tile = { .first = first,
				 .count = count,
				 .sum = { scratch->sum[0], scratch->sum[1], scratch->sum[2] } };
	char *out = (char *)c->out + first * mst_type_bytes(c->result_type);
	const float *result;

	mst_plan_sum(plan, &tile);
	mst_sum_divide(tile.sum[MST_SUM_TOTAL], c->divisor, count);
	result = update(c, plan, scratch, first, count);
	if (c->streams)
		return plan->isa->stream(out, c->result_type, result, count);
	return plan->isa->store(out, c->result_type, result, count);
}

/* Tiles end at multiples of their length: where the result begins with a line, they are lines. */
bool mst_commit_range(const struct mst_commit *commit, size_t first, size_t count)
{
	struct mst_sum_plan plan;
	struct scratch scratch;
	size_t end = first + count;
	bool finite = true;

	MST_ASSERT(commit->apply == NULL ||
		   (commit->next == commit->out) == (commit->result_type == MUSTER_F32));
	mst_plan_make(&plan, &commit->tree);
	for (size_t part; first < end; first += part) {
		part = plan.how->tile - first % plan.how->tile;
		part = end - first < part ? end - first : part;
		finite &= commit_tile(commit, &plan, &scratch, first, part);
	}
	if (commit->streams)
		plan.isa->drain();
	return finite;
}
