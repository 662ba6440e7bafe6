/* SPDX-License-Identifier: MIT */
/* Rounds sums to results, through the caches or past them. Whether all results are finite is seen
 * by what is rounded, in a loop of its own: it costs next to nothing in the first cache. */
#include "common/kernels/element.h"
#include "common/kernels/isa_parts.h"
#include "common/kernels/isa_vector.h"

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

/* The OR of sums that reach the sign's bit where a magnitude is not below the least one that rounds
 * to infinity; NaN is above all. */
static bool rounds_finitely(const float *acc, enum muster_type type, size_t count)
{
	uint32_t reach = F32_SIGN - mst_element_overflow(type), seen = 0;

	for (size_t i = 0; i < count; i++)
		seen |= (mst_element_bits(acc[i]) & ~F32_SIGN) + reach;
	return (seen & F32_SIGN) == 0;
}

bool MST_ISA_NAME(mst_store)(void *out, enum muster_type type, const float *acc, size_t count)
{
	bool finite = rounds_finitely(acc, type, count);

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
	return finite;
}

/* From registers straight to whole lines, at a line's start. */
static bool stream_f32(float *out, const float *acc, size_t count)
{
	vector32 magnitude = (vector32){ 0 } + INT32_MAX, inf = (vector32){ 0 } + (int32_t)F32_INF;
	vector32 nan = (vector32){ 0 } + (int32_t)F32_NAN, seen = { 0 };
	int32_t all = 0;

	for (size_t i = 0; i < count; i += VECTOR_BYTES / sizeof(float)) {
		vector32 v = *(const vector32 *)(const void *)(acc + i),
			 none = (v & magnitude) > inf;

		seen |= (v & magnitude) >= inf;
		v = (nan & none) | (v & ~none);
		VECTOR_PAST(out + i, v);
	}
	for (size_t i = 0; i < VECTOR_BYTES / sizeof(float); i++)
		all |= seen[i];
	return all == 0;
}

/* The first part ends where a line of the result begins, so that all others are whole lines. */
bool MST_ISA_NAME(mst_stream)(void *out, enum muster_type type, const float *acc, size_t count)
{
	_Alignas(LINE_BYTES) char block[BLOCK_BYTES];
	size_t size = type == MUSTER_F32 ? sizeof(float) : sizeof(uint16_t);
	size_t head = -(uintptr_t)out % LINE_BYTES / size;
	size_t part = head > 0 ? head : BLOCK_BYTES / size;
	char *to = out;
	bool finite = true;

	if (type == MUSTER_F32 && head == 0 && count * size % LINE_BYTES == 0)
		return stream_f32(out, acc, count);
	for (size_t done = 0; done < count; done += part, part = BLOCK_BYTES / size) {
		part = part < count - done ? part : count - done;
		(void)MST_ISA_NAME(mst_store)(block, type, acc + done, part);
		finite &= MST_ISA_NAME(mst_copy_past)(to + done * size, block, type, part);
	}
	return finite;
}
