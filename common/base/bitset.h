/* SPDX-License-Identifier: MIT */
/* Sets of small numbers in caller-owned words: bit i is word i / 64, bit i % 64. */
#ifndef MST_BASE_BITSET_H
#define MST_BASE_BITSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t mst_bitset_words(size_t bits)
{
	return (bits + 63) / 64;
}

static inline bool mst_bitset_test(const uint64_t *set, size_t i)
{
	return set[i / 64] >> (i % 64) & 1u;
}
static inline void mst_bitset_add(uint64_t *set, size_t i)
{
	set[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void mst_bitset_remove(uint64_t *set, size_t i)
{
	set[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

#endif
