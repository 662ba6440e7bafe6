/* SPDX-License-Identifier: MIT */
/* Rounds sums to results, through the caches or past them. */
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "common/kernels/element.h"
#include "common/kernels/isa_parts.h"

#define LINE_BYTES 64
#define BLOCK_BYTES 1024

static void store_f32(float *restrict out, const float *restrict acc, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = mst_element_canonical(acc[i]);
}

static void store_f32_in_place(float *acc, size_t count)
{
	for (size_t i = 0; i < count; i++)
		acc[i] = mst_element_canonical(acc[i]);
}

static void store_bf16(uint16_t *restrict out, const float *restrict acc, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = mst_element_to_bf16(acc[i]);
}

#ifdef __F16C__

#define WIDTH 16

/* The processor's conversion rounds as mst_element_to_f16() does, and leaves a NaN its payload. */
static size_t store_f16_wide(uint16_t *restrict out, const float *restrict acc, size_t count)
{
	_Alignas(LINE_BYTES) float clean[WIDTH];
	size_t done = 0;

	for (; count - done >= WIDTH; done += WIDTH) {
		for (size_t i = 0; i < WIDTH; i++)
			clean[i] = mst_element_canonical(acc[done + i]);
		for (size_t i = 0; i < WIDTH; i += 8)
			_mm_storeu_si128((__m128i *)(void *)(out + done + i),
					 _mm256_cvtps_ph(_mm256_load_ps(clean + i),
							 _MM_FROUND_TO_NEAREST_INT));
	}
	return done;
}

#else

static size_t store_f16_wide(uint16_t *out, const float *acc, size_t count)
{
	(void)out, (void)acc, (void)count;
	return 0;
}

#endif

static void store_f16(uint16_t *restrict out, const float *restrict acc, size_t count)
{
	for (size_t i = store_f16_wide(out, acc, count); i < count; i++)
		out[i] = mst_element_to_f16(acc[i]);
}

void MST_ISA_NAME(mst_store)(void *out, enum muster_type type, const float *acc, size_t count)
{
	switch (type) {
	case MUSTER_F32:
		if (out == acc)
			store_f32_in_place(out, count);
		else
			store_f32(out, acc, count);
		break;
	case MUSTER_BF16:
		store_bf16(out, acc, count);
		break;
	case MUSTER_F16:
		store_f16(out, acc, count);
		break;
	}
}

#ifdef __SSE2__

/* Whole lines, from a line's start: the processor writes them without reading them before. */
static void copy_lines(char *out, const char *in, size_t bytes)
{
#ifdef __AVX512F__
	for (size_t at = 0; at < bytes; at += LINE_BYTES)
		_mm512_stream_si512((void *)(out + at), _mm512_load_si512(in + at));
#else
	for (size_t at = 0; at < bytes; at += sizeof(__m128i))
		_mm_stream_si128((__m128i *)(void *)(out + at),
				 _mm_load_si128((const __m128i *)(const void *)(in + at)));
#endif
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

void MST_ISA_NAME(mst_stream)(void *out, enum muster_type type, const float *acc, size_t count)
{
	_Alignas(LINE_BYTES) char block[BLOCK_BYTES];
	size_t size = type == MUSTER_F32 ? sizeof(float) : sizeof(uint16_t);
	size_t head = (LINE_BYTES - (uintptr_t)out % LINE_BYTES) % LINE_BYTES / size;
	size_t part = min(head, count);
	char *to = (char *)out + part * size;

	MST_ISA_NAME(mst_store)(out, type, acc, part);
	for (count -= part, acc += part; count * size >= LINE_BYTES; count -= part, acc += part) {
		part = min(count, BLOCK_BYTES / size) * size / LINE_BYTES * LINE_BYTES / size;
		MST_ISA_NAME(mst_store)(block, type, acc, part);
		copy_lines(to, block, part * size);
		to += part * size;
	}
	MST_ISA_NAME(mst_store)(to, type, acc, count);
}

void MST_ISA_NAME(mst_drain)(void)
{
	_mm_sfence();
}

#else

void MST_ISA_NAME(mst_stream)(void *out, enum muster_type type, const float *acc, size_t count)
{
	MST_ISA_NAME(mst_store)(out, type, acc, count);
}

void MST_ISA_NAME(mst_drain)(void) {}

#endif
