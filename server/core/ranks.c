/* SPDX-License-Identifier: MIT */
#include "server/core/ranks.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/assert.h"

/* How many words a level has in a set for so many ranks. */
static uint32_t words_of(uint32_t ranks, int level)
{
	uint32_t words = (ranks + 63) / 64;

	return level == 0 ? words : words_of(words, level - 1);
}

uint64_t mst_ranks_bytes(uint32_t ranks)
{
	uint64_t words = 0;

	for (int level = 0; level < MST_RANKS_LEVELS; level++)
		words += words_of(ranks, level);
	return words * sizeof(uint64_t);
}

int mst_ranks_init(struct mst_ranks *s, uint32_t ranks)
{
	MST_ASSERT(ranks > 0 && ranks <= MST_RANKS_MAX);
	*s = (struct mst_ranks){ 0 };
	s->level[0] = calloc(1, mst_ranks_bytes(ranks));
	if (s->level[0] == NULL)
		return -ENOMEM;
	for (int level = 0; level < MST_RANKS_LEVELS; level++)
		s->words[level] = words_of(ranks, level);
	for (int level = 1; level < MST_RANKS_LEVELS; level++)
		s->level[level] = s->level[level - 1] + s->words[level - 1];
	return 0;
}

void mst_ranks_fini(struct mst_ranks *s)
{
	free(s->level[0]);
}

void mst_ranks_add(struct mst_ranks *s, uint32_t rank)
{
	if (mst_ranks_has(s, rank))
		return;
	s->count++;
	for (int level = 0; level < MST_RANKS_LEVELS; level++, rank /= 64) {
		uint64_t before = s->level[level][rank / 64];
		s->level[level][rank / 64] = before | UINT64_C(1) << (rank % 64);
		if (before != 0)
			return; /* the levels above have its bit already */
	}
}

void mst_ranks_remove(struct mst_ranks *s, uint32_t rank)
{
	if (!mst_ranks_has(s, rank))
		return;
	MST_ASSERT(s->count > 0);
	s->count--;
	for (int level = 0; level < MST_RANKS_LEVELS; level++, rank /= 64) {
		s->level[level][rank / 64] &= ~(UINT64_C(1) << (rank % 64));
		if (s->level[level][rank / 64] != 0)
			return;
	}
}

/* Goes up until a level has a bit at @from or after it, then down again along the lowest bits. */
uint32_t mst_ranks_next(const struct mst_ranks *s, uint32_t from)
{
	uint32_t at = from;

	for (int level = 0; level < MST_RANKS_LEVELS; level++) {
		uint64_t rest = at / 64 < s->words[level] ? s->level[level][at / 64] >> (at % 64)
							  : 0;
		if (rest == 0) {
			at = at / 64 + 1;
			continue;
		}
		at += (uint32_t)__builtin_ctzll(rest);
		while (level-- > 0)
			at = at * 64 + (uint32_t)__builtin_ctzll(s->level[level][at]);
		return at;
	}
	return MST_RANK_NONE;
}
