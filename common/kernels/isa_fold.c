/* SPDX-License-Identifier: MIT */
/*
 * Adds gradients up: once for each element of each gradient of a commit, so these loops are the
 * largest cost of a server. The sources of a step are gone through side by side, a line of each at
 * a time: an element's sum stays in a register from the first source to the last, and memory serves
 * streams that advance together best. What is AHEAD is asked for early, since the processor's own
 * prefetching ends at every page.
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

/* A number that the compiler knows, so that what it unrolls has no rest; lines of any type. */
#define BLOCK_ELEMS 64
#define LINE_BYTES 64
#define AHEAD_BYTES 1024

#define INLINE static inline __attribute__((always_inline))

INLINE float leaf_of(float g, float c, bool scaled)
{
	return scaled ? c * g : g;
}

/* @width, @begun and @scaled are constants where this is called. */
INLINE void fold(float *restrict sum, const float *const *from, const float *c, unsigned width,
		 bool begun, bool scaled, size_t count)
{
	const float *g[MST_FOLD_SOURCES];

	for (unsigned k = 0; k < width; k++)
		g[k] = from[k];
	for (size_t i = 0; i < count; i++) {
		float leaf = leaf_of(g[0][i], c[0], scaled);
		float acc = begun ? sum[i] + leaf : leaf;

#pragma GCC unroll 8
		for (unsigned k = 1; k < width; k++) {
			leaf = leaf_of(g[k][i], c[k], scaled);
			acc += leaf;
		}
		sum[i] = acc;
	}
}

INLINE void fold_width(float *sum, const float *const *from, const float *c, unsigned width,
		       bool begun, bool scaled, size_t count)
{
	if (scaled && begun)
		fold(sum, from, c, width, true, true, count);
	else if (scaled)
		fold(sum, from, c, width, false, true, count);
	else if (begun)
		fold(sum, from, c, width, true, false, count);
	else
		fold(sum, from, c, width, false, false, count);
}

/* Sources of f32: eight at a time while there are so many, then four, two, one. */
static void fold_block(const struct mst_fold_step *step, float *sum, const float *const *from)
{
	const float *c = step->coefficient;
	bool begun = step->begun;
	unsigned left = step->count;

	if (left >= 8) {
		fold_width(sum, from, c, 8, begun, step->scaled, BLOCK_ELEMS);
		return;
	}
	if (left >= 4) {
		fold_width(sum, from, c, 4, begun, step->scaled, BLOCK_ELEMS);
		from += 4, c += 4, left -= 4, begun = true;
	}
	if (left >= 2) {
		fold_width(sum, from, c, 2, begun, step->scaled, BLOCK_ELEMS);
		from += 2, c += 2, left -= 2, begun = true;
	}
	if (left > 0)
		fold_width(sum, from, c, 1, begun, step->scaled, BLOCK_ELEMS);
}

static void fold_rest(const struct mst_fold_step *step, float *sum, const float *const *from,
		      size_t count)
{
	for (unsigned k = 0; k < step->count; k++)
		fold_width(sum, from + k, step->coefficient + k, 1, step->begun || k > 0,
			   step->scaled, count);
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

INLINE void ask_ahead(const char *from, size_t bytes)
{
	uintptr_t ahead = (uintptr_t)from + AHEAD_BYTES;

	for (size_t line = 0; line < bytes; line += LINE_BYTES)
		__builtin_prefetch((const void *)(ahead + line));
}

static void fold_f32(const struct mst_fold_step *step, float *sum, size_t first, size_t count)
{
	const float *from[MST_FOLD_SOURCES];
	size_t done = 0;

	for (unsigned k = 0; k < step->count; k++)
		from[k] = (const float *)step->source[k] + first;
	for (; count - done >= BLOCK_ELEMS; done += BLOCK_ELEMS) {
		for (unsigned k = 0; k < step->count; k++)
			ask_ahead((const char *)from[k], BLOCK_ELEMS * sizeof(float));
		fold_block(step, sum + done, from);
		for (unsigned k = 0; k < step->count; k++)
			from[k] += BLOCK_ELEMS;
	}
	fold_rest(step, sum + done, from, count - done);
}

/* Widened into a buffer in the first cache, and added from there. */
static void fold_16bit(const struct mst_fold_step *step, float *sum, size_t first, size_t count)
{
	_Alignas(LINE_BYTES) float wide[MST_FOLD_SOURCES][BLOCK_ELEMS];
	const float *from[MST_FOLD_SOURCES];

	for (unsigned k = 0; k < step->count; k++)
		from[k] = wide[k];
	for (size_t done = 0, part; done < count; done += part) {
		part = count - done < BLOCK_ELEMS ? count - done : BLOCK_ELEMS;
		for (unsigned k = 0; k < step->count; k++) {
			const uint16_t *half = (const uint16_t *)step->source[k] + first + done;

			ask_ahead((const char *)half, BLOCK_ELEMS * sizeof(uint16_t));
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
			fold_block(step, sum + done, from);
		else
			fold_rest(step, sum + done, from, part);
	}
}

void MST_ISA_NAME(mst_fold)(const struct mst_fold_step *step, float *sum, size_t first,
			    size_t count)
{
	if (step->type == MUSTER_F32)
		fold_f32(step, sum, first, count);
	else
		fold_16bit(step, sum, first, count);
}
