/* SPDX-License-Identifier: MIT */
/* The reader of one instruction set; see ceiling.h. */
#include "common/kernels/isa.h"
#include "tests/bench/ceiling.h"

#define LINE_BYTES 64
#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define WRITE_PAST "vmovntdq %1, %0"
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define WRITE_PAST "vmovntdq %1, %0"
#else
#define VECTOR_BYTES 16
#define WRITE_PAST "movntdq %1, %0"
#endif

/* A register. A wider type would be taken apart in memory. */
typedef uint64_t vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

/* Whole lines, at a line's start. */
INLINE void write_lines(char *to, vector v, size_t bytes, bool past)
{
	for (size_t i = 0; i < bytes; i += VECTOR_BYTES) {
		vector *at = (vector *)(void *)(to + i);

#ifdef __x86_64__
		if (past) {
			__asm__ volatile(WRITE_PAST : "=m"(*at) : "v"(v));
			continue;
		}
#endif
		(void)past;
		*at = v;
	}
}

/* @step and @past are constants where this is called. */
INLINE uint64_t go_through(const struct ceiling *c, size_t first, size_t bytes, size_t step,
			   bool past)
{
	size_t ahead = c->how->ahead;
	vector all[CEILING_STEP_BYTES / VECTOR_BYTES] = { { 0 } }, ones = (vector){ 0 } + 1;
	uint64_t mixed = 0;

	for (size_t at = first; at < first + bytes; at += step) {
		for (unsigned k = 0; k < c->reads; k++) {
			const char *from = c->read[k] + at;

			for (size_t i = 0; i < step && ahead > 0; i += LINE_BYTES)
				__builtin_prefetch(from + ahead + i);
#pragma GCC unroll 16
			for (size_t i = 0; i < step / VECTOR_BYTES; i++)
				all[i] |= ((const vector *)(const void *)from)[i];
		}
		for (unsigned k = 0; k < c->replaces; k++)
			write_lines(c->replaced[k] + at, ones, step, false);
		if (c->written != NULL)
			write_lines(c->written + at, ones, step, past);
	}
	for (size_t i = 0; i < step / VECTOR_BYTES; i++)
		for (size_t w = 0; w < VECTOR_BYTES / sizeof(uint64_t); w++)
			mixed |= all[i][w];
	return mixed;
}

INLINE uint64_t go_by(const struct ceiling *c, size_t first, size_t bytes, bool past)
{
	if (c->how->lines == 1)
		return go_through(c, first, bytes, LINE_BYTES, past);
	if (c->how->lines == 2)
		return go_through(c, first, bytes, 2 * LINE_BYTES, past);
	return go_through(c, first, bytes, 4 * LINE_BYTES, past);
}

ceiling_fn MST_ISA_NAME(ceiling);

uint64_t MST_ISA_NAME(ceiling)(const struct ceiling *c, size_t first, size_t bytes)
{
	return c->how->past ? go_by(c, first, bytes, true) : go_by(c, first, bytes, false);
}
