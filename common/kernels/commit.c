/* SPDX-License-Identifier: MIT */
/*
 * A commit strip by strip: a strip's sums stay in the first cache from the first leaf to the
 * rounded result, so that memory is gone through once.
 */
#include "common/kernels/commit.h"

#include <stdint.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/kernels/plan.h"
#include "common/kernels/sum.h"

#define LINE_BYTES 64
#define AHEAD_BYTES 1024

/* What a strip needs, in the first cache. */
struct desk {
	_Alignas(LINE_BYTES) float sum[MST_SUMS][MST_STRIP_ELEMS];
	_Alignas(LINE_BYTES) float next[MST_STRIP_ELEMS];
};

/* What the optimiser reads once a strip is asked for early, like what is summed. */
static void ask_ahead(const float *from, size_t count)
{
	uintptr_t ahead = (uintptr_t)from + AHEAD_BYTES;

	for (size_t line = 0; line < count * sizeof(*from); line += LINE_BYTES)
		__builtin_prefetch((const void *)(ahead + line));
}

/* Return: what is to be rounded: the mean, or the parameters made of it. */
static const float *update(const struct mst_commit *c, struct desk *desk, size_t first,
			   size_t count)
{
	const struct mst_isa *isa = mst_isa();
	const float *slope = desk->sum[MST_SUM_TOTAL];

	if (c->update == MST_UPDATE_NONE)
		return slope;
	ask_ahead(c->theta + first, count);
	if (c->update == MST_UPDATE_ADD) {
		isa->ascend(desk->next, c->theta + first, slope, count);
	} else {
		if (c->mu != 0.0f) {
			ask_ahead(c->momentum + first, count);
			isa->accumulate(c->momentum + first, slope, c->mu, count);
			slope = c->momentum + first;
		}
		isa->descend(desk->next, c->theta + first, slope, c->rate, count);
	}
	if (c->next != c->out)
		memcpy(c->next + first, desk->next, count * sizeof(*c->next));
	return desk->next;
}

static void commit_strip(const struct mst_commit *c, struct mst_plan *plan, struct desk *desk,
			 size_t first, size_t count)
{
	struct mst_strip strip = { .first = first,
				   .count = count,
				   .sum = { desk->sum[0], desk->sum[1], desk->sum[2] } };
	char *out = (char *)c->out + first * mst_type_bytes(c->result_type);
	const float *result;

	mst_plan_sum(plan, &strip);
	mst_sum_divide(strip.sum[MST_SUM_TOTAL], c->divisor, count);
	result = update(c, desk, first, count);
	if (c->streams)
		mst_isa()->stream(out, c->result_type, result, count);
	else
		mst_isa()->store(out, c->result_type, result, count);
}

/* Strips end at multiples of their length: where the result begins with a line, they are lines. */
void mst_commit_range(const struct mst_commit *commit, size_t first, size_t count)
{
	struct mst_plan plan;
	struct desk desk;
	size_t end = first + count;

	MST_ASSERT(commit->momentum != NULL || commit->update != MST_UPDATE_SGD ||
		   commit->mu == 0.0f);
	MST_ASSERT(commit->update == MST_UPDATE_NONE ||
		   (commit->next == commit->out) == (commit->result_type == MUSTER_F32));
	mst_plan_make(&plan, &commit->tree);
	for (size_t part; first < end; first += part) {
		part = MST_STRIP_ELEMS - first % MST_STRIP_ELEMS;
		part = end - first < part ? end - first : part;
		commit_strip(commit, &plan, &desk, first, part);
	}
	if (commit->streams)
		mst_isa()->drain();
}
