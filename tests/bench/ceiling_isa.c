/* SPDX-License-Identifier: MIT */
/* The reader of one instruction set; see ceiling.h. */
#include <string.h>

#include "common/kernels/isa.h"
#include "tests/bench/ceiling.h"

#define AHEAD_BYTES 2048
#define LINE_BYTES 64
#define LINES (CEILING_STEP_BYTES / LINE_BYTES)

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define VECTORS (CEILING_STEP_BYTES / VECTOR_BYTES)

/* A register. A wider type would be taken apart in memory. */
typedef uint64_t vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

static void write_past(char *to, const uint64_t *word)
{
#ifdef __x86_64__
	for (size_t i = 0; i < LINE_BYTES / sizeof(*word); i++)
		__asm__ volatile("movnti %1, %0"
				 : "=m"(((uint64_t *)(void *)to)[i])
				 : "r"(word[i]));
#else
	memcpy(to, word, LINE_BYTES);
#endif
}

ceiling_fn MST_ISA_NAME(ceiling);

uint64_t MST_ISA_NAME(ceiling)(const struct ceiling *c, size_t first, size_t bytes)
{
	static const uint64_t word[LINE_BYTES / sizeof(uint64_t)] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	vector all[VECTORS] = { { 0 } };
	uint64_t mixed = 0;

	for (size_t at = first; at < first + bytes; at += CEILING_STEP_BYTES) {
		for (unsigned k = 0; k < c->reads; k++) {
			const char *from = c->read[k] + at;

			for (size_t i = 0; i < LINES && c->ahead; i++)
				__builtin_prefetch(from + AHEAD_BYTES + i * LINE_BYTES);
#pragma GCC unroll 8
			for (size_t i = 0; i < VECTORS; i++)
				all[i] |= ((const vector *)(const void *)from)[i];
		}
		for (size_t i = 0; i < LINES && c->replaced != NULL; i++)
			memcpy(c->replaced + at + i * LINE_BYTES, word, LINE_BYTES);
		for (size_t i = 0; i < LINES && c->written != NULL; i++)
			write_past(c->written + at + i * LINE_BYTES, word);
	}
	for (size_t i = 0; i < VECTORS; i++)
		for (size_t w = 0; w < VECTOR_BYTES / sizeof(uint64_t); w++)
			mixed |= all[i][w];
	return mixed;
}
