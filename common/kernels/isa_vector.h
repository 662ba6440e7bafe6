/* SPDX-License-Identifier: MIT */
/* A register of the instruction set that is compiled, and how it is written past the caches. */
#ifndef MST_KERNELS_ISA_VECTOR_H
#define MST_KERNELS_ISA_VECTOR_H

#ifdef __SSE2__
#include <immintrin.h>
#endif
#include <stdint.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define VECTOR_PAST(to, v) _mm512_stream_si512((void *)(to), (__m512i)(v))
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define VECTOR_PAST(to, v) _mm256_stream_si256((void *)(to), (__m256i)(v))
#elif defined(__SSE2__)
#define VECTOR_BYTES 16
#define VECTOR_PAST(to, v) _mm_stream_si128((void *)(to), (__m128i)(v))
#else
#define VECTOR_BYTES 16
#define VECTOR_PAST(to, v) (*(vector64 *)(void *)(to) = (vector64)(v))
#endif

/* At any address, and of whatever type the elements are. */
typedef uint64_t vector64 __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));
typedef int32_t vector32 __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));

#endif
