/* SPDX-License-Identifier: MIT */
/*
 * Adds gradients up: once for each element of each gradient of a commit, so these loops are the
 * largest cost of a server. The sources of a step are gone through side by side, a line of each at
 * or a few at a time: an element's sum stays in a register from the first source to the last, and
 * memory serves streams that advance together best. How many lines, and whether what is ahead is
 * asked for early, is for the variant to say: some processors gain by it and others lose.
 *
 * No loop carries anything from one element to the next, and what one writes no other pointer of it
 * reaches; so they vectorise without a change of bits. -0.0 and payloads of NaN pass as the
 * processor hands them on.
 */
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "common/kernels/element.h"
#include "common/kernels/isa_parts.h"

#define LINE_BYTES 64
#define LINE_ELEMS (LINE_BYTES / sizeof(float))
/* Elements of 16 bits that are widened together: two cache lines. */
#define BLOCK_ELEMS 64

#define INLINE static inline __attribute__((always_inline))

INLINE float leaf_of(float g, float c, bool scaled)
{
	return scaled ? c * g : g;
}

/* What a loop is made for, constants where it is called: the number of sources, and how many
 * elements of each are added in a turn. */
struct shape {
	unsigned width;
	size_t turn;
};

INLINE void ask_ahead(const void *from, size_t bytes, size_t ahead)
{
	for (size_t line = 0; line < bytes; line += LINE_BYTES)
		__builtin_prefetch((const void *)((uintptr_t)from + ahead + line));
}

/* Whole turns. @begun and @scaled are constants too. */
INLINE void accumulate(float *restrict sum, const float *const *from, const float *c,
		       struct shape shape, bool begun, bool scaled, size_t ahead, size_t count)
{
	const float *g[MST_SUM_SOURCES];

	for (unsigned k = 0; k < shape.width; k++)
		g[k] = from[k];
	for (size_t at = 0; at < count; at += shape.turn) {
		for (unsigned k = 0; k < shape.width && ahead > 0; k++)
			ask_ahead(g[k] + at, shape.turn * sizeof(float), ahead);
		for (size_t i = at; i < at + shape.turn; i++) {
			float leaf = leaf_of(g[0][i], c[0], scaled);
			float acc = begun ? sum[i] + leaf : leaf;

#pragma GCC unroll 8
			for (unsigned k = 1; k < shape.width; k++) {
				leaf = leaf_of(g[k][i], c[k], scaled);
				acc += leaf;
			}
			sum[i] = acc;
		}
	}
}

INLINE void accumulate_width(float *sum, const float *const *from, const struct mst_sum_step *step,
			     unsigned at, struct shape shape, size_t ahead, size_t count)
{
	const float *c = step->coefficient + at;
	bool begun = step->begun || at > 0;

	from += at;
	if (step->scaled && begun)
		accumulate(sum, from, c, shape, true, true, ahead, count);
	else if (step->scaled)
		accumulate(sum, from, c, shape, false, true, ahead, count);
	else if (begun)
		accumulate(sum, from, c, shape, true, false, ahead, count);
	else
		accumulate(sum, from, c, shape, false, false, ahead, count);
}

/* Eight sources at a time while eight are left, then four, two, one. @turn is a constant where
 * this is called, so that what the compiler unrolls has no rest. */
INLINE void accumulate_turns(float *sum, const float *const *from, const struct mst_sum_step *step,
			     size_t turn, size_t ahead, size_t count)
{
	unsigned at = 0, sources = step->count;

	if (sources >= 8) {
		accumulate_width(sum, from, step, 0, (struct shape){ 8, turn }, ahead, count);
		return;
	}
	if (sources >= 4) {
		accumulate_width(sum, from, step, at, (struct shape){ 4, turn }, ahead, count);
		at += 4;
	}
	if (sources - at >= 2) {
		accumulate_width(sum, from, step, at, (struct shape){ 2, turn }, ahead, count);
		at += 2;
	}
	if (sources > at)
		accumulate_width(sum, from, step, at, (struct shape){ 1, turn }, ahead, count);
}

static void accumulate_rest(float *sum, const float *const *from, const struct mst_sum_step *step,
			    size_t count)
{
	for (unsigned k = 0; k < step->count; k++)
		accumulate_width(sum, from, step, k, (struct shape){ 1, 1 }, 0, count);
}

INLINE void widen_bf16(float *restrict out, const uint16_t *restrict in, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = mst_element_of_bf16(in[i]);
}

INLINE void widen_f16(float *restrict out, const uint16_t *restrict in, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = mst_element_of_f16(in[i]);
}

INLINE void widen_f16_block(float *restrict out, const uint16_t *restrict in)
{
#ifdef __AVX512F__
	for (size_t i = 0; i < BLOCK_ELEMS; i += 16)
		_mm512_storeu_ps(out + i,
				 _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(in + i))));
#elif defined(__F16C__)
	for (size_t i = 0; i < BLOCK_ELEMS; i += 8)
		_mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i))));
#else
	widen_f16(out, in, BLOCK_ELEMS);
#endif
}

static void accumulate_f32(const struct mst_sum_step *step, const struct mst_variant *how,
			   float *sum, size_t first, size_t count)
{
	const float *from[MST_SUM_SOURCES];
	size_t whole = count - count % (how->lines * LINE_ELEMS);

	for (unsigned k = 0; k < step->count; k++)
		from[k] = (const float *)step->source[k] + first;
	if (how->lines == 1)
		accumulate_turns(sum, from, step, LINE_ELEMS, how->ahead, whole);
	else if (how->lines == 2)
		accumulate_turns(sum, from, step, 2 * LINE_ELEMS, how->ahead, whole);
	else
		accumulate_turns(sum, from, step, 4 * LINE_ELEMS, how->ahead, whole);
	if (whole == count)
		return;
	for (unsigned k = 0; k < step->count; k++)
		from[k] += whole;
	accumulate_rest(sum + whole, from, step, count - whole);
}

/* Widened into a buffer in the first cache, and added from there. */
static void accumulate_16bit(const struct mst_sum_step *step, const struct mst_variant *how,
			     float *sum, size_t first, size_t count)
{
	_Alignas(LINE_BYTES) float wide[MST_SUM_SOURCES][BLOCK_ELEMS];
	const float *from[MST_SUM_SOURCES];

	for (unsigned k = 0; k < step->count; k++)
		from[k] = wide[k];
	for (size_t done = 0, part; done < count; done += part) {
		part = count - done < BLOCK_ELEMS ? count - done : BLOCK_ELEMS;
		for (unsigned k = 0; k < step->count; k++) {
			const uint16_t *half = (const uint16_t *)step->source[k] + first + done;

			if (how->ahead > 0)
				ask_ahead(half, BLOCK_ELEMS * sizeof(uint16_t), how->ahead);
			if (step->type == MUSTER_BF16 && part == BLOCK_ELEMS)
				widen_bf16(wide[k], half, BLOCK_ELEMS);
			else if (step->type == MUSTER_BF16)
				widen_bf16(wide[k], half, part);
			else if (part == BLOCK_ELEMS)
				widen_f16_block(wide[k], half);
			else
				widen_f16(wide[k], half, part);
		}
		if (part == BLOCK_ELEMS)
			accumulate_turns(sum + done, from, step, BLOCK_ELEMS, 0, BLOCK_ELEMS);
		else
			accumulate_rest(sum + done, from, step, part);
	}
}

void MST_ISA_NAME(mst_accumulate)(const struct mst_sum_step *step, const struct mst_variant *how,
				  float *sum, size_t first, size_t count)
{
	if (step->type == MUSTER_F32)
		accumulate_f32(step, how, sum, first, count);
	else
		accumulate_16bit(step, how, sum, first, count);
}
