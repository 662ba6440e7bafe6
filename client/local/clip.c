/* SPDX-License-Identifier: MIT */
#include "client/local/clip.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/settings.h"
#include "common/kernels/isa.h"
#include "common/kernels/sum.h"

#define SQUARED_AT_ONCE 1024u
#define BLOCK UINT64_C(4096)
#define WORD_BITS 64u

double mst_client_squares(const void *from, enum muster_type type, uint64_t count)
{
	const char *at = from;
	uint32_t bytes = mst_type_size(type);
	float block[SQUARED_AT_ONCE];
	double sum = 0;

	for (uint64_t done = 0; done < count; done += SQUARED_AT_ONCE) {
		size_t some = count - done < SQUARED_AT_ONCE ? (size_t)(count - done)
							     : SQUARED_AT_ONCE;
		mst_sum_load(block, at + done * bytes, type, some);
		sum += mst_isa()->squares(block, some);
	}
	return sum;
}

static uint64_t blocks_of(const struct mst_clip *c)
{
	return (c->elems + BLOCK - 1) / BLOCK;
}

static size_t seen_words(const struct mst_clip *c)
{
	return (size_t)((blocks_of(c) + WORD_BITS - 1) / WORD_BITS);
}

int mst_clip_init(struct mst_clip *c, double limit, uint64_t elems, enum muster_type type)
{
	*c = (struct mst_clip){ .limit = limit, .elems = elems, .type = type };
	if (limit == 0)
		return 0;
	c->seen = calloc(seen_words(c), sizeof(*c->seen));
	return c->seen != NULL ? 0 : -ENOMEM;
}

void mst_clip_fini(struct mst_clip *c)
{
	free(c->seen);
	c->seen = NULL;
}

void mst_clip_begin(struct mst_clip *c)
{
	c->squares = (struct mst_exact_sum){ { 0 } };
	memset(c->seen, 0, seen_words(c) * sizeof(*c->seen));
}

/* ---- blocks ---- */

static uint64_t end_of(const struct mst_clip *c, uint64_t block)
{
	uint64_t end = (block + 1) * BLOCK;

	return end < c->elems ? end : c->elems;
}

static bool is_seen(const struct mst_clip *c, uint64_t block)
{
	return c->seen[block / WORD_BITS] >> block % WORD_BITS & 1u;
}

static void add_block(struct mst_clip *c, uint64_t block, const void *data)
{
	size_t count = (size_t)(end_of(c, block) - block * BLOCK);
	float wide[BLOCK];
	const float *from = data;

	if (c->type != MUSTER_F32) {
		mst_sum_load(wide, data, c->type, count);
		from = wide;
	}
	mst_exact_add(&c->squares, mst_isa()->squares(from, count));
	c->seen[block / WORD_BITS] |= UINT64_C(1) << block % WORD_BITS;
}

/* The blocks [begin, end) lie wholly in the range. */
static struct mst_range whole_blocks(const struct mst_clip *c, const struct mst_range *range)
{
	struct mst_range whole = { (range->begin + BLOCK - 1) / BLOCK, range->end / BLOCK };

	if (range->end == c->elems)
		whole.end = blocks_of(c);
	return whole;
}

void mst_clip_range(struct mst_clip *c, const struct mst_range *range, const void *src)
{
	struct mst_range whole = whole_blocks(c, range);
	size_t size = mst_type_bytes(c->type);

	for (uint64_t block = whole.begin; block < whole.end; block++)
		add_block(c, block, (const char *)src + (block * BLOCK - range->begin) * size);
}

static size_t keep(const struct mst_clip *c, const struct mst_range *part, const char *src,
		   char *gradient)
{
	size_t size = mst_type_bytes(c->type);
	size_t bytes = part->begin < part->end ? (size_t)(part->end - part->begin) * size : 0;

	if (bytes > 0)
		memcpy(gradient + part->begin * size, src, bytes);
	return bytes;
}

size_t mst_clip_keep(const struct mst_clip *c, const struct mst_range *range, const void *src,
		     void *gradient)
{
	struct mst_range whole = whole_blocks(c, range);
	if (whole.begin >= whole.end)
		return keep(c, range, src, gradient);
	struct mst_range head = { range->begin, whole.begin * BLOCK };
	struct mst_range tail = { whole.end * BLOCK, range->end };
	size_t skipped = (size_t)(tail.begin - range->begin) * mst_type_bytes(c->type);

	return keep(c, &head, src, gradient) +
	       (tail.begin < tail.end ? keep(c, &tail, (const char *)src + skipped, gradient) : 0);
}

/* ---- the factor ---- */

/* If the norm is not finite, the gradient is not scaled. So the element that is not finite is found
 * in its place. */
static float factor_of(const struct mst_clip *c, double norm)
{
	if (!isfinite(norm) || norm <= c->limit)
		return 1;
	float factor = (float)(c->limit / norm);
	return factor > FLT_MIN ? factor : FLT_MIN;
}

void mst_clip_end(struct mst_clip *c, const void *gradient, struct mst_lane_header *header)
{
	size_t size = mst_type_bytes(c->type);

	if (header->flags & MST_HEADER_EMPTY)
		return;
	for (uint64_t block = 0; block < blocks_of(c); block++)
		if (!is_seen(c, block))
			add_block(c, block, (const char *)gradient + block * BLOCK * size);
	double samples = header->flags & MST_HEADER_SUM ? header->weight : 1;
	float factor = factor_of(c, sqrt(mst_exact_value(&c->squares)) / samples);
	if (factor == 1)
		return;
	header->clip = factor;
	header->flags |= MST_HEADER_CLIPPED;
}
